/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, files, lines and inlined frames against llvm-symbolizer and addr2line, for random
 * addresses in programs of two compilers, DWARF 2 to 5, split, packed, by dwz, with what a linker
 * dropped. Where they differ, the difference has a kind, and each kind has a reason and a limit.
 *
 *   dwarf_others_test            small programs, built beside it (tests/symbolizer/dwarf.mk)
 *   dwarf_others_test PROGRAM    others: 2,000 addresses in each (or -n PCS before it), and
 *                                llvm-symbolizer alone
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/symbolizer/dwarf_program.h"

#define PCS_DEFAULT 2000
#define PCS_SMALL   300
#define BYTES_MAX   (64u << 20)
#define TEXT_BYTES  4096

enum other { LLVM, BINUTILS, OTHERS };

enum kind {
	SAME,
	NOBODY_KNOWS,
	FILE_SYMBOL,
	PADDING,
	OUTSIDE,
	ALIAS,
	NO_FUNCTION,
	NAME_OF_SYMBOL,
	UNQUALIFIED,
	OURS_MORE,
	DIFFERENT,
	KINDS,
};

/* limit: of a thousand addresses. */
static const struct {
	const char *name, *reason;
	unsigned limit[OTHERS];
} kinds[KINDS] = {
    [SAME] = {"same", "", {1000, 1000}},
    [NOBODY_KNOWS] = {"nobody knows", "", {1000, 1000}},
    [FILE_SYMBOL] =
	{"file symbol",
	 "code without debug information; the other one takes the name of the object file "
	 "from the symbol table for the source's",
	 {1000, 1000}},
    [PADDING] = {"padding",
		 "bytes between functions, which no code runs: the line before them goes on, for "
		 "those who want a line without a function",
		 {50, 50}},
    [OUTSIDE] = {"outside",
		 "the other one goes on with a symbol behind the end that the symbol itself states",
		 {30, 100}},
    [ALIAS] =
	{"alias",
	 "several symbols stand at one address; each of us has rules of its own which is best",
	 {50, 50}},
    [NO_FUNCTION] =
	{"no function",
	 "-flto leaves marks (no type, in no code) whose addresses are inside of functions; the "
	 "other one takes them for functions",
	 {250, 0}},
    [NAME_OF_SYMBOL] =
	{"symbol",
	 "the outermost function is called by its symbol here (foo.cold, an alias); the "
	 "other one takes the name of its entry",
	 {0, 1000}},
    [UNQUALIFIED] = {"unqualified",
		     "no linkage name is given: we put the namespace or class before the name, the "
		     "other one does not",
		     {1000, 1000}},
    [OURS_MORE] = {"ours more", "the other one says ?? where we know something", {0, 20}},
    [DIFFERENT] = {"different", "", {0, 0}},
};

static struct dwarf_program program;
static char **programs;
static char small_programs[PATH_MAX + 32];
static unsigned pcs_n = PCS_SMALL;

static uint64_t random_next(void)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

/* --- What the other one says: frames of one address. --- */

struct their_frame {
	char name[TEXT_BYTES], file[TEXT_BYTES];
	unsigned line;
};

struct answer {
	struct their_frame frame[SYMBOL_LINES_MAX + 1];
	unsigned n;
};

/* "FILE:LINE:COLUMN" or "FILE:LINE (discriminator 3)"; "?" is 0. */
static void parse_place(char *text, enum other other, struct their_frame *frame)
{
	char *colon, *extra = strstr(text, " (discriminator");

	if (extra)
		*extra = 0;
	if (other == LLVM && (colon = strrchr(text, ':')))
		*colon = 0;
	colon = strrchr(text, ':');
	frame->line = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
	if (colon)
		*colon = 0;
	snprintf(frame->file, sizeof(frame->file), "%s", strcmp(text, "??") ? text : "");
}

static bool parse_line(FILE *from, char text[TEXT_BYTES])
{
	if (!fgets(text, TEXT_BYTES, from))
		return false;
	text[strcspn(text, "\n")] = 0;
	return true;
}

/* llvm-symbolizer ends each address with an empty line, addr2line -a begins it with the address. */
static bool parse_answer(FILE *from, enum other other, struct answer *answer)
{
	char name[TEXT_BYTES], place[TEXT_BYTES];
	long before;

	answer->n = 0;
	if (other == BINUTILS && !parse_line(from, name))
		return false;
	for (;;) {
		before = ftell(from);
		if (!parse_line(from, name) || !name[0])
			break;
		if (other == BINUTILS && strncmp(name, "0x", 2) == 0) {
			fseek(from, before, SEEK_SET);
			break;
		}
		if (!parse_line(from, place))
			return false;
		if (answer->n > SYMBOL_LINES_MAX)
			continue;
		snprintf(answer->frame[answer->n].name, TEXT_BYTES, "%s", name);
		parse_place(place, other, &answer->frame[answer->n++]);
	}
	return answer->n > 0;
}

/* --- Comparing. --- */

static uint64_t symbol_start(uint64_t vaddr)
{
	uint32_t low = 0, high = program.symbols ? program.symbols->entries_n : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (program.symbols->entries[middle].start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? program.symbols->entries[low - 1].start : 0;
}

struct at_address {
	const char *name;
	uint64_t start; /* 0: anywhere */
	bool found;
};

static void symbol_matches(void *arg, const struct elffile_symbol *symbol)
{
	struct at_address *a = arg;

	if ((!a->start || symbol->value == a->start) && strlen(a->name) == symbol->name_bytes &&
	    memcmp(symbol->name, a->name, symbol->name_bytes) == 0)
		a->found = true;
}

/* Does a symbol of this name stand where the one of this address does? */
static bool is_alias(const char *name, uint64_t vaddr)
{
	struct at_address a = {name, symbol_start(vaddr), false};

	elffile_symbols(&program.file, false, symbol_matches, &a);
	return a.found;
}

/* Is it the name of a function at all? */
static bool is_function(const char *name)
{
	struct at_address a = {name, 0, false};

	elffile_symbols(&program.file, false, symbol_matches, &a);
	return a.found;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

static bool same_file(const char *ours, const char *theirs, enum other other)
{
	char a[PATH_MAX], b[PATH_MAX];

	if (strcmp(ours ? ours : "", theirs) == 0)
		return true;
	/* addr2line leaves the directory of the compilation out in places. */
	return other == BINUTILS && ours &&
	       (ends_with(ours, theirs) ||
		(realpath(ours, a) && realpath(theirs, b) && !strcmp(a, b)));
}

static enum kind compare_name(const struct line *ours, const struct their_frame *theirs,
			      uint64_t vaddr, bool outermost, enum other other)
{
	const char *name = ours->name;

	if (strcmp(name, theirs->name) == 0)
		return SAME;
	if (strcmp(name, "[unknown]") == 0 && strcmp(theirs->name, "??") == 0)
		return SAME;
	if (outermost && is_alias(theirs->name, vaddr))
		return ALIAS;
	if (outermost && other == LLVM && !is_function(theirs->name))
		return NO_FUNCTION;
	if (outermost)
		return NAME_OF_SYMBOL;
	if (ends_with(name, theirs->name) && strlen(name) > strlen(theirs->name) + 2 &&
	    name[strlen(name) - strlen(theirs->name) - 1] == ':')
		return UNQUALIFIED;
	return DIFFERENT;
}

static enum kind compare(const struct lines *ours, const struct answer *theirs, uint64_t vaddr,
			 enum other other)
{
	const struct their_frame *first = &theirs->frame[0];
	enum kind worst = SAME;
	bool nothing =
	    theirs->n == 1 && !first->file[0] && !first->line && strcmp(first->name, "??") == 0;

	if (nothing)
		return ours->n == 0 ? NOBODY_KNOWS : OURS_MORE;
	if (ours->n == 0 && theirs->n == 1 && strcmp(first->name, "??") == 0)
		return PADDING;
	if (ours->n == 0 && theirs->n == 1 && !first->line)
		return OUTSIDE;
	if (ours->n == 0 && theirs->n == 1 && other == BINUTILS)
		return PADDING;
	if (ours->n != theirs->n)
		return DIFFERENT;
	if (ours->n == 1 && !ours->line[0].file && !first->line && !strchr(first->file, '/') &&
	    first->file[0])
		return compare_name(&ours->line[0], first, vaddr, true, other) == SAME ? FILE_SYMBOL
										       : ALIAS;
	for (uint32_t i = 0; i < ours->n; i++) {
		enum kind kind =
		    compare_name(&ours->line[i], &theirs->frame[i], vaddr, i + 1 == ours->n, other);

		if (ours->line[i].line != theirs->frame[i].line ||
		    !same_file(ours->line[i].file, theirs->frame[i].file, other))
			kind = DIFFERENT;
		worst = kind > worst ? kind : worst;
	}
	return worst;
}

static void print_both(const char *path, uint64_t vaddr, const struct lines *ours,
		       const struct answer *theirs, enum kind kind)
{
	print_message("%s 0x%llx: %s\n", path, (unsigned long long)vaddr, kinds[kind].name);
	for (uint32_t i = 0; i < ours->n; i++)
		print_message("  ours   %s %s:%u\n", ours->line[i].name,
			      ours->line[i].file ? ours->line[i].file : "??", ours->line[i].line);
	for (uint32_t i = 0; i < theirs->n; i++)
		print_message("  theirs %s %s:%u\n", theirs->frame[i].name,
			      theirs->frame[i].file[0] ? theirs->frame[i].file : "??",
			      theirs->frame[i].line);
}

/* --- A program. --- */

static const char *const commands[OTHERS] = {
    [LLVM] = "llvm-symbolizer --no-demangle --functions=linkage --inlines --output-style=LLVM "
	     "--obj='%s' %s <'%s' >'%s' 2>/dev/null",
    [BINUTILS] = "addr2line -a -f -i -e '%s' %s <'%s' >'%s' 2>/dev/null",
};

static FILE *ask(enum other other, const char *path, const char *more, const uint64_t *pcs,
		 unsigned n)
{
	char in[] = "/tmp/dwarf-pcs-XXXXXX", out[] = "/tmp/dwarf-out-XXXXXX", command[4 * PATH_MAX];
	int in_fd = mkstemp(in), out_fd = mkstemp(out);
	FILE *file = fdopen(in_fd, "w"), *answers;

	for (unsigned i = 0; i < n; i++)
		fprintf(file, "0x%llx\n", (unsigned long long)pcs[i]);
	fclose(file);
	snprintf(command, sizeof(command), commands[other], path, more, in, out);
	if (system(command))
		print_message("%s: failed\n", command);
	answers = fdopen(out_fd, "r");
	unlink(in);
	unlink(out);
	return answers;
}

static void count(const char *path, enum other other, const uint64_t *pcs, unsigned n,
		  const char *more)
{
	static const char *const names[OTHERS] = {"llvm-symbolizer", "addr2line"};
	unsigned counts[KINDS] = {0}, deep = 0, printed[KINDS] = {0};
	FILE *answers;
	static struct answer theirs;
	static struct lines ours;
	char original[PATH_MAX];

	/* What dwz made of a program is compared with what is known of the program as it was. */
	snprintf(original, sizeof(original), "%s.original", path);
	answers = ask(other, access(original, R_OK) ? path : original, more, pcs, n);
	for (unsigned i = 0; i < n; i++) {
		enum kind kind;

		if (!parse_answer(answers, other, &theirs))
			fail_msg("%s: %s ended after %u of %u", path, names[other], i, n);
		dwarf_program_find(&program, pcs[i], &ours);
		kind = compare(&ours, &theirs, pcs[i], other);
		counts[kind]++;
		deep += ours.n > 1;
		if ((kind >= ALIAS || kind == OUTSIDE) &&
		    printed[kind]++ < (kind == DIFFERENT ? 5 : 1))
			print_both(path, pcs[i], &ours, &theirs, kind);
	}
	fclose(answers);
	print_message("%s against %s: %u addresses, %u with inlined frames:", path, names[other], n,
		      deep);
	for (int k = 0; k < KINDS; k++)
		if (counts[k])
			print_message(" %s %u", kinds[k].name, counts[k]);
	print_message("\n");
	for (int k = 0; k < KINDS; k++)
		if (counts[k] * 1000ull > (uint64_t)kinds[k].limit[other] * n)
			fail_msg("%s: %u are %s (%s)", path, counts[k], kinds[k].name,
				 kinds[k].reason);
}

static void against(const char *path, bool binutils)
{
	uint64_t start, bytes, *pcs = calloc(pcs_n, sizeof(*pcs));
	char alt[PATH_MAX], dwp[PATH_MAX], more[PATH_MAX + 16] = "";

	snprintf(alt, sizeof(alt), "%s.alt", path);
	snprintf(dwp, sizeof(dwp), "%s.dwp", path);
	if (!dwarf_program_open(&program, path, access(alt, R_OK) ? NULL : alt,
				access(dwp, R_OK) ? NULL : dwp, BYTES_MAX))
		fail_msg("%s: %s", path, strerror(errno));
	assert_non_null(program.dwarf);
	start = dwarf_program_code(&program, &bytes);
	assert_true(bytes > 0);
	for (unsigned i = 0; i < pcs_n; i++)
		pcs[i] = start + random_next() % bytes;
	if (access(dwp, R_OK) == 0)
		snprintf(more, sizeof(more), "--dwp='%s'", dwp);
	count(path, LLVM, pcs, pcs_n, more);
	if (binutils)
		count(path, BINUTILS, pcs, pcs_n < 200 ? pcs_n : 200, "");
	free(pcs);
	dwarf_program_close(&program);
}

/*
 * addr2line (2.40) is asked where it can answer: it leaves inlined frames out whose ranges are
 * indexed (Clang, DWARF 5), calls C++ functions without a linkage name by the symbol of the
 * outermost one, takes <artificial> for the file after -flto, and knows no split units.
 */
static bool binutils_can(const char *name)
{
	static const char *const cannot[] = {"clang-c5", "c-lto", "gcc-x",    "clang-x-",
					     "dwz-x",	 "split", "clang-x5", "rust"};

	for (size_t i = 0; i < sizeof(cannot) / sizeof(cannot[0]); i++)
		if (strstr(name, cannot[i]))
			return false;
	return true;
}

/* Executable files, which are not links. */
static int is_program(const struct dirent *entry)
{
	return entry->d_type == DT_REG && !strchr(entry->d_name, '.') &&
	       strncmp(entry->d_name, "seed-", 5) != 0;
}

static void test_small_programs(void **state)
{
	char path[2 * PATH_MAX];
	struct dirent **entries;
	int n = scandir(small_programs, &entries, is_program, alphasort);

	(void)state;
	assert_true(n >= 10);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", small_programs, entries[i]->d_name);
		against(path, binutils_can(entries[i]->d_name));
		free(entries[i]);
	}
	free(entries);
}

static void test_given_programs(void **state)
{
	(void)state;
	for (unsigned i = 0; programs[i]; i++)
		against(programs[i], false);
}

/* build/[asan/]tests/symbolizer/x -> build/tests/symbolizer/dwarf */
static void find_small_programs(const char *argv0)
{
	char here[PATH_MAX], *mode;

	if (!realpath(argv0, here))
		return;
	*strrchr(here, '/') = 0;
	snprintf(small_programs, sizeof(small_programs), "%s/dwarf", here);
	mode = strstr(here, "/tests/symbolizer");
	if (access(small_programs, R_OK) && mode) {
		*mode = 0;
		snprintf(small_programs, sizeof(small_programs), "%s/../tests/symbolizer/dwarf",
			 here);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest small[] = {cmocka_unit_test(test_small_programs)};
	const struct CMUnitTest given[] = {cmocka_unit_test(test_given_programs)};
	int first = 1;

	find_small_programs(argv[0]);
	if (argc > 2 && strcmp(argv[1], "-n") == 0) {
		pcs_n = (unsigned)strtoul(argv[2], NULL, 10);
		first = 3;
	} else if (argc > 1) {
		pcs_n = PCS_DEFAULT;
	}
	programs = argv + first;
	return argc > first ? cmocka_run_group_tests(given, NULL, NULL)
			    : cmocka_run_group_tests(small, NULL, NULL);
}
