/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/lang/lang.h"

#include <errno.h>

static int php_recognize(struct elffile *elf, const char *module, struct lang_runtime *runtime)
{
	(void)elf, (void)module, (void)runtime;
	return -ENOENT;
}

static bool php_name_frame(struct remote *remote, const struct lang_runtime *runtime,
			    const struct lang_frame *frame, struct lang_function *function)
{
	(void)remote, (void)runtime, (void)frame, (void)function;
	return false;
}

const struct lang php_lang = {"php", "php", php_recognize, php_name_frame};
