/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/runtimes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shm/unread.h"
#include "symbolizer/elfparts.h"

#define RUNTIMES_EXPORTS 2
#define RUNTIMES_CHAIN	 32 /* names in a bucket that are looked at; linkers aim at one or two */

/*
 * What each build of a runtime exports, because all its extensions need it: from 3.6, 7.4, 2.7 and
 * 5.32 on to those of today.
 */
static const char *const exports[LANG_COUNT][RUNTIMES_EXPORTS] = {
    [LANG_PYTHON] = {"PyObject_GetAttrString", "_PyEval_EvalFrameDefault"},
    [LANG_PHP] = {"zend_parse_parameters", "execute_ex"},
    [LANG_RUBY] = {"rb_define_method", "rb_vm_exec"},
    [LANG_PERL] = {"Perl_runops_standard", "perl_run"},
};

/* The head of .gnu.hash, as the dynamic linkers read it (glibc: elf/dl-lookup.c). */
struct runtimes_hash {
	uint32_t buckets, first, words, shift;
};

static uint32_t runtimes_name_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

/* The filter says no for most names that are not there, then the hashes of their bucket do. */
static bool runtimes_may_export(struct elffile *elf, uint64_t at, const struct runtimes_hash *head,
				const char *name)
{
	uint32_t hash = runtimes_name_hash(name), chain[RUNTIMES_CHAIN], symbol;
	uint64_t word, bits = 1ull << hash % 64 | 1ull << (hash >> head->shift % 32) % 64;
	uint64_t buckets = at + sizeof(*head) + 8 * (uint64_t)head->words;
	uint64_t chains = buckets + 4 * (uint64_t)head->buckets;

	if (elffile_read(elf, at + sizeof(*head) + 8 * (uint64_t)(hash / 64 % head->words), &word,
			 sizeof(word)))
		return true;
	if ((word & bits) != bits ||
	    elffile_read(elf, buckets + 4 * (uint64_t)(hash % head->buckets), &symbol,
			 sizeof(symbol)) ||
	    symbol < head->first)
		return false;
	/* The last table of the file may be shorter than that. */
	if (elffile_read(elf, chains + 4 * (uint64_t)(symbol - head->first), chain, sizeof(chain)))
		return true;
	for (int i = 0; i < RUNTIMES_CHAIN; i++)
		if ((chain[i] ^ hash) <= 1 || (chain[i] & 1))
			return (chain[i] ^ hash) <= 1;
	return true;
}

/* "python3.11", "libpython3.11.so.1.0". */
static bool runtimes_is_called(const char *module, const char *language)
{
	if (!strncmp(module, "lib", 3))
		module += 3;
	return !strncmp(module, language, strlen(language));
}

bool runtimes_may_be(struct elffile *elf, const char *module)
{
	struct runtimes_hash head;
	GElf_Shdr section;

	for (uint32_t i = LANG_NONE + 1; i < LANG_COUNT; i++)
		if (runtimes_is_called(module, langs[i]->name))
			return true;
	if (elfparts_find(elf, ".gnu.hash", &section))
		return elfparts_find(elf, ".dynsym", &section) == 0;
	if (elffile_read(elf, section.sh_offset, &head, sizeof(head)) || !head.words ||
	    !head.buckets)
		return true;
	for (uint32_t i = LANG_NONE + 1; i < LANG_COUNT; i++)
		for (uint32_t k = 0; k < RUNTIMES_EXPORTS; k++)
			if (runtimes_may_export(elf, section.sh_offset, &head, exports[i][k]))
				return true;
	return false;
}

/* Shown as native code; whoever looks at the status is told why. */
static void runtimes_unknown(struct runtimes *runtimes, const struct file *file,
			     const struct lang_runtime *runtime)
{
	uint32_t language = runtime->walk.language;

	runtimes->unknown++;
	if (runtimes->ledger && language < LANG_COUNT && langs[language])
		unread_add(runtimes->ledger, langs[language]->name, runtime->version,
			   file->path ? file->path : "");
}

void runtimes_look(struct runtimes *runtimes, struct file *file, struct elffile *elf)
{
	struct lang_runtime *runtime;
	int err;

	if (file->runtime_sought)
		return;
	file->runtime_sought = true;
	if (!runtimes_may_be(elf, file_module(file)))
		return;
	runtime = calloc(1, sizeof(*runtime));
	err = runtime ? lang_recognize(elf, file_module(file), runtime) : -ENOENT;
	if (runtime)
		runtime->version[sizeof(runtime->version) - 1] = 0;
	if (err == -ENOTSUP)
		runtimes_unknown(runtimes, file, runtime);
	if (err) {
		free(runtime);
		return;
	}
	runtimes->found++;
	file->runtime = runtime;
}

const struct lang_runtime *runtimes_get(struct runtimes *runtimes, struct files *files,
					struct file *file)
{
	struct elffile elf;

	if (file->runtime_sought || file->slot < 0)
		return file->runtime;
	files_begin(files, file);
	if (elffile_open(&elf, files->reader, file->slot, file->key.size_bytes)) {
		file->runtime_sought = true;
	} else {
		runtimes_look(runtimes, file, &elf);
		elffile_close(&elf);
	}
	files_end(files);
	return file->runtime;
}

void runtimes_forget(struct file *file)
{
	free(file->runtime);
	file->runtime = NULL;
	file->runtime_sought = false;
}

void runtimes_append(const struct lang_runtime *runtime, struct table_header **table, size_t *bytes)
{
	struct table_header *longer = realloc(*table, *bytes + sizeof(runtime->walk));

	if (!longer)
		return;
	memcpy((char *)longer + *bytes, &runtime->walk, sizeof(runtime->walk));
	longer->runtimes = 1;
	*table = longer;
	*bytes += sizeof(runtime->walk);
}
