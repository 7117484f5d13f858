/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What others say of addresses in a program: llvm-symbolizer and addr2line, which are asked for all
 * of them at once, and libdw, which is asked here for each.
 */
#ifndef SCONCE_TESTS_SYMBOLIZER_DWARF_ANSWERS_H
#define SCONCE_TESTS_SYMBOLIZER_DWARF_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "shm/symbol.h"
#include "tests/symbolizer/dwarf_libdw.h"

#define ANSWER_TEXT_BYTES 4096

enum answerer { LLVM, BINUTILS, LIBDW, ANSWERERS };

struct answer_frame {
	char name[ANSWER_TEXT_BYTES], file[ANSWER_TEXT_BYTES]; /* name "??", file "": not known */
	unsigned line;
};

/* Innermost first. */
struct answer {
	struct answer_frame frame[SYMBOL_LINES_MAX + 1];
	unsigned n;
};

struct answers {
	enum answerer who;
	FILE *from;
	struct dwarf_libdw *libdw;
	const uint64_t *pcs;
};

/* alt, dwp: paths or NULL. False: it cannot be asked. */
bool answers_open(struct answers *answers, enum answerer who, const char *path, const char *alt,
		  const char *dwp, const uint64_t *pcs, unsigned n);
/* Of the next address. False: it ended before. */
bool answers_next(struct answers *answers, struct answer *answer);
void answers_close(struct answers *answers);

#endif
