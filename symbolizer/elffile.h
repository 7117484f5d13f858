/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF file as far as names need it: executable segments, identities, function symbols.
 *
 * The file is not mapped. An anonymous image of its size takes its place, into which only the parts
 * that are looked at are read, at their own offsets; libelf is given that image. Everything in it
 * was written by somebody else: sizes are checked here before libelf sees them, and the bytes read
 * for one file are bounded.
 */
#ifndef SCONCE_SYMBOLIZER_ELFFILE_H
#define SCONCE_SYMBOLIZER_ELFFILE_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/reader.h"
#include "symbolizer/unpack.h"

#define ELFFILE_BYTES_MAX     (16ull << 30)  /* a longer file is not looked at */
#define ELFFILE_LOAD_MAX      (256ull << 20) /* read of one file, in all */
#define ELFFILE_PIECE_BYTES   (1ull << 20)   /* of the image become writable at once */
#define ELFFILE_SECTIONS_MAX  65536
#define ELFFILE_PHDRS_MAX     256
#define ELFFILE_SEGMENTS_MAX  16
#define ELFFILE_SYMBOLS_MAX   (4u << 20) /* of one table */
#define ELFFILE_ID_BYTES_MAX  128
#define ELFFILE_ID_TEXT_BYTES (2 * ELFFILE_ID_BYTES_MAX + 1)

/* An executable PT_LOAD. */
struct elffile_segment {
	uint64_t offset, vaddr, bytes; /* bytes in the file */
};

/* Identities, in hex, Go's as its text; "" = none. */
struct elffile_ids {
	char gnu[ELFFILE_ID_TEXT_BYTES];
	char go[ELFFILE_ID_TEXT_BYTES];
	char htlhash[33];
};

struct elffile_symbol {
	uint64_t value, size;
	const char *name; /* in the image; not empty; at most name_bytes, not ended by NUL there */
	uint32_t name_bytes;
	uint8_t type, bind;
};

struct elffile {
	struct reader *reader; /* NULL: all of it is in memory */
	int slot;
	uint64_t size_bytes, loaded_bytes;
	char *image;
	uint8_t unlocked[ELFFILE_BYTES_MAX / ELFFILE_PIECE_BYTES / 8]; /* a bit for each piece */
	Elf *elf;
	struct elffile_segment segments[ELFFILE_SEGMENTS_MAX];
	uint32_t segments_n;
	struct unpacked unpacked[2]; /* .symtab and its names, where they are packed */
};

/*
 * Open what stands in a slot of the reader. 0, -ENOEXEC (no ELF file that we understand), -EFBIG,
 * -ENOMEM or what reading gave. Then elffile_close() is not needed.
 */
int elffile_open(struct elffile *file, struct reader *reader, int slot, uint64_t size_bytes);
/* The same of a file that is in memory, which is taken in every case. */
int elffile_open_memory(struct elffile *file, struct unpacked *memory);
void elffile_close(struct elffile *file);

/* Of any file, ELF or not: the hash needs only its bytes. */
void elffile_htlhash(struct reader *reader, int slot, uint64_t size_bytes, char text[33]);
/* gnu and go are set. */
void elffile_build_ids(struct elffile *file, struct elffile_ids *ids);

typedef void elffile_symbol_fn(void *arg, const struct elffile_symbol *symbol);
/*
 * Call fn for the functions of .symtab (dynamic: .dynsym) that lie in an executable segment, and
 * for untyped labels in executable sections. Symbols are valid until elffile_close(). How many;
 * -ENOENT when there is no such table, -EFBIG when it is too large, or what reading and unpacking
 * gave.
 */
long elffile_symbols(struct elffile *file, bool dynamic, elffile_symbol_fn *fn, void *arg);

/*
 * Read parts of the file ({offset, bytes}, ELFFILE_PHDRS_MAX of them at most) to their places in
 * the image, all at once. What the file lacks stays zero, but it has to be as long.
 */
int elffile_load(struct elffile *file, const uint64_t (*ranges)[2], size_t n);

/*
 * Bytes of the file, read into the image; valid until elffile_close(), but a later read of the same
 * place may change them. NULL with errno: ENOEXEC (not all of them lie in the file), EFBIG or what
 * reading gave.
 */
const uint8_t *elffile_bytes(struct elffile *file, uint64_t offset, uint64_t bytes);

/* Bytes of the file to somewhere else than the image. 0, -ENOEXEC (not all of them lie in the file)
 * or what reading gave. */
int elffile_read(struct elffile *file, uint64_t offset, void *buf, size_t bytes);
/* Memory that is taken for the file outside of its image. 0, or -EFBIG when it is too much. */
int elffile_charge(struct elffile *file, uint64_t bytes);

/* The segment that holds a file offset; NULL when none does. */
const struct elffile_segment *elffile_find_segment(const struct elffile_segment *segments,
						   uint32_t segments_n, uint64_t offset);

#endif
