/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an ELF file that names others. */
#define _GNU_SOURCE
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolizer/companions.h"
#include "tests/fuzz/fuzz.h"
#include "tests/symbolizer/packed.h"

const unsigned fuzz_mutations = 4000;

/* A name that may be asked for is one component of a path, and ends. */
static void fuzz_name(const char name[MESSAGE_OTHER_BYTES])
{
	if (!memchr(name, 0, MESSAGE_OTHER_BYTES) || strchr(name, '/') || !strcmp(name, "..") ||
	    !strcmp(name, "."))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct reader reader;
	static int ready;
	struct companions says;
	struct elffile file;
	int fd = memfd_create("input", MFD_CLOEXEC), slot;

	if (!ready++)
		reader_open(&reader, false);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	slot = reader_add(&reader, fd);
	if (elffile_open(&file, &reader, slot, size) == 0) {
		companions_read(&file, &says);
		fuzz_name(says.link);
		fuzz_name(says.alt);
		if (says.id.bytes > COMPANIONS_ID_BYTES || says.alt_id.bytes > COMPANIONS_ID_BYTES)
			abort();
		companions_is_package(&file);
		elffile_close(&file);
	}
	reader_remove(&reader, slot);
	return 0;
}

size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX])
{
	static const char link[] = "../x.debug\0\0crc.", alt[] = "/usr/lib/debug/.dwz/x\0commonid";
	static const uint8_t note[] = {4,   0,	 0,   0, 8,   0,   0,	0,   3,	  0,   0,   0,
				       'G', 'N', 'U', 0, '1', '2', '3', '4', '5', '6', '7', '8'};
	const struct packed_section s[] = {
	    {.name = ".note.gnu.build-id", .type = SHT_NOTE, .data = note, .bytes = sizeof(note)},
	    {.name = ".gnu_debuglink", .data = link + 3 * n, .bytes = sizeof(link) - 1 - 3 * n},
	    {.name = ".gnu_debugaltlink", .data = alt, .bytes = sizeof(alt) - 1},
	    {.name = n ? ".debug_info" : ".debug_cu_index", .data = note, .bytes = 8}};

	return n < 2 ? packed_elf(s, 4, data, FUZZ_BYTES_MAX) : 0;
}
