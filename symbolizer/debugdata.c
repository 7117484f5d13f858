/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/debugdata.h"

#include <string.h>

#include "symbolizer/sections.h"

static int debugdata_source(void *arg, uint64_t at, void *buf, size_t bytes)
{
	const struct section *section = arg;

	memcpy(buf, section->data + at, bytes);
	return 0;
}

int debugdata_open(struct elffile *file, struct elffile *inside)
{
	struct unpacked unpacked;
	struct section section;
	struct unpack_source source = {debugdata_source, &section, 0};
	int err = sections_find(file, ".gnu_debugdata", &section);

	if (err)
		return err;
	source.bytes = section.bytes;
	err = unpack(UNPACK_XZ, &source, DEBUGDATA_BYTES_MAX, &unpacked);
	sections_free(&section);
	if (err == 0)
		err = elffile_open_memory(inside, &unpacked);
	if (err)
		return err;
	/* Its own have no bytes in it, but what is code is the same. */
	memcpy(inside->segments, file->segments, sizeof(file->segments));
	inside->segments_n = file->segments_n;
	return 0;
}
