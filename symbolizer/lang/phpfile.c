/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PHP is one file, whatever it is called: the program of the command line, php-fpm, libphp.so of a
 * server. It exports its loop and its globals, because extensions are linked to them, and has its
 * version in the header that it sends. Where things are in an op array goes by the version; of two
 * of them accessors in the file are looked at too, so that a build with other structures is
 * refused. Where a generator has its frame is read out of the file alone.
 */
#define _GNU_SOURCE
#include "symbolizer/lang/phpfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/lang/php.h"
#include "symbolizer/elfparts.h"
#include "symbolizer/lang/facts.h"
#include "symbolizer/x86.h"

#define PHPFILE_RODATA_MAX  (64u << 20)
#define PHPFILE_PIECE_BYTES 65536u
#define PHPFILE_CODE_BYTES  256u /* of an accessor */

#define PHPFILE_CURRENT	     488 /* current_execute_data; in 8.5 it is elsewhere */
#define PHPFILE_OBJECT_BYTES 56	 /* sizeof(zend_object) */

/*
 * offsetof() in zend_op_array, by the headers of 7.4, 8.2 and 8.4 as Debian ships them; those
 * of 8.0, 8.1 and 8.3 were counted in the headers.
 */
static const struct phpfile_layout {
	uint16_t version; /* major << 8 | minor */
	uint8_t last, opcodes, filename, line_start;
} layouts[] = {
    {0x704, 60, 64, 136, 144}, {0x800, 68, 72, 144, 152}, {0x801, 68, 72, 144, 152},
    {0x802, 80, 88, 152, 160}, {0x803, 76, 80, 144, 152}, {0x804, 96, 104, 168, 176},
};

static const struct phpfile_layout *phpfile_layout(const char *version, uint32_t *number)
{
	char *end;
	unsigned long major = strtoul(version, &end, 10);
	unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;

	*number = major > 255 || minor > 255 ? 0 : (uint32_t)(major << 8 | minor);
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].version == *number)
			return &layouts[i];
	return NULL;
}

/* What stands behind the mark, as far as it is a version; false when that is nothing. */
static bool phpfile_take_version(const char *text, char version[LANG_VERSION_BYTES])
{
	size_t n = 0;

	while (n + 1 < LANG_VERSION_BYTES && ((text[n] >= '0' && text[n] <= '9') || text[n] == '.'))
		n++;
	snprintf(version, LANG_VERSION_BYTES, "%.*s", (int)n, text);
	return n >= 3 && strchr(version, '.');
}

/* The first place with a version in a section, which is looked through in pieces that overlap. */
static bool phpfile_find_version(struct elffile *elf, const GElf_Shdr *section,
				 char version[LANG_VERSION_BYTES])
{
	static const char mark[] = "X-Powered-By: PHP/";
	const size_t mark_bytes = sizeof(mark) - 1, overlap = mark_bytes + LANG_VERSION_BYTES;
	static char piece[PHPFILE_PIECE_BYTES + 1];

	for (uint64_t at = 0; at < section->sh_size; at += PHPFILE_PIECE_BYTES - overlap) {
		size_t n = PHPFILE_PIECE_BYTES;

		if (n > section->sh_size - at)
			n = (size_t)(section->sh_size - at);
		if (elffile_read(elf, section->sh_offset + at, piece, n))
			return false;
		piece[n] = 0;
		for (char *p = piece; (p = memmem(p, (size_t)(piece + n - p), mark, mark_bytes));
		     p++)
			if (phpfile_take_version(p + mark_bytes, version))
				return true;
		if (n < PHPFILE_PIECE_BYTES)
			return false;
	}
	return false;
}

static bool phpfile_version(struct elffile *elf, char version[LANG_VERSION_BYTES])
{
	GElf_Shdr section;

	return elfparts_find(elf, ".rodata", &section) == 0 && section.sh_type != SHT_NOBITS &&
	       section.sh_size <= PHPFILE_RODATA_MAX &&
	       phpfile_find_version(elf, &section, version);
}

/* The next instruction of the code that loads a word; false: no more. */
static bool phpfile_load(const uint8_t *code, uint64_t vaddr, size_t *at, struct x86_insn *insn)
{
	while (*at < PHPFILE_CODE_BYTES &&
	       x86_decode(code + *at, PHPFILE_CODE_BYTES - *at, vaddr + *at, insn)) {
		*at += insn->length;
		if (insn->kind == X86_MOVE && insn->b.kind == X86_MEMORY && insn->b.bytes == 8 &&
		    !insn->b.segment)
			return true;
	}
	return false;
}

static const uint8_t *phpfile_code(struct facts *facts, const char *name, uint64_t *vaddr)
{
	struct facts_symbol function;

	if (facts_symbol(facts, name, &function))
		return NULL;
	*vaddr = function.vaddr;
	return elfparts_data(facts->elf, function.vaddr, PHPFILE_CODE_BYTES);
}

/* Does the function load a word at some pointer + offset, or at base + offset? */
static bool phpfile_loads(struct facts *facts, const char *name, uint64_t base, int64_t offset)
{
	struct x86_insn insn;
	uint64_t vaddr;
	const uint8_t *code = phpfile_code(facts, name, &vaddr);
	size_t at = 0;

	while (code && phpfile_load(code, vaddr, &at, &insn))
		if (insn.b.number == offset || (base && insn.b.number - (int64_t)base == offset))
			return true;
	return false;
}

/*
 * Where a zend_generator has its execute_data: behind its zend_object, in 7.4 behind an iterator
 * too. It is the first that closing a generator looks at, from 7.4 to 8.4. 0 = not known.
 */
static uint32_t phpfile_generator(struct facts *facts)
{
	struct x86_insn insn;
	uint64_t vaddr;
	const uint8_t *code = phpfile_code(facts, "zend_generator_close", &vaddr);
	size_t at = 0;

	if (!code || !phpfile_load(code, vaddr, &at, &insn) || insn.b.base != X86_RDI ||
	    insn.b.index != X86_NO_REGISTER || insn.b.number < PHPFILE_OBJECT_BYTES ||
	    insn.b.number > PHPFILE_OBJECT_BYTES + 8)
		return 0;
	return (uint32_t)insn.b.number;
}

static void phpfile_fill(struct table_runtime *walk, const struct phpfile_layout *layout)
{
	walk->fields[PHP_CURRENT] = PHPFILE_CURRENT;
	walk->fields[PHP_LAST] = layout->last / 4;
	walk->fields[PHP_LINE_START] = layout->line_start / 4;
	walk->fields[PHP_OPCODES] = layout->opcodes / 8;
	walk->fields[PHP_FILENAME] = layout->filename / 8;
}

int phpfile_recognize(struct elffile *elf, const char *module, struct lang_runtime *runtime)
{
	struct table_runtime *walk = &runtime->walk;
	const struct phpfile_layout *layout;
	struct facts_symbol loop, globals, scope;
	uint64_t start, end;
	struct facts facts;
	bool zts;

	(void)module;
	if (facts_open(&facts, elf) || facts_symbol(&facts, "execute_ex", &loop))
		return -ENOENT;
	zts = facts_symbol(&facts, "executor_globals", &globals) != 0;
	if (zts && facts_symbol(&facts, "executor_globals_offset", &globals))
		return -ENOENT;
	if (!phpfile_version(elf, runtime->version))
		return -ENOTSUP;
	layout = phpfile_layout(runtime->version, &walk->version);
	if (!layout ||
	    !phpfile_loads(&facts, "zend_get_executed_scope", zts ? 0 : globals.vaddr,
			   PHPFILE_CURRENT) ||
	    !phpfile_loads(&facts, "zend_get_executed_filename_ex", 0, layout->filename))
		return -ENOTSUP;
	phpfile_fill(walk, layout);
	walk->libc = facts_libc(&facts);
	walk->fields[PHP_ZTS] = zts;
	walk->fields[PHP_GENERATOR] = phpfile_generator(&facts);
	walk->symbols[PHP_GLOBALS] = globals.vaddr;
	if (facts_loop(&facts, loop.vaddr, walk) ||
	    facts_function(&facts, loop.vaddr, &start, &end) ||
	    (zts && (facts_symbol(&facts, "zend_get_executed_scope", &scope) ||
		     facts_thread(&facts, scope.vaddr, 0, walk))))
		return -ENOTSUP;
	/* Prologue and epilogues are a few bytes of it. */
	walk->symbols[PHP_BODY] = start + (end - start) / 2;
	return 0;
}
