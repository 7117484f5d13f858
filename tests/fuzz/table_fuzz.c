/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an unwind table. What the sampler's check lets through can be walked by from any
 * place, with any registers: rules lie within the table, and the walk ends.
 *
 *   struct record_regs | bytes of the stack | the table, in the last BYTES of it
 */
#include <stdlib.h>
#include <string.h>

#include "shm/table.h"
#include "symbolizer/filetable.h"
#include "symbolizer/walk.h"
#include "tests/fuzz/fuzz.h"

#define STACK_BYTES 256
#define ANY_FILE    7

const unsigned fuzz_mutations = 5000;

static struct table_header *table;

/* In the place of symbolizer/filetable.c. */
const struct table_header *filetable_get(struct filetables *tables, uint32_t file_id, bool *missing)
{
	(void)tables;
	*missing = false;
	return file_id == ANY_FILE ? table : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct frame frames[RECORD_USER_FRAMES_MAX];
	const struct record_range range = {.start = 0x1000, .end = 0x100000, .file_id = ANY_FILE};
	struct filetables tables = {0};
	struct record_regs regs;
	enum record_stop stop = STOP_COUNT;
	uint32_t n;

	if (size < sizeof(regs) + STACK_BYTES)
		return 0;
	memcpy(&regs, data, sizeof(regs));
	data += sizeof(regs);
	size -= sizeof(regs) + STACK_BYTES;
	table = malloc(size ? size : 1);
	memcpy(table, data + STACK_BYTES, size);
	if (table_check(table, size) == 0) {
		n = walk_stack(&range, 1, &regs, data, STACK_BYTES, &tables, frames, &stop);
		if (n > RECORD_USER_FRAMES_MAX || stop >= STOP_COUNT)
			abort();
	}
	free(table);
	return 0;
}

size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX])
{
	struct record_regs regs = {.pc = 0x1010, .sp = 0x7000, .fp = 0x7040};
	struct {
		struct table_header header;
		struct table_page pages[2];
		__u32 rows[6];
		struct table_rule rules[4];
	} t = {.header = {TABLE_MAGIC, TABLE_VERSION, 0, 0, 2, 6, 4, 0},
	       .pages = {{0, 3}, {3, 3}},
	       .rows = {0, 1 << 16 | 8, 2 << 16 | 0x20, 0, 3 << 16 | 8, 1 << 16 | 0x400},
	       .rules = {{.cfa = RULE_INVALID},
			 {.cfa = RULE_REGISTER,
			  .cfa_register = RULE_SP,
			  .cfa_offset = 16,
			  .ra_offset = -8,
			  .steps = 5},
			 {.cfa = RULE_REGISTER,
			  .cfa_register = RULE_FP,
			  .cfa_offset = 16,
			  .fp = RULE_FP_CFA,
			  .fp_offset = -16,
			  .ra_offset = -8},
			 {.cfa = RULE_STOP}}};
	uint64_t words[STACK_BYTES / 8];

	/* One seed for each way to the next frame. */
	if (n > RULE_NOTED)
		return 0;
	for (size_t i = 0; i < STACK_BYTES / 8; i++)
		words[i] = i % 2 ? 0x1010 + 64 * i : 0x7000 + 8 * i + 16;
	t.rules[1].cfa = n ? (__u8)n : RULE_REGISTER;
	memcpy(data, &regs, sizeof(regs));
	memcpy(data + sizeof(regs), words, STACK_BYTES);
	memcpy(data + sizeof(regs) + STACK_BYTES, &t, sizeof(t));
	return sizeof(regs) + STACK_BYTES + sizeof(t);
}
