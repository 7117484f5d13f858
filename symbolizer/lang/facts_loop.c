/* SPDX-License-Identifier: Apache-2.0 */
/* Functions by their call frame information, and the parts of one that compilers put elsewhere. */
#include <errno.h>
#include <string.h>

#include "symbolizer/elfparts.h"
#include "symbolizer/lang/facts.h"
#include "symbolizer/x86.h"

struct facts_jumps {
	uint64_t targets[FACTS_JUMPS_MAX];
	uint32_t n;
};

static bool facts_frames(struct facts *facts)
{
	struct cfi_section *frames = &facts->frames;
	GElf_Shdr header;

	if (frames->bytes)
		return true;
	if (elfparts_section(facts->elf, ".eh_frame", &header, &frames->bytes) == 0) {
		frames->size = header.sh_size;
		frames->vaddr = header.sh_addr;
		return true;
	}
	return elfparts_eh_frame(facts->elf, &frames->vaddr, &frames->size, &frames->bytes) == 0;
}

/* The next function behind *at, false behind the last one. */
static bool facts_next_function(struct facts *facts, size_t *at, struct cfi_fde *fde)
{
	for (;;) {
		size_t from = *at;
		int got = cfi_read(&facts->frames, at, fde);

		if (got == 1)
			return true;
		/* Four bytes of 0 end the section, whose size may not be known. */
		if (got < 0 || *at - from <= 4)
			return false;
	}
}

int facts_function(struct facts *facts, uint64_t vaddr, uint64_t *start, uint64_t *end)
{
	struct cfi_fde fde;
	size_t at = 0;

	memset(&fde, 0, sizeof(fde));
	if (!facts_frames(facts))
		return -ENOENT;
	while (facts_next_function(facts, &at, &fde)) {
		if (vaddr < fde.start || vaddr >= fde.end)
			continue;
		*start = fde.start;
		*end = fde.end;
		return 0;
	}
	return -ENOENT;
}

/* An entry of the PLT: all of them share an FDE. `endbr64`, which not all begin with, is four bytes
 * long. */
static bool facts_is_stub(struct facts *facts, uint64_t vaddr)
{
	uint8_t code[4 + X86_INSN_BYTES_MAX];
	struct x86_insn insn;

	if (!facts_read(facts, vaddr, code, sizeof(code)) ||
	    !x86_decode(code, sizeof(code), vaddr, &insn))
		return false;
	if (insn.kind == X86_JUMP)
		return insn.a.kind == X86_MEMORY;
	return insn.length == 4 && x86_decode(code + 4, sizeof(code) - 4, vaddr + 4, &insn) &&
	       insn.kind == X86_JUMP && insn.a.kind == X86_MEMORY;
}

static void facts_add_jump(struct facts *facts, struct facts_jumps *jumps, uint64_t target)
{
	for (uint32_t i = 0; i < jumps->n; i++)
		if (jumps->targets[i] == target)
			return;
	if (jumps->n < FACTS_JUMPS_MAX && !facts_is_stub(facts, target))
		jumps->targets[jumps->n++] = target;
}

/* Direct jumps out of [start, end). What does not decode is passed over byte by byte. */
static void facts_find_jumps(struct facts *facts, uint64_t start, uint64_t end,
			     struct facts_jumps *jumps)
{
	const uint8_t *code =
	    end - start <= FACTS_LOOP_BYTES ? elfparts_data(facts->elf, start, end - start) : NULL;
	struct x86_insn insn;

	for (uint64_t at = start; code && at < end; at += insn.length) {
		if (!x86_decode(code + (at - start), end - at, at, &insn)) {
			insn.length = 1;
			continue;
		}
		if ((insn.kind == X86_JUMP || insn.kind == X86_BRANCH) && insn.has_target &&
		    (insn.target < start || insn.target >= end))
			facts_add_jump(facts, jumps, insn.target);
	}
}

static void facts_first_row(void *arg, uint64_t vaddr, const struct cfi_row *row)
{
	struct cfi_rule **cfa = arg;

	(void)vaddr;
	if (!*cfa || !row)
		return;
	**cfa = row->cfa;
	*cfa = NULL;
}

/* Where a function is called nothing but the return address stands on the stack. */
static bool facts_begins_called(struct facts *facts, const struct cfi_fde *fde)
{
	struct cfi_rule cfa = {.where = CFI_UNSPECIFIED}, *first = &cfa;

	cfi_run(&facts->frames, fde, facts_first_row, &first);
	return cfa.where != CFI_REGISTER || (cfa.reg == CFI_DWARF_SP && cfa.value == 8);
}

/* A jump to the first byte of a function may be a call at the end of the loop. */
static bool facts_is_part(struct facts *facts, const struct facts_jumps *jumps,
			  const struct cfi_fde *fde)
{
	bool first = false;

	for (uint32_t i = 0; i < jumps->n; i++) {
		if (jumps->targets[i] > fde->start && jumps->targets[i] < fde->end)
			return true;
		first |= jumps->targets[i] == fde->start;
	}
	return first && !facts_begins_called(facts, fde);
}

static int facts_add_loop(struct facts *facts, uint64_t start, uint64_t end,
			  struct table_runtime *runtime)
{
	uint64_t offset;

	if (!elfparts_code(facts->elf, start, &offset) || offset + (end - start) > UINT32_MAX)
		return -ENOENT;
	for (int i = 0; i < TABLE_LOOPS; i++) {
		if (runtime->loops[i].end && runtime->loops[i].start != offset)
			continue;
		runtime->loops[i].start = (uint32_t)offset;
		runtime->loops[i].end = (uint32_t)(offset + (end - start));
		runtime->bias = start - offset;
		return 0;
	}
	return -ENOSPC;
}

int facts_loop(struct facts *facts, uint64_t vaddr, struct table_runtime *runtime)
{
	struct facts_jumps jumps = {.n = 0};
	struct cfi_fde fde;
	uint64_t start, end;
	size_t at = 0;
	int err = facts_function(facts, vaddr, &start, &end);

	if (err == 0)
		err = facts_add_loop(facts, start, end, runtime);
	if (err)
		return err;
	facts_find_jumps(facts, start, end, &jumps);
	memset(&fde, 0, sizeof(fde));
	while (err == 0 && facts_next_function(facts, &at, &fde))
		if (fde.start != start && facts_is_part(facts, &jumps, &fde))
			err = facts_add_loop(facts, fde.start, fde.end, runtime);
	return err;
}
