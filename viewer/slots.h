/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: the workloads that somebody looks at, and their stacks. Nothing else keeps stacks.
 *
 *   open   makes a slot, or renews it; the one not asked for longest gives way when all are taken
 *   use    renews a slot; there is none for a workload that is not open (reading opens nothing)
 *   clear  empties it, and renews it
 *   close  ends it
 *   sweep  ends those that nobody asked for within the time to live
 * Data that arrives renews nothing. A slot that ended is remembered, so that whoever looks at it
 * can be told when and why.
 *
 * A slot holds a ring of profiles, each with its own strings; when it is full the oldest is
 * dropped. Every function that needs the time is given it.
 */
#ifndef SCONCE_VIEWER_SLOTS_H
#define SCONCE_VIEWER_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "viewer/copy.h"
#include "viewer/workload_key.h"

#define SLOT_PARTS	8
#define SLOTS_ENDED_MAX 64

struct slots_limits {
	uint32_t max_slots;
	uint64_t ttl_ns;
	uint64_t max_bytes; /* of one slot */
};

struct slot {
	struct slot *next;
	char key[WORKLOAD_KEY_BYTES];
	uint64_t opened_ns, last_request_ns;
	uint64_t last_data_ns;		  /* 0 = none yet */
	uint64_t dropped;		  /* samples that the byte limit pushed out */
	struct profile *part[SLOT_PARTS]; /* NULL where unused */
	unsigned newest;		  /* the part that is being filled */
};

enum slot_end { SLOT_EVICTED, SLOT_EXPIRED, SLOT_CLOSED };

struct slot_ended {
	char key[WORKLOAD_KEY_BYTES];
	char by[WORKLOAD_KEY_BYTES]; /* evicted: the workload that took its place */
	uint64_t time_ns;
	enum slot_end why;
};

struct slots {
	struct slots_limits limits;
	struct slot *first;
	uint32_t n;
	uint64_t evicted, expired;		  /* since the start */
	struct slot_ended ended[SLOTS_ENDED_MAX]; /* a ring */
	uint64_t ended_n;
};

void slots_init(struct slots *slots, const struct slots_limits *limits);
void slots_fini(struct slots *slots);

/* NULL with ENOMEM. */
struct slot *slots_open(struct slots *slots, const char *key, uint64_t now_ns);
/* NULL: not open. */
struct slot *slots_use(struct slots *slots, const char *key, uint64_t now_ns);
/* Without renewing it; for data that arrives and for lists. */
struct slot *slots_find(const struct slots *slots, const char *key);
bool slots_clear(struct slots *slots, const char *key, uint64_t now_ns);
void slots_close(struct slots *slots, const char *key, uint64_t now_ns);
void slots_sweep(struct slots *slots, uint64_t now_ns);

/* The last end of a slot that is not open, as long as it is remembered; else NULL. */
const struct slot_ended *slots_last_end(const struct slots *slots, const char *key);
const char *slot_end_text(enum slot_end why);

/*
 * Add a sample of copy->from. One that finds no room even in an empty part is dropped. `now_ns` is
 * when it arrived.
 */
void slot_add(struct slots *slots, struct slot *slot, struct copy *copy, uint32_t sample,
	      uint64_t now_ns);

uint64_t slot_samples(const struct slot *slot);
size_t slot_bytes(const struct slot *slot);
size_t slots_bytes(const struct slots *slots);

#endif
