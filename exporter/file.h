/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of record. While recording, batches wait in the spool; at the end they are merged into
 * one profile and written in the format that the user asked for. All or nothing: samples are
 * acknowledged when the last byte is written, and lost when it cannot be.
 */
#ifndef SCONCE_EXPORTER_FILE_H
#define SCONCE_EXPORTER_FILE_H

#include "exporter/spool.h"

/*
 * Write what is in the spool to fd, unless the ledger says that it was done. Commits. 0 or -errno;
 * the text says what failed.
 */
int file_write(struct spool *spool, struct ledger_writer *ledger, const struct config *config,
	       int fd, const char **failed);

#endif
