/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/lang/lang.h"

#include <errno.h>
#include <string.h>

const struct lang *const langs[LANG_COUNT] = {
#define LANGUAGE(NAME, name) [LANG_##NAME] = &name##_lang,
    LANGUAGES(LANGUAGE)
#undef LANGUAGE
};

int lang_recognize(struct elffile *elf, const char *module, struct lang_runtime *runtime)
{
	for (uint32_t i = LANG_NONE + 1; i < LANG_COUNT; i++) {
		int err;

		memset(runtime, 0, sizeof(*runtime));
		runtime->walk.language = i;
		err = langs[i]->recognize(elf, module, runtime);
		/* Taken from the file as it is, perhaps all of the room. */
		runtime->version[sizeof(runtime->version) - 1] = 0;
		if (err != -ENOENT)
			return err;
	}
	return -ENOENT;
}
