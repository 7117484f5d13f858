/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF file made by hand: one executable segment, its entry at the first byte, and one section of
 * call frame information that is put together entry by entry.
 */
#ifndef SCONCE_TESTS_SYMBOLIZER_CFI_IMAGE_H
#define SCONCE_TESTS_SYMBOLIZER_CFI_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CFI_IMAGE_TEXT_OFFSET 0x1000u
#define CFI_IMAGE_TEXT_VADDR  0x401000u
#define CFI_IMAGE_TEXT_BYTES  4096u
#define CFI_IMAGE_CFI_BYTES   8192u
#define CFI_IMAGE_CFI_OFFSET  (CFI_IMAGE_TEXT_OFFSET + CFI_IMAGE_TEXT_BYTES)
#define CFI_IMAGE_BYTES_MAX   (1u << 19)

/* What compilers begin with: CFA = sp + 8, return address at CFA - 8. */
#define CFI_IMAGE_PROGRAM "\x0c\x07\x08\x90\x01"

struct cfi_image {
	bool debug; /* .debug_frame, not .eh_frame */
	bool go;    /* neither of them: what the caller puts into cfi is Go's table */
	uint64_t text_bytes;
	uint8_t text[CFI_IMAGE_TEXT_BYTES];
	uint8_t cfi[CFI_IMAGE_CFI_BYTES];
	size_t cfi_bytes, cie;
	bool augmented, pcrel;
	/* The program of the last FDE, if it is too large for cfi. */
	const char *big;
	size_t big_bytes;
};

struct cfi_image cfi_image_start(bool debug);
void cfi_image_text(struct cfi_image *image, uint32_t at, const char *code, size_t n);
void cfi_image_cie(struct cfi_image *image, const char *letters, const char *program, size_t n);
/* With the data of the augmentation, without its length. FDEs are written with absolute addresses
 * of 8 bytes, or (pcrel) with relative ones of 4, whatever the data says. */
void cfi_image_cie_data(struct cfi_image *image, const char *letters, const char *data,
			size_t data_bytes, const char *program, size_t n);
/* start: in the text. program NULL: image->big. */
void cfi_image_fde(struct cfi_image *image, uint32_t start, uint32_t bytes, const char *program,
		   size_t n);
/* How many bytes were written. */
size_t cfi_image_write(const struct cfi_image *image, uint8_t *bytes);
/* With EHFRAME_CORPUS, keep the file in that directory: where the fuzzer begins. */
void cfi_image_keep(const uint8_t *bytes, size_t n);

#endif
