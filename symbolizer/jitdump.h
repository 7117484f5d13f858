/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit-PID.dump, perf's format for code that is made at run time (tools/perf/Documentation/
 * jitdump-specification.txt of Linux): a header, then a record for each piece of code that was
 * loaded, with its bytes, that was moved, and for the lines of one that follows. The process maps
 * the file executable so that others notice it.
 *
 * Each record has its time, so that a sample is named by the code that was there when it was taken,
 * even if other code lies there by now. The file is anybody's: what makes no sense ends the reading
 * of it, and what is kept has a limit. Nothing is read here; who reads hands the bytes in.
 */
#ifndef SCONCE_SYMBOLIZER_JITDUMP_H
#define SCONCE_SYMBOLIZER_JITDUMP_H

#include "symbolizer/jitindex.h"
#include "symbolizer/line.h"

#define JITDUMP_RECORD_MAX                                                                         \
	(256u << 10)	      /* lines that take more are left out; code is not looked at */
#define JITDUMP_NAME_MAX 1023 /* of a longer name the beginning is kept */

struct jitdump_code;
struct jitdump_line;

struct jitdump {
	struct jitindex index;		       /* what = number in codes + 1 */
	struct jitdump_code *codes;	       /* in the order in which they came */
	uint32_t codes_n, codes_room, settled; /* from settled on they are not found yet */
	struct jitdump_line *lines;
	uint32_t lines_n, lines_room, pending; /* from pending on: of the code that comes next */
	uint64_t pending_start;
	char *names; /* each ends in NUL; at 0 is none */
	uint32_t names_bytes, names_room;
	uint32_t file; /* the name that was stored last of a file; 0 = none */
	size_t bytes_max;
	uint64_t created;
	bool begun, broken, full;
	bool timeless;	     /* its times are of a clock that is not ours */
	uint32_t described;  /* how many came with lines, and ... */
	uint32_t lines_from; /* ... where they begin at the earliest, counted from the code */
	uint64_t refused;
};

/* bytes_max: what it may keep; for a moment it takes up to twice as much. */
void jitdump_init(struct jitdump *dump, size_t bytes_max);
void jitdump_fini(struct jitdump *dump);

/*
 * Bytes of the file that follow what was taken before: JITDUMP_RECORD_MAX of them, or all that
 * there are yet. By how many to go on; that may be more than n, because code is passed over. 0:
 * when there is more. now_ns: CLOCK_MONOTONIC.
 */
uint64_t jitdump_feed(struct jitdump *dump, const void *bytes, size_t n, uint64_t now_ns);
/* Let what was fed be found. 0 or -ENOMEM. */
int jitdump_settle(struct jitdump *dump);

/* What was at this address at that time, CLOCK_MONOTONIC. Texts are valid until more is fed. */
void jitdump_find(const struct jitdump *dump, uint64_t address, uint64_t time_ns,
		  struct lines *found);
/* Of memory. */
size_t jitdump_bytes(const struct jitdump *dump);

#endif
