/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, files, lines and inlined frames against llvm-symbolizer, addr2line and libdw, for
 * random addresses in programs of two compilers, DWARF 2 to 5, split, packed, by dwz, with what a
 * linker dropped. Where they differ, the difference has a kind, and each kind has a reason and a
 * limit.
 *
 *   dwarf_others_test            small programs, built beside it (tests/symbolizer/dwarf.mk)
 *   dwarf_others_test PROGRAM    others: 2,000 addresses in each (or -n PCS before it), without
 *                                addr2line; tests/tools/lines_table.py makes a table of many
 *
 * PROGRAM may be stripped: its debug file is looked for by its build id, as for a mapped file.
 * Beside it may lie PROGRAM.dwp, PROGRAM.alt (what dwz took out of it) and PROGRAM.original, which
 * the others are asked about in its place: for what they cannot read.
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

#include "tests/symbolizer/dwarf_answers.h"
#include "tests/symbolizer/dwarf_program.h"

#define PCS_DEFAULT 2000
#define PCS_SMALL   300
/* ... of which the slower ones are asked some: a process, and a search through all entries. */
#define PCS_BINUTILS 200
#define PCS_LIBDW    60
#define BYTES_MAX    (64u << 20)

enum kind {
	SAME,
	NOBODY_KNOWS,
	FILE_SYMBOL,
	ALIAS,
	PADDING,
	OUTSIDE,
	OTHER_SIZE,
	NO_FUNCTION,
	NAME_OF_SYMBOL,
	UNQUALIFIED,
	OURS_MORE,
	DIFFERENT,
	KINDS,
};

/* limit: of a thousand addresses. libdw is asked for debug information alone, and so are we then.
 */
static const struct {
	const char *name, *reason;
	unsigned limit[ANSWERERS];
} kinds[KINDS] = {
    [SAME] = {"same", "", {1000, 1000, 1000}},
    [NOBODY_KNOWS] = {"nobody knows", "", {1000, 1000, 1000}},
    [FILE_SYMBOL] =
	{"file symbol",
	 "code without debug information; the other one takes the name of the object file "
	 "from the symbol table for the source's",
	 {1000, 1000, 0}},
    [ALIAS] = {"alias",
	       "several symbols have the same first byte and the same size, so that both names are "
	       "right; C libraries are full of them",
	       {1000, 1000, 1000}},
    [PADDING] = {"padding",
		 "bytes between functions, which no code runs: the line before them goes on, for "
		 "those who want a line without a function",
		 {50, 50, 100}},
    [OUTSIDE] = {"outside",
		 "the other one goes on with a symbol behind the end that the symbol itself states",
		 {30, 100, 0}},
    [OTHER_SIZE] = {"other size",
		    "several symbols begin at one address and do not end at one; each of us has "
		    "rules of its own which is best",
		    {50, 50, 0}},
    [NO_FUNCTION] =
	{"no function",
	 "the other one's name is no function's symbol: -flto leaves marks (no type, in no code) "
	 "inside of functions, and of two constructors with the same code one has a symbol",
	 {250, 0, 0}},
    [NAME_OF_SYMBOL] =
	{"symbol",
	 "the outermost function is called by its symbol here (foo.cold, an alias); the "
	 "other one takes the name of its entry",
	 {0, 1000, 0}},
    [UNQUALIFIED] = {"unqualified",
		     "no linkage name is given: we put the namespace or class before the name, the "
		     "other one does not",
		     {1000, 1000, 1000}},
    [OURS_MORE] = {"ours more", "the other one says ?? where we know something", {0, 20, 0}},
    [DIFFERENT] = {"different", "", {0, 0, 0}},
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

/* --- Comparing. --- */

/* The symbol of a name, nearest before an address. */
struct sought {
	const char *name;
	uint64_t vaddr, start, size;
	bool found;
};

static size_t plain_bytes(const char *name, size_t bytes)
{
	const char *at = memchr(name, '@', bytes);

	return at && at > name ? (size_t)(at - name) : bytes;
}

static void symbol_matches(void *arg, const struct elffile_symbol *symbol)
{
	struct sought *s = arg;
	size_t bytes = plain_bytes(symbol->name, symbol->name_bytes);

	if (bytes != plain_bytes(s->name, strlen(s->name)) ||
	    memcmp(symbol->name, s->name, bytes) || symbol->value > s->vaddr ||
	    (s->found && symbol->value < s->start))
		return;
	s->found = true;
	s->start = symbol->value;
	s->size = symbol->size;
}

static struct sought symbol_of(const char *name, uint64_t vaddr)
{
	struct sought s = {.name = name, .vaddr = vaddr};

	elffile_symbols(program.named, false, symbol_matches, &s);
	return s;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

static bool same_file(const char *ours, const char *theirs, enum answerer other)
{
	char a[PATH_MAX], b[PATH_MAX];

	if (strcmp(ours ? ours : "", theirs) == 0)
		return true;
	/* addr2line leaves the directory of the compilation out in places. */
	return other == BINUTILS && ours &&
	       (ends_with(ours, theirs) ||
		(realpath(ours, a) && realpath(theirs, b) && !strcmp(a, b)));
}

/* Two names of what is not inlined. */
static enum kind compare_symbols(const char *ours, const char *theirs, uint64_t vaddr,
				 enum answerer other)
{
	struct sought a = symbol_of(ours, vaddr), b = symbol_of(theirs, vaddr);

	if (a.found && b.found && a.start == b.start)
		return a.size == b.size ? ALIAS : OTHER_SIZE;
	if (other == LIBDW)
		return DIFFERENT;
	return other == LLVM && !symbol_of(theirs, UINT64_MAX).found ? NO_FUNCTION : NAME_OF_SYMBOL;
}

static enum kind compare_name(const struct line *ours, const struct answer_frame *theirs,
			      uint64_t vaddr, bool outermost, enum answerer other)
{
	const char *name = ours->name;
	enum kind kind;

	if (strcmp(name, theirs->name) == 0)
		return SAME;
	if (strcmp(name, "[unknown]") == 0 && strcmp(theirs->name, "??") == 0)
		return SAME;
	if (outermost && (kind = compare_symbols(name, theirs->name, vaddr, other)) != DIFFERENT)
		return kind;
	if (ends_with(name, theirs->name) && strlen(name) > strlen(theirs->name) + 2 &&
	    name[strlen(name) - strlen(theirs->name) - 1] == ':')
		return UNQUALIFIED;
	return DIFFERENT;
}

static enum kind without_file(enum kind of_name)
{
	return of_name == SAME ? FILE_SYMBOL : of_name;
}

static enum kind compare(const struct lines *ours, const struct answer *theirs, uint64_t vaddr,
			 enum answerer other)
{
	const struct answer_frame *first = &theirs->frame[0];
	enum kind worst = SAME;
	bool nothing =
	    theirs->n == 1 && !first->file[0] && !first->line && strcmp(first->name, "??") == 0;

	if (nothing)
		return ours->n == 0 ? NOBODY_KNOWS : OURS_MORE;
	if (ours->n == 0 && theirs->n == 1 && strcmp(first->name, "??") == 0)
		return PADDING;
	if (ours->n == 0 && theirs->n == 1 && !first->line && other != LIBDW)
		return OUTSIDE;
	if (ours->n == 0 && theirs->n == 1 && other == BINUTILS)
		return PADDING;
	if (ours->n != theirs->n)
		return DIFFERENT;
	if (ours->n == 1 && !ours->line[0].file && !first->line && !strchr(first->file, '/') &&
	    first->file[0])
		return without_file(compare_name(&ours->line[0], first, vaddr, true, other));
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

/* Of one address; libdw knows nothing of symbols. */
static void find_ours(uint64_t pc, enum answerer other, struct lines *ours)
{
	if (other == LIBDW)
		dwarf_find(program.dwarf, pc, NULL, ours);
	else
		dwarf_program_find(&program, pc, ours);
}

static void print_counts(const char *path, const char *other, const unsigned counts[KINDS],
			 unsigned n, unsigned deep)
{
	print_message("%s against %s: %u addresses, %u with inlined frames", path, other, n, deep);
	for (int k = 0; k < KINDS; k++)
		if (counts[k])
			print_message(", %s %u", kinds[k].name, counts[k]);
	print_message("\n");
}

static void count(const char *path, enum answerer other, struct answers *answers,
		  const uint64_t *pcs, unsigned n)
{
	static const char *const names[ANSWERERS] = {"llvm-symbolizer", "addr2line", "libdw"};
	unsigned counts[KINDS] = {0}, deep = 0, printed[KINDS] = {0};
	static struct answer theirs;
	static struct lines ours;

	for (unsigned i = 0; i < n; i++) {
		enum kind kind;

		if (!answers_next(answers, &theirs))
			fail_msg("%s: %s ended after %u of %u", path, names[other], i, n);
		find_ours(pcs[i], other, &ours);
		kind = compare(&ours, &theirs, pcs[i], other);
		counts[kind]++;
		deep += ours.n > 1;
		if (kind > PADDING && printed[kind]++ < (kind == DIFFERENT ? 5 : 1))
			print_both(path, pcs[i], &ours, &theirs, kind);
	}
	print_counts(path, names[other], counts, n, deep);
	for (int k = 0; k < KINDS; k++)
		if (counts[k] * 1000ull > (uint64_t)kinds[k].limit[other] * n)
			fail_msg("%s: %u are %s (%s)", path, counts[k], kinds[k].name,
				 kinds[k].reason);
}

/* What lies beside the program. */
struct beside {
	char alt[PATH_MAX], dwp[PATH_MAX], original[PATH_MAX];
};

static const char *if_there(char path[PATH_MAX], const char *program_path, const char *suffix)
{
	snprintf(path, PATH_MAX, "%s%s", program_path, suffix);
	return access(path, R_OK) ? NULL : path;
}

static void ask(const char *path, enum answerer other, const uint64_t *pcs, unsigned n)
{
	struct beside beside;
	const char *alt = if_there(beside.alt, path, ".alt"),
		   *dwp = if_there(beside.dwp, path, ".dwp"),
		   *original = if_there(beside.original, path, ".original"), *asked = path;
	struct answers answers;

	if (original && !(other == LIBDW && alt))
		asked = original;
	else if (other == LIBDW && program.debug_path[0])
		asked = program.debug_path;
	if (!answers_open(&answers, other, asked, alt, dwp, pcs, n))
		fail_msg("%s: cannot be asked about", asked);
	count(path, other, &answers, pcs, n);
	answers_close(&answers);
}

/* Of 0.188: what dwarf_getscopes() collected before it failed. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libdw.so";
}

/* Split units are no use to libdw: it cannot be given them. */
static bool libdw_can(const char *path)
{
	char dwp[PATH_MAX];

	return program.dwos + program.dwos_missing == 0 && !if_there(dwp, path, ".dwp");
}

/*
 * addr2line (2.40) is asked where it can answer: it leaves inlined frames out whose ranges are
 * indexed (Clang, DWARF 5), calls C++ functions without a linkage name by the symbol of the
 * outermost one, takes <artificial> for the file after -flto, and knows no split units.
 */
static bool binutils_can(const char *path)
{
	static const char *const cannot[] = {"clang-c5", "c-lto", "gcc-x",    "clang-x-",
					     "dwz-x",	 "split", "clang-x5", "rust"};

	for (size_t i = 0; i < sizeof(cannot) / sizeof(cannot[0]); i++)
		if (strstr(strrchr(path, '/'), cannot[i]))
			return false;
	return true;
}

static void against(const char *path, bool small)
{
	uint64_t start, bytes, *pcs = calloc(pcs_n, sizeof(*pcs));
	struct beside beside;

	if (!dwarf_program_open(&program, path, if_there(beside.alt, path, ".alt"),
				if_there(beside.dwp, path, ".dwp"), BYTES_MAX))
		fail_msg("%s: %s", path, strerror(errno));
	if (!program.dwarf)
		fail_msg("%s: no debug information, here or by its build id", path);
	start = dwarf_program_code(&program, &bytes);
	assert_true(bytes > 0);
	for (unsigned i = 0; i < pcs_n; i++)
		pcs[i] = start + random_next() % bytes;
	ask(path, LLVM, pcs, pcs_n);
	if (libdw_can(path))
		ask(path, LIBDW, pcs, small && pcs_n > PCS_LIBDW ? PCS_LIBDW : pcs_n);
	if (small && binutils_can(path))
		ask(path, BINUTILS, pcs, pcs_n < PCS_BINUTILS ? pcs_n : PCS_BINUTILS);
	free(pcs);
	dwarf_program_close(&program);
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
		against(path, true);
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
