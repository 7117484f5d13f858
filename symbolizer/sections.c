/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sections.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "symbolizer/elfparts.h"

#define COMPRESS_ZLIB 1 /* ch_type; glibc 2.36 does not know the second */
#define COMPRESS_ZSTD 2
#define NAME_BYTES    64

/* How a section is packed, and where its packed bytes are. */
struct packed {
	enum unpack_format format;
	uint64_t offset, bytes, unpacked_bytes;
	struct elffile *file;
};

/* ".zdebug_*": "ZLIB", then the size with its highest byte first. */
static int sections_packed_zdebug(struct packed *packed)
{
	struct {
		char magic[4];
		uint8_t size[8];
	} head;
	uint64_t size;
	int err;

	if (packed->bytes < sizeof(head))
		return -ENOEXEC;
	err = elffile_read(packed->file, packed->offset, &head, sizeof(head));
	if (err || memcmp(head.magic, "ZLIB", 4))
		return err ? err : -ENOEXEC;
	memcpy(&size, head.size, sizeof(size));
	packed->format = UNPACK_ZLIB;
	packed->unpacked_bytes = be64toh(size);
	packed->offset += sizeof(head);
	packed->bytes -= sizeof(head);
	return 0;
}

static int sections_packed_flag(struct packed *packed)
{
	Elf64_Chdr head;
	int err;

	if (packed->bytes < sizeof(head))
		return -ENOEXEC;
	err = elffile_read(packed->file, packed->offset, &head, sizeof(head));
	if (err || (head.ch_type != COMPRESS_ZLIB && head.ch_type != COMPRESS_ZSTD))
		return err ? err : -ENOEXEC;
	packed->format = head.ch_type == COMPRESS_ZLIB ? UNPACK_ZLIB : UNPACK_ZSTD;
	packed->unpacked_bytes = head.ch_size;
	packed->offset += sizeof(head);
	packed->bytes -= sizeof(head);
	return 0;
}

static int sections_source(void *arg, uint64_t at, void *buf, size_t bytes)
{
	struct packed *packed = arg;

	return elffile_read(packed->file, packed->offset + at, buf, bytes);
}

static int sections_unpack(struct packed *packed, struct section *out)
{
	struct unpack_source source = {sections_source, packed, packed->bytes};
	int err;

	if (packed->bytes > SECTIONS_PACKED_MAX || packed->unpacked_bytes > SECTIONS_UNPACKED_MAX)
		return -EFBIG;
	err = elffile_charge(packed->file, packed->unpacked_bytes);
	if (err)
		return err;
	err = unpack(packed->format, &source, packed->unpacked_bytes, &out->unpacked);
	if (err == 0 && out->unpacked.bytes != packed->unpacked_bytes) {
		unpack_free(&out->unpacked);
		err = -ENOEXEC;
	}
	if (err)
		return err;
	out->data = out->unpacked.data;
	out->bytes = out->unpacked.bytes;
	return 0;
}

int sections_read(struct elffile *file, const GElf_Shdr *header, bool zdebug, struct section *out)
{
	struct packed packed = {
	    .file = file, .offset = header->sh_offset, .bytes = header->sh_size};
	int err;

	memset(out, 0, sizeof(*out));
	/* Files with debug information alone keep the headers of what they lack. */
	if (header->sh_type == SHT_NOBITS || header->sh_size == 0)
		return -ENOENT;
	if (header->sh_flags & SHF_COMPRESSED || zdebug) {
		err = header->sh_flags & SHF_COMPRESSED ? sections_packed_flag(&packed)
							: sections_packed_zdebug(&packed);
		return err ? err : sections_unpack(&packed, out);
	}
	out->data = elffile_bytes(file, header->sh_offset, header->sh_size);
	out->bytes = header->sh_size;
	return out->data ? 0 : -errno;
}

int sections_find(struct elffile *file, const char *name, struct section *out)
{
	char older[NAME_BYTES];
	GElf_Shdr header;
	int err = elfparts_find(file, name, &header);

	memset(out, 0, sizeof(*out));
	if (err == 0)
		return sections_read(file, &header, false, out);
	if (strncmp(name, ".debug_", 7) || strlen(name) + 2 > sizeof(older))
		return err;
	snprintf(older, sizeof(older), ".z%s", name + 1);
	err = elfparts_find(file, older, &header);
	return err ? err : sections_read(file, &header, true, out);
}

void sections_free(struct section *section)
{
	unpack_free(&section->unpacked);
	memset(section, 0, sizeof(*section));
}
