/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables against libdw's reading of the same files, for every pc from the first byte of a
 * file's text to its last: each is looked up by the walk's own code (tables_find()), and what it
 * finds is compared wherever either side changes. Where they differ, the difference has a kind, and
 * each kind has a reason and a limit.
 *
 * The files are those of a distribution; a sanitizer's build takes the small ones. With
 * EHFRAME_ALL=1, or paths as arguments, more of them.
 */
#define _GNU_SOURCE
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/symbolizer/cfa_world.h"
#include "tests/symbolizer/tables.h"

#define WORLDS	  2
#define GAP_BYTES 15
#define PLTS_MAX  8
/* Without steps there would be so many per cent more rows; measured: 38 to 68. */
#define FOLDED_PERCENT_MIN 30

#ifdef __SANITIZE_ADDRESS__
#define SMALL_ONLY !getenv("EHFRAME_ALL")
#else
#define SMALL_ONLY false
#endif

enum kind {
	SAME,
	BOTH_NONE,
	JOINED,
	FILLED,
	FOLLOWED,
	THREAD_START,
	CFA_FORM,
	SP_MOVED,
	RA_FORM,
	FP_LOST,
	UNEXPECTED,
	CLASSES,
};

/* limit: bytes per MiB of text. A table that got worse fails, even if it is only INVALID. */
static const struct {
	const char *name, *reason;
	double limit;
} classes[CLASSES] = {
    [SAME] = {"same", "", 1 << 20},
    [BOTH_NONE] = {"none", "code without information: invalid", 1 << 20},
    [JOINED] = {"joined", "padding of less than 15 bytes goes on with the rule before it", 1 << 20},
    [FILLED] = {"filled", "known by its form: first instructions, sigreturn, linkage table",
		1 << 20},
    [FOLLOWED] = {"followed", "code without information: what it says itself (codegaps_cfi_test)",
		  1 << 20},
    [THREAD_START] = {"start", "return address below the stack: the first function of a thread",
		      64},
    [CFA_FORM] = {"cfa",
		  "CFA by an expression that no rule can say (indexed by a register): invalid",
		  2048},
    [SP_MOVED] = {"sp", "the caller's sp is not the CFA (longjmp, switches of stacks): invalid",
		  1024},
    [RA_FORM] = {"ra", "return address neither on the stack nor in a register: invalid", 64},
    [FP_LOST] =
	{"fp",
	 "frame pointer in another register, or counted from an sp that the CFA is not: undefined",
	 8192},
    [UNEXPECTED] = {"UNEXPECTED", "", 0},
};

struct subject {
	const char *path;
	struct tables_result ours;
	Elf *elf;
	Dwarf *dwarf;
	Dwarf_CFI *cfi[2]; /* .eh_frame, .debug_frame */
	uint64_t plts[PLTS_MAX][2];
	unsigned plts_n, shown;
	uint64_t text_bytes, points, bytes[CLASSES];
};

static unsigned files_compared, files_skipped;
static uint64_t rows, folded;

static void find_plts(struct subject *s)
{
	size_t names;

	if (elf_getshdrstrndx(s->elf, &names))
		return;
	for (Elf_Scn *scn = elf_nextscn(s->elf, NULL); scn; scn = elf_nextscn(s->elf, scn)) {
		GElf_Shdr h;
		const char *name;

		if (!gelf_getshdr(scn, &h) || !(name = elf_strptr(s->elf, names, h.sh_name)) ||
		    strncmp(name, ".plt", 4) || s->plts_n == PLTS_MAX)
			continue;
		s->plts[s->plts_n][0] = h.sh_addr;
		s->plts[s->plts_n++][1] = h.sh_addr + h.sh_size;
	}
}

static Dwarf_Frame *frame_at(const struct subject *s, uint64_t pc)
{
	Dwarf_Frame *frame;

	for (int i = 0; i < 2; i++)
		if (s->cfi[i] && dwarf_cfi_addrframe(s->cfi[i], pc, &frame) == 0)
			return frame;
	return NULL;
}

static bool equal(const struct cfa_result *a, const struct cfa_result *b)
{
	if (a->stop || b->stop)
		return a->stop == b->stop;
	return a->valid && b->valid && a->sp == b->sp && a->ra == b->ra &&
	       a->fp_known == b->fp_known && (!a->fp_known || a->fp == b->fp) &&
	       /* Only some tables follow it, and they may lose it. */
	       (!a->rbx_known || (b->rbx_known && a->rbx == b->rbx));
}

static bool same(uint64_t pc, const struct table_rule *rule, Dwarf_Frame *frame)
{
	for (uint64_t i = 0; i < WORLDS; i++) {
		struct cfa_world w = {.seed = 0x5eed + i * 977, .pc = pc};
		struct cfa_result a = cfa_world_rule(&w, rule), b = cfa_world_frame(&w, frame);

		if (!equal(&a, &b))
			return false;
	}
	return true;
}

/* --- What libdw says, told by its operations: never by how we read the file. --- */

static bool is_plain_cfa(const Dwarf_Op *ops, size_t n)
{
	bool base = n > 0 && (ops[0].atom == DW_OP_bregx ||
			      (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31));

	return base && (n == 1 || (n == 2 && ops[1].atom == DW_OP_deref) ||
			(n == 3 && ops[1].atom == DW_OP_deref && ops[2].atom == DW_OP_plus_uconst));
}

static enum kind kind_invalid(Dwarf_Frame *frame)
{
	Dwarf_Op room[3], *ops;
	size_t n;

	if (dwarf_frame_register(frame, 7, room, &ops, &n) || n != 2 ||
	    ops[0].atom != DW_OP_call_frame_cfa || ops[1].atom != DW_OP_stack_value)
		return SP_MOVED;
	if (dwarf_frame_cfa(frame, &ops, &n) || !is_plain_cfa(ops, n))
		return CFA_FORM;
	/* On the stack, counted from the CFA, or in a register: a rule can say that. */
	if (dwarf_frame_register(frame, 16, room, &ops, &n) || n == 0 ||
	    (ops[0].atom != DW_OP_call_frame_cfa && ops[0].atom != DW_OP_regx &&
	     !(ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)))
		return RA_FORM;
	return UNEXPECTED;
}

static enum kind kind_fp(uint64_t pc, const struct table_rule *rule, Dwarf_Frame *frame)
{
	struct cfa_world w = {.seed = 0x5eed, .pc = pc};
	struct cfa_result a = cfa_world_rule(&w, rule), b = cfa_world_frame(&w, frame);
	Dwarf_Op room[3], *ops;
	size_t n;

	if (rule->fp != RULE_FP_UNDEFINED || a.sp != b.sp || a.ra != b.ra ||
	    dwarf_frame_register(frame, 6, room, &ops, &n) || n == 0)
		return UNEXPECTED;
	/* Saved at CFA + n is what a rule can say; at sp + n it cannot, where the CFA is not sp +
	 * n. */
	for (size_t i = 0; i < n; i++)
		if (ops[i].atom == DW_OP_breg7 || ops[i].atom == DW_OP_regx)
			return FP_LOST;
	return n == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31 ? FP_LOST
										 : UNEXPECTED;
}

static enum kind kind_differing(uint64_t pc, const struct table_rule *rule, Dwarf_Frame *frame)
{
	if (rule->cfa == RULE_INVALID)
		return kind_invalid(frame);
	if (rule->cfa == RULE_STOP) {
		struct cfa_world w = {.seed = 0x5eed, .pc = pc};
		struct cfa_result r = cfa_world_frame(&w, frame);
		Dwarf_Op *ops;
		size_t n;

		return r.valid && dwarf_frame_cfa(frame, &ops, &n) == 0 && n == 1 &&
			       (int64_t)ops[0].number2 < 8
			   ? THREAD_START
			   : UNEXPECTED;
	}
	return kind_fp(pc, rule, frame);
}

static enum kind kind_none(const struct subject *s, uint64_t pc, uint64_t gap,
			   const struct table_rule *rule)
{
	if (rule->cfa == RULE_INVALID)
		return BOTH_NONE;
	if (rule->cfa == RULE_STOP || rule->cfa == RULE_SIGNAL)
		return FILLED;
	for (unsigned i = 0; i < s->plts_n; i++)
		if (pc >= s->plts[i][0] && pc < s->plts[i][1])
			return FILLED;
	if (gap < GAP_BYTES)
		return JOINED;
	return rule->cfa == RULE_REGISTER ? FOLLOWED : UNEXPECTED;
}

static void show(struct subject *s, enum kind kind, uint64_t pc, uint64_t bytes,
		 const struct table_rule *rule)
{
	char text[TABLES_TEXT_BYTES];

	if ((kind == UNEXPECTED && s->shown++ < 20) || getenv("EHFRAME_SHOW"))
		print_message("    %s %s %lx +%lu: ours %s\n", s->path, classes[kind].name,
			      (unsigned long)pc, (unsigned long)bytes, tables_text(rule, text));
}

/* The rules at pc, which hold for `bytes`. A linkage table's rule looks at pc: try each of it. */
static void compare(struct subject *s, uint64_t pc, uint64_t bytes, uint64_t gap,
		    const struct table_rule *rule, Dwarf_Frame *frame)
{
	bool looks_at_pc = rule->cfa == RULE_PLT;
	enum kind kind = SAME;

	if (!frame)
		kind = kind_none(s, pc, gap, rule);
	for (uint64_t i = 0; frame && kind == SAME && i < (looks_at_pc && bytes > 1 ? bytes : 1);
	     i++)
		if (!same(pc + i, rule, frame))
			kind = kind_differing(pc + i, rule, frame);
	s->bytes[kind] += bytes;
	s->points++;
	if (kind != SAME && kind != BOTH_NONE && kind != JOINED && kind != FOLLOWED)
		show(s, kind, pc, bytes, rule);
}

/* The first pc from here on for which libdw has something. */
static uint64_t end_of_gap(const struct subject *s, uint64_t pc, uint64_t end)
{
	while (++pc < end) {
		Dwarf_Frame *frame = frame_at(s, pc);

		free(frame);
		if (frame)
			break;
	}
	return pc;
}

static void compare_segment(struct subject *s, const struct elffile_segment *segment)
{
	uint64_t pc = segment->vaddr, end = pc + segment->bytes;

	while (pc < end) {
		Dwarf_Frame *frame = frame_at(s, pc);
		Dwarf_Addr low, high;
		uint64_t from = pc;

		if (!frame)
			high = end_of_gap(s, pc, end);
		else
			assert_true(dwarf_frame_info(frame, &low, &high, NULL) >= 0);
		high = high < end ? high : end;
		assert_true(high > pc);
		while (pc < high) {
			uint64_t shift = pc - (pc - segment->vaddr + segment->offset), next;
			struct table_rule rule;

			next = tables_next(s->ours.table, pc - shift, high - shift) + shift;
			assert_true(next > pc && tables_find(s->ours.table, pc - shift, &rule));
			compare(s, pc, next - pc, next - from, &rule, frame);
			pc = next;
		}
		free(frame);
	}
}

static void print_result(const struct subject *s)
{
	const struct table_header *t = s->ours.table;

	print_message("%s: %lu pcs, %u rows, which are %u changes, %u rules, %zu bytes, %.1f ms\n",
		      s->path, (unsigned long)s->text_bytes, t->rows, t->rows + tables_folded(t),
		      t->rules, s->ours.bytes, s->ours.ms);
	for (int c = 0; c < CLASSES; c++)
		if (s->bytes[c])
			print_message("    %-10s %10lu bytes  %s\n", classes[c].name,
				      (unsigned long)s->bytes[c], classes[c].reason);
}

static void compare_all(struct subject *s)
{
	for (uint32_t i = 0; i < s->ours.segments_n; i++) {
		s->text_bytes += s->ours.segments[i].bytes;
		compare_segment(s, &s->ours.segments[i]);
	}
	print_result(s);
	assert_true(s->bytes[SAME] > 0);
	for (int c = 0; c < CLASSES; c++)
		if ((double)s->bytes[c] >
		    classes[c].limit * (1 + (double)s->text_bytes / (1 << 20)))
			fail_msg("%s: %lu bytes of kind %s", s->path, (unsigned long)s->bytes[c],
				 classes[c].name);
}

static void compare_fd(const char *path, int fd)
{
	struct subject s = {.path = path};
	int copy = dup(fd);

	s.ours = tables_compile(copy);
	if (s.ours.err)
		fail_msg("%s: %s", path, strerror(-s.ours.err));
	elf_version(EV_CURRENT);
	s.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	assert_non_null(s.elf);
	s.dwarf = dwarf_begin_elf(s.elf, DWARF_C_READ, NULL);
	s.cfi[0] = dwarf_getcfi_elf(s.elf);
	s.cfi[1] = s.dwarf ? dwarf_getcfi(s.dwarf) : NULL;
	find_plts(&s);
	compare_all(&s);
	if (s.cfi[0])
		dwarf_cfi_end(s.cfi[0]);
	if (s.dwarf)
		dwarf_end(s.dwarf);
	elf_end(s.elf);
	files_compared++;
	rows += s.ours.table->rows;
	folded += tables_folded(s.ours.table);
	free(s.ours.table);
	close(fd);
}

static void skip_file(const char *name, const char *reason)
{
	files_skipped++;
	print_message("skipped: %s: %s\n", name, reason);
}

/* The first of these forms of a path that is there. */
static void compare_first(const char *name, const char *const *forms, size_t n)
{
	glob_t found;
	int fd = -1;

	for (size_t i = 0; i < n && forms[i] && fd < 0; i++) {
		if (glob(forms[i], 0, NULL, &found) == 0) {
			fd = open(found.gl_pathv[0], O_RDONLY | O_CLOEXEC);
			if (fd >= 0)
				compare_fd(found.gl_pathv[0], fd);
		}
		globfree(&found);
	}
	if (fd < 0)
		skip_file(name, "not installed");
}

/* A file whose path a tool prints, or why there is none. */
static void compare_fetched(const char *name, const char *tool)
{
	char line[512] = "";
	FILE *out = popen(tool, "r");
	int fd;

	if (out && fgets(line, sizeof(line), out))
		line[strcspn(line, "\n")] = 0;
	if (!out || pclose(out) != 0) {
		skip_file(name, line);
		return;
	}
	fd = open(line, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	compare_fd(name, fd);
}

#define LIB "/usr/lib/x86_64-linux-gnu/"

static void test_distribution(void **state)
{
	static const struct {
		const char *name, *forms[2];
		bool small;
	} files[] = {
	    {"libc", {LIB "libc.so.6"}, true},
	    {"ld.so", {"/lib64/ld-linux-x86-64.so.2"}, true},
	    {"libstdc++", {LIB "libstdc++.so.6"}, true},
	    {"libcrypto", {LIB "libcrypto.so.3"}, true},
	    {"bash", {"/usr/bin/bash"}, true},
	    {"python3", {"/usr/bin/python3"}, false},
	    {"git", {"/usr/bin/git"}, false},
	    {"gdb", {"/usr/bin/gdb"}, false},
	    {"node", {LIB "libnode.so.*", "/usr/bin/node"}, false},
	    {"libLLVM", {LIB "libLLVM-1[0-9].so.1", LIB "libLLVM*.so.*"}, false},
	    {"ripgrep, a Rust program", {"/usr/bin/rg"}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (files[i].small || !SMALL_ONLY)
			compare_first(files[i].name, files[i].forms, 2);
	if (!SMALL_ONLY)
		compare_fetched("lxml for musl", "tests/tools/install-musl");
	print_message("%u files compared, %u skipped; %lu rows, %lu changes\n", files_compared,
		      files_skipped, (unsigned long)rows, (unsigned long)(rows + folded));
	assert_true(files_compared >= 5);
	assert_true(folded * 100 > (rows + folded) * FOLDED_PERCENT_MIN);
}

static void test_vdso(void **state)
{
	const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
	int fd = memfd_create("vdso", MFD_CLOEXEC);
	const Elf64_Ehdr *header = (const void *)image;
	size_t bytes;

	(void)state;
	if (!image)
		skip();
	/* Section headers stand last. */
	bytes = header->e_shoff + header->e_shnum * sizeof(Elf64_Shdr);
	assert_int_equal(write(fd, image, bytes), bytes);
	compare_fd("[vdso]", fd);
}

/* Run a command in a directory of its own, compare what it made there. */
static void compare_built(const char *what, const char *source, const char *command)
{
	char dir[] = "/tmp/ehframe-XXXXXX", line[2048];
	int fd;

	assert_non_null(mkdtemp(dir));
	snprintf(line, sizeof(line),
		 "cd %s && PATH=$PATH:$HOME/.cargo/bin && printf '%%s' '%s' > source && %s "
		 ">/dev/null 2>&1",
		 dir, source, command);
	if (system(line) != 0) {
		skip_file(what, "cannot be built here");
	} else {
		snprintf(line, sizeof(line), "%s/out", dir);
		fd = open(line, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		compare_fd(what, fd);
	}
	snprintf(line, sizeof(line), "rm -rf %s", dir);
	assert_int_equal(system(line), 0);
}

static void test_more(void **state)
{
	static const char *const more[] = {LIB "libgcrypt.so.20", LIB "libgnutls.so.30",
					   LIB "libm.so.6", "/usr/lib/x86_64-linux-musl/libc.so"};

	(void)state;
	if (!getenv("EHFRAME_ALL")) {
		print_message("skipped: EHFRAME_ALL=1 compares more files\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		compare_first(more[i], &more[i], 1);
	compare_built("a Rust program",
		      "fn main() { let mut v: Vec<String> = std::env::args().collect(); v.sort(); "
		      "println!(\"{:?} {:?}\", v, std::fs::read_to_string(\"/etc/passwd\")); }",
		      "rustc -O --crate-name x -o out source");
	compare_built(
	    "a static musl program",
	    "#include <stdio.h>\n#include <pthread.h>\n"
	    "static void *f(void *a) { return a; }\n"
	    "int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); puts(\"\"); return 0; }",
	    "musl-gcc -static -O2 -x c -o out source");
	compare_built("a static glibc program", "int main(void) { return 0; }",
		      "gcc -static -O2 -x c -o out source");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_distribution),
	    cmocka_unit_test(test_vdso),
	    cmocka_unit_test(test_more),
	};

	for (int i = 1; i < argc; i++)
		compare_first(argv[i], (const char *const *)&argv[i], 1);
	return argc > 1 ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
