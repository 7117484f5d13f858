/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/symbolizer/tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bpf/unwind.bpf.h"
#include "symbolizer/ehframe.h"

static double tables_cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

struct tables_result tables_compile(int fd)
{
	struct tables_result r = {.err = -EBADF};
	static struct reader reader;
	static int ready;
	struct elffile file;
	struct stat st;
	int slot;

	if (!ready++)
		reader_open(&reader, false);
	if (fd < 0 || fstat(fd, &st))
		return r;
	slot = reader_add(&reader, fd);
	r.ms = tables_cpu_ms();
	r.err = elffile_open(&file, &reader, slot, (uint64_t)st.st_size);
	if (r.err == 0) {
		r.err = ehframe_compile(&file, 7, &r.table, &r.bytes);
		memcpy(r.segments, file.segments, sizeof(r.segments));
		r.segments_n = file.segments_n;
		elffile_close(&file);
	}
	r.ms = tables_cpu_ms() - r.ms;
	reader_remove(&reader, slot);
	/* Both the tests and the fuzzer stand on it. */
	if (r.err == 0 && table_check(r.table, r.bytes))
		abort();
	return r;
}

struct tables_result tables_compile_bytes(const void *bytes, size_t n)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
		abort();
	return tables_compile(fd);
}

struct looked_up {
	struct unwind unwind; /* first: the seam is handed a pointer to it */
	const struct table_header *table;
};

/* No stack is walked here. */
UNWIND_INLINE int unwind_read_user(const struct unwind *w, __u64 from, __u64 *words, __u64 n)
{
	(void)w, (void)from, (void)words, (void)n;
	return STOP_READ_FAULT;
}

UNWIND_INLINE const struct record_range *unwind_range(const struct unwind *w, __u64 index)
{
	(void)w, (void)index;
	return NULL;
}

UNWIND_INLINE struct frame *unwind_slot(struct unwind *w, __u64 slot)
{
	(void)w, (void)slot;
	return NULL;
}

UNWIND_INLINE void unwind_file(struct unwind *w, __u32 file_id)
{
	(void)w, (void)file_id;
}

UNWIND_INLINE const __u32 *unwind_chunk(const struct unwind *w, __u64 index)
{
	(void)index;
	return (const __u32 *)(((const struct looked_up *)w)->table + 1);
}

UNWIND_INLINE const __u32 *unwind_word(const struct unwind *w, const __u32 *chunk, __u64 index)
{
	const struct table_header *t = ((const struct looked_up *)w)->table;

	return index < table_words(t) ? &chunk[index] : NULL;
}

/* The memory of the process as it was then is not here. */
UNWIND_INLINE int unwind_script(struct unwind *w)
{
	w->unwinder = UNWIND_NATIVE;
	return unwind_push_script(w, 0, 0, 0);
}

bool tables_find(const struct table_header *table, uint64_t offset, struct table_rule *rule)
{
	struct looked_up l;

	l.table = table;
	l.unwind.file = (struct bpf_file){.first_page = table->first_page,
					  .pages = table->pages,
					  .rows = table->rows,
					  .rules = table->rules};
	if (rows_find(&l.unwind, offset) != UNWIND_GO)
		return false;
	*rule = l.unwind.rule;
	/* What the walk has used, or does not look at, is not part of what the rule says. */
	if (rule->cfa == RULE_REGISTER)
		rule->add = rule->steps = 0;
	if (rule->fp == RULE_FP_SAME)
		rule->fp_offset = 0;
	return true;
}

uint64_t tables_next(const struct table_header *table, uint64_t offset, uint64_t end)
{
	struct table_rule first, rule;

	if (!tables_find(table, offset, &first))
		return offset;
	while (++offset < end)
		if (!tables_find(table, offset, &rule) || memcmp(&rule, &first, sizeof(rule)))
			break;
	return offset;
}

uint32_t tables_folded(const struct table_header *table)
{
	const uint32_t *rows =
	    (const uint32_t *)((const struct table_page *)(table + 1) + table->pages);
	const struct table_rule *rules = (const struct table_rule *)(rows + table->rows);
	uint32_t folded = 0;

	for (uint32_t i = 0; i < table->rows; i++) {
		const struct table_rule *rule = &rules[rows[i] >> 16];
		uint32_t places = rule->steps & ~RULE_STEPS_POP;

		if (rule->cfa != RULE_REGISTER)
			continue;
		/* Place 0 is where the row begins: no change. */
		places |= 1u << (rule->add & 15) >> 1 | 1u << (rule->add >> 4) >> 1;
		folded += (uint32_t)__builtin_popcount(places);
	}
	return folded;
}

const char *tables_text(const struct table_rule *r, char text[TABLES_TEXT_BYTES])
{
	static const char *const names[] = {"sp", "fp", "rax", "rdx", "rcx", "rbx", "rsi", "rdi",
					    "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"};
	size_t n = TABLES_TEXT_BYTES;
	char fp[24], ra[24];

	snprintf(fp, sizeof(fp), r->fp == RULE_FP_CFA ? "@cfa%+d" : "@fp%+d", r->fp_offset);
	if (r->fp == RULE_FP_SAME || r->fp == RULE_FP_UNDEFINED)
		snprintf(fp, sizeof(fp), r->fp == RULE_FP_SAME ? "=" : "?");
	snprintf(ra, sizeof(ra), "@cfa%+d", r->ra_offset);
	if (r->ra == RULE_RA_REGISTER)
		snprintf(ra, sizeof(ra), "=%s", names[r->ra_register]);
	if (r->cfa == RULE_INVALID || r->cfa == RULE_STOP)
		snprintf(text, n, r->cfa == RULE_STOP ? "stop" : "invalid");
	else if (r->cfa == RULE_SIGNAL)
		snprintf(text, n, "signal%+d", r->cfa_offset);
	else if (r->cfa == RULE_PLT)
		snprintf(text, n, "plt%u fp%s ra%s", r->add, fp, ra);
	else if (r->cfa == RULE_DEREF)
		snprintf(text, n, "*(%s%+d)+%u fp%s ra%s", names[r->cfa_register], r->cfa_offset,
			 r->add, fp, ra);
	else
		snprintf(text, n, "%s%+d fp%s ra%s", names[r->cfa_register], r->cfa_offset, fp, ra);
	return text;
}
