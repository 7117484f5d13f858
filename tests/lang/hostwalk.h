/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk of BPF with the walkers of all languages, as an ordinary program: over a snapshot.
 */
#ifndef SCONCE_TESTS_LANG_HOSTWALK_H
#define SCONCE_TESTS_LANG_HOSTWALK_H

#include <stdint.h>

#include "shm/record.h"
#include "shm/table.h"
#include "tests/lang/snapshot.h"

/* The table of a file, with the runtime behind it; NULL: go by frame pointers. */
typedef const struct table_header *hostwalk_table_fn(uint32_t file_id);

/*
 * frames: room for RECORD_USER_FRAMES_MAX. How many slots were filled; *stop says why it ended.
 * Reads of all that is in this process go to the snapshot from here on (snapshot_use()).
 */
uint32_t hostwalk(struct snapshot *snapshot, hostwalk_table_fn *tables, struct frame *frames,
		  enum record_stop *stop);

#endif
