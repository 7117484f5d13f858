/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarfbytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/elfparts.h"

#define AHEAD_BYTES  65536
#define SHORT_STRING 256

/* What a packed section claims to be unpacked; more than that will not come out. */
static uint64_t dwarfbytes_claims(const struct elffile *file, const GElf_Shdr *header)
{
	Elf64_Chdr claim;
	struct reader_part part = {&claim, sizeof(claim), header->sh_offset, 0};

	reader_read(file->reader, file->slot, &part, 1);
	return part.result == sizeof(claim) ? claim.ch_size : UINT64_MAX;
}

static int dwarfbytes_unpack(struct dwarfbytes *bytes, struct elffile *file, const char *name,
			     size_t unpacked_max)
{
	int err = sections_find(file, name, &bytes->unpacked);

	if (err == 0 && bytes->unpacked.bytes > unpacked_max) {
		sections_free(&bytes->unpacked);
		err = -EFBIG;
	}
	bytes->size = err ? 0 : bytes->unpacked.bytes;
	return err;
}

int dwarfbytes_open(struct dwarfbytes *bytes, struct elffile *file, const char *name,
		    size_t unpacked_max)
{
	GElf_Shdr header;
	int err = elfparts_find(file, name, &header);

	memset(bytes, 0, sizeof(*bytes));
	/* Perhaps there is a .zdebug_ one. */
	if (err)
		return dwarfbytes_unpack(bytes, file, name, unpacked_max);
	if (header.sh_type == SHT_NOBITS || header.sh_size == 0 ||
	    header.sh_offset > file->size_bytes ||
	    header.sh_size > file->size_bytes - header.sh_offset)
		return -ENOENT;
	if (header.sh_flags & SHF_COMPRESSED)
		return dwarfbytes_claims(file, &header) > unpacked_max
			   ? -EFBIG
			   : dwarfbytes_unpack(bytes, file, name, unpacked_max);
	bytes->reader = file->reader;
	bytes->slot = file->slot;
	bytes->offset = header.sh_offset;
	bytes->size = header.sh_size;
	bytes->ahead = AHEAD_BYTES;
	return 0;
}

void dwarfbytes_close(struct dwarfbytes *bytes)
{
	sections_free(&bytes->unpacked);
	free(bytes->window);
	memset(bytes, 0, sizeof(*bytes));
}

void dwarfbytes_trim(struct dwarfbytes *bytes, size_t kept_bytes)
{
	if (bytes->window_room <= kept_bytes)
		return;
	free(bytes->window);
	bytes->window = NULL;
	bytes->window_room = bytes->window_bytes = 0;
}

size_t dwarfbytes_held(const struct dwarfbytes *bytes)
{
	return bytes->window_room + bytes->unpacked.unpacked.room;
}

/* n bytes from `at` on, all of which the section has. */
static bool dwarfbytes_move(struct dwarfbytes *bytes, uint64_t at, uint64_t n)
{
	struct reader_part part;
	uint8_t *grown;

	bytes->window_bytes = 0;
	if (n > DWARFBYTES_AT_ONCE_MAX)
		return false;
	if (n > bytes->window_room) {
		grown = realloc(bytes->window, n);
		if (!grown)
			return false;
		bytes->window = grown;
		bytes->window_room = n;
	}
	part = (struct reader_part){bytes->window, n, bytes->offset + at, 0};
	reader_read(bytes->reader, bytes->slot, &part, 1);
	/* The file may have become shorter. */
	if (part.result != (long)n)
		return false;
	bytes->window_at = at;
	bytes->window_bytes = n;
	return true;
}

struct cursor dwarfbytes_cursor(struct dwarfbytes *bytes, uint64_t at, uint64_t need)
{
	const struct cursor nothing = cursor_over((const uint8_t *)"", 0);
	uint64_t left, want;

	if (at >= bytes->size)
		return nothing;
	left = bytes->size - at;
	if (bytes->unpacked.data)
		return cursor_over(bytes->unpacked.data + at, left);
	if (need > left)
		need = left;
	if (at < bytes->window_at || at - bytes->window_at > bytes->window_bytes ||
	    bytes->window_bytes - (at - bytes->window_at) < need) {
		want = need < bytes->ahead ? bytes->ahead : need;
		if (!dwarfbytes_move(bytes, at, want < left ? want : left))
			return nothing;
	}
	return cursor_over(bytes->window + (at - bytes->window_at),
			   bytes->window_bytes - (at - bytes->window_at));
}

bool dwarfbytes_number(struct dwarfbytes *bytes, uint64_t at, unsigned n, uint64_t *value)
{
	struct cursor c = dwarfbytes_cursor(bytes, at, n);

	*value = cursor_number(&c, n);
	return !c.bad;
}

const char *dwarfbytes_string(struct dwarfbytes *bytes, uint64_t at, size_t *length)
{
	struct cursor c = dwarfbytes_cursor(bytes, at, SHORT_STRING);
	const uint8_t *end;

	if (!cursor_left(&c))
		return NULL;
	end = memchr(c.at, 0, cursor_left(&c));
	if (!end) {
		c = dwarfbytes_cursor(bytes, at, DWARFBYTES_STRING_BYTES);
		end = cursor_left(&c) ? memchr(c.at, 0, cursor_left(&c)) : NULL;
	}
	*length = end ? (size_t)(end - c.at) : cursor_left(&c);
	if (*length > DWARFBYTES_STRING_BYTES)
		*length = DWARFBYTES_STRING_BYTES;
	return cursor_left(&c) || end ? (const char *)c.at : NULL;
}
