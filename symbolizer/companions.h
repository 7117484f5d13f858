/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ELF file says of the files that belong to it: debug information is often split off, and
 * what several such files share, split off from them again. All of it was written by somebody else:
 * names are cut to their last component, and what they lead to has to prove that it is meant.
 */
#ifndef SCONCE_SYMBOLIZER_COMPANIONS_H
#define SCONCE_SYMBOLIZER_COMPANIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/messages.h"
#include "symbolizer/elffile.h"

#define COMPANIONS_ID_BYTES 64 /* a longer build id is none */

struct companions_id {
	uint8_t data[COMPANIONS_ID_BYTES];
	uint32_t bytes; /* 0 = none */
};

struct companions {
	bool symbols;			/* it has .symtab */
	bool lines;			/* it has .debug_info */
	struct companions_id id;	/* its own build id */
	char link[MESSAGE_OTHER_BYTES]; /* .gnu_debuglink: the file that has the rest; "" = none */
	uint32_t link_crc;
	char alt[MESSAGE_OTHER_BYTES]; /* .gnu_debugaltlink, as dwz writes it; "" = none */
	struct companions_id alt_id;
};

/* What is not understood is not there. */
void companions_read(struct elffile *file, struct companions *companions);
/* Both have one, and it is the same. */
bool companions_same(const struct companions_id *a, const struct companions_id *b);
/* Has it the index of a package of split units (.dwp)? */
bool companions_is_package(struct elffile *file);

#endif
