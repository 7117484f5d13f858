/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line program of a unit: which line of which file each address comes from, and the files.
 * DWARF 2 to 5.
 *
 * Rows say nothing of columns, statements and views, so what differs in those alone is one row.
 * Line 0 (the compiler's own code) is kept. A sequence of what the linker dropped is left out.
 */
#ifndef SCONCE_SYMBOLIZER_DWARFLINE_H
#define SCONCE_SYMBOLIZER_DWARFLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/dwarflimit.h"
#include "symbolizer/dwarfunit.h"

#define DWARFLINE_BYTES_MAX (32u << 20) /* of a program */
#define DWARFLINE_FILES_MAX 65536	/* and as many directories */
#define DWARFLINE_NO_FILE   UINT32_MAX
/* In place of a file: nothing is known from here on. */
#define DWARFLINE_END (UINT32_MAX - 1)

struct dwarfline_row {
	uint32_t address; /* from the lowest one */
	uint32_t file, line;
};

/* A name, where it stands; a file's directory. */
struct dwarfline_name {
	struct dwarfbytes *section; /* NULL = it is nowhere */
	uint64_t at;
	uint32_t directory;
};

struct dwarflines {
	uint64_t base;
	struct dwarfline_row *rows; /* sorted, an address once */
	struct dwarfline_name *files, *directories;
	uint32_t rows_n, files_n, directories_n;
	uint8_t version;
};

/* Read the program at `at`. 0, -ENOEXEC, -EFBIG, -ENOMEM, -ETIME. Ended with dwarfline_free(). */
int dwarfline_read(struct dwarflines *lines, const struct dwarfunit *unit, uint64_t at,
		   struct dwarflimit *limit);
void dwarfline_free(struct dwarflines *lines);
size_t dwarfline_held(const struct dwarflines *lines);

/* The row that holds this address; NULL: none does. */
const struct dwarfline_row *dwarfline_find(const struct dwarflines *lines, uint64_t address);
/*
 * The path of a file, as the compiler was given it: behind its directory, and the directory of the
 * compilation where that is not enough. False: there is no such file.
 */
bool dwarfline_path(const struct dwarflines *lines, uint32_t file, const char *compiled_in,
		    char *path, size_t bytes);

#endif
