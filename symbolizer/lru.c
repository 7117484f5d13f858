/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/lru.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct lru_node **lru_bucket(const struct lru *lru, uint32_t key)
{
	return &lru->buckets[(key * 2654435761u >> 7) & lru->mask];
}

int lru_init(struct lru *lru, uint32_t entries)
{
	uint32_t buckets = 64;

	while (buckets < entries && buckets < 1u << 20)
		buckets *= 2;
	memset(lru, 0, sizeof(*lru));
	lru->buckets = calloc(buckets, sizeof(*lru->buckets));
	if (!lru->buckets)
		return -ENOMEM;
	lru->mask = buckets - 1;
	lru->ring.newer = lru->ring.older = &lru->ring;
	return 0;
}

void lru_fini(struct lru *lru)
{
	free(lru->buckets);
	memset(lru, 0, sizeof(*lru));
}

static void lru_unlink(struct lru_node *node)
{
	node->newer->older = node->older;
	node->older->newer = node->newer;
}

static void lru_link_newest(struct lru *lru, struct lru_node *node)
{
	node->newer = &lru->ring;
	node->older = lru->ring.older;
	node->older->newer = node;
	lru->ring.older = node;
}

void *lru_peek(const struct lru *lru, uint32_t key)
{
	struct lru_node *node = *lru_bucket(lru, key);

	while (node && node->key != key)
		node = node->chain;
	return node;
}

void *lru_get(struct lru *lru, uint32_t key)
{
	struct lru_node *node = lru_peek(lru, key);

	if (node) {
		lru_unlink(node);
		lru_link_newest(lru, node);
	}
	return node;
}

void lru_add(struct lru *lru, struct lru_node *node, uint32_t key)
{
	struct lru_node **bucket = lru_bucket(lru, key);

	node->key = key;
	node->chain = *bucket;
	*bucket = node;
	lru_link_newest(lru, node);
	lru->count++;
}

void lru_remove(struct lru *lru, struct lru_node *node)
{
	struct lru_node **p = lru_bucket(lru, node->key);

	while (*p != node)
		p = &(*p)->chain;
	*p = node->chain;
	lru_unlink(node);
	lru->count--;
}

void *lru_oldest(struct lru *lru)
{
	return lru->ring.newer == &lru->ring ? NULL : lru->ring.newer;
}

void *lru_newer(struct lru *lru, struct lru_node *node)
{
	return node->newer == &lru->ring ? NULL : node->newer;
}
