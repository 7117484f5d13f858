/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What machine code says against what call frame information says: files that have information are
 * followed as if they had none, and at every pc that has both the two are compared. Where they
 * differ, the difference has a kind, and each kind has a reason and a limit.
 *
 * By default the files that everybody has; with paths as arguments those.
 */
#define _GNU_SOURCE
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolizer/codegaps.h"
#include "tests/symbolizer/tables.h"

#define SECTIONS_MAX 64

enum kind {
	SAME,
	NO_INFORMATION,
	PADDING,
	NOT_REACHED,
	SP_LOST,
	FP_LOST,
	FP_ELSEWHERE,
	OTHER_REGISTER,
	FIRST_FRAME,
	UNSAYABLE,
	MISINFORMED,
	WRONG_FP,
	WRONG_CFA,
	KINDS,
};

/* limit: share of the compared bytes. Kinds that give no row, or one that is right, have none. */
static const struct {
	const char *name, *reason;
	double limit;
} kinds[KINDS] = {
    [SAME] = {"same", "", 1},
    [NO_INFORMATION] = {"none", "no information to compare with", 1},
    [PADDING] = {"padding", "between functions", 1},
    [NOT_REACHED] = {"unreached", "no row: nothing is known to lead there", 1},
    [SP_LOST] = {"lost",
		 "no row: sp is not known (realigned, alloca, joined), nor the frame pointer", 1},
    [FP_LOST] = {"fp", "the caller's frame pointer is given up, the rest is the same", 1},
    [FP_ELSEWHERE] = {"fp2", "it is in the register or on the stack, both are the same value", 1},
    [OTHER_REGISTER] = {"other",
			"the information counts from what was not followed, so it cannot be "
			"compared",
			0.01},
    [FIRST_FRAME] = {"first", "the first function of a thread", 0.0005},
    [UNSAYABLE] = {"form", "the information is of a form that no rule can say", 0.01},
    [MISINFORMED] = {"misinf.", "the information does not follow an instruction that moves sp",
		     0.005},
    [WRONG_FP] = {"WRONG FP", "", 0.0001},
    [WRONG_CFA] = {"WRONG CFA", "", 0.0001},
};

struct subject {
	const char *path;
	struct tables_result table;
	struct elffile file;
	Elf *elf;
	Dwarf_CFI *cfi;
	uint64_t fde_start, fde_end; /* the last that was found */
	uint64_t bytes[KINDS], compared;
	unsigned shown;
	double ms;
	/* The instruction before this one, in the same function. */
	const struct codegraph_area *area;
	struct table_rule last_rule;
	uint64_t last_end;
	int32_t last_sp;
	bool last_moved;
	uint64_t misinformed; /* the function whose information is known to be wrong */
};

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static bool has_information(struct subject *s, uint64_t pc)
{
	Dwarf_Frame *frame;
	Dwarf_Addr start, end;

	if (pc >= s->fde_start && pc < s->fde_end)
		return true;
	if (dwarf_cfi_addrframe(s->cfi, pc, &frame))
		return false;
	dwarf_frame_info(frame, &start, &end, NULL);
	free(frame);
	s->fde_start = start;
	s->fde_end = end;
	return true;
}

static struct table_rule rule_at(const struct subject *s, uint64_t pc)
{
	struct table_rule rule = {.cfa = RULE_INVALID};
	uint64_t offset;

	for (uint32_t i = 0; i < s->table.segments_n; i++) {
		const struct elffile_segment *segment = &s->table.segments[i];

		offset = pc - segment->vaddr + segment->offset;
		if (pc >= segment->vaddr && pc - segment->vaddr < segment->bytes)
			tables_find(s->table.table, offset, &rule);
	}
	/* They were looked at. */
	rule.steps = 0;
	if (rule.cfa == RULE_REGISTER)
		rule.add = 0;
	return rule;
}

/* Of the frame pointer, where both agree about the CFA. */
static enum kind compare_fp(const struct codestate *state, const struct table_rule *rule)
{
	struct table_rule ours = codestate_rule(state);

	if (ours.fp == RULE_FP_UNDEFINED)
		return rule->fp == RULE_FP_UNDEFINED ? SAME : FP_LOST;
	if (rule->fp == RULE_FP_UNDEFINED)
		return WRONG_FP;
	if (rule->fp == RULE_FP_SAME)
		return state->is[X86_RBP] == CODE_FP ? SAME : WRONG_FP;
	if (rule->fp == RULE_FP_CFA && ours.fp == RULE_FP_CFA)
		return rule->fp_offset == ours.fp_offset ? SAME : WRONG_FP;
	return state->is[X86_RBP] == CODE_FP ? FP_ELSEWHERE : WRONG_FP;
}

static enum kind compare_state(const struct codestate *state, const struct table_rule *rule)
{
	static const uint8_t registers[RULE_REGISTER_COUNT] = {
	    [RULE_SP] = 4,   [RULE_FP] = 5,   [RULE_RAX] = 0,  [RULE_RDX] = 2,
	    [RULE_RCX] = 1,  [RULE_RBX] = 3,  [RULE_RSI] = 6,  [RULE_RDI] = 7,
	    [RULE_R8] = 8,   [RULE_R9] = 9,   [RULE_R10] = 10, [RULE_R11] = 11,
	    [RULE_R12] = 12, [RULE_R13] = 13, [RULE_R14] = 14, [RULE_R15] = 15};
	uint8_t reg = registers[rule->cfa_register];

	if (codestate_rule(state).cfa == RULE_INVALID)
		return SP_LOST;
	if (rule->cfa == RULE_STOP)
		return FIRST_FRAME;
	if (rule->cfa != RULE_REGISTER || rule->ra != RULE_RA_CFA || rule->ra_offset != -8)
		return rule->cfa == RULE_INVALID ? UNSAYABLE : OTHER_REGISTER;
	if (state->is[reg] != CODE_FRAME)
		return OTHER_REGISTER;
	if (state->n[reg] + rule->cfa_offset != 0)
		return WRONG_CFA;
	return compare_fp(state, rule);
}

static void show(struct subject *s, enum kind kind, const struct coderows_place *place,
		 const struct codestate *state, const struct table_rule *rule)
{
	char a[TABLES_TEXT_BYTES] = "-", b[TABLES_TEXT_BYTES];
	struct table_rule ours;
	const char *only = getenv("CODEGAPS_SHOW");

	if (only ? strcmp(only, kinds[kind].name) != 0
		 : (kind != WRONG_CFA && kind != WRONG_FP) || s->shown++ >= 20)
		return;
	if (state) {
		ours = codestate_rule(state);
		tables_text(&ours, a);
	}
	print_message("    %s %s %lx +%u: code %s, information %s\n", s->path, kinds[kind].name,
		      (unsigned long)place->vaddr, place->bytes, a,
		      rule ? tables_text(rule, b) : "-");
}

/* Whether it is the information that is wrong: sp was moved, and it says the same as before. */
static bool is_misinformed(struct subject *s, const struct coderows_place *place,
			   const struct codestate *state, const struct table_rule *rule)
{
	struct x86_insn insn;

	/* At a return, sp is where the return address is. */
	if (codegraph_decode(s->area, place->vaddr, &insn) && insn.kind == X86_RETURN &&
	    rule->cfa == RULE_REGISTER && rule->cfa_register == RULE_SP && rule->cfa_offset != 8)
		return true;
	if (s->last_end == place->vaddr && s->last_moved && s->last_sp != state->n[X86_RSP] &&
	    s->last_rule.cfa_register == RULE_SP && memcmp(&s->last_rule, rule, sizeof(*rule)) == 0)
		s->misinformed = s->fde_start;
	return s->misinformed == s->fde_start;
}

static void remember(struct subject *s, const struct coderows_place *place,
		     const struct codestate *state, const struct table_rule *rule)
{
	const struct codegraph_area *area = s->area;
	struct x86_insn insn;

	s->last_end = 0;
	if (!state || !rule || !codegraph_decode(area, place->vaddr, &insn))
		return;
	s->last_end = place->vaddr + place->bytes;
	s->last_sp = state->n[X86_RSP];
	s->last_rule = *rule;
	s->last_moved = insn.writes & 1u << X86_RSP;
}

static void compare(void *arg, const struct coderows_place *place, const struct codestate *state)
{
	struct subject *s = arg;
	struct coderows_place part = *place;

	for (uint32_t i = 0; i < place->bytes; i += part.bytes) {
		const struct table_rule *rule = NULL;
		struct table_rule found;
		enum kind kind = NO_INFORMATION;

		part.vaddr = place->vaddr + i;
		part.bytes = state ? place->bytes : 1;
		if (has_information(s, part.vaddr)) {
			found = rule_at(s, part.vaddr);
			rule = &found;
			kind = place->padding ? PADDING
			       : state	      ? compare_state(state, rule)
					      : NOT_REACHED;
			s->compared += part.bytes;
		}
		if (kind == WRONG_CFA && is_misinformed(s, &part, state, rule))
			kind = MISINFORMED;
		remember(s, &part, state, rule);
		s->bytes[kind] += part.bytes;
		show(s, kind, &part, state, rule);
	}
}

/* All executable sections but linkage tables. */
static uint32_t find_code(struct subject *s, struct codegaps_range *ranges)
{
	uint32_t n = 0;
	size_t names;

	assert_int_equal(elf_getshdrstrndx(s->elf, &names), 0);
	for (Elf_Scn *scn = elf_nextscn(s->elf, NULL); scn && n < SECTIONS_MAX;
	     scn = elf_nextscn(s->elf, scn)) {
		GElf_Shdr h;

		if (gelf_getshdr(scn, &h) && (h.sh_flags & SHF_EXECINSTR) &&
		    h.sh_type == SHT_PROGBITS &&
		    strncmp(elf_strptr(s->elf, names, h.sh_name), ".plt", 4) != 0)
			ranges[n++] = (struct codegaps_range){h.sh_offset, h.sh_size};
	}
	return n;
}

static bool nothing(void *arg, struct codegaps_range *range)
{
	(void)arg;
	(void)range;
	return false;
}

static void print_result(const struct subject *s)
{
	uint64_t rows = s->compared - s->bytes[PADDING] - s->bytes[NOT_REACHED] - s->bytes[SP_LOST];
	uint64_t wrong = s->bytes[WRONG_CFA] + s->bytes[WRONG_FP];

	print_message("%s: %lu bytes of code compared, rows for %.2f %%, wrong %.4f %% of them, "
		      "%.0f ms\n",
		      s->path, (unsigned long)(s->compared - s->bytes[PADDING]),
		      100.0 * (double)rows / (double)(s->compared - s->bytes[PADDING]),
		      100.0 * (double)wrong / (double)rows, s->ms);
	for (int k = 0; k < KINDS; k++)
		if (s->bytes[k])
			print_message("    %-10s %9lu bytes  %s\n", kinds[k].name,
				      (unsigned long)s->bytes[k], kinds[k].reason);
}

static void compare_gaps(struct subject *s)
{
	struct codegaps_range ranges[SECTIONS_MAX];
	uint32_t n = find_code(s, ranges);
	struct codegaps *gaps;
	int err;

	s->ms = now_ms();
	gaps = codegaps_open(&s->file, ranges, n, nothing, NULL, &err);
	s->ms = now_ms() - s->ms;
	if (!gaps) {
		print_message("%s: nothing (error %d)\n", s->path, err);
		return;
	}
	for (uint32_t i = 0; i < gaps->areas_n; i++) {
		s->area = &gaps->areas[i];
		coderows_each(&gaps->graph, i, compare, s);
	}
	codegaps_close(gaps);
	print_result(s);
	for (int k = 0; k < KINDS; k++)
		if ((double)s->bytes[k] > kinds[k].limit * (double)(s->compared + s->bytes[k]))
			fail_msg("%s: %lu bytes of kind %s", s->path, (unsigned long)s->bytes[k],
				 kinds[k].name);
}

static bool compare_path(const char *path)
{
	struct subject s = {.path = path};
	static struct reader reader;
	static bool ready;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC), slot;

	if (fd < 0 || fstat(fd, &st)) {
		print_message("skipped: %s is not here\n", path);
		return false;
	}
	if (!ready)
		reader_open(&reader, false);
	ready = true;
	s.table = tables_compile(dup(fd));
	assert_int_equal(s.table.err, 0);
	slot = reader_add(&reader, dup(fd));
	assert_int_equal(elffile_open(&s.file, &reader, slot, (uint64_t)st.st_size), 0);
	elf_version(EV_CURRENT);
	s.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	s.cfi = dwarf_getcfi_elf(s.elf);
	assert_non_null(s.cfi);
	compare_gaps(&s);
	dwarf_cfi_end(s.cfi);
	elf_end(s.elf);
	elffile_close(&s.file);
	reader_remove(&reader, slot);
	free(s.table.table);
	close(fd);
	return true;
}

static void test_common(void **state)
{
	static const char *const paths[] = {
	    "/bin/bash",
	    "/lib/x86_64-linux-gnu/libc.so.6",
	    "/usr/bin/git",
	    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
	    "/usr/bin/python3.11",
	    "/lib64/ld-linux-x86-64.so.2",
	    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
	};
	unsigned compared = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		compared += compare_path(paths[i]);
	assert_true(compared >= 3);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_common)};

	for (int i = 1; i < argc; i++)
		compare_path(argv[i]);
	return argc > 1 ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
