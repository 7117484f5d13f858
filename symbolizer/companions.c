/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/companions.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "symbolizer/elfparts.h"

#define SECTION_BYTES_MAX 8192 /* a path and an id; a name, padding and a checksum */

/* Is there such a section, with bytes of its own? What a debug file lacks it has without bytes. */
static bool companions_has(struct elffile *file, const char *name)
{
	GElf_Shdr header;

	return elfparts_find(file, name, &header) == 0 && header.sh_type != SHT_NOBITS &&
	       header.sh_size > 0;
}

static const uint8_t *companions_section(struct elffile *file, const char *name, uint64_t *bytes)
{
	const uint8_t *data;
	GElf_Shdr header;

	if (elfparts_find(file, name, &header) || header.sh_size > SECTION_BYTES_MAX ||
	    elfparts_section(file, name, &header, &data))
		return NULL;
	*bytes = header.sh_size;
	return data;
}

static void companions_keep_id(struct companions_id *id, const uint8_t *data, uint64_t bytes)
{
	id->bytes = bytes <= COMPANIONS_ID_BYTES ? (uint32_t)bytes : 0;
	memcpy(id->data, data, id->bytes);
}

/* The last component, if it is one that can be asked for. */
static void companions_keep_name(char name[MESSAGE_OTHER_BYTES], const uint8_t *path, size_t bytes)
{
	const uint8_t *slash = memrchr(path, '/', bytes);
	size_t skip = slash ? (size_t)(slash - path) + 1 : 0;

	if (bytes - skip < MESSAGE_OTHER_BYTES)
		memcpy(name, path + skip, bytes - skip);
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		name[0] = 0;
}

/* By its section: the common files of dwz have no program headers. */
static void companions_read_id(struct elffile *file, struct companions_id *id)
{
	static const uint8_t gnu[4] = "GNU";
	struct elffile_ids ids;
	uint64_t bytes = 0;
	Elf64_Nhdr note;
	const uint8_t *data = companions_section(file, ".note.gnu.build-id", &bytes);

	if (data && bytes >= sizeof(note) + sizeof(gnu)) {
		memcpy(&note, data, sizeof(note));
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(gnu) &&
		    memcmp(data + sizeof(note), gnu, sizeof(gnu)) == 0 &&
		    note.n_descsz <= bytes - sizeof(note) - sizeof(gnu))
			companions_keep_id(id, data + sizeof(note) + sizeof(gnu), note.n_descsz);
	}
	if (id->bytes)
		return;
	elffile_build_ids(file, &ids);
	if (strlen(ids.gnu) > 2 * COMPANIONS_ID_BYTES)
		return;
	while (sscanf(ids.gnu + 2 * id->bytes, "%2hhx", &id->data[id->bytes]) == 1)
		id->bytes++;
}

/* The name, its NUL, up to a multiple of four bytes, and the checksum. */
static void companions_read_link(struct elffile *file, struct companions *c)
{
	uint64_t bytes = 0;
	const uint8_t *data = companions_section(file, ".gnu_debuglink", &bytes);
	size_t name = data ? strnlen((const char *)data, bytes) : 0, crc = (name + 4) & ~3ul;

	if (!data || crc + sizeof(c->link_crc) > bytes)
		return;
	companions_keep_name(c->link, data, name);
	memcpy(&c->link_crc, data + crc, sizeof(c->link_crc));
}

/* The path, its NUL, and the build id. */
static void companions_read_alt(struct elffile *file, struct companions *c)
{
	uint64_t bytes = 0;
	const uint8_t *data = companions_section(file, ".gnu_debugaltlink", &bytes);
	size_t path = data ? strnlen((const char *)data, bytes) : 0;

	if (!data || path + 1 >= bytes)
		return;
	companions_keep_name(c->alt, data, path);
	companions_keep_id(&c->alt_id, data + path + 1, bytes - path - 1);
}

void companions_read(struct elffile *file, struct companions *c)
{
	memset(c, 0, sizeof(*c));
	c->symbols = companions_has(file, ".symtab");
	c->lines = companions_has(file, ".debug_info") || companions_has(file, ".zdebug_info");
	companions_read_id(file, &c->id);
	companions_read_link(file, c);
	companions_read_alt(file, c);
}

bool companions_same(const struct companions_id *a, const struct companions_id *b)
{
	return a->bytes && a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

bool companions_is_package(struct elffile *file)
{
	return companions_has(file, ".debug_cu_index");
}
