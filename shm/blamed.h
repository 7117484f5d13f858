/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands in quarantine, for those who show it. A ledger's owner may have written anything.
 */
#ifndef SCONCE_SHM_BLAMED_H
#define SCONCE_SHM_BLAMED_H

#include "shm/ledger.h"

struct blamed {
	char
	    text[96]; /* printable ASCII without quotes: "libx.so (8:1, inode 17)", "device 0:45" */
};

/* The next one from *at on, which begins with 0 and is moved on. False: there is no other. */
bool blamed_next(const struct ledger *ledger, uint32_t *at, struct blamed *blamed);

#endif
