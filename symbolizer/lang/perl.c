/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "bpf/lang/perl.h"
#include "symbolizer/lang/facts.h"
#include "symbolizer/lang/lang.h"
#include "symbolizer/lang/perl_names.h"

/*
 * Of builds with threads: offsets in struct interpreter, by offsetof() with each release's
 * intrpvar.h. Releases with an odd number are not for users.
 */
static const struct perl_release {
	uint8_t number;
	uint8_t stash_aux; /* a stash has its name in its body, else behind its array */
	uint16_t globals[3];
} releases[] = {
    {32, 0, {[PERL_CURCOP] = 0xe0, [PERL_CURSTACKINFO] = 0xf0, [PERL_TOP_ENV] = 0x308}},
    {34, 0, {[PERL_CURCOP] = 0xd0, [PERL_CURSTACKINFO] = 0xe0, [PERL_TOP_ENV] = 0x2f8}},
    {36, 1, {[PERL_CURCOP] = 0xd0, [PERL_CURSTACKINFO] = 0xe0, [PERL_TOP_ENV] = 0x2f8}},
    {38, 1, {[PERL_CURCOP] = 0xd0, [PERL_CURSTACKINFO] = 0xe0, [PERL_TOP_ENV] = 0x308}},
    {40, 1, {[PERL_CURCOP] = 0xd0, [PERL_CURSTACKINFO] = 0xe0, [PERL_TOP_ENV] = 0x308}},
    {42, 1, {[PERL_CURCOP] = 0xd0, [PERL_CURSTACKINFO] = 0xe0, [PERL_TOP_ENV] = 0x308}},
};

static const char *const globals[] = {
    [PERL_CURCOP] = "PL_curcop",
    [PERL_CURSTACKINFO] = "PL_curstackinfo",
    [PERL_TOP_ENV] = "PL_top_env",
};
#define GLOBALS (sizeof(globals) / sizeof(*globals))

static const struct perl_release *perl_release(struct facts *facts, struct lang_runtime *runtime)
{
	static const char *const names[] = {"PL_revision", "PL_version", "PL_subversion"};
	struct facts_symbol symbol;
	uint8_t version[3];

	for (int i = 0; i < 3; i++)
		if (facts_symbol(facts, names[i], &symbol) ||
		    !facts_read(facts, symbol.vaddr, &version[i], 1))
			return NULL;
	snprintf(runtime->version, sizeof(runtime->version), "%u.%u.%u", version[0], version[1],
		 version[2]);
	runtime->walk.version = (uint32_t)version[0] << 16 | (uint32_t)version[1] << 8 | version[2];
	for (size_t i = 0; i < sizeof(releases) / sizeof(*releases); i++)
		if (version[0] == 5 && version[1] == releases[i].number)
			return &releases[i];
	return NULL;
}

/*
 * With threads: a variable of the thread from 5.36 on, where the compiler has such; always a key
 * too, because C++ is to find it. An executable that is not position independent may have no
 * relocation for its variable.
 */
static int perl_thread(struct facts *facts, struct table_runtime *walk)
{
	static const char name[] = "PL_current_context";
	struct facts_symbol symbol;
	uint64_t at;

	if (!facts_relocation(facts, name, R_X86_64_TPOFF64, &at)) {
		walk->thread = TABLE_THREAD_GOT;
	} else if (!facts_relocation(facts, name, R_X86_64_DTPMOD64, &at)) {
		walk->thread = TABLE_THREAD_DTV;
	} else {
		if (facts_symbol(facts, "PL_thr_key", &symbol))
			return -ENOTSUP;
		walk->thread = TABLE_THREAD_KEY;
		at = symbol.vaddr;
	}
	walk->thread_at = at;
	return 0;
}

/*
 * Whether an offset is this build's, too. Of the functions that every release exports this one
 * reads the line of the current statement first.
 */
static bool perl_reads_statement(struct facts *facts, uint32_t at)
{
	struct facts_step steps[FACTS_INSNS_MAX];
	struct facts_symbol symbol;
	uint32_t n;

	if (facts_symbol(facts, "Perl_call_list", &symbol))
		return false;
	n = facts_trace(facts, symbol.vaddr, steps, FACTS_INSNS_MAX);
	for (uint32_t i = 0; i < n; i++)
		if (steps[i].form == FACTS_LOAD && steps[i].at.kind == FACTS_ARGUMENT &&
		    steps[i].at.number == at)
			return true;
	return false;
}

static int perl_globals(struct facts *facts, const struct perl_release *release,
			struct table_runtime *walk)
{
	struct facts_symbol symbol;

	if (facts_symbol(facts, globals[PERL_CURCOP], &symbol)) {
		for (size_t i = 0; i < GLOBALS; i++)
			walk->fields[i] = release->globals[i];
		return perl_reads_statement(facts, walk->fields[PERL_CURCOP])
			   ? perl_thread(facts, walk)
			   : -ENOTSUP;
	}
	for (size_t i = 0; i < GLOBALS; i++) {
		if (facts_symbol(facts, globals[i], &symbol))
			return -ENOTSUP;
		walk->symbols[i] = symbol.vaddr;
	}
	return 0;
}

static int perl_recognize(struct elffile *elf, const char *module, struct lang_runtime *runtime)
{
	const struct perl_release *release;
	struct facts_symbol loop;
	struct facts facts;

	(void)module;
	if (facts_open(&facts, elf) || facts_symbol(&facts, "Perl_runops_standard", &loop))
		return -ENOENT;
	release = perl_release(&facts, runtime);
	if (!release || facts_loop(&facts, loop.vaddr, &runtime->walk) ||
	    perl_globals(&facts, release, &runtime->walk))
		return -ENOTSUP;
	/* perl -D; -d is not by this one, but by other ops. */
	if (!facts_symbol(&facts, "Perl_runops_debug", &loop))
		facts_loop(&facts, loop.vaddr, &runtime->walk);
	runtime->walk.libc = facts_libc(&facts);
	runtime->layout[PERL_NAMES_STASH_AUX] = release->stash_aux;
	runtime->layout[PERL_NAMES_FILE_GV] = runtime->walk.thread == TABLE_THREAD_NONE;
	return 0;
}

const struct lang perl_lang = {"perl", "perl", perl_recognize, perl_names_frame};
