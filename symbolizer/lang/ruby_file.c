/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distributions strip Ruby, and nothing that runs the loop is exported. But the loop jumps from one
 * instruction to the next by addresses of its own middle, which it has in a table
 * (insns_address_table of vm_exec_core()): some 200 addresses in a row, which the dynamic linker
 * has to relocate. The only other such table is the one of regular expressions, of half that size.
 */
#include "symbolizer/lang/ruby_file.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bpf/lang/ruby.h"
#include "symbolizer/elfparts.h"
#include "symbolizer/lang/facts.h"
#include "symbolizer/lang/ruby_layout.h"

/* From 2.6 to 3.4 there are 200 to 250 instructions, in a function of some 20 KB. */
#define LABELS_MIN   150
#define LABELS_REACH (64u << 10)

/* Addresses that stand in a row. */
struct labels {
	uint64_t behind; /* where the next one would stand */
	uint64_t low, high, n;
};

/* Are all of them in the middle of one function? Then that is the loop. */
static bool labels_are_loop(struct facts *facts, const struct labels *labels)
{
	uint64_t start, end;

	return labels->n >= LABELS_MIN && facts_function(facts, labels->low, &start, &end) == 0 &&
	       start < labels->low && labels->high < end;
}

static bool labels_take(struct labels *labels, const Elf64_Rela *rela)
{
	uint64_t to = (uint64_t)rela->r_addend;
	uint64_t low = to < labels->low ? to : labels->low;
	uint64_t high = to > labels->high ? to : labels->high;

	if (rela->r_offset != labels->behind || high - low > LABELS_REACH)
		return false;
	*labels = (struct labels){labels->behind + 8, low, high, labels->n + 1};
	return true;
}

/* An address in the loop. Relocations are sorted by the linker. */
static int find_loop(struct facts *facts, uint64_t *vaddr)
{
	uint64_t n = facts->relocs[0].bytes / sizeof(Elf64_Rela);
	struct labels labels = {0};
	const uint8_t *relocs;

	if (n == 0 || n > FACTS_RELOCS_MAX)
		return -ENOENT;
	relocs = elfparts_data(facts->elf, facts->relocs[0].vaddr, n * sizeof(Elf64_Rela));
	for (uint64_t i = 0; relocs && i <= n; i++) {
		Elf64_Rela rela = {0};

		if (i < n)
			memcpy(&rela, relocs + i * sizeof(rela), sizeof(rela));
		if (ELF64_R_TYPE(rela.r_info) == R_X86_64_RELATIVE && labels_take(&labels, &rela))
			continue;
		if (labels_are_loop(facts, &labels)) {
			*vaddr = labels.low;
			return 0;
		}
		labels = (struct labels){rela.r_offset + 8, (uint64_t)rela.r_addend,
					 (uint64_t)rela.r_addend, 1};
	}
	return -ENOENT;
}

/*
 * Where a pointer stands through which a function reads: field bytes behind what it points to, or
 * at the first place that it reads (field: 0).
 */
static int find_pointer(struct facts *facts, const char *function, uint32_t *field, uint32_t *vaddr)
{
	struct facts_step steps[FACTS_INSNS_MAX];
	struct facts_symbol symbol;
	uint32_t n;

	if (facts_symbol(facts, function, &symbol))
		return -ENOENT;
	n = facts_trace(facts, symbol.vaddr, steps, FACTS_INSNS_MAX);
	for (uint32_t i = 0; i < n; i++) {
		const struct facts_value *at = &steps[i].at;

		if (steps[i].form != FACTS_LOAD || at->kind != FACTS_LOADED || at->of >= i ||
		    steps[at->of].at.kind != FACTS_CONSTANT || (uint64_t)at->number > UINT32_MAX ||
		    (uint64_t)steps[at->of].at.number > UINT32_MAX ||
		    (*field && at->number != *field))
			continue;
		*field = (uint32_t)at->number;
		*vaddr = (uint32_t)steps[at->of].at.number;
		return 0;
	}
	return -ENOENT;
}

/* What names of IDs and variables of classes are found by. */
static int find_tables(struct facts *facts, const struct ruby_layout *layout, uint32_t *words)
{
	uint32_t entries = 0x10;

	/*
	 * It takes global_symbols.str, an st_table, and reads how many entries that has. In front
	 * of it stands the last serial number, behind it the array of what IDs are called.
	 */
	if (find_pointer(facts, "rb_sym_all_symbols", &entries, &words[RUBY_FILE_SYMBOLS]))
		return -ENOENT;
	words[RUBY_FILE_SYMBOLS] -= 8;
	return layout->variables ? find_pointer(facts, "rb_shape_get_shape_by_id",
						&words[RUBY_FILE_SHAPES], &words[RUBY_FILE_VM])
				 : 0;
}

/* How a thread comes to its execution context. */
static int find_context(struct facts *facts, const struct ruby_layout *layout,
			struct table_runtime *walk)
{
	struct facts_symbol current, pointer;
	int64_t ec_thread;

	if (facts_symbol(facts, "rb_thread_current", &current) ||
	    facts_field(facts, current.vaddr, 0, &ec_thread) ||
	    ec_thread != (int64_t)layout->ec_thread)
		return -ENOENT;
	if (!layout->thread_id)
		return facts_thread(facts, current.vaddr, 0, walk);
	if (facts_symbol(facts, "ruby_current_execution_context_ptr", &pointer))
		return -ENOENT;
	walk->symbols[RUBY_EC_POINTER] = pointer.vaddr;
	return 0;
}

static int understand(struct facts *facts, const struct ruby_layout *layout,
		      struct lang_runtime *runtime)
{
	struct table_runtime *walk = &runtime->walk;
	uint64_t loop;

	if (find_loop(facts, &loop) || facts_loop(facts, loop, walk) ||
	    find_context(facts, layout, walk) || find_tables(facts, layout, runtime->layout))
		return -ENOENT;
	walk->libc = facts_libc(facts);
	walk->fields[RUBY_EC_THREAD] = layout->ec_thread;
	walk->fields[RUBY_THREAD_ID] = layout->thread_id;
	walk->fields[RUBY_CONTROL_BYTES] = layout->control_bytes;
	return 0;
}

int ruby_file_recognize(struct elffile *elf, const char *module, struct lang_runtime *runtime)
{
	const struct ruby_layout *layout;
	struct facts_symbol text, current;
	unsigned major, minor;
	struct facts facts;

	(void)module;
	if (facts_open(&facts, elf) || facts_symbol(&facts, "ruby_version", &text) ||
	    facts_symbol(&facts, "rb_thread_current", &current))
		return -ENOENT;
	if (!facts_text(&facts, text.vaddr, runtime->version, sizeof(runtime->version)) ||
	    sscanf(runtime->version, "%3u.%3u.", &major, &minor) != 2 || text.vaddr > UINT32_MAX)
		return -ENOENT;
	runtime->walk.version = RUBY_VERSION(major, minor);
	runtime->layout[RUBY_FILE_VERSION] = runtime->walk.version;
	runtime->layout[RUBY_FILE_TEXT] = (uint32_t)text.vaddr;
	layout = ruby_layout_find(runtime->walk.version);
	return layout && understand(&facts, layout, runtime) == 0 ? 0 : -ENOTSUP;
}
