/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/symbolizer/dwarf_answers.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const commands[ANSWERERS] = {
    [LLVM] = "llvm-symbolizer --no-demangle --functions=linkage --inlines --output-style=LLVM "
	     "--obj='%s' %s <'%s' >'%s' 2>/dev/null",
    [BINUTILS] = "addr2line -a -f -i -e '%s' %s <'%s' >'%s' 2>/dev/null",
};

static FILE *answers_run(enum answerer who, const char *path, const char *more, const uint64_t *pcs,
			 unsigned n)
{
	char in[] = "/tmp/dwarf-pcs-XXXXXX", out[] = "/tmp/dwarf-out-XXXXXX", command[4 * PATH_MAX];
	int in_fd = mkstemp(in), out_fd = mkstemp(out);
	FILE *file = fdopen(in_fd, "w"), *answers;

	for (unsigned i = 0; i < n; i++)
		fprintf(file, "0x%llx\n", (unsigned long long)pcs[i]);
	fclose(file);
	snprintf(command, sizeof(command), commands[who], path, more, in, out);
	if (system(command))
		printf("%s: failed\n", command);
	answers = fdopen(out_fd, "r");
	unlink(in);
	unlink(out);
	return answers;
}

bool answers_open(struct answers *answers, enum answerer who, const char *path, const char *alt,
		  const char *dwp, const uint64_t *pcs, unsigned n)
{
	char more[PATH_MAX + 16] = "";

	*answers = (struct answers){.who = who, .pcs = pcs};
	if (who == LIBDW) {
		answers->libdw = dwarf_libdw_open(path, alt);
		return answers->libdw;
	}
	if (who == LLVM && dwp)
		snprintf(more, sizeof(more), "--dwp='%s'", dwp);
	answers->from = answers_run(who, path, more, pcs, n);
	return answers->from;
}

void answers_close(struct answers *answers)
{
	if (answers->from)
		fclose(answers->from);
	dwarf_libdw_close(answers->libdw);
}

/* "FILE:LINE:COLUMN" or "FILE:LINE (discriminator 3)"; "?" is 0. */
static void answers_place(char *text, enum answerer who, struct answer_frame *frame)
{
	char *colon, *extra = strstr(text, " (discriminator");

	if (extra)
		*extra = 0;
	if (who == LLVM && (colon = strrchr(text, ':')))
		*colon = 0;
	colon = strrchr(text, ':');
	frame->line = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
	if (colon)
		*colon = 0;
	snprintf(frame->file, sizeof(frame->file), "%s", strcmp(text, "??") ? text : "");
}

static bool answers_line(FILE *from, char text[ANSWER_TEXT_BYTES])
{
	if (!fgets(text, ANSWER_TEXT_BYTES, from))
		return false;
	text[strcspn(text, "\n")] = 0;
	return true;
}

/* llvm-symbolizer ends each address with an empty line, addr2line -a begins it with the address. */
static bool answers_parse(FILE *from, enum answerer who, struct answer *answer)
{
	char name[ANSWER_TEXT_BYTES], place[ANSWER_TEXT_BYTES];
	long before;

	if (who == BINUTILS && !answers_line(from, name))
		return false;
	for (;;) {
		before = ftell(from);
		if (!answers_line(from, name) || !name[0])
			break;
		if (who == BINUTILS && strncmp(name, "0x", 2) == 0) {
			fseek(from, before, SEEK_SET);
			break;
		}
		if (!answers_line(from, place))
			return false;
		if (answer->n > SYMBOL_LINES_MAX)
			continue;
		snprintf(answer->frame[answer->n].name, ANSWER_TEXT_BYTES, "%s", name);
		answers_place(place, who, &answer->frame[answer->n++]);
	}
	return answer->n > 0;
}

static void answers_add(void *arg, const char *name, const char *file, unsigned line)
{
	struct answer *answer = arg;
	struct answer_frame *frame = &answer->frame[answer->n];

	if (answer->n > SYMBOL_LINES_MAX)
		return;
	answer->n++;
	snprintf(frame->name, ANSWER_TEXT_BYTES, "%s", name ? name : "??");
	snprintf(frame->file, ANSWER_TEXT_BYTES, "%s", file ? file : "");
	frame->line = line;
}

bool answers_next(struct answers *answers, struct answer *answer)
{
	answer->n = 0;
	if (answers->who != LIBDW)
		return answers_parse(answers->from, answers->who, answer);
	dwarf_libdw_find(answers->libdw, *answers->pcs++, answers_add, answer);
	return true;
}
