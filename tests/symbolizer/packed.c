/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/symbolizer/packed.h"

#include <elf.h>
#include <endian.h>
#include <lzma.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define NAMES_BYTES  1024
#define SECTIONS_MAX 16

static size_t packed_zlib(const void *data, size_t bytes, uint8_t *out, size_t room)
{
	uLongf n = room;

	return compress2(out, &n, data, bytes, 9) == Z_OK ? n : 0;
}

static size_t packed_zstd(const void *data, size_t bytes, uint8_t *out, size_t room)
{
	size_t n = ZSTD_compress(out, room, data, bytes, 3);

	return ZSTD_isError(n) ? 0 : n;
}

static size_t packed_xz(lzma_check check, const void *data, size_t bytes, uint8_t *out, size_t room)
{
	size_t n = 0;

	return lzma_easy_buffer_encode(0, check, NULL, data, bytes, out, &n, room) == LZMA_OK ? n
											      : 0;
}

size_t packed_data(enum packed_as as, const void *data, size_t bytes, uint64_t claimed,
		   uint8_t *out, size_t room)
{
	Elf64_Chdr head = {.ch_type = as == PACKED_ZSTD ? 2 : 1, .ch_size = claimed};
	uint64_t size = htobe64(claimed);
	size_t n, before = sizeof(head);

	if (room < sizeof(head) + bytes / 64)
		return 0;
	if (as == PACKED_PLAIN) {
		memcpy(out, data, bytes);
		return bytes;
	}
	if (as == PACKED_XZ || as == PACKED_XZ_BARE)
		return packed_xz(as == PACKED_XZ ? LZMA_CHECK_CRC64 : LZMA_CHECK_NONE, data, bytes,
				 out, room);
	memcpy(out, &head, sizeof(head));
	if (as == PACKED_ZDEBUG) {
		memcpy(out, "ZLIB", 4);
		memcpy(out + 4, &size, sizeof(size));
		before = 12;
	}
	n = (as == PACKED_ZSTD ? packed_zstd : packed_zlib)(data, bytes, out + before,
							    room - before);
	return n ? before + n : 0;
}

size_t packed_elf(const struct packed_section *sections, size_t n, uint8_t *out, size_t room)
{
	Elf64_Shdr headers[SECTIONS_MAX] = {{0}};
	Elf64_Ehdr header = {.e_type = ET_DYN,
			     .e_machine = EM_X86_64,
			     .e_version = EV_CURRENT,
			     .e_ehsize = sizeof(Elf64_Ehdr),
			     .e_shentsize = sizeof(Elf64_Shdr)};
	size_t at = sizeof(header), names = 1;
	char text[NAMES_BYTES] = "";

	memcpy(header.e_ident, ELFMAG "\2\1\1", 7);
	for (size_t i = 0; i < n && n + 2 <= SECTIONS_MAX; i++) {
		if (at + sections[i].bytes > room || names + strlen(sections[i].name) >= 1000)
			return 0;
		memcpy(out + at, sections[i].data, sections[i].bytes);
		headers[i + 1] =
		    (Elf64_Shdr){.sh_name = (Elf64_Word)names,
				 .sh_type = sections[i].type ? sections[i].type : SHT_PROGBITS,
				 .sh_flags = sections[i].flags,
				 .sh_offset = at,
				 .sh_size = sections[i].bytes,
				 .sh_link = sections[i].link,
				 .sh_addralign = 1};
		at += (sections[i].bytes + 7) & ~7ull;
		strcpy(text + names, sections[i].name);
		names += strlen(sections[i].name) + 1;
	}
	headers[n + 1] = (Elf64_Shdr){.sh_name = (Elf64_Word)names,
				      .sh_type = SHT_STRTAB,
				      .sh_offset = at,
				      .sh_size = NAMES_BYTES};
	strcpy(text + names, ".shstrtab");
	header.e_shnum = (Elf64_Half)(n + 2);
	header.e_shstrndx = (Elf64_Half)(n + 1);
	header.e_shoff = at + NAMES_BYTES;
	if (header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr) > room)
		return 0;
	memcpy(out, &header, sizeof(header));
	memcpy(out + at, text, NAMES_BYTES);
	memcpy(out + header.e_shoff, headers, header.e_shnum * sizeof(Elf64_Shdr));
	return header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr);
}
