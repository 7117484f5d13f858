/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of u32 -> entry with the order of last use: what processes and files are kept in.
 * Entries embed a struct lru_node as their first member; memory is the caller's. It bounds nothing
 * itself: the caller looks at `count` and takes lru_oldest().
 */
#ifndef SCONCE_SYMBOLIZER_LRU_H
#define SCONCE_SYMBOLIZER_LRU_H

#include <stdint.h>

struct lru_node {
	struct lru_node *chain;		/* same bucket */
	struct lru_node *newer, *older; /* ring through struct lru.ring */
	uint32_t key;
};

struct lru {
	struct lru_node **buckets;
	uint32_t mask;
	uint32_t count;
	struct lru_node ring; /* ring.older = newest, ring.newer = oldest */
};

/* entries: how many are expected at most. 0 or -ENOMEM. */
int lru_init(struct lru *lru, uint32_t entries);
/* Frees the buckets only: the entries must be gone. */
void lru_fini(struct lru *lru);

/* The entry, which becomes the newest; or NULL. */
void *lru_get(struct lru *lru, uint32_t key);
/* The same, but its place stays as it is. */
void *lru_peek(const struct lru *lru, uint32_t key);
void lru_add(struct lru *lru, struct lru_node *node, uint32_t key);
void lru_remove(struct lru *lru, struct lru_node *node);

/* Walk from the oldest to newer ones; NULL at the end. */
void *lru_oldest(struct lru *lru);
void *lru_newer(struct lru *lru, struct lru_node *node);

#endif
