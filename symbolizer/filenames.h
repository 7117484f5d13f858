/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the frames of a file are called: by its symbols and debug information, its own or those of
 * files that belong to it (symbolizer/others.h), or by the table that a Go program carries. It is
 * looked into when a name is asked for, and the names of all files together are bounded: those of
 * the file that was not used for longest go first.
 */
#ifndef SCONCE_SYMBOLIZER_FILENAMES_H
#define SCONCE_SYMBOLIZER_FILENAMES_H

#include "symbolizer/files.h"
#include "symbolizer/line.h"

struct filenames_found {
	struct lines lines; /* valid until the next call */
	uint64_t address;   /* of the ELF file; the file offset where that is not known */
	uint32_t segment;   /* index in segments; segments_n = in none */
};

/* What is at this offset of the file. */
void filenames_find(struct files *files, struct file *file, uint64_t offset,
		    struct filenames_found *found);
/* It is here: may its debug file be on the way? Looks into a file that nobody has looked into. */
bool filenames_pending(struct files *files, struct file *file);

/* What can be had again from the file. False: that was nothing. */
bool filenames_forget(struct files *files, struct file *file);
/* What is read from the file whenever it is asked goes before the file is closed. */
void filenames_close(struct files *files, struct file *file);
/* others_calls.part; arg: struct files. */
int filenames_part(void *arg, uint32_t file_id, const struct others_file *part);

#endif
