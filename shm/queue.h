/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of records between two processes: one producer, one consumer, no locks.
 *
 * Who writes, who reads
 *   Two segments. The producer's holds head, a wake word and the data; the consumer's holds tail and
 *   `waiting`. Each side maps its own segment writable and the other's read-only.
 *
 *     producer segment   | struct queue_head (page) | data, capacity bytes, a power of two |
 *     consumer segment   | struct queue_tail (page) |
 *
 *   head and tail count bytes since the beginning and never wrap (2^64). The data is mapped twice in
 *   a row, so that no record is ever split. A record starts with its u32 length, a multiple of 8
 *   (struct record_header, struct symbol_header). Nothing says what a segment is: it could not be
 *   believed, and both ends are of one build (FD_CONFIG). The size of the memfd is the capacity.
 *
 * Life of a record
 *   queue_reserve() writes behind the private cursor, where nobody looks. queue_commit() counts it
 *   in. queue_publish() makes everything committed visible. The consumer walks a private cursor with
 *   queue_next() and gives the room back with queue_release(). The step between cursor and head (or
 *   tail) is where a process writes its ledger (shm/ledger.h): either all of a batch happened or
 *   nothing, whatever instruction the process is killed at.
 *
 * What each side may assume
 *   Nothing, not even after the other side was replaced: its segment is as the last one left it. An
 *   impossible index is -EPROTO, and the queue stays dead until it is opened again. The consumer copies a record out before it looks into it, and bounds its length
 *   first. Full means -ENOBUFS at once: a producer never waits.
 */
#ifndef SCONCE_SHM_QUEUE_H
#define SCONCE_SHM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/segment.h"

#define QUEUE_CAPACITY_MIN 65536
#define QUEUE_CAPACITY_MAX (1u << 30)

struct queue_head {
	_Atomic uint64_t head;
	_Atomic uint32_t wake; /* futex word: changes with every publish */
};

struct queue_tail {
	_Atomic uint64_t tail;
	_Atomic uint32_t waiting; /* 1 = the consumer sleeps, or is about to */
};

struct queue_segments {
	struct segment producer, consumer;
};

struct queue {
	struct queue_head *head; /* read-only in the consumer */
	struct queue_tail *tail; /* read-only in the producer */
	char *data;		 /* capacity bytes, mapped twice */
	uint64_t capacity;
	uint64_t cursor; /* private: next byte to write or to read */
	uint64_t seen;	 /* private: the other side's index, as last checked */
	bool dead;	 /* the other side wrote nonsense */
};

/* Make both segments. capacity: bytes, a power of two within the limits above. 0 or -errno. */
int queue_create(struct queue_segments *segments, const char *name, size_t capacity);
void queue_destroy(struct queue_segments *segments);

/*
 * Open one side; `own` is its writable segment, `other` the read-only one. The fds stay the
 * caller's. The cursor starts at the published index. 0 or -errno (-EPROTO: not such a queue).
 */
int queue_open_producer(struct queue *queue, int own, int other);
int queue_open_consumer(struct queue *queue, int own, int other);
/* What both do; the cursor is theirs to set. */
int queue_open(struct queue *queue, int producer_fd, int consumer_fd, bool producing);
void queue_close(struct queue *queue);

/*
 * Producer. Room for a record of len_bytes (multiple of 8) behind the cursor, to be filled by the
 * caller. NULL with errno ENOBUFS (full) or EPROTO (dead).
 */
void *queue_reserve(struct queue *queue, size_t len_bytes);
/* Count the reserved record in. */
void queue_commit(struct queue *queue, size_t len_bytes);
/* reserve + copy + commit. 0, -ENOBUFS or -EPROTO. */
int queue_push(struct queue *queue, const void *record, size_t len_bytes);
/* Make everything up to index visible and wake the consumer if it sleeps. */
void queue_publish(struct queue *queue, uint64_t index);

/*
 * Consumer. Copy the next record into buf. Its length, 0 when there is none, -EPROTO when the
 * producer lies or the record is longer than size.
 */
long queue_next(struct queue *queue, void *buf, size_t size);
/* Give back the room up to index. */
void queue_release(struct queue *queue, uint64_t index);
/* Sleep until something is published, at most timeout_ms. */
void queue_wait(struct queue *queue, int timeout_ms);

/* Published bytes that are not released yet; for either side, and for the supervisor's watch. */
uint64_t queue_used(const struct queue *queue);

#endif
