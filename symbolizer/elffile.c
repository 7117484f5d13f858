/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/elffile.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>
#include <sys/mman.h>

#include "symbolizer/sha256.h"

#define HTLHASH_PIECE_BYTES 4096
#define NOTES_BYTES_MAX	    65536
#define NOTE_SECTIONS_MAX   16
#define NT_GO_BUILD_ID	    4

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_DATA ELFDATA2LSB
#else
#define NATIVE_DATA ELFDATA2MSB
#endif

static bool elffile_inside(const struct elffile *file, uint64_t offset, uint64_t bytes)
{
	return offset <= file->size_bytes && bytes <= file->size_bytes - offset;
}

/*
 * Only pieces that are read into can be written to: the image is as long as the file, and what may
 * be written to counts as our memory (RLIMIT_DATA) whether it is used or not. By the page it would
 * be a system call for each function that is looked at, and a mapping for each that lies alone.
 */
static int elffile_unlock(struct elffile *file, uint64_t offset, uint64_t bytes)
{
	uint64_t first = offset / ELFFILE_PIECE_BYTES, start = first * ELFFILE_PIECE_BYTES;
	uint64_t end = (offset + bytes + ELFFILE_PIECE_BYTES - 1) / ELFFILE_PIECE_BYTES, i = first;
	uint64_t left = file->size_bytes - start, length = (end - first) * ELFFILE_PIECE_BYTES;

	while (i < end && file->unlocked[i / 8] & 1u << i % 8)
		i++;
	if (bytes == 0 || i == end)
		return 0;
	if (mprotect(file->image + start, length < left ? length : left, PROT_READ | PROT_WRITE))
		return -errno;
	for (i = first; i < end; i++)
		file->unlocked[i / 8] |= (uint8_t)(1u << i % 8);
	return 0;
}

int elffile_charge(struct elffile *file, uint64_t bytes)
{
	if (bytes > ELFFILE_LOAD_MAX - file->loaded_bytes)
		return -EFBIG;
	file->loaded_bytes += bytes;
	return 0;
}

int elffile_load(struct elffile *file, const uint64_t (*ranges)[2], size_t n)
{
	struct reader_part parts[ELFFILE_PHDRS_MAX];
	int err;

	for (size_t i = 0; i < n; i++) {
		if (!elffile_inside(file, ranges[i][0], ranges[i][1]))
			return -ENOEXEC;
		if (!file->reader)
			continue;
		err = elffile_charge(file, ranges[i][1]);
		if (err == 0)
			err = elffile_unlock(file, ranges[i][0], ranges[i][1]);
		if (err)
			return err;
		parts[i] =
		    (struct reader_part){file->image + ranges[i][0], ranges[i][1], ranges[i][0], 0};
	}
	if (!file->reader)
		return 0;
	reader_read(file->reader, file->slot, parts, n);
	for (size_t i = 0; i < n; i++)
		if (parts[i].result < 0)
			return (int)parts[i].result;
	return 0;
}

/* Sizes that libelf would believe. The number of sections of a file with more than 65,279 of them
 * stands in section 0; no executable has so many. */
static int elffile_check_header(const struct elffile *file, const Elf64_Ehdr *header)
{
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_ident[EI_CLASS] != ELFCLASS64 ||
	    header->e_ident[EI_DATA] != NATIVE_DATA)
		return -ENOEXEC;
	if (header->e_phnum > ELFFILE_PHDRS_MAX || (header->e_shnum == 0 && header->e_shoff != 0))
		return -ENOEXEC;
	if (header->e_phnum &&
	    (header->e_phentsize != sizeof(Elf64_Phdr) ||
	     !elffile_inside(file, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr))))
		return -ENOEXEC;
	if (header->e_shnum &&
	    (header->e_shentsize != sizeof(Elf64_Shdr) ||
	     !elffile_inside(file, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr))))
		return -ENOEXEC;
	return 0;
}

static int elffile_load_headers(struct elffile *file)
{
	const uint64_t first[1][2] = {{0, sizeof(Elf64_Ehdr)}};
	Elf64_Ehdr header;
	int err = elffile_load(file, first, 1);

	if (err)
		return err;
	memcpy(&header, file->image, sizeof(header));
	err = elffile_check_header(file, &header);
	if (err)
		return err;
	{
		const uint64_t tables[2][2] = {
		    {header.e_phnum ? header.e_phoff : 0, header.e_phnum * sizeof(Elf64_Phdr)},
		    {header.e_shnum ? header.e_shoff : 0, header.e_shnum * sizeof(Elf64_Shdr)},
		};

		err = elffile_load(file, tables, 2);
	}
	/* A table may lie over the header, and the file may have changed: what is used is what was
	 * checked. */
	memcpy(file->image, &header, sizeof(header));
	return err;
}

static void elffile_read_segments(struct elffile *file)
{
	size_t n = 0;

	if (elf_getphdrnum(file->elf, &n))
		return;
	for (size_t i = 0; i < n && file->segments_n < ELFFILE_SEGMENTS_MAX; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(file->elf, (int)i, &phdr) || phdr.p_type != PT_LOAD ||
		    !(phdr.p_flags & PF_X) || phdr.p_filesz == 0)
			continue;
		/* No sum of what is kept may wrap. */
		if (phdr.p_offset >= 1ull << 62 || phdr.p_filesz >= 1ull << 62 ||
		    phdr.p_vaddr >= 1ull << 62)
			continue;
		file->segments[file->segments_n++] =
		    (struct elffile_segment){phdr.p_offset, phdr.p_vaddr, phdr.p_filesz};
	}
}

/* The image is there. */
static int elffile_begin(struct elffile *file)
{
	int err = elffile_load_headers(file);

	if (err == 0) {
		elf_version(EV_CURRENT);
		file->elf = elf_memory(file->image, file->size_bytes);
		err = file->elf && elf_kind(file->elf) == ELF_K_ELF ? 0 : -ENOEXEC;
	}
	if (err) {
		elffile_close(file);
		return err;
	}
	elffile_read_segments(file);
	return 0;
}

int elffile_open(struct elffile *file, struct reader *reader, int slot, uint64_t size_bytes)
{
	void *image;

	memset(file, 0, sizeof(*file));
	if (size_bytes < sizeof(Elf64_Ehdr))
		return -ENOEXEC;
	if (size_bytes > ELFFILE_BYTES_MAX)
		return -EFBIG;
	file->reader = reader;
	file->slot = slot;
	file->size_bytes = size_bytes;
	image =
	    mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (image == MAP_FAILED)
		return -ENOMEM;
	file->image = image;
	return elffile_begin(file);
}

int elffile_open_memory(struct elffile *file, struct unpacked *memory)
{
	memset(file, 0, sizeof(*file));
	file->slot = -1;
	file->size_bytes = memory->bytes;
	file->image = (char *)memory->data;
	*memory = (struct unpacked){0};
	return elffile_begin(file);
}

void elffile_close(struct elffile *file)
{
	if (file->elf)
		elf_end(file->elf);
	if (file->image)
		munmap(file->image, file->size_bytes);
	for (int i = 0; i < 2; i++)
		unpack_free(&file->unpacked[i]);
	file->elf = NULL;
	file->image = NULL;
}

static void elffile_hex(char *text, const void *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++) {
		text[2 * i] = digits[p[i] >> 4];
		text[2 * i + 1] = digits[p[i] & 15];
	}
	text[2 * n] = 0;
}

void elffile_htlhash(struct reader *reader, int slot, uint64_t size_bytes, char text[33])
{
	char head[HTLHASH_PIECE_BYTES], tail[HTLHASH_PIECE_BYTES];
	size_t n = size_bytes < HTLHASH_PIECE_BYTES ? size_bytes : HTLHASH_PIECE_BYTES;
	struct reader_part parts[2] = {{head, n, 0, 0}, {tail, n, size_bytes - n, 0}};
	uint8_t length[8], digest[32];
	struct sha256 hash;

	text[0] = 0;
	reader_read(reader, slot, parts, 2);
	if (parts[0].result != (long)n || parts[1].result != (long)n)
		return;
	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)(size_bytes >> (56 - 8 * i));
	sha256_init(&hash);
	sha256_update(&hash, head, n);
	sha256_update(&hash, tail, n);
	sha256_update(&hash, length, sizeof(length));
	sha256_final(&hash, digest);
	elffile_hex(text, digest, 16);
}

/* Words and '/', as `go tool buildid` prints it; nothing where it is something else. */
static void elffile_text(char *text, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] <= ' ' || bytes[i] > '~')
			return;
	memcpy(text, bytes, n);
	text[n] = 0;
}

static void elffile_read_notes(Elf_Data *data, struct elffile_ids *ids)
{
	size_t offset = 0, name, desc;
	GElf_Nhdr note;

	while (offset < data->d_size &&
	       (offset = gelf_getnote(data, offset, &note, &name, &desc)) > 0) {
		const char *bytes = data->d_buf;

		if (note.n_descsz == 0 || note.n_descsz > ELFFILE_ID_BYTES_MAX || note.n_namesz < 3)
			continue;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp(bytes + name, "GNU", 4) == 0)
			elffile_hex(ids->gnu, bytes + desc, note.n_descsz);
		if (note.n_type == NT_GO_BUILD_ID && memcmp(bytes + name, "Go", 3) == 0)
			elffile_text(ids->go, bytes + desc, note.n_descsz);
	}
}

static void elffile_read_notes_at(struct elffile *file, uint64_t offset, uint64_t bytes,
				  uint64_t align, struct elffile_ids *ids)
{
	Elf_Data *data;

	if (bytes == 0 || bytes > NOTES_BYTES_MAX ||
	    elffile_load(file, (const uint64_t[1][2]){{offset, bytes}}, 1))
		return;
	data = elf_getdata_rawchunk(file->elf, (int64_t)offset, bytes,
				    align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	if (data)
		elffile_read_notes(data, ids);
}

void elffile_build_ids(struct elffile *file, struct elffile_ids *ids)
{
	size_t n = 0, notes = 0;
	GElf_Phdr phdr;
	GElf_Shdr shdr;

	ids->gnu[0] = ids->go[0] = 0;
	if (elf_getphdrnum(file->elf, &n))
		return;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(file->elf, (int)i, &phdr) && phdr.p_type == PT_NOTE)
			elffile_read_notes_at(file, phdr.p_offset, phdr.p_filesz, phdr.p_align,
					      ids);
	if (ids->gnu[0])
		return;
	/* Go's linker has a segment for its own note, and for GNU's a section alone. */
	for (Elf_Scn *s = elf_nextscn(file->elf, NULL); s && notes < NOTE_SECTIONS_MAX;
	     s = elf_nextscn(file->elf, s))
		if (gelf_getshdr(s, &shdr) && shdr.sh_type == SHT_NOTE) {
			elffile_read_notes_at(file, shdr.sh_offset, shdr.sh_size,
					      shdr.sh_addralign, ids);
			notes++;
		}
}

const uint8_t *elffile_bytes(struct elffile *file, uint64_t offset, uint64_t bytes)
{
	int err = elffile_load(file, (const uint64_t[1][2]){{offset, bytes}}, 1);

	if (err) {
		errno = -err;
		return NULL;
	}
	return (const uint8_t *)file->image + offset;
}

int elffile_read(struct elffile *file, uint64_t offset, void *buf, size_t bytes)
{
	struct reader_part part = {buf, bytes, offset, 0};

	if (!elffile_inside(file, offset, bytes))
		return -ENOEXEC;
	if (!file->reader) {
		memcpy(buf, file->image + offset, bytes);
		return 0;
	}
	reader_read(file->reader, file->slot, &part, 1);
	if (part.result < 0)
		return (int)part.result;
	return part.result == (long)bytes ? 0 : -ENOEXEC;
}

const struct elffile_segment *elffile_find_segment(const struct elffile_segment *segments,
						   uint32_t segments_n, uint64_t offset)
{
	for (uint32_t i = 0; i < segments_n; i++)
		if (offset >= segments[i].offset && offset - segments[i].offset < segments[i].bytes)
			return &segments[i];
	return NULL;
}
