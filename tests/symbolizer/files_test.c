/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of files, and what goes when there is no room: the names of the one that was not
 * used for longest.
 */
#define _GNU_SOURCE
#include "symbolizer/filenames.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolizer/jit.h"
#include "tests/symbolizer/packed.h"

#define MEMORY_BYTES (1u << 20)
#define SYMBOLS	     3000
#define NAME_BYTES   48
#define CODE	     0x10000
#define LINES_BYTES  400000 /* less than the lines of this program take */
#define FILES	     12

/* A program of 3,000 functions: 200 KiB when its names are sorted, a fifth of what there is. */
struct made {
	Elf64_Ehdr header;
	Elf64_Phdr phdr;
	Elf64_Shdr sections[3];
	Elf64_Sym symbols[SYMBOLS];
	char strings[SYMBOLS][NAME_BYTES];
};

struct world {
	struct reader reader;
	struct channel sampler;
	struct files files;
	int peer;
};

static void made_fill(struct made *m, uint32_t number)
{
	memset(m, 0, sizeof(*m));
	m->header = (Elf64_Ehdr){.e_type = ET_DYN,
				 .e_machine = EM_X86_64,
				 .e_version = EV_CURRENT,
				 .e_phoff = offsetof(struct made, phdr),
				 .e_phentsize = sizeof(Elf64_Phdr),
				 .e_phnum = 1,
				 .e_shoff = offsetof(struct made, sections),
				 .e_shentsize = sizeof(Elf64_Shdr),
				 .e_shnum = 3};
	memcpy(m->header.e_ident, ELFMAG "\2\1\1", 7);
	m->phdr = (Elf64_Phdr){
	    .p_type = PT_LOAD, .p_flags = PF_X, .p_vaddr = CODE, .p_filesz = sizeof(*m)};
	m->sections[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
				      .sh_offset = offsetof(struct made, symbols),
				      .sh_size = sizeof(m->symbols),
				      .sh_link = 2};
	m->sections[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(struct made, strings),
				      .sh_size = sizeof(m->strings)};
	for (uint32_t i = 1; i < SYMBOLS; i++) {
		m->symbols[i] = (Elf64_Sym){.st_name = i * NAME_BYTES,
					    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					    .st_shndx = 1,
					    .st_value = CODE + i * 16,
					    .st_size = 16};
		snprintf(m->strings[i], NAME_BYTES, "a_function_of_file_%u_with_the_number_%u",
			 number, i);
	}
}

static void world_open(struct world *w, uint64_t bytes)
{
	int fds[2];

	memset(w, 0, sizeof(*w));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	w->peer = fds[1];
	channel_init(&w->sampler, fds[0], ROLE_SYMBOLIZER, ROLE_SAMPLER, true);
	reader_open(&w->reader, true);
	assert_int_equal(files_open(&w->files, &w->reader, &w->sampler, bytes), 0);
}

static void world_close(struct world *w)
{
	files_close(&w->files);
	assert_int_equal(w->files.symbol_bytes, 0);
	reader_close(&w->reader);
	close(w->sampler.fd);
	close(w->peer);
}

static void world_file(struct world *w, uint32_t id)
{
	struct message_file message = {
	    .file_id = id, .key = {.device = 1, .inode = id, .size_bytes = sizeof(struct made)}};
	struct made *made = malloc(sizeof(*made));
	int fd = memfd_create("made", MFD_CLOEXEC);

	assert_non_null(made);
	made_fill(made, id);
	assert_int_equal(write(fd, made, sizeof(*made)), sizeof(*made));
	free(made);
	snprintf(message.path, sizeof(message.path), "/usr/lib/made-%u.so", id);
	files_message(&w->files, &message, fd);
}

/* Its name, and nothing beyond the limit. */
static void find(struct world *w, uint32_t id, uint32_t number)
{
	struct filenames_found found;
	char name[NAME_BYTES];

	filenames_find(&w->files, files_get(&w->files, id), number * 16 + 3, &found);
	snprintf(name, sizeof(name), "a_function_of_file_%u_with_the_number_%u", id, number);
	assert_int_equal(found.lines.n, 1);
	assert_string_equal(found.lines.line[0].name, name);
	assert_int_equal(found.address, CODE + number * 16 + 3);
	assert_true(w->files.symbol_bytes <= w->files.symbol_bytes_max);
}

static void test_by_use(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, MEMORY_BYTES);
	for (uint32_t id = 1; id <= FILES; id++)
		world_file(&w, id);
	/* The first one is met all the time, as a libc is; it never goes. */
	for (uint32_t id = 1; id <= FILES; id++) {
		find(&w, id, id);
		find(&w, 1, 2 * id);
	}
	assert_int_equal(w.files.indexed, FILES);
	assert_true(w.files.evictions > 0 && w.files.evictions < FILES - 1);
	assert_true(w.files.symbol_bytes > MEMORY_BYTES / 2);
	/* Nor does the last; the second has gone, and comes again. */
	find(&w, FILES, 7);
	assert_int_equal(w.files.indexed, FILES);
	find(&w, 2, 7);
	assert_int_equal(w.files.indexed, FILES + 1);
	/* To be looked at is use, without a name being asked for: it was found before. */
	for (uint32_t id = 3; id <= FILES; id++) {
		files_get(&w.files, 2);
		find(&w, id, 9);
	}
	assert_true(w.files.indexed > FILES + 5);
	{
		uint64_t before = w.files.indexed;

		find(&w, 2, 8);
		assert_int_equal(w.files.indexed, before);
	}
	world_close(&w);
}

/* More than a half of all is too much for one: no names, and the others keep theirs. */
static void test_too_large(void **state)
{
	struct filenames_found found;
	struct world w;

	(void)state;
	world_open(&w, 300000);
	world_file(&w, 1);
	filenames_find(&w.files, files_get(&w.files, 1), 16, &found);
	assert_int_equal(found.lines.n, 0);
	assert_int_equal(w.files.bad, 1);
	assert_int_equal(w.files.symbol_bytes, 0);
	world_close(&w);
}

/* This program with its debug information: symbols and lines together stay within the limit. */
static void test_lines(void **state)
{
	struct message_file message = {.file_id = 1, .path = "/usr/bin/files_test"};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct filenames_found found;
	uint32_t placed = 0;
	struct world w;
	struct stat st;

	(void)state;
	assert_int_equal(fstat(fd, &st), 0);
	message.key = (struct file_key){1, 1, (uint64_t)st.st_size, 1};
	world_open(&w, LINES_BYTES);
	files_message(&w.files, &message, fd);
	for (uint64_t at = 0; at < (uint64_t)st.st_size; at += 512) {
		filenames_find(&w.files, files_get(&w.files, 1), at, &found);
		placed += found.lines.n && found.lines.line[0].file;
		assert_true(w.files.symbol_bytes <= w.files.symbol_bytes_max);
	}
	assert_true(placed > 50);
	assert_true(w.files.symbol_bytes > LINES_BYTES / 3);
	world_close(&w);
}

/* With the names of code made at run time, too, it never is more than it may be. */
static void test_lines_beside_made_code(void **state)
{
	struct message_file message = {.file_id = 1, .path = "/usr/bin/files_test"};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct filenames_found found;
	uint32_t placed = 0;
	struct world w;
	struct stat st;

	(void)state;
	assert_int_equal(fstat(fd, &st), 0);
	message.key = (struct file_key){1, 1, (uint64_t)st.st_size, 1};
	world_open(&w, 2 * LINES_BYTES);
	files_message(&w.files, &message, fd);
	for (uint64_t at = 0; at < (uint64_t)st.st_size; at += 512) {
		filenames_find(&w.files, files_get(&w.files, 1), at, &found);
		placed += found.lines.n && found.lines.line[0].file;
		assert_true(files_symbol_bytes(&w.files) <= w.files.symbol_bytes_max);
		if (placed == 30)
			w.files.jit_bytes = 2 * LINES_BYTES / JIT_SHARE;
	}
	assert_true(placed > 50);
	/* And it came once more, not again and again. */
	assert_true(w.files.evictions <= 1);
	world_close(&w);
}

/* What is packed and claims too much is not unpacked, and counted; its symbols stay. */
static void test_lines_too_large(void **state)
{
	static const uint8_t zeros[4096];
	struct message_file message = {.file_id = 1, .path = "/usr/bin/packed"};
	uint8_t packed[4096], file[16384];
	struct packed_section sections[] = {
	    {.name = ".debug_abbrev", .data = zeros, .bytes = 16},
	    {.name = ".debug_info", .flags = SHF_COMPRESSED, .data = packed}};
	uint64_t claims[] = {sizeof(zeros), MEMORY_BYTES};
	struct filenames_found found;
	struct world w;
	size_t n;
	int fd;

	(void)state;
	for (int i = 0; i < 2; i++) {
		sections[1].bytes = packed_data(PACKED_ZLIB, zeros, sizeof(zeros), claims[i],
						packed, sizeof(packed));
		n = packed_elf(sections, 2, file, sizeof(file));
		fd = memfd_create("packed", MFD_CLOEXEC);
		assert_int_equal(write(fd, file, n), n);
		message.key = (struct file_key){1, 1, n, 1};
		world_open(&w, MEMORY_BYTES);
		files_message(&w.files, &message, fd);
		filenames_find(&w.files, files_get(&w.files, 1), 16, &found);
		assert_int_equal(w.files.large, i);
		world_close(&w);
	}
}

/* Of 512 open files one has all that is wanted of it in memory: it is closed for the next. */
static void test_closed_first(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, MEMORY_BYTES);
	for (uint32_t id = 1; id <= READER_FILES_MAX; id++)
		world_file(&w, id);
	find(&w, 7, 7);
	files_get(&w.files, 7)->table_none = true;
	world_file(&w, READER_FILES_MAX + 1);
	assert_int_equal(files_get(&w.files, 7)->slot, -1);
	assert_true(files_get(&w.files, 1)->slot >= 0);
	find(&w, 7, 8);
	/* There is no other such: the one that was not used for longest. */
	world_file(&w, READER_FILES_MAX + 2);
	assert_int_equal(files_get(&w.files, 2)->slot, -1);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_by_use),	 cmocka_unit_test(test_too_large),
	    cmocka_unit_test(test_lines),	 cmocka_unit_test(test_lines_too_large),
	    cmocka_unit_test(test_closed_first), cmocka_unit_test(test_lines_beside_made_code),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
