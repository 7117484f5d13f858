/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/symbolizer/goimage.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

/* Offsets in the table of functions; those of the first format begin at 16. */
#define AT_NAMES     0x80u
#define AT_UNITS     0x100u
#define AT_FILES     0x110u
#define AT_STEPS     0x120u
#define AT_TABLE     0x180u
#define AT_RECORDS   0x200u
#define RECORD_BYTES 0x60u

#define SECTIONS_AT 0x1200u
#define STRINGS_AT  0x1180u
#define RELA_AT	    0x1000u

const struct goimage_release goimage_releases[GOIMAGE_RELEASES] = {
    {"1.9", 0xfffffffb, 1, 2, 16, 0, 0, 0},	  {"1.12", 0xfffffffb, 1, 2, 20, 0, 0, 0},
    {"1.13", 0xfffffffb, 2, 4, 20, 0, 0, 0},	  {"1.16", 0xfffffffa, 2, 3, 20, 0, 0, 0},
    {"1.18", 0xfffffff0, 2, 3, 20, 38, 0, 0},	  {"1.20", 0xfffffff1, 2, 3, 16, 40, 1, 0},
    {"1.27", 0xfffffff1, 2, 3, 16, 43, 1, 0},	  {"1.18 pie", 0xfffffff0, 2, 3, 20, 38, 0, 1},
    {"1.20 pie", 0xfffffff1, 2, 3, 16, 40, 1, 1},
};

static const char names[] = "main.f0\0main.f1\0main.f2\0main.f3\0main.f4\0main.deep\0main.deepest";
#define NAME_DEEP    40
#define NAME_DEEPEST 50
static const char files[] = "a.go\0b.go";

struct maker {
	const struct goimage_release *release;
	uint8_t *bytes;
	unsigned pointer; /* bytes of a number in the table of functions */
	int oldest;
};

static void put(struct maker *m, size_t at, uint64_t value, size_t n)
{
	memcpy(m->bytes + at, &value, n);
}

static void put_table(struct maker *m, size_t at, uint64_t value, size_t n)
{
	put(m, GOIMAGE_TABLE + at, value, n);
}

static void make_elf(struct maker *m)
{
	static const char strings[] = "\0.text\0.gopclntab\0.noptrdata\0.shstrtab\0.rela.dyn\0"
				      ".data.rel.ro\0.go.buildinfo";
	Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_EXEC,
			     .e_machine = EM_X86_64,
			     .e_version = EV_CURRENT,
			     .e_phoff = sizeof(header),
			     .e_shoff = SECTIONS_AT,
			     .e_ehsize = sizeof(header),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_phnum = 1,
			     .e_shentsize = sizeof(Elf64_Shdr),
			     .e_shnum = 6,
			     .e_shstrndx = 4};
	Elf64_Phdr segment = {.p_type = PT_LOAD,
			      .p_flags = PF_R | PF_X,
			      .p_vaddr = GOIMAGE_VADDR,
			      .p_filesz = GOIMAGE_BYTES,
			      .p_memsz = GOIMAGE_BYTES};
	bool other = m->release->relocated; /* as other linkers than Go's write it */
	const struct {
		uint32_t name, type, at, n;
	} sections[] = {
	    {1, SHT_PROGBITS, GOIMAGE_TEXT, GOIMAGE_FUNCTIONS * GOIMAGE_FUNCTION_BYTES},
	    {other ? 49 : 7, SHT_PROGBITS, GOIMAGE_TABLE - (other ? 64 : 0), GOIMAGE_TABLE_BYTES},
	    {other ? 62 : 18, SHT_PROGBITS, GOIMAGE_MODULE - 0x10, RELA_AT - GOIMAGE_MODULE + 0x10},
	    {29, SHT_STRTAB, STRINGS_AT, sizeof(strings)},
	    {39, SHT_RELA, RELA_AT, STRINGS_AT - RELA_AT},
	};

	memcpy(m->bytes, &header, sizeof(header));
	memcpy(m->bytes + sizeof(header), &segment, sizeof(segment));
	memcpy(m->bytes + STRINGS_AT, strings, sizeof(strings));
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		Elf64_Shdr section = {.sh_name = sections[i].name,
				      .sh_type = sections[i].type,
				      .sh_addr = GOIMAGE_VADDR + sections[i].at,
				      .sh_offset = sections[i].at,
				      .sh_size = sections[i].n,
				      .sh_addralign = 1};

		memcpy(m->bytes + SECTIONS_AT + (i + 1) * sizeof(section), &section,
		       sizeof(section));
	}
}

/* Three runs of steps: what is put in, lines, files. Numbers begin at -1. */
static void make_steps(struct maker *m)
{
	static const char calls[] = "\x00\x10\x02\x10\x02\x10\x03\x10\x00";
	static const char lines[] = "\x16\x10\x14\x10\x14\x10\x25\x10\x00";
	char numbers[] = "\x02\x10\x02\x10\x01\x20\x00";

	numbers[0] = m->oldest ? 4 : 2; /* the first file is 1, later 0 */
	memcpy(m->bytes + GOIMAGE_TABLE + AT_STEPS + 1, calls, sizeof(calls));
	memcpy(m->bytes + GOIMAGE_TABLE + AT_STEPS + 16, lines, sizeof(lines));
	memcpy(m->bytes + GOIMAGE_TABLE + AT_STEPS + 32, numbers, sizeof(numbers));
}

static void make_header(struct maker *m)
{
	static const uint32_t parts[] = {AT_NAMES, AT_UNITS, AT_FILES, AT_STEPS, AT_TABLE};
	size_t first = m->pointer == 8 ? 24 : 32;

	put_table(m, 0, m->release->magic, 4);
	put_table(m, 4, 0x08010000, 4);
	put_table(m, 8, GOIMAGE_FUNCTIONS, 8);
	if (m->oldest) {
		/* The number of the files' table stands behind the functions. */
		put_table(m, 16 + GOIMAGE_FUNCTIONS * 16 + 8, AT_UNITS, 4);
		put_table(m, AT_UNITS, 3, 4);
		put_table(m, AT_UNITS + 4, AT_FILES, 4);
		put_table(m, AT_UNITS + 8, AT_FILES + 5, 4);
		return;
	}
	if (m->pointer == 4 && !m->release->relocated)
		put_table(m, 24, GOIMAGE_VADDR + GOIMAGE_TEXT, 8);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		put_table(m, first + 8 * i, parts[i], 8);
	put_table(m, AT_UNITS + 4, 5, 4);
	put_table(m, AT_UNITS + 8, UINT32_MAX, 4);
}

static void make_function(struct maker *m, unsigned i)
{
	const struct goimage_release *r = m->release;
	size_t n = m->pointer, record = AT_RECORDS + i * RECORD_BYTES, tail;
	uint64_t entry = (n == 8 ? GOIMAGE_VADDR + GOIMAGE_TEXT : 0) + i * GOIMAGE_FUNCTION_BYTES;
	uint64_t table = m->oldest ? 16 : AT_TABLE, steps = m->oldest ? AT_STEPS : 0;

	put_table(m, table + 2 * n * i, entry, n);
	put_table(m, table + 2 * n * i + n, record - (m->oldest ? 0 : AT_TABLE), n);
	put_table(m, table + 2 * n * (i + 1), entry + GOIMAGE_FUNCTION_BYTES, n);
	put_table(m, record, entry, n);
	put_table(m, record + n, 8 * i + (m->oldest ? AT_NAMES : 0), 4);
	put_table(m, record + n + 16, steps + 32, 4);
	put_table(m, record + n + 20, steps + 16, 4);
	put_table(m, record + n + 24, r->pcdata + 1u, 4);
	tail = record + n + 28 + (m->oldest ? 0 : 4) + (r->start_lines ? 4 : 0);
	if (r->start_lines)
		put_table(m, tail - 4, 9, 4);
	put_table(m, tail + (r->name[2] == '9' ? 0 : 3), r->funcdata + 1u, 1);
	tail += 4;
	put_table(m, tail + 4u * r->pcdata, steps + 1, 4);
	tail += 4u * (r->pcdata + 1);
	if (n == 4) {
		memset(m->bytes + GOIMAGE_TABLE + tail, 0xff, 4u * r->funcdata);
		put_table(m, tail + 4u * r->funcdata, 0x10, 4);
		return;
	}
	tail = (tail + 7) / 8 * 8;
	put_table(m, tail + 8u * r->funcdata, GOIMAGE_VADDR + GOIMAGE_CALLS, 8);
}

static void make_call(struct maker *m, unsigned i, uint32_t name, int parent, unsigned file,
		      unsigned line, unsigned place)
{
	size_t at = GOIMAGE_CALLS + (size_t)i * m->release->call_bytes;

	name += m->oldest ? AT_NAMES : 0;
	if (m->release->start_lines) {
		put(m, at + 4, name, 4);
		put(m, at + 8, place, 4);
		put(m, at + 12, i ? 29 : 19, 4);
		return;
	}
	put(m, at, (uint64_t)parent, m->release->call_bytes == 16 ? 4 : 2);
	put(m, at + 4, file + (m->oldest ? 1 : 0), 4);
	put(m, at + 8, line, 4);
	put(m, at + 12, name, 4);
	if (m->release->call_bytes == 20)
		put(m, at + 16, place, 4);
}

/* A word of the module's description, written there or left to the dynamic linker. */
static void make_word(struct maker *m, unsigned word, uint64_t value, unsigned *relocations)
{
	Elf64_Rela rela = {GOIMAGE_VADDR + GOIMAGE_MODULE + 8 * word,
			   ELF64_R_INFO(0, R_X86_64_RELATIVE), (int64_t)value};

	if (m->release->relocated)
		memcpy(m->bytes + RELA_AT + sizeof(rela) * (*relocations)++, &rela, sizeof(rela));
	else
		put(m, GOIMAGE_MODULE + 8 * word, value, 8);
}

static void make_module(struct maker *m)
{
	uint64_t table = GOIMAGE_VADDR + GOIMAGE_TABLE, text = GOIMAGE_VADDR + GOIMAGE_TEXT;
	const uint64_t words[][2] = {
	    {0, table},
	    {1, table + AT_NAMES},
	    {4, table + AT_UNITS},
	    {7, table + AT_FILES},
	    {10, table + AT_STEPS},
	    {13, table + AT_TABLE},
	    {16, table + AT_TABLE},
	    {20, text},
	    {22, text},
	    {21, text + GOIMAGE_FUNCTIONS * GOIMAGE_FUNCTION_BYTES},
	};
	unsigned n = 0;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		make_word(m, (unsigned)words[i][0], words[i][1], &n);
	make_word(m, m->release->word, GOIMAGE_VADDR + GOIMAGE_CALLS - 0x10, &n);
	put(m, GOIMAGE_MODULE + 8 * 17, GOIMAGE_FUNCTIONS + 1, 8);
}

void goimage_make(const struct goimage_release *release, uint8_t bytes[GOIMAGE_BYTES])
{
	struct maker m = {.release = release, .bytes = bytes};

	m.oldest = release->magic == 0xfffffffb;
	m.pointer = m.oldest || release->magic == 0xfffffffa ? 8 : 4;
	memset(bytes, 0, GOIMAGE_BYTES);
	make_elf(&m);
	make_header(&m);
	memcpy(bytes + GOIMAGE_TABLE + AT_NAMES, names, sizeof(names));
	memcpy(bytes + GOIMAGE_TABLE + AT_FILES, files, sizeof(files));
	make_steps(&m);
	for (unsigned i = 0; i < GOIMAGE_FUNCTIONS; i++)
		make_function(&m, i);
	make_call(&m, 0, NAME_DEEP, -1, 0, 10, 4);
	make_call(&m, 1, NAME_DEEPEST, 0, 1, 20, 20);
	if (release->word)
		make_module(&m);
}
