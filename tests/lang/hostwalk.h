/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk of BPF with the walkers of all languages, as an ordinary program: over a snapshot, by
 * the tables of livefile.h.
 */
#ifndef SCONCE_TESTS_LANG_HOSTWALK_H
#define SCONCE_TESTS_LANG_HOSTWALK_H

#include <stdint.h>

#include "shm/record.h"
#include "shm/table.h"
#include "tests/lang/snapshot.h"

/*
 * What is known of a file: its table (NULL: go by frame pointers), with the runtime behind it.
 * Whoever links this defines it.
 */
const struct table_header *hostwalk_table(uint32_t file_id);

/* frames: room for RECORD_USER_FRAMES_MAX. How many slots were filled; *stop says why it ended. */
uint32_t hostwalk(struct snapshot *snapshot, struct frame *frames, enum record_stop *stop);

#endif
