/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "profile/folded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct folded_line {
	char *text; /* without the count */
	uint64_t count;
};

struct folded {
	struct folded_line *lines;
	size_t n;
	struct profile_frame *frames;
	size_t frames_cap;
};

/* A name as part of a line. A space may stand within it: readers take the last one. */
static void folded_name(FILE *out, const char *name)
{
	for (; *name; name++)
		fputc(*name == ';' ? ':' : (unsigned char)*name < ' ' ? ' ' : *name, out);
}

static int folded_frames(struct folded *folded, const struct profile *profile, uint32_t stack,
			 size_t *n)
{
	struct profile_frame *bigger;

	*n = profile_frames(profile, stack, folded->frames, folded->frames_cap);
	if (*n <= folded->frames_cap)
		return 0;
	bigger = realloc(folded->frames, *n * sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	folded->frames = bigger;
	folded->frames_cap = *n;
	profile_frames(profile, stack, folded->frames, folded->frames_cap);
	return 0;
}

static int folded_stack(struct folded *folded, const struct profile *profile,
			const struct profile_sample *sample, struct folded_line *line)
{
	size_t n, len;
	FILE *out;
	int err = folded_frames(folded, profile, sample->stack, &n);

	if (err)
		return err;
	out = open_memstream(&line->text, &len);
	if (!out)
		return -errno;
	folded_name(out,
		    sample->thread_name ? profile_text(profile, sample->thread_name) : "[unknown]");
	if (sample->stop)
		fprintf(out, ";[truncated: %s]", profile_text(profile, sample->stop));
	while (n--) {
		fputc(';', out);
		folded_name(out, folded->frames[n].name);
		if (folded->frames[n].kernel)
			fputs("_[k]", out);
		else if (folded->frames[n].inlined)
			fputs("_[i]", out);
	}
	err = ferror(out) ? -ENOMEM : 0;
	return fclose(out) ? -ENOMEM : err;
}

static int folded_compare(const void *a, const void *b)
{
	return strcmp(((const struct folded_line *)a)->text, ((const struct folded_line *)b)->text);
}

static int folded_print(struct folded *folded, char **text, size_t *len_bytes)
{
	FILE *out = open_memstream(text, len_bytes);
	uint64_t count = 0;

	if (!out)
		return -errno;
	qsort(folded->lines, folded->n, sizeof(*folded->lines), folded_compare);
	for (size_t i = 0; i < folded->n; i++) {
		count += folded->lines[i].count;
		if (i + 1 < folded->n && !folded_compare(&folded->lines[i], &folded->lines[i + 1]))
			continue;
		fprintf(out, "%s %" PRIu64 "\n", folded->lines[i].text, count);
		count = 0;
	}
	return fclose(out) ? -ENOMEM : 0;
}

int folded_write(const struct profile *profile, char **text, size_t *len_bytes)
{
	uint32_t n = profile_samples_n(profile);
	struct folded folded = {.lines = calloc(n ? n : 1, sizeof(*folded.lines))};
	int err = folded.lines ? 0 : -ENOMEM;

	for (; folded.n < n && !err; folded.n++) {
		struct folded_line *line = &folded.lines[folded.n];
		const struct profile_sample *sample =
		    profile_sample_at(profile, (uint32_t)folded.n + 1, &line->count);

		err = folded_stack(&folded, profile, sample, line);
	}
	if (!err)
		err = folded_print(&folded, text, len_bytes);
	for (size_t i = 0; i < folded.n; i++)
		free(folded.lines[i].text);
	free(folded.lines);
	free(folded.frames);
	return err;
}
