/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /tmp/perf-PID.map: what a process itself says of the code that it makes at run time, one line for
 * each piece, `START SIZE name`, numbers in hex. Lines are added at the end as code is made; where
 * code lies now that lies over older code, the later line holds.
 *
 * The text is anybody's: a line that is none, or longer than any name, is left out, and what is
 * kept has a limit. Nothing is read here; who reads hands the bytes in, in pieces of any size.
 */
#ifndef SCONCE_SYMBOLIZER_PERFMAP_H
#define SCONCE_SYMBOLIZER_PERFMAP_H

#include "symbolizer/jitindex.h"

#define PERFMAP_LINE_MAX 8192 /* longer ones are left out */
#define PERFMAP_NAME_MAX 1023 /* of a longer name the beginning is kept */

struct perfmap {
	struct jitindex index; /* what = offset in names */
	char *names;	       /* each ends in NUL; at 0 is none */
	size_t names_bytes, names_room, bytes_max;
	uint64_t lines, refused; /* taken; left out */
	bool skipping;		 /* in the middle of a line that is too long */
	bool full;		 /* there is no room for more */
};

/* bytes_max: what it may keep; for a moment it takes up to twice as much. */
void perfmap_init(struct perfmap *map, size_t bytes_max);
void perfmap_fini(struct perfmap *map);

/*
 * Text that follows what was taken before. How many bytes of it were taken: up to the end of its
 * last whole line. The rest is to come again, with more behind it.
 */
size_t perfmap_feed(struct perfmap *map, const char *text, size_t n);
/* Let what was fed be found. 0 or -ENOMEM. */
int perfmap_settle(struct perfmap *map);

/* The name of the code at this address; NULL when nothing is known of it. Valid until more is fed.
 */
const char *perfmap_find(const struct perfmap *map, uint64_t address);
/* Of memory. */
size_t perfmap_bytes(const struct perfmap *map);

#endif
