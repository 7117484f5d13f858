/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a file's text that no call frame information covers, and the rules that its machine
 * code itself gives for them (symbolizer/codeflow.h): musl, which Debian builds without any, and
 * assembly by hand in libraries that have some.
 *
 * A file that has information for all but padding and the start-up stubs of its compiler pays
 * nothing (CODEGAPS_WORTH_BYTES). Where functions begin is told by symbols; where those were
 * stripped also by the calls in that part of the code which has information.
 */
#ifndef SCONCE_SYMBOLIZER_CODEGAPS_H
#define SCONCE_SYMBOLIZER_CODEGAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/coderows.h"
#include "symbolizer/elffile.h"

/* Gaps from this size on are more than padding: functions are aligned to 64 bytes at most. */
#define CODEGAPS_CODE_BYTES 64
/* Stubs for destructors and the like are 210 to 340 bytes, and never on a stack. */
#define CODEGAPS_WORTH_BYTES 384
/* Of large files, gaps of less than one part in so many: to read their symbols takes longer. */
#define CODEGAPS_WORTH_SHARE 16384

/* A range of the text in the file: a gap, or a function that has information. */
struct codegaps_range {
	uint64_t offset, bytes;
};

struct codegaps {
	struct elffile *file;
	struct codegraph_area areas[CODEGRAPH_AREAS_MAX];
	uint64_t offsets[CODEGRAPH_AREAS_MAX]; /* of the areas, in the file */
	uint32_t areas_n;
	struct codegraph graph;
	uint32_t symbols; /* in the areas, of .symtab */
};

/* The next function that has information, in the order of the file; false at the end. */
typedef bool codegaps_next_fn(void *arg, struct codegaps_range *range);

/*
 * Analyse these gaps, which are in the order of the file. NULL with *err 0: there is nothing to be
 * said of them. Otherwise NULL with *err, -ENOMEM. Valid as long as the file is open.
 */
struct codegaps *codegaps_open(struct elffile *file, const struct codegaps_range *gaps,
			       uint32_t gaps_n, codegaps_next_fn *covered, void *arg, int *err);
void codegaps_close(struct codegaps *gaps);

/* The file offset and the size of an area; there are gaps->areas_n of them, in the file's order. */
struct codegaps_range codegaps_area(const struct codegaps *gaps, uint32_t i);
/* The rules of an area, by ascending addresses, the area's own first. */
void codegaps_rows(const struct codegaps *gaps, uint32_t i, coderows_fn *fn, void *arg);

#endif
