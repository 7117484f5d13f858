/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any runtime, any registers and any memory for the walkers and the names of all languages: the
 * walk ends within its limits, each frame of a script has two slots, each name is a text.
 *
 *   struct input | struct snapshot_piece, as many as there are
 *
 * The seeds are samples of real processes, cut to what fits: of the languages that are installed.
 */
#include <stdlib.h>
#include <string.h>

#include "bpf/langs.h"
#include "symbolizer/lang/lang.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lang/hostwalk.h"
#include "tests/lang/livefile.h"
#include "tests/lang/specimens.h"

#define PAGES	   1024u /* of the file of the runtime: 64 MiB */
#define FILE_BYTES ((uint64_t)PAGES << TABLE_PAGE_SHIFT)
#define STACK	   0x10000u
#define READS_MAX  ((3ull * RECORD_USER_FRAMES_MAX + 1) * 24)

struct input {
	struct table_runtime walk;
	struct record_regs regs;
	uint64_t thread_pointer;
	uint64_t base; /* where the file is mapped */
	uint32_t everywhere, unused;
};

const unsigned fuzz_mutations = 1500;

/* Any place of the file is left by its frame pointer. */
static struct {
	struct table_header header;
	struct table_page pages[PAGES];
	__u32 row;
	struct table_rule rule;
	__u32 runtime[TABLE_RUNTIME_WORDS]; /* directly behind the rule, whatever its alignment */
} table = {.header = {TABLE_MAGIC, TABLE_VERSION, 1, 0, PAGES, 1, 1, 1},
	   .rule = {.cfa = RULE_REGISTER,
		    .cfa_register = RULE_FP,
		    .cfa_offset = 16,
		    .fp = RULE_FP_CFA,
		    .fp_offset = -16,
		    .ra_offset = -8}};
static struct snapshot snapshot;
static uint64_t scripts; /* frames that were met */

static const struct table_header *table_of(uint32_t file_id)
{
	return file_id == 1 ? &table.header : NULL;
}

static void begin(const struct input *input, const uint8_t *data, size_t size)
{
	struct snapshot_head *head = &snapshot.head;
	uint64_t base = input->base % (1ull << 47), end = base + FILE_BYTES;

	if (!snapshot.pieces && !snapshot_open(&snapshot))
		abort();
	snapshot_begin(&snapshot, 0);
	memset(head, 0, sizeof(*head));
	for (int i = 0; i < (int)PAGES; i++)
		table.pages[i] = (struct table_page){0, 1};
	memcpy(table.runtime, &input->walk, sizeof(table.runtime));
	head->regs = input->regs;
	head->thread_pointer = input->thread_pointer;
	head->ranges[head->ranges_n++] = (struct record_range){base, end, 0, 1, 0};
	head->ranges[head->ranges_n++] =
	    (struct record_range){end, end + FILE_BYTES, 0, 0, RANGE_ANON};
	head->made_by = 1;
	head->pieces_n = (uint32_t)(size / sizeof(*snapshot.pieces));
	memcpy(snapshot.pieces, data, head->pieces_n * sizeof(*snapshot.pieces));
	for (uint32_t i = 0; i < head->pieces_n; i++)
		snapshot.pieces[i].at -= snapshot.pieces[i].at % SNAPSHOT_PIECE_BYTES;
	snapshot.everywhere = input->everywhere & 1;
	snapshot_reindex(&snapshot);
}

/* As it is recognized in the file of the one that is installed; NULL: none is. */
static const struct lang_runtime *runtime_of(enum language language)
{
	static const struct livefile *known[LANG_COUNT];
	static bool asked[LANG_COUNT];

	if (!asked[language]) {
		struct live *live = specimen_take(language);
		const struct snapshot_head *head = live ? &live->snapshot.head : NULL;

		asked[language] = true;
		if (head && head->made_by)
			known[language] = livefile_get(head->ranges[head->made_by - 1].file_id);
		if (live)
			live_close(live);
		snapshot_use(&snapshot);
	}
	return known[language] ? &known[language]->runtime : NULL;
}

static void name(const struct frame *frame)
{
	const struct lang *lang = frame->language < LANG_COUNT ? langs[frame->language] : NULL;
	const struct lang_runtime *runtime = lang ? runtime_of(frame->language) : NULL;
	struct lang_frame script = {frame->addr, frame[1].addr, frame[1].file_id};
	static struct lang_function function;
	struct remote remote = {.fd = SNAPSHOT_FD};

	remote_begin(&remote);
	memset(&function, 0, sizeof(function));
	if (runtime && frame->addr && lang->name_frame(&remote, runtime, &script, &function) &&
	    (!function.name[0] || !memchr(function.name, 0, sizeof(function.name)) ||
	     !memchr(function.file, 0, sizeof(function.file))))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct frame frames[RECORD_USER_FRAMES_MAX];
	static struct input input;
	enum record_stop stop = STOP_COUNT;
	uint32_t n;

	if (size < sizeof(input))
		return 0;
	memcpy(&input, data, sizeof(input));
	begin(&input, data + sizeof(input), size - sizeof(input));
	n = hostwalk(&snapshot, table_of, frames, &stop);
	if (n > RECORD_USER_FRAMES_MAX || stop >= STOP_COUNT || snapshot.reads > READS_MAX)
		abort();
	for (uint32_t i = 0; i < n; i++) {
		if (frames[i].kind != FRAME_SCRIPT)
			continue;
		if (i + 1 == n || frames[i + 1].kind != FRAME_COOKIE)
			abort();
		scripts += frames[i].addr != 0;
		name(&frames[i++]);
	}
	return 0;
}

/* --- Seeds. --- */

/* Frames of the loop, one above the other, that are left by their frame pointers. */
static void put_stack(struct snapshot_piece *piece, uint64_t pc)
{
	uint64_t words[SNAPSHOT_PIECE_BYTES / 8] = {STACK + 16, pc, STACK + 32, pc,
						    STACK + 48, pc, 0,		0};

	piece->at = STACK;
	memcpy(piece->bytes, words, sizeof(words));
}

/* A sample that stands in the loop, or in code that the runtime made. */
static size_t put(const struct live *live, bool made, uint8_t data[FUZZ_BYTES_MAX])
{
	const struct snapshot_head *head = &live->snapshot.head;
	const struct record_range *range = &head->ranges[head->made_by - 1];
	const struct livefile *file = livefile_get(range->file_id);
	struct input input = {.walk = file->runtime.walk,
			      .regs = head->regs,
			      .thread_pointer = head->thread_pointer,
			      .base = range->start - range->offset};
	size_t room = (FUZZ_BYTES_MAX - sizeof(input)) / sizeof(struct snapshot_piece) - 1;
	size_t n = head->pieces_n < room ? head->pieces_n : room;
	uint64_t pc = input.base + input.walk.loops[0].start + 8;
	struct snapshot_piece stack;

	put_stack(&stack, pc);
	input.regs.pc = made ? input.base + FILE_BYTES + 8 : pc;
	input.regs.sp = STACK - 64;
	input.regs.fp = STACK;
	memcpy(data, &input, sizeof(input));
	memcpy(data + sizeof(input), &stack, sizeof(stack));
	memcpy(data + sizeof(input) + sizeof(stack), live->snapshot.pieces, n * sizeof(stack));
	return sizeof(input) + (n + 1) * sizeof(stack);
}

/* Without any runtime: numbers that count up. */
static size_t put_nothing(uint8_t data[FUZZ_BYTES_MAX])
{
	for (size_t i = 0; i < 4096; i++)
		data[i] = (uint8_t)i;
	return 4096;
}

/* A seed from which no walker ever starts would test nothing. */
static void expect_scripts(const struct live *live, unsigned n, const uint8_t *data, size_t size)
{
	uint64_t before = scripts;

	LLVMFuzzerTestOneInput(data, size);
	if (live && n % 2 == 0 && scripts == before)
		abort();
}

size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX])
{
	static uint8_t seeds[2 * LANG_COUNT][FUZZ_BYTES_MAX];
	static size_t sizes[2 * LANG_COUNT];
	enum language language = (enum language)(LANG_NONE + 1 + n / 2);

	if (language >= LANG_COUNT)
		return 0;
	if (!sizes[n]) {
		struct live *live = specimen_take(language);

		sizes[n] = live && live->snapshot.head.made_by ? put(live, n % 2, seeds[n])
							       : put_nothing(seeds[n]);
		expect_scripts(live, n, seeds[n], sizes[n]);
		if (live)
			live_close(live);
	}
	memcpy(data, seeds[n], sizes[n]);
	return sizes[n];
}
