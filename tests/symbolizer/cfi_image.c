/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/symbolizer/cfi_image.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CFI_IMAGE_CFI_VADDR 0x10000000u
#define NAMES		    "\0.eh_frame\0.debug_frame\0.shstrtab\0.gopclntab"

struct cfi_image cfi_image_start(bool debug)
{
	return (struct cfi_image){.debug = debug, .text_bytes = CFI_IMAGE_TEXT_BYTES};
}

void cfi_image_text(struct cfi_image *image, uint32_t at, const char *code, size_t n)
{
	memcpy(image->text + at, code, n);
}

static void put(struct cfi_image *image, const void *bytes, size_t n)
{
	assert(image->cfi_bytes + n <= sizeof(image->cfi));
	if (n)
		memcpy(image->cfi + image->cfi_bytes, bytes, n);
	image->cfi_bytes += n;
}

static void put_number(struct cfi_image *image, uint64_t value, size_t n)
{
	put(image, &value, n);
}

/* The length in front of an entry, when its end is known. */
static void end_entry(struct cfi_image *image, size_t at, size_t more)
{
	uint32_t length = (uint32_t)(image->cfi_bytes - at - 4 + more);

	memcpy(image->cfi + at, &length, 4);
}

void cfi_image_cie_data(struct cfi_image *image, const char *letters, const char *data,
			size_t data_bytes, const char *program, size_t n)
{
	size_t at = image->cfi_bytes;

	image->cie = at;
	image->augmented = letters[0] == 'z';
	put_number(image, 0, 4);
	put_number(image, image->debug ? 0xffffffff : 0, 4);
	put_number(image, 1, 1);
	put(image, letters, strlen(letters) + 1);
	put_number(image, 1, 1);    /* code alignment */
	put_number(image, 0x78, 1); /* data alignment: -8 */
	put_number(image, 16, 1);
	if (image->augmented) {
		put_number(image, data_bytes, 1);
		put(image, data, data_bytes);
	}
	put(image, program, n);
	end_entry(image, at, 0);
}

void cfi_image_cie(struct cfi_image *image, const char *letters, const char *program, size_t n)
{
	cfi_image_cie_data(image, letters, "", 0, program, n);
}

void cfi_image_fde(struct cfi_image *image, uint32_t start, uint32_t bytes, const char *program,
		   size_t n)
{
	size_t at = image->cfi_bytes;

	put_number(image, 0, 4);
	put_number(image, image->debug ? image->cie : at + 4 - image->cie, 4);
	if (image->pcrel)
		put_number(image,
			   CFI_IMAGE_TEXT_VADDR + start - (CFI_IMAGE_CFI_VADDR + image->cfi_bytes),
			   4);
	else
		put_number(image, CFI_IMAGE_TEXT_VADDR + start, 8);
	put_number(image, bytes, image->pcrel ? 4 : 8);
	if (image->augmented)
		put_number(image, 0, 1);
	put(image, program, program ? n : 0);
	end_entry(image, at, program ? 0 : image->big_bytes);
}

static size_t write_part(uint8_t *bytes, size_t at, const void *part, size_t n)
{
	if (n)
		memcpy(bytes + at, part, n);
	return at + n;
}

size_t cfi_image_write(const struct cfi_image *image, uint8_t *bytes)
{
	uint64_t cfi_at = CFI_IMAGE_TEXT_OFFSET + image->text_bytes;
	uint64_t cfi_bytes = image->cfi_bytes + image->big_bytes;
	Elf64_Phdr segment = {.p_type = PT_LOAD,
			      .p_flags = PF_R | PF_X,
			      .p_offset = CFI_IMAGE_TEXT_OFFSET,
			      .p_vaddr = CFI_IMAGE_TEXT_VADDR,
			      .p_filesz = image->text_bytes,
			      .p_memsz = image->text_bytes};
	Elf64_Shdr sections[3] = {
	    {0},
	    {.sh_name = image->go      ? 34
			: image->debug ? 11
				       : 1,
	     .sh_type = SHT_PROGBITS,
	     .sh_offset = cfi_at,
	     .sh_addr = image->debug ? 0 : CFI_IMAGE_CFI_VADDR,
	     .sh_size = cfi_bytes},
	    {.sh_name = 24,
	     .sh_type = SHT_STRTAB,
	     .sh_offset = cfi_at + cfi_bytes,
	     .sh_size = sizeof(NAMES)},
	};
	Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_EXEC,
			     .e_machine = EM_X86_64,
			     .e_version = EV_CURRENT,
			     .e_entry = CFI_IMAGE_TEXT_VADDR,
			     .e_phoff = sizeof(header),
			     .e_ehsize = sizeof(header),
			     .e_phentsize = sizeof(segment),
			     .e_phnum = 1,
			     .e_shentsize = sizeof(sections[0]),
			     .e_shnum = 3,
			     .e_shstrndx = 2};
	size_t at;

	memset(bytes, 0, cfi_at);
	write_part(bytes, sizeof(header), &segment, sizeof(segment));
	write_part(bytes, CFI_IMAGE_TEXT_OFFSET, image->text, sizeof(image->text));
	at = write_part(bytes, cfi_at, image->cfi, image->cfi_bytes);
	at = write_part(bytes, at, image->big, image->big_bytes);
	at = write_part(bytes, at, NAMES, sizeof(NAMES));
	at = (at + 7) & ~7ull;
	header.e_shoff = at;
	write_part(bytes, 0, &header, sizeof(header));
	return write_part(bytes, at, sections, sizeof(sections));
}

void cfi_image_keep(const uint8_t *bytes, size_t n)
{
	static unsigned files;
	char path[256];
	FILE *file;

	if (!getenv("EHFRAME_CORPUS"))
		return;
	snprintf(path, sizeof(path), "%s/%s-%u", getenv("EHFRAME_CORPUS"),
		 program_invocation_short_name, files++);
	file = fopen(path, "w");
	if (!file || fwrite(bytes, 1, n, file) != n || fclose(file))
		abort();
}
