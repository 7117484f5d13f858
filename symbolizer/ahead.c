/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/ahead.h"

#include <string.h>

#include "symbolizer/lang/lang.h"

#define AGAIN_NS 5000000000ull /* a file is looked at again */

/* "php8.2", "libphp.so": by its name, as it is only about when it is looked at. */
static bool ahead_may_be_runtime(const struct file *file)
{
	const char *module = file_module(file);

	if (!strncmp(module, "lib", 3))
		module += 3;
	for (uint32_t i = LANG_NONE + 1; i < LANG_COUNT; i++)
		if (!strncmp(module, langs[i]->name, strlen(langs[i]->name)))
			return true;
	return false;
}

/* From the end on: libraries lie behind the program. What was sent may have been refused for want
 * of room. */
static void ahead_look(struct filetables *tables, const struct process *process, bool runtimes)
{
	bool missing = true;

	for (uint32_t i = process->ranges_n; i-- > 0 && missing;) {
		uint32_t file_id = process->ranges[i].file_id;
		struct file *file = file_id ? files_get(tables->files, file_id) : NULL;

		if (!file || file->refused || (runtimes && !ahead_may_be_runtime(file)) ||
		    (file->table_sent_ns && tables->now_ns < file->table_sent_ns + AGAIN_NS))
			continue;
		filetable_get(tables, file_id, &missing);
		if (missing)
			files_need(tables->files, file, tables->now_ns);
	}
	/* No sample waits for them. */
	tables->missing = NULL;
}

void ahead_stack(struct filetables *tables, const struct process *process)
{
	ahead_look(tables, process, false);
}

void ahead_frames(struct filetables *tables, const struct process *process,
		  const struct frame *frames, uint32_t n, bool deferred)
{
	bool made = false, scripts = false;

	for (uint32_t i = 0; i < n; i++) {
		made = made || (frames[i].flags & FRAME_ANON);
		scripts = scripts || frames[i].kind == FRAME_SCRIPT;
	}
	if (made && !scripts)
		ahead_look(tables, process, !deferred);
}
