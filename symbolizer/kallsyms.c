/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/kallsyms.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASH_BEGIN	0xcbf29ce484222325ull
#define CHUNK_BYTES	65536
#define LINE_BYTES_MAX	1024
#define ENTRIES_MAX	(4u << 20)
#define NAMES_BYTES_MAX (128u << 20)
#define MODULES_MAX	4096
#define REFRESH_NS	10000000000ull
/* Farther behind a symbol is no function of it but memory of something else. Where the next one is
 * of another module, or there is none, nothing says where it ends. */
#define FUNCTION_BYTES_MAX (4u << 20)
#define LAST_BYTES_MAX	   (64u << 10)
#define PROGRAM_BYTES_MAX  (256u << 10)
/* To read all of it again takes a tenth of a second. In vain, less and less often. */
#define RELOAD_FIRST_NS 10000000000ull
#define RELOAD_LAST_NS	640000000000ull

typedef void line_fn(void *arg, char *line);

/* Call fn for every line of a file of /proc; lines come without their end. */
static void kallsyms_each_line(int fd, line_fn *fn, void *arg)
{
	char *buf = malloc(CHUNK_BYTES + 1);
	size_t have = 0;
	off_t at = 0;
	long got;

	while (buf && (got = pread(fd, buf + have, CHUNK_BYTES - have, at)) > 0) {
		char *line = buf, *end;

		at += got;
		have += (size_t)got;
		while ((end = memchr(line, '\n', have - (size_t)(line - buf)))) {
			*end = 0;
			fn(arg, line);
			line = end + 1;
		}
		have -= (size_t)(line - buf);
		if (have > LINE_BYTES_MAX)
			break;
		memmove(buf, line, have);
	}
	free(buf);
}

static uint32_t kallsyms_intern(struct kallsyms *k, const char *name, size_t n)
{
	if (n + 1 > k->names_room - k->names_bytes) {
		uint32_t room = k->names_room ? k->names_room * 2 : 1u << 20;
		char *p = room <= NAMES_BYTES_MAX ? realloc(k->names, room) : NULL;

		if (!p)
			return 0;
		k->names = p;
		k->names_room = room;
	}
	memcpy(k->names + k->names_bytes, name, n);
	k->names[k->names_bytes + n] = 0;
	k->names_bytes += (uint32_t)n + 1;
	return k->names_bytes - (uint32_t)n - 1;
}

/* BPF programs, and what is made for ftrace and kprobes: the list of modules lacks them. */
static bool kallsyms_passing(const char *module, size_t n)
{
	static const char builtin[] = "__builtin__";

	return (n == 3 && memcmp(module, "bpf", 3) == 0) ||
	       (n >= sizeof(builtin) - 1 && memcmp(module, builtin, sizeof(builtin) - 1) == 0);
}

/* Symbols of a module stand together, so that the last one is mostly the right one. */
static uint16_t kallsyms_module(struct kallsyms *k, const char *name, size_t n)
{
	struct kallsyms_module *p;

	for (uint32_t i = k->modules_n; i-- > 1;)
		if (strlen(k->names + k->modules[i].name) == n &&
		    memcmp(k->names + k->modules[i].name, name, n) == 0)
			return (uint16_t)i;
	if (k->modules_n == MODULES_MAX)
		return 0;
	if (k->modules_n % 64 == 0) {
		p = realloc(k->modules, (k->modules_n + 64) * sizeof(*p));
		if (!p)
			return 0;
		k->modules = p;
	}
	k->modules[k->modules_n] = (struct kallsyms_module){
	    .name = kallsyms_intern(k, name, n), .passing = kallsyms_passing(name, n)};
	return (uint16_t)k->modules_n++;
}

static struct kallsyms_entry *kallsyms_new_entry(struct kallsyms *k)
{
	if (k->entries_n == k->entries_room) {
		uint32_t room = k->entries_room ? k->entries_room * 2 : 65536;
		void *p =
		    room <= ENTRIES_MAX ? realloc(k->entries, room * sizeof(*k->entries)) : NULL;

		if (!p)
			return NULL;
		k->entries = p;
		k->entries_room = room;
	}
	return &k->entries[k->entries_n++];
}

/* "ffffffff81000000 T name\t[module]" */
static void kallsyms_parse_line(void *arg, char *line)
{
	struct kallsyms *k = arg;
	struct kallsyms_entry *entry;
	char *p, *module;
	uint64_t addr = strtoull(line, &p, 16);
	size_t n;

	if (p == line || p[0] != ' ' || !p[1] || p[2] != ' ' || !strchr("TtWw", p[1]) || addr == 0)
		return;
	n = strcspn(p + 3, "\t ");
	if (n == 0)
		return;
	entry = kallsyms_new_entry(k);
	if (!entry)
		return;
	entry->addr = addr;
	entry->rank = p[1] == 'T' ? 0 : p[1] == 'W' ? 1 : 2;
	entry->module = 0;
	module = strchr(p + 3, '[');
	if (module)
		entry->module = kallsyms_module(k, module + 1, strcspn(module + 1, "]"));
	entry->name = kallsyms_intern(k, p + 3, n);
	if (!entry->module && (!strcmp(k->names + entry->name, "_text") ||
			       (!strcmp(k->names + entry->name, "_stext") && !k->modules[0].base)))
		k->modules[0].base = addr;
}

static const char *sort_names; /* qsort has no argument for it */

static int kallsyms_compare(const void *a, const void *b)
{
	const struct kallsyms_entry *x = a, *y = b;
	size_t n, m;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank - y->rank;
	n = strlen(sort_names + x->name);
	m = strlen(sort_names + y->name);
	if (n != m)
		return n < m ? -1 : 1;
	return strcmp(sort_names + x->name, sort_names + y->name);
}

static void kallsyms_sort(struct kallsyms *k)
{
	uint32_t n = 0;

	if (k->entries_n == 0)
		return;
	sort_names = k->names;
	qsort(k->entries, k->entries_n, sizeof(*k->entries), kallsyms_compare);
	for (uint32_t i = 0; i < k->entries_n; i++) {
		struct kallsyms_module *m = &k->modules[k->entries[i].module];

		if (n > 0 && k->entries[n - 1].addr == k->entries[i].addr)
			continue;
		if (!m->base)
			m->base = k->entries[i].addr;
		k->entries[n++] = k->entries[i];
	}
	k->entries_n = n;
}

static uint64_t kallsyms_hash(uint64_t hash, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3ull;
	return hash;
}

static void kallsyms_hash_passing(struct kallsyms *k)
{
	k->passing_hash = HASH_BEGIN;
	for (uint32_t i = 0; i < k->entries_n; i++) {
		const struct kallsyms_entry *entry = &k->entries[i];
		const char *name = k->names + entry->name;

		if (!k->modules[entry->module].passing)
			continue;
		k->passing_hash = kallsyms_hash(k->passing_hash, &entry->addr, sizeof(entry->addr));
		k->passing_hash = kallsyms_hash(k->passing_hash, name, strlen(name));
	}
}

static void kallsyms_load(struct kallsyms *k)
{
	k->loaded = true;
	k->loaded_ns = 0;
	k->entries_n = k->modules_n = k->names_bytes = 0;
	/* Offset 0 is "", which is also what stands where the arena is full. */
	kallsyms_intern(k, "", 0);
	if (!k->names)
		return;
	kallsyms_module(k, "", 0);
	if (!k->modules)
		return;
	kallsyms_each_line(k->fd, kallsyms_parse_line, k);
	kallsyms_sort(k);
	kallsyms_hash_passing(k);
}

void kallsyms_open(struct kallsyms *k, int fd, int modules_fd)
{
	memset(k, 0, sizeof(*k));
	k->fd = fd;
	k->modules_fd = modules_fd;
	k->reload_ns = RELOAD_FIRST_NS;
}

void kallsyms_close(struct kallsyms *k)
{
	free(k->entries);
	free(k->modules);
	free(k->names);
	memset(k, 0, sizeof(*k));
}

/* Where this entry's function ends at the latest. */
static uint64_t kallsyms_end(const struct kallsyms *k, uint32_t i)
{
	const struct kallsyms_entry *entry = &k->entries[i];
	uint64_t most = FUNCTION_BYTES_MAX;

	if (k->modules[entry->module].passing)
		most = PROGRAM_BYTES_MAX;
	else if (i + 1 == k->entries_n || entry[1].module != entry->module)
		most = LAST_BYTES_MAX;
	return entry->addr + most;
}

bool kallsyms_find(struct kallsyms *k, uint64_t addr, struct kallsyms_found *found)
{
	uint32_t low = 0, high;
	const struct kallsyms_entry *entry;

	if (!k->loaded)
		kallsyms_load(k);
	high = k->entries_n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (k->entries[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || addr >= kallsyms_end(k, low - 1)) {
		k->missed = true;
		return false;
	}
	entry = &k->entries[low - 1];
	if (k->modules[entry->module].passing)
		k->missed = k->passing_used = true;
	if (k->names[entry->name] == 0)
		return false;
	found->name = k->names + entry->name;
	found->module = k->names + k->modules[entry->module].name;
	/* Below the base there are trampolines before the text: only their own offset is told. */
	found->offset =
	    addr -
	    (addr >= k->modules[entry->module].base ? k->modules[entry->module].base : entry->addr);
	return true;
}

/* Name and address of each module; the use count between them changes all the time. */
static void kallsyms_hash_line(void *arg, char *line)
{
	uint64_t *hash = arg;
	const char *last = strrchr(line, ' ');

	*hash = kallsyms_hash(*hash, line, strcspn(line, " "));
	*hash = kallsyms_hash(*hash, last ? last : "", last ? strlen(last) : 0);
}

static bool kallsyms_modules_changed(struct kallsyms *k, uint64_t now_ns)
{
	uint64_t hash = HASH_BEGIN;
	bool changed;

	if (now_ns - k->checked_ns < REFRESH_NS)
		return false;
	kallsyms_each_line(k->modules_fd, kallsyms_hash_line, &hash);
	changed = k->checked_ns != 0 && hash != k->modules_hash;
	k->modules_hash = hash;
	k->checked_ns = now_ns;
	return changed;
}

/*
 * What tells of new BPF programs is an address that was asked for: one that nothing is known of, or
 * that is in a program, which may be another by now. Answers are kept by who asked, so a program
 * that is in use is asked for again and again only while more of its addresses are seen for the
 * first time; and one that took another's place may be seen nowhere else, so that all is read again
 * from time to time as long as any is in use.
 */
static bool kallsyms_programs_changed(struct kallsyms *k, uint64_t now_ns)
{
	uint64_t hash = k->passing_hash, since_ns;

	if (k->loaded_ns == 0)
		k->loaded_ns = now_ns;
	since_ns = now_ns - k->loaded_ns;
	if (!(k->missed && since_ns >= k->reload_ns) &&
	    !(k->passing_used && since_ns >= RELOAD_LAST_NS))
		return false;
	kallsyms_load(k);
	k->loaded_ns = now_ns;
	k->missed = false;
	if (k->passing_hash == hash) {
		k->reload_ns = k->reload_ns * 2 < RELOAD_LAST_NS ? k->reload_ns * 2 : RELOAD_LAST_NS;
		return false;
	}
	k->reload_ns = RELOAD_FIRST_NS;
	k->passing_used = false;
	return true;
}

bool kallsyms_refresh(struct kallsyms *k, uint64_t now_ns)
{
	if (!k->loaded)
		return false;
	if (kallsyms_modules_changed(k, now_ns)) {
		k->loaded = k->passing_used = false;
		return true;
	}
	return kallsyms_programs_changed(k, now_ns);
}
