/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which descriptor goes to which number of which process: one list of objects (how each is made) and
 * one table of wires (in wiring.c: who gets which side of it, and where). The supervisor keeps all
 * sides of everything, so that a process can be started again on the same objects.
 *
 * What does not exist (kernel symbols that may not be read, the file of `record` in `run`) is wired
 * as /dev/null, so that a number never holds something else by accident.
 */
#ifndef SCONCE_SUPERVISOR_WIRING_H
#define SCONCE_SUPERVISOR_WIRING_H

#include <stddef.h>
#include <stdint.h>

#include "proto/config.h"
#include "proto/fds.h"

/*
 * OBJECT(NAME, kind, how many, bytes: field of struct config)
 *   GIVEN   made by somebody else
 *   PAIR    sockets; of CONTROL, A is the supervisor's end. PAIRS are of every two workers: of
 *           workers j < k the pair j * WORKERS_MAX + k, with A for j
 *   QUEUE   two segments: the producer's, and the consumer's tail
 */
#define OBJECTS(OBJECT)                                                                            \
	OBJECT(CONTROL, PAIR, SLOTS, version)                                                      \
	OBJECT(CONFIG, GIVEN, ONE, version)                                                        \
	OBJECT(SECRETS, GIVEN, ONE, version)                                                       \
	OBJECT(LEDGER, LEDGER, SLOTS, version)                                                     \
	OBJECT(SAMPLER_BROKER, PAIR, ONE, version)                                                 \
	OBJECT(SAMPLER_WORKER, PAIR, WORKERS, version)                                             \
	OBJECT(BROKER_WORKER, PAIR, WORKERS, version)                                              \
	OBJECT(PEERS, PAIR, PAIRS, version)                                                        \
	OBJECT(SAMPLES, QUEUE, WORKERS, sample_queue_bytes)                                        \
	OBJECT(PROCESSES, QUEUE, WORKERS, process_queue_bytes)                                     \
	OBJECT(OUTPUT, QUEUE, WORKERS, output_queue_bytes)                                         \
	OBJECT(LOG_A, SEGMENT, WORKERS, log_bytes)                                                 \
	OBJECT(LOG_B, SEGMENT, WORKERS, log_bytes)                                                 \
	OBJECT(KALLSYMS, GIVEN, WORKERS, version)                                                  \
	OBJECT(MODULES, GIVEN, WORKERS, version)                                                   \
	OBJECT(SPOOL, SEGMENT, DESTINATIONS, spool_bytes)                                          \
	OBJECT(FILE, GIVEN, ONE, version)                                                          \
	OBJECT(HTTP, GIVEN, ONE, version)                                                          \
	OBJECT(INTAKE, GIVEN, ONE, version)                                                        \
	OBJECT(EVENTS, GIVEN, ONE, version)                                                        \
	OBJECT(PROCS, GIVEN, ONE, version)                                                         \
	OBJECT(RANGES, GIVEN, ONE, version)                                                        \
	OBJECT(CPUS, GIVEN, ONE, version)                                                          \
	OBJECT(FILES, GIVEN, ONE, version)                                                         \
	OBJECT(CHUNKS, GIVEN, ONE, version)                                                        \
	OBJECT(CHUNK, GIVEN, CHUNKS, version)                                                      \
	OBJECT(SIDEBAND, GIVEN, SIDEBAND, version)

enum object {
#define OBJECT(NAME, kind, count, bytes) OBJECT_##NAME,
	OBJECTS(OBJECT)
#undef OBJECT
		OBJECT_COUNT
};

enum side { SIDE_A = 0, SIDE_B = 1, SIDE_RW = 0, SIDE_RO = 1, SIDE_TAIL_RW = 2, SIDE_TAIL_RO = 3 };

struct wire {
	int number; /* where the process finds it */
	int fd;	    /* 0 = there is none */
};

#define WIRES_MAX (FD_SIDEBAND + CONFIG_CPUS_MAX)

/* Make every object that is ours to make. 0 or -errno. config is borrowed for good. */
int wiring_create(const struct config *config);

/* Take over an fd that somebody else made. */
void wiring_give(enum object object, uint32_t instance, enum side side, int fd);
int wiring_fd(enum object object, uint32_t instance, enum side side);

/* The wires of a slot, at most WIRES_MAX. Returns how many. */
size_t wiring_list(int slot, struct wire *wires);

/* A new, empty channel to the supervisor: what the last process of the slot said is forgotten. */
int wiring_renew_control(int slot);

/*
 * Put copies in the place of all that processes can write to, so that what an abandoned one still
 * does reaches nobody. All others must have ended. 0 or -errno.
 */
int wiring_replace(void);

#endif
