/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the stack of a snapshot that live-stacks -o wrote: replay FILE ... */
#include <stdio.h>
#include <stdlib.h>

#include "tests/lang/fold.h"
#include "tests/lang/livefile.h"

static int replay(struct snapshot *snapshot, const char *path)
{
	const struct fold_options options = {0};
	static struct live_stack stack;
	char *text;

	if (!snapshot_load(snapshot, path)) {
		fprintf(stderr, "%s: no snapshot\n", path);
		return 1;
	}
	if (!live_resolve(snapshot))
		fprintf(stderr, "%s: files are missing\n", path);
	live_replay(snapshot, &stack);
	text = fold_text(&stack, &options);
	puts(text);
	free(text);
	return 0;
}

int main(int argc, char **argv)
{
	struct snapshot snapshot;
	int failed = argc < 2;

	if (!snapshot_open(&snapshot))
		return 1;
	for (int i = 1; i < argc; i++)
		failed |= replay(&snapshot, argv[i]);
	snapshot_close(&snapshot);
	livefile_forget();
	return failed;
}
