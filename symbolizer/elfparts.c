/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/elfparts.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "symbolizer/cfientry.h"

/* version, encodings of pointer, count and table, then the pointer. */
#define EH_FRAME_HDR_BYTES 12

static const char *elfparts_names(struct elffile *file, GElf_Shdr *header)
{
	size_t index;

	if (elf_getshdrstrndx(file->elf, &index) || index >= ELFFILE_SECTIONS_MAX ||
	    !gelf_getshdr(elf_getscn(file->elf, index), header) || header->sh_type != SHT_STRTAB ||
	    header->sh_size > ELFPARTS_NAMES_MAX)
		return NULL;
	return (const char *)elffile_bytes(file, header->sh_offset, header->sh_size);
}

int elfparts_find(struct elffile *file, const char *name, GElf_Shdr *header)
{
	size_t bytes = strlen(name) + 1;
	GElf_Shdr strings;
	const char *names = elfparts_names(file, &strings);

	if (!names)
		return -ENOENT;
	for (Elf_Scn *s = elf_nextscn(file->elf, NULL); s; s = elf_nextscn(file->elf, s))
		if (gelf_getshdr(s, header) && header->sh_name < strings.sh_size &&
		    strings.sh_size - header->sh_name >= bytes &&
		    memcmp(names + header->sh_name, name, bytes) == 0)
			return 0;
	return -ENOENT;
}

int elfparts_section(struct elffile *file, const char *name, GElf_Shdr *header,
		     const uint8_t **bytes)
{
	int err = elfparts_find(file, name, header);

	if (err)
		return err;
	/* Files with debug information alone keep the headers of what they lack. */
	if (header->sh_type == SHT_NOBITS || (header->sh_flags & SHF_COMPRESSED) ||
	    header->sh_size == 0)
		return -ENOENT;
	*bytes = elffile_bytes(file, header->sh_offset, header->sh_size);
	return *bytes ? 0 : -errno;
}

static bool elfparts_segment(struct elffile *file, uint32_t type, uint64_t vaddr, GElf_Phdr *phdr)
{
	size_t n = 0;

	if (elf_getphdrnum(file->elf, &n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(file->elf, (int)i, phdr) && phdr->p_type == type &&
		    (type != PT_LOAD ||
		     (vaddr >= phdr->p_vaddr && vaddr - phdr->p_vaddr < phdr->p_filesz)))
			return true;
	return false;
}

int elfparts_eh_frame(struct elffile *file, uint64_t *vaddr, uint64_t *size, const uint8_t **bytes)
{
	struct cfi_section section = {.size = EH_FRAME_HDR_BYTES};
	struct cursor c;
	GElf_Phdr phdr;

	if (!elfparts_segment(file, PT_GNU_EH_FRAME, 0, &phdr) || phdr.p_filesz < section.size)
		return -ENOENT;
	section.vaddr = phdr.p_vaddr;
	section.bytes = elffile_bytes(file, phdr.p_offset, section.size);
	if (!section.bytes)
		return -errno;
	c = cursor_over(section.bytes + 4, section.size - 4);
	if (section.bytes[0] != 1 || !cfientry_address(&section, section.bytes[1], &c, vaddr) ||
	    !elfparts_segment(file, PT_LOAD, *vaddr, &phdr))
		return -ENOENT;
	*size = phdr.p_filesz - (*vaddr - phdr.p_vaddr);
	*bytes = elffile_bytes(file, phdr.p_offset + (*vaddr - phdr.p_vaddr), *size);
	return *bytes ? 0 : -errno;
}

const uint8_t *elfparts_data(struct elffile *file, uint64_t vaddr, uint64_t bytes)
{
	GElf_Phdr phdr;

	if (!elfparts_segment(file, PT_LOAD, vaddr, &phdr) ||
	    bytes > phdr.p_filesz - (vaddr - phdr.p_vaddr))
		return NULL;
	return elffile_bytes(file, phdr.p_offset + (vaddr - phdr.p_vaddr), bytes);
}

bool elfparts_loaded(struct elffile *file, uint64_t vaddr, struct elffile_segment *segment)
{
	GElf_Phdr phdr;

	if (!elfparts_segment(file, PT_LOAD, vaddr, &phdr) ||
	    phdr.p_offset > file->size_bytes || phdr.p_filesz > file->size_bytes - phdr.p_offset)
		return false;
	*segment = (struct elffile_segment){phdr.p_offset, phdr.p_vaddr, phdr.p_filesz};
	return true;
}

bool elfparts_code(const struct elffile *file, uint64_t vaddr, uint64_t *offset)
{
	for (uint32_t i = 0; i < file->segments_n; i++) {
		const struct elffile_segment *s = &file->segments[i];

		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->bytes) {
			*offset = s->offset + (vaddr - s->vaddr);
			return true;
		}
	}
	return false;
}

bool elfparts_entry(const struct elffile *file, uint64_t *offset)
{
	GElf_Ehdr header;

	return gelf_getehdr(file->elf, &header) && elfparts_code(file, header.e_entry, offset);
}
