/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that belong to a mapped one, as far as it says so (symbolizer/companions.h): debug
 * file, what dwz took out of it, package (.dwp) or parts (.dwo) of split units. They are asked for
 * one after the other (NEED_OTHER), when the file turned out to lack something. What comes has to
 * prove that it is meant before anything of it is believed: by its build id, or by the checksum
 * over all of it; a .dwo by the id of its unit. What comes and is wrong is counted, and the next
 * place tried.
 *
 * Life of a question
 *   asked, no answer: asked again, less and less often, a few times; then when it is mapped again.
 *   asked, there is none or nothing that fits: the next one is asked for.
 *   asked, it fits: kept open; the file's names are made anew (others_calls.changed).
 *   Nothing is left, and the last find missed a .dwo: that is asked for.
 *   Nothing was found, and the file is mapped again ten minutes later: once more from the start.
 */
#ifndef SCONCE_SYMBOLIZER_OTHERS_H
#define SCONCE_SYMBOLIZER_OTHERS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/channel.h"
#include "shm/blame.h"
#include "symbolizer/companions.h"
#include "symbolizer/elffile.h"

#define OTHERS_OPEN_MAX	 128		 /* of the reader's slots, in all */
#define OTHERS_PARTS_MAX 64		 /* .dwo files of one file */
#define OTHERS_WANTS_MAX 16		 /* .dwo files that wait to be asked for */
#define OTHERS_CRC_MAX	 (1ull << 30)	 /* bytes that are read of one file for its checksum */
#define OTHERS_AGAIN_NS	 600000000000ull /* packages may be installed meanwhile */

enum others_step {
	OTHERS_STEP_ID,	    /* its debug file by build id */
	OTHERS_STEP_LINK,   /* ... by name */
	OTHERS_STEP_ALT_ID, /* the common file */
	OTHERS_STEP_ALT,
	OTHERS_STEP_DWP, /* from here on only when a part is missed: the package beside the file */
	OTHERS_STEP_DWP_LINK, /* ... named after the debug file */
	OTHERS_STEP_DWO,      /* one part */
	OTHERS_STEPS
};

/* slot -1: none. */
struct others_file {
	int slot;
	struct file_key key;
	uint64_t dwo_id;				/* of a part */
	char path[sizeof((struct blame_file){0}.name)]; /* the end of it, for show */
};

struct others_want {
	uint64_t dwo_id;
	char name[MESSAGE_OTHER_BYTES];
};

/* Parts of split units: of files that have such, and not before one is missed. */
struct others_split {
	struct others_file parts[OTHERS_PARTS_MAX];
	struct others_want wants[OTHERS_WANTS_MAX];
	uint32_t parts_n, wants_n;
};

/* Of one file. */
struct others {
	uint32_t file_id;
	struct companions says;
	struct others_file debug, alt, dwp;
	struct others_split *split; /* may be NULL */
	bool gave, gave_part;	    /* something came since the names were made */
	/* What is asked for now. */
	enum others_step step; /* OTHERS_STEPS: nothing */
	struct message_need_other need;
	uint64_t ask_ns; /* when to ask, or to ask again */
	uint32_t tries;
	bool asked;
	bool silent;	     /* nobody answered: not until the file is mapped again */
	bool package_sought; /* a .dwp was asked for, once */
	/* The file whose checksum is being made. */
	struct others_file check;
	uint32_t crc;
	uint64_t crc_at, crc_read; /* in it; of all of them */
	/* For who holds it. */
	struct others *next; /* among those that have a step to do */
	bool waited;	     /* a sample has waited as long as it may */
	uint64_t wait_until_ns;
	uint64_t rested_ns; /* since when there is nothing to ask for */
};

struct others_calls {
	/* What was found changes what the file's frames are called. */
	void (*changed)(void *arg, uint32_t file_id, bool parts_only);
	/* Is this the part with its id? 0, or -errno: it is not. slot -1: there is none. */
	int (*part)(void *arg, uint32_t file_id, const struct others_file *part);
	/* There is to be room for one more file in the reader; false: there is none. */
	bool (*room)(void *arg, uint32_t file_id);
	void *arg;
};

struct others_all {
	struct others_calls calls;
	struct reader *reader;
	struct channel *sampler;
	struct blame *blame;
	struct others *busy;
	uint64_t now_ns;
	uint64_t window_ns;	 /* of the limit of asking */
	uint32_t sent;		 /* in it */
	uint32_t open;		 /* slots that are held */
	size_t bytes, bytes_max; /* of memory for all of these structs */
	uint64_t found, wrong;	 /* counters, added up by the worker */
};

/* An open file was looked at for the first time. NULL: it lacks nothing, says nothing, or there is
 * no room. */
struct others *others_begin(struct others_all *all, uint32_t file_id, struct elffile *elf);
void others_free(struct others_all *all, struct others *others);
/* OTHER came, of a file of which this is known (NULL: of no file). Takes the fd, or -1. */
void others_message(struct others_all *all, struct others *others,
		    const struct message_other *message, int fd);
/* Ask, and go on with checksums. Once per turn. */
void others_turn(struct others_all *all, uint64_t now_ns);
/* The last find missed this part. */
void others_want(struct others_all *all, struct others *others, const char *name, uint64_t dwo_id);
/* A process maps the file: somebody who can be asked through. */
void others_again(struct others_all *all, struct others *others);
/* May there be a debug file on its way? */
bool others_pending(const struct others *others);

#endif
