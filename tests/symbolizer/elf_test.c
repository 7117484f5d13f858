/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol indexes against readelf, the file hash against sha256sum, demangling, and files that were
 * damaged on purpose.
 */
#define _GNU_SOURCE
#include "symbolizer/elffile.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolizer/demangle.h"
#include "symbolizer/reader.h"
#include "symbolizer/symbols.h"

#define INDEX_BYTES (64u << 20)

static struct reader reader;

static struct symbols *build_fd(int fd, uint64_t size, struct elffile_ids *ids)
{
	struct symbols *symbols = NULL;
	struct elffile file;
	int slot = reader_add(&reader, fd);

	assert_true(slot >= 0);
	memset(ids, 0, sizeof(*ids));
	elffile_htlhash(&reader, slot, size, ids->htlhash);
	if (elffile_open(&file, &reader, slot, size) == 0) {
		elffile_build_ids(&file, ids);
		symbols = symbols_build(&file, INDEX_BYTES);
		elffile_close(&file);
	}
	reader_remove(&reader, slot);
	return symbols;
}

static struct symbols *build(const char *path, struct elffile_ids *ids)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	return build_fd(fd, (uint64_t)st.st_size, ids);
}

struct truth {
	uint64_t addr;
	char name[512];
};

static int truth_compare(const void *a, const void *b)
{
	const struct truth *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* All names that readelf has at each function's address. */
static size_t truth_read(const char *path, struct truth **truth)
{
	char command[512], line[4096], type[32], index[32], name[512];
	size_t n = 0, room = 0;
	unsigned long addr;
	FILE *out;

	*truth = NULL;
	snprintf(command, sizeof(command), "readelf -sW %s 2>/dev/null", path);
	out = popen(command, "r");
	assert_non_null(out);
	while (fgets(line, sizeof(line), out)) {
		if (sscanf(line, " %*d: %lx %*s %31s %*s %*s %31s %511s", &addr, type, index,
			   name) != 4 ||
		    (strcmp(type, "FUNC") && strcmp(type, "IFUNC")) || !strcmp(index, "UND"))
			continue;
		if (n == room) {
			room = room ? room * 2 : 1024;
			*truth = realloc(*truth, room * sizeof(**truth));
			assert_non_null(*truth);
		}
		name[strcspn(name, "@")] = 0;
		(*truth)[n].addr = addr;
		snprintf((*truth)[n++].name, sizeof(name), "%s", name);
	}
	pclose(out);
	qsort(*truth, n, sizeof(**truth), truth_compare);
	return n;
}

static void check_file(const char *path, size_t at_least)
{
	struct elffile_ids ids;
	struct symbols *symbols = build(path, &ids);
	struct truth *truth;
	size_t n = truth_read(path, &truth), found = 0;

	assert_true(n >= at_least);
	assert_non_null(symbols);
	for (size_t i = 0; i < n;) {
		const char *name = symbols_find(symbols, truth[i].addr);
		size_t k = i;

		if (!name)
			fail_msg("%s: nothing at %lx, where %s is", path,
				 (unsigned long)truth[i].addr, truth[i].name);
		/* One of the names that stand there. */
		while (k < n && truth[k].addr == truth[i].addr && strncmp(truth[k].name, name, 511))
			k++;
		if (k == n || truth[k].addr != truth[i].addr)
			fail_msg("%s: %s at %lx, where %s is", path, name,
				 (unsigned long)truth[i].addr, truth[i].name);
		for (k = i; i < n && truth[i].addr == truth[k].addr; i++)
			found++;
	}
	assert_int_equal(found, n);
	for (uint32_t i = 1; i < symbols->entries_n; i++)
		assert_true(symbols->entries[i - 1].start + symbols->entries[i - 1].bytes <=
			    symbols->entries[i].start);
	print_message("%s: %zu symbols of %u entries, %zu bytes\n", path, n, symbols->entries_n,
		      symbols->bytes);
	symbols_free(symbols);
	free(truth);
}

static void test_distribution(void **state)
{
	static const char *const optional[] = {"/usr/bin/git", "/usr/bin/python3",
					       "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
					       "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"};

	(void)state;
	check_file("/lib/x86_64-linux-gnu/libc.so.6", 1000);
	check_file("/usr/bin/bash", 1000);
	for (size_t i = 0; i < sizeof(optional) / sizeof(*optional); i++)
		if (access(optional[i], R_OK) == 0)
			check_file(optional[i], 0);
}

/* This program has .symtab and static functions. */
static void test_self(void **state)
{
	struct elffile_ids ids;
	char path[512];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	(void)state;
	assert_true(n > 0);
	path[n] = 0;
	check_file(path, 50);
	symbols_free(build(path, &ids));
}

static void run_line(const char *command, char *line, size_t size)
{
	FILE *out = popen(command, "r");

	assert_non_null(out);
	if (!fgets(line, (int)size, out))
		line[0] = 0;
	line[strcspn(line, " \n")] = 0;
	pclose(out);
}

static void test_ids(void **state)
{
	static const char *const paths[] = {"/usr/bin/bash", "/lib/x86_64-linux-gnu/libc.so.6",
					    "/etc/hostname"};
	char command[1024], line[256];
	struct elffile_ids ids;
	struct stat st;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (stat(paths[i], &st))
			continue;
		symbols_free(build(paths[i], &ids));
		snprintf(command, sizeof(command),
			 "{ head -c 4096 %s; tail -c 4096 %s; printf '%016lx' | "
			 "sed 's/../\\\\x&/g' | xargs -0 printf '%%b'; } | sha256sum",
			 paths[i], paths[i], (unsigned long)st.st_size);
		run_line(command, line, sizeof(line));
		line[32] = 0;
		assert_string_equal(ids.htlhash, line);
		snprintf(command, sizeof(command),
			 "readelf -n %s 2>/dev/null | sed -n 's/.*Build ID: //p'", paths[i]);
		run_line(command, line, sizeof(line));
		assert_string_equal(ids.gnu, line);
	}
}

/* As Go's linker writes them: a segment for its own, a section alone for GNU's. */
static void test_ids_in_sections(void **state)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr phdr;
		Elf64_Shdr sections[3];
		Elf64_Nhdr go;
		char go_name[4], go_id[8];
		Elf64_Nhdr gnu;
		char gnu_name[4];
		uint8_t gnu_id[4];
	} f = {.header = {.e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = offsetof(__typeof__(f), phdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1,
			  .e_shoff = offsetof(__typeof__(f), sections),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 3},
	       .phdr = {.p_type = PT_NOTE,
			.p_offset = offsetof(__typeof__(f), go),
			.p_filesz = sizeof(Elf64_Nhdr) + 12,
			.p_align = 4},
	       .sections = {[2] = {.sh_type = SHT_NOTE,
				   .sh_offset = offsetof(__typeof__(f), gnu),
				   .sh_size = sizeof(Elf64_Nhdr) + 8,
				   .sh_addralign = 4}},
	       .go = {4, 8, 4},
	       .go_name = "Go",
	       .go_id = "aB_-/09z",
	       .gnu = {4, 4, NT_GNU_BUILD_ID},
	       .gnu_name = "GNU",
	       .gnu_id = {1, 0x23, 0xab, 0xff}};
	struct elffile_ids ids;
	int fd;

	(void)state;
	memcpy(f.header.e_ident, ELFMAG "\2\1\1", 7);
	for (int printable = 1; printable >= 0; printable--) {
		f.go_id[3] = printable ? '-' : '\n';
		fd = memfd_create("made", MFD_CLOEXEC);
		assert_int_equal(write(fd, &f, sizeof(f)), sizeof(f));
		symbols_free(build_fd(fd, sizeof(f), &ids));
		assert_string_equal(ids.gnu, "0123abff");
		assert_string_equal(ids.go, printable ? "aB_-/09z" : "");
	}
}

/* --- An ELF file of our own, of which everything is known. --- */

struct made {
	Elf64_Ehdr header;
	Elf64_Phdr phdr;
	Elf64_Shdr sections[4];
	Elf64_Sym symbols[10];
	char strings[256];
	char code[4096];
};

static void made_symbol(struct made *m, int i, size_t *strings, const char *name, uint64_t value,
			uint64_t size, int bind, int type)
{
	m->symbols[i] = (Elf64_Sym){.st_name = (Elf64_Word)*strings,
				    .st_info = ELF64_ST_INFO(bind, type),
				    .st_shndx = 3,
				    .st_value = value,
				    .st_size = size};
	strcpy(m->strings + *strings, name);
	*strings += strlen(name) + 1;
}

static void made_fill(struct made *m)
{
	size_t s = 1;

	memset(m, 0, sizeof(*m));
	memcpy(m->header.e_ident, ELFMAG, SELFMAG);
	m->header.e_ident[EI_CLASS] = ELFCLASS64;
	m->header.e_ident[EI_DATA] = ELFDATA2LSB;
	m->header.e_ident[EI_VERSION] = EV_CURRENT;
	m->header.e_type = ET_DYN;
	m->header.e_machine = EM_X86_64;
	m->header.e_version = EV_CURRENT;
	m->header.e_ehsize = sizeof(Elf64_Ehdr);
	m->header.e_phoff = offsetof(struct made, phdr);
	m->header.e_phentsize = sizeof(Elf64_Phdr);
	m->header.e_phnum = 1;
	m->header.e_shoff = offsetof(struct made, sections);
	m->header.e_shentsize = sizeof(Elf64_Shdr);
	m->header.e_shnum = 4;
	m->phdr = (Elf64_Phdr){.p_type = PT_LOAD,
			       .p_flags = PF_R | PF_X,
			       .p_offset = offsetof(struct made, code),
			       .p_vaddr = 0x10000,
			       .p_filesz = 4096,
			       .p_memsz = 4096,
			       .p_align = 8};
	m->sections[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
				      .sh_offset = offsetof(struct made, symbols),
				      .sh_size = sizeof(m->symbols),
				      .sh_link = 2,
				      .sh_entsize = sizeof(Elf64_Sym)};
	m->sections[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(struct made, strings),
				      .sh_size = sizeof(m->strings)};
	m->sections[3] = (Elf64_Shdr){.sh_type = SHT_PROGBITS,
				      .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				      .sh_addr = 0x10000,
				      .sh_offset = offsetof(struct made, code),
				      .sh_size = 4096};
	made_symbol(m, 1, &s, "outer", 0x10100, 0x100, STB_LOCAL, STT_FUNC);
	made_symbol(m, 2, &s, "inner", 0x10140, 0x10, STB_LOCAL, STT_FUNC);
	made_symbol(m, 3, &s, "label_inside", 0x10160, 0, STB_LOCAL, STT_NOTYPE);
	made_symbol(m, 4, &s, "weak_alias", 0x10300, 0x20, STB_WEAK, STT_FUNC);
	made_symbol(m, 5, &s, "the_global_name@@V_1", 0x10300, 0x20, STB_GLOBAL, STT_FUNC);
	made_symbol(m, 6, &s, "local", 0x10300, 0x20, STB_LOCAL, STT_FUNC);
	made_symbol(m, 7, &s, "no_size", 0x10400, 0, STB_GLOBAL, STT_FUNC);
	made_symbol(m, 8, &s, "asm_label", 0x10500, 0, STB_GLOBAL, STT_NOTYPE);
	made_symbol(m, 9, &s, "elsewhere", 0x90000, 8, STB_GLOBAL, STT_FUNC);
}

static struct symbols *build_bytes(const void *bytes, size_t n, uint64_t claimed)
{
	struct elffile_ids ids;
	int fd = memfd_create("made", MFD_CLOEXEC);

	assert_int_equal(write(fd, bytes, n), (ssize_t)n);
	return build_fd(fd, claimed, &ids);
}

static void test_made(void **state)
{
	static const struct {
		uint64_t addr;
		const char *name;
	} cases[] = {
	    {0x100ff, NULL},
	    {0x10100, "outer"},
	    {0x1013f, "outer"},
	    {0x10140, "inner"},
	    {0x1014f, "inner"},
	    {0x10150, "outer"},
	    {0x10160, "outer"},
	    {0x101ff, "outer"},
	    {0x10200, NULL},
	    {0x10300, "the_global_name"},
	    {0x1031f, "the_global_name"},
	    {0x10320, NULL},
	    {0x10400, "no_size"},
	    {0x104ff, "no_size"},
	    {0x10500, "asm_label"},
	    {0x10fff, "asm_label"},
	    {0x11000, NULL},
	    {0x90000, NULL},
	};
	struct symbols *symbols;
	struct made made;

	(void)state;
	made_fill(&made);
	symbols = build_bytes(&made, sizeof(made), sizeof(made));
	assert_non_null(symbols);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *name = symbols_find(symbols, cases[i].addr);

		if (!cases[i].name != !name || (name && strcmp(name, cases[i].name)))
			fail_msg("%lx: %s", (unsigned long)cases[i].addr, name ? name : "nothing");
	}
	symbols_free(symbols);
	/* With .dynsym instead: stripped. */
	made.sections[1].sh_type = SHT_DYNSYM;
	symbols = build_bytes(&made, sizeof(made), sizeof(made));
	assert_non_null(symbols);
	assert_string_equal(symbols_find(symbols, 0x10100), "outer");
	symbols_free(symbols);
}

/* Headers that lie about sizes. Nothing of it may be believed. */
static void test_hostile(void **state)
{
	struct made made;

	(void)state;
#define HOSTILE(...)                                                                               \
	do {                                                                                       \
		made_fill(&made);                                                                  \
		__VA_ARGS__;                                                                       \
		symbols_free(build_bytes(&made, sizeof(made), sizeof(made)));                      \
	} while (0)
	HOSTILE(made.header.e_shoff = UINT64_MAX - 8);
	HOSTILE(made.header.e_shoff = 3);
	HOSTILE(made.header.e_shoff = sizeof(made) - 64);
	HOSTILE(made.header.e_shnum = 0; made.sections[0].sh_size = 1ull << 40);
	HOSTILE(made.header.e_shnum = 0xfeff);
	HOSTILE(made.header.e_phnum = 0xffff);
	HOSTILE(made.header.e_phoff = UINT64_MAX - 1);
	HOSTILE(made.header.e_shentsize = 1);
	HOSTILE(made.header.e_ident[EI_CLASS] = ELFCLASS32);
	HOSTILE(made.header.e_ident[EI_DATA] = ELFDATA2MSB);
	HOSTILE(made.phdr.p_vaddr = UINT64_MAX - 16);
	HOSTILE(made.phdr.p_filesz = UINT64_MAX);
	HOSTILE(made.phdr.p_type = PT_NOTE; made.phdr.p_offset = UINT64_MAX - 4);
	HOSTILE(made.phdr.p_type = PT_NOTE; made.phdr.p_filesz = 60000);
	HOSTILE(made.phdr.p_type = PT_NOTE; memset(made.code, 0xff, sizeof(made.code)));
	HOSTILE(made.phdr.p_type = PT_NOTE; memset(made.code, 0x01, sizeof(made.code)));
	HOSTILE(made.sections[1].sh_size = UINT64_MAX);
	HOSTILE(made.sections[1].sh_size = 24 * 1000000ull);
	HOSTILE(made.sections[1].sh_offset = UINT64_MAX - 100);
	HOSTILE(made.sections[1].sh_entsize = 0);
	HOSTILE(made.sections[1].sh_entsize = 1);
	HOSTILE(made.sections[1].sh_link = 1);
	HOSTILE(made.sections[1].sh_link = 77);
	HOSTILE(made.sections[1].sh_flags = SHF_COMPRESSED);
	HOSTILE(made.sections[2].sh_size = 3);
	HOSTILE(made.sections[2].sh_size = 0);
	HOSTILE(made.sections[2].sh_offset = sizeof(made) - 1; made.sections[2].sh_size = 1);
	HOSTILE(memset(made.strings, 'x', sizeof(made.strings))); /* not one ends */
	HOSTILE(made.symbols[1].st_name = UINT32_MAX);
	HOSTILE(made.symbols[1].st_size = UINT64_MAX);
	HOSTILE(made.symbols[1].st_value = UINT64_MAX);
	HOSTILE(made.symbols[3].st_shndx = 60000);
#undef HOSTILE
	/* Shorter, and longer, than its key says. */
	made_fill(&made);
	for (size_t n = 0; n < sizeof(made); n += 97)
		symbols_free(build_bytes(&made, n, sizeof(made)));
	for (size_t n = 0; n < 1500; n += 13)
		symbols_free(build_bytes(&made, sizeof(made), n));
	assert_null(build_bytes(&made, sizeof(made), 1ull << 60));
	symbols_free(build_bytes(&made, sizeof(made), 15ull << 30));
}

/* As Fedora makes it: stripped, with what .dynsym lacks in a file inside. */
static const char debugdata_script[] =
    "set -e; cd %s\n"
    "cat > a.c <<'END'\n"
    "__attribute__((noinline)) static int hidden_one(int x) { return x * 3; }\n"
    "__attribute__((noinline)) static int hidden_two(int x) { return hidden_one(x) + 7; }\n"
    "int exported(int x) { return hidden_two(x) + hidden_one(x + 1); }\n"
    "END\n"
    "gcc -g -O1 -fPIC -shared -o full a.c\n"
    "nm -D full --format=posix --defined-only | cut -d' ' -f1 | sort > dynsyms\n"
    "nm full --format=sysv --defined-only | awk -F'|' '$4 ~ /FUNC/ {print $1}' | tr -d ' ' |\n"
    "	sort > funcsyms\n"
    "comm -13 dynsyms funcsyms > keep\n"
    "objcopy --only-keep-debug full debug\n"
    "objcopy -S --remove-section .comment --keep-symbols=keep debug mini\n"
    "strip -o small full && xz mini\n"
    "objcopy --add-section .gnu_debugdata=mini.xz small packed\n";

static void test_debugdata(void **state)
{
	char directory[] = "/tmp/elf-test-XXXXXX", command[2048], path[64];
	struct elffile_ids ids;
	struct symbols *symbols;
	struct truth *truth;
	size_t n, found = 0;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(command, sizeof(command), debugdata_script, directory);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s/full", directory);
	n = truth_read(path, &truth);
	for (int packed = 0; packed < 2; packed++) {
		snprintf(path, sizeof(path), "%s/%s", directory, packed ? "packed" : "small");
		symbols = build(path, &ids);
		assert_non_null(symbols);
		for (size_t i = 0; i < n; i++) {
			const char *name = symbols_find(symbols, truth[i].addr);

			if (!strcmp(truth[i].name, "exported"))
				assert_string_equal(name, "exported");
			if (strncmp(truth[i].name, "hidden_", 7))
				continue;
			found++;
			/* Without it the function before it is all there is, or nothing. */
			assert_int_equal(name && !strcmp(name, truth[i].name), packed);
		}
		symbols_free(symbols);
	}
	assert_int_equal(found, 4);
	free(truth);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	assert_int_equal(system(command), 0);
}

/* Mutations, from a fixed seed: bytes anywhere in the headers, tables and strings. */
static void test_mutations(void **state)
{
	const size_t front = offsetof(struct made, code);
	struct made made;
	int named = 0;

	(void)state;
	srand(20240601);
	for (int round = 0; round < 8000; round++) {
		unsigned char *bytes = (unsigned char *)&made;
		struct symbols *symbols;
		int n = 1 + rand() % 6;

		made_fill(&made);
		if (rand() % 2)
			made.phdr.p_type = rand() % 2 ? PT_LOAD : PT_NOTE;
		for (int i = 0; i < n; i++) {
			size_t at = 16 + (size_t)rand() % (front - 16);
			static const unsigned char evil[] = {0, 1, 2, 0x7f, 0x80, 0xff};

			bytes[at] = rand() % 2 ? evil[rand() % 6] : (unsigned char)rand();
		}
		symbols = build_bytes(&made, sizeof(made), sizeof(made));
		if (symbols) {
			for (uint64_t addr = 0x10000; addr < 0x11000; addr += 64)
				named += symbols_find(symbols, addr) != NULL;
			symbols_free(symbols);
		}
	}
	assert_true(named > 0);
}

/* What compilers call them, and what their own tools make of that. NULL: left as it is. */
static void test_demangle(void **state)
{
	static const struct {
		const char *mangled, *readable;
	} cases[] = {
	    {"_ZN3foo3barEi", "foo::bar(int)"},
	    {"_ZNSt6vectorIiSaIiEE9push_backERKi",
	     "std::vector<int, std::allocator<int> >::push_back(int const&)"},
	    {"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const"},
	    {"_ZN3fooC1Ev.cold", "foo::foo() [clone .cold]"},
	    {"_ZTV3foo", "vtable for foo"},
	    {"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"},
	    {"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
	     "3bar17h930b740aa94f1d3aE",
	     "<Test + 'static as foo::Bar<Test>>::bar"},
	    {"_RNvC7mycrate3foo", "mycrate::foo"},
	    {"_RNCNvC4main4mains_0B3_", "main::main::{closure#1}"},
	    {"_Dmain", "D main"},
	    {"_D3std5stdio7writelnFAyaZv", "std.stdio.writeln(immutable(char)[])"},
	    {"_D8demangle11__T4testTaZv", "demangle.test!(char)"},
	    {"_D4test3fooFNaNbNiNfS4test3BarZQs", "test.foo(test.Bar)"},
	    {"_D3std5range__T4iotaTiTiZQkFiiZ6Result5frontMFNaNbNdNiNfZi",
	     "std.range.iota!(int, int).iota(int, int).Result.front()"},
	    {"_D4core4stdc5errnoQgFZi", "core.stdc.errno.errno()"},
	    {"$s4main3FooV3baryyF", NULL},
	    {"_T04main3FooV3baryyF", NULL},
	    {"main", NULL},
	    {"_start", NULL},
	    {"_", NULL},
	    {"_Z", NULL},
	    {"_ZNotReally", NULL},
	    {"_R", NULL},
	    {"_D", NULL},
	    {"_Dtento", NULL},
	    {"_D3fooFQ", NULL},
	    {"_D3fooFQb", NULL},
	};
	char buf[1024], small[8];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t n = demangle(cases[i].mangled, buf, sizeof(buf));

		if ((n > 0) != (cases[i].readable != NULL) ||
		    (n && strncmp(buf, cases[i].readable, strlen(cases[i].readable))))
			fail_msg("%s: %s", cases[i].mangled, n ? buf : "left");
		if (n)
			assert_int_equal(n, strlen(buf));
	}
	assert_int_equal(demangle("_ZN3foo3barEi", small, sizeof(small)), 0);
	assert_int_equal(demangle("_D8demangle11__T4testTaZv", small, sizeof(small)), 0);
}

/* `start`, then so often what is there between two others; %c: the letters in turn. */
static const char *runaway(const char *start, const char *unit, int times, const char *end)
{
	static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static char name[1 << 16];
	char *p = stpcpy(name, start);

	for (int i = 0; i < times; i++)
		p += sprintf(p, unit, letters[i % 36], letters[i % 36]);
	strcpy(p, end);
	return name;
}

/* In Rust: tuples, each of the one before it twice. */
static const char *runaway_rust(int times)
{
	static const char letters[] =
	    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static char name[2048];
	char *p = stpcpy(name, "_RINvC1a1bThhE");
	long last = 8;

	for (int i = 0; i < times; i++) {
		char number[4] = {letters[(last - 1) % 62]};

		if (last > 62)
			sprintf(number, "%c%c", letters[(last - 1) / 62 - 1],
				letters[(last - 1) % 62]);
		last = p - name - 2;
		p += sprintf(p, "TB%s_B%s_E", number, number);
	}
	strcpy(p, "E");
	return name;
}

/* Names that would take all the memory, time or stack there is, if they were followed. */
static void test_runaway(void **state)
{
	struct timespec before, after;
	char buf[1024];
	int n = 0;

	(void)state;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
	/* Each type holds the one before it twice: 2^n characters if it were written out. */
	n += demangle(runaway("_Z1fN1AIiiEE", "N1BIS%c_S%c_EE", 30, ""), buf, sizeof(buf)) > 0;
	/* The same in D, where 40 of them would take 2 TB. */
	n += demangle(runaway("_D1aFPPPPPa", "B2QiQk", 40, "Zv"), buf, sizeof(buf)) > 0;
	n += demangle(runaway("_D1aFPPPPPa", "B2QiQk", 300, "Zv"), buf, sizeof(buf)) > 0;
	assert_true(demangle(runaway("_D1aFPPPPPa", "B2QiQk", 2, "Zv"), buf, sizeof(buf)) > 0);
	n += demangle(runaway_rust(40), buf, sizeof(buf)) > 0;
	assert_true(demangle(runaway_rust(2), buf, sizeof(buf)) > 0);
	/* One in another, as deep as there are bytes. */
	n += demangle(runaway("_Z1f", "P", 1900, "i"), buf, sizeof(buf)) > 0;
	n += demangle(runaway("_Z1f", "DpT_", 500, ""), buf, sizeof(buf)) > 0;
	n += demangle(runaway("_D1aF", "P", 1900, "aZv"), buf, sizeof(buf)) > 0;
	n += demangle(runaway("_D1aF", "A", 1900, "aZv"), buf, sizeof(buf)) > 0;
	n += demangle(runaway("_D1aF", "DF", 900, "aZv"), buf, sizeof(buf)) > 0;
	n += demangle(runaway("_D", "__T1aS", 300, ""), buf, sizeof(buf)) > 0;
	n += demangle(runaway("_RNvC1a1b", "INvB2_1c", 200, ""), buf, sizeof(buf)) > 0;
	n += demangle(runaway("_RMC0", "R", 1900, "h"), buf, sizeof(buf)) > 0;
	/* Lengths that may be parted in several ways, in one another. */
	n += demangle(runaway("_D1a", "__T1bS1111", 180, ""), buf, sizeof(buf)) > 0;
	n += demangle(runaway("_D", "S11", 600, ""), buf, sizeof(buf)) > 0;
	/* Longer than is looked at at all. */
	n += demangle(runaway("_Z1f", "P", 4000, "i"), buf, sizeof(buf)) > 0;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
	assert_int_equal(n, 0);
	/* Milliseconds on any machine; a minute would not do for one of them. */
	assert_in_range(after.tv_sec - before.tv_sec, 0, 9);
}

static int setup(void **state)
{
	(void)state;
	reader_open(&reader, true);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	reader_close(&reader);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_distribution), cmocka_unit_test(test_self),
	    cmocka_unit_test(test_ids),		 cmocka_unit_test(test_made),
	    cmocka_unit_test(test_hostile),	 cmocka_unit_test(test_mutations),
	    cmocka_unit_test(test_demangle),	 cmocka_unit_test(test_runaway),
	    cmocka_unit_test(test_debugdata),	 cmocka_unit_test(test_ids_in_sections),
	};

	alarm(240);
	return cmocka_run_group_tests(tests, setup, teardown);
}
