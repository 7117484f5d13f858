/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/lang/fold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *fold_reason(enum record_stop stop)
{
	static const char *const reasons[] = {
#define REASON(name, text) text,
	    RECORD_STOPS(REASON)
#undef REASON
	};

	return stop < STOP_COUNT ? reasons[stop] : "?";
}

static void fold_frame(FILE *out, const struct live_frame *frame,
		       const struct fold_options *options)
{
	const char *slash = strrchr(frame->file, '/');

	fputs(frame->name, out);
	if (frame->kind != LIVE_SCRIPT || options->names_only)
		return;
	if (frame->file[0])
		fprintf(out, " (%s:%u)", slash ? slash + 1 : frame->file, frame->line);
	else
		fputs(" ()", out);
}

char *fold_text(const struct live_stack *stack, const struct fold_options *options)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	const char *between = "";

	if (!out)
		abort();
	if (stack->stop != STOP_COMPLETE) {
		fprintf(out, "[truncated: %s]", fold_reason(stack->stop));
		between = ";";
	}
	for (uint32_t i = stack->frames_n; i-- > 0;) {
		if (options->scripts_only && stack->frames[i].kind == LIVE_NATIVE)
			continue;
		fputs(between, out);
		fold_frame(out, &stack->frames[i], options);
		between = ";";
	}
	if (fclose(out))
		abort();
	return text;
}

void fold_add(struct folds *folds, const struct live_stack *stack,
	      const struct fold_options *options)
{
	char *text = fold_text(stack, options);

	for (uint32_t i = 0; i < folds->n; i++)
		if (!strcmp(folds->lines[i].text, text)) {
			folds->lines[i].count++;
			free(text);
			return;
		}
	folds->lines = realloc(folds->lines, (folds->n + 1) * sizeof(*folds->lines));
	if (!folds->lines)
		abort();
	folds->lines[folds->n].text = text;
	folds->lines[folds->n++].count = 1;
}

static int fold_compare(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)((const char *)a + sizeof(char *));
	uint32_t right = *(const uint32_t *)((const char *)b + sizeof(char *));

	return left < right ? 1 : left > right ? -1 : 0;
}

void fold_print(struct folds *folds)
{
	if (folds->n)
		qsort(folds->lines, folds->n, sizeof(*folds->lines), fold_compare);
	for (uint32_t i = 0; i < folds->n; i++)
		printf("%s %u\n", folds->lines[i].text, folds->lines[i].count);
}

void fold_free(struct folds *folds)
{
	for (uint32_t i = 0; i < folds->n; i++)
		free(folds->lines[i].text);
	free(folds->lines);
	memset(folds, 0, sizeof(*folds));
}
