/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child process that maps what a test wants to have opened, and sleeps.
 */
#ifndef SCONCE_TESTS_BROKER_VICTIM_H
#define SCONCE_TESTS_BROKER_VICTIM_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define VICTIM_ADDRESS 0x20000000ull /* below what sanitizers take */

struct victim {
	pid_t pid;
	uint64_t start_ns; /* of its tick */
	struct stat file;
};

/* Maps one page of path (NULL: nothing), executable, at VICTIM_ADDRESS, and unlinks it if asked to.
 */
void victim_start(struct victim *victim, const char *path, int unlink_it);
/* Its first thread ends once the file is mapped, another one lives on. */
void victim_start_headless(struct victim *victim, const char *path);
void victim_end(struct victim *victim);

/* A file of one page in the scratch directory of this test; its path. */
const char *victim_file(const char *name);

#endif
