/* SPDX-License-Identifier: Apache-2.0 */
#include "viewer/workloads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S  1000000000ull
#define HASH_SIZE 8192 /* a power of two */
#define BATCH_S	  5    /* how often the exporter sends: one bucket */
#define BUCKETS	  (WORKLOADS_WINDOW_S / BATCH_S)
/* After so long without any data the window moves on by the clock. */
#define SILENCE_NS (3 * BATCH_S * NS_PER_S)

_Static_assert(BUCKETS *BATCH_S == WORKLOADS_WINDOW_S, "whole buckets");

struct bucket {
	uint64_t number; /* of the BATCH_S seconds since the clock's zero */
	uint64_t samples, cpu_ns;
};

struct workload {
	char key[WORKLOAD_KEY_BYTES];
	uint64_t last_seen_ns;
	uint16_t next; /* in its hash chain, + 1; 0 = end */
	struct bucket bucket[BUCKETS];
};

struct workloads {
	size_t n;
	uint64_t began_ns;	   /* the window does not reach back beyond this */
	uint64_t newest_ns;	   /* data of any workload; 0 = none yet */
	uint16_t chain[HASH_SIZE]; /* index + 1 */
	struct workload entry[WORKLOADS_MAX];
};

struct workloads *workloads_new(uint64_t now_ns)
{
	struct workloads *workloads = calloc(1, sizeof(*workloads));

	if (workloads)
		workloads->began_ns = now_ns;
	return workloads;
}

void workloads_free(struct workloads *workloads)
{
	free(workloads);
}

static uint32_t workloads_hash(const char *key)
{
	uint32_t hash = 2166136261u;

	while (*key)
		hash = (hash ^ (unsigned char)*key++) * 16777619u;
	return (hash ^ hash >> 16) % HASH_SIZE;
}

/* The link that leads to the entry of this key, or the end of its chain. */
static uint16_t *workloads_link(struct workloads *workloads, const char *key)
{
	uint16_t *link = &workloads->chain[workloads_hash(key)];

	while (*link && strcmp(workloads->entry[*link - 1].key, key))
		link = &workloads->entry[*link - 1].next;
	return link;
}

/* Room for one more: the index of an entry that is in no chain. */
static size_t workloads_vacate(struct workloads *workloads)
{
	size_t oldest = 0;
	uint16_t *link;

	if (workloads->n < WORKLOADS_MAX)
		return workloads->n++;
	for (size_t i = 1; i < WORKLOADS_MAX; i++)
		if (workloads->entry[i].last_seen_ns < workloads->entry[oldest].last_seen_ns)
			oldest = i;
	link = workloads_link(workloads, workloads->entry[oldest].key);
	*link = workloads->entry[oldest].next;
	return oldest;
}

static struct workload *workloads_get(struct workloads *workloads, const char *key)
{
	uint16_t *link = workloads_link(workloads, key);
	struct workload *workload;
	size_t index;

	if (*link)
		return &workloads->entry[*link - 1];
	index = workloads_vacate(workloads);
	workload = &workloads->entry[index];
	memset(workload, 0, sizeof(*workload));
	strncpy(workload->key, key, sizeof(workload->key) - 1);
	/* the chain may have changed with the eviction */
	link = workloads_link(workloads, workload->key);
	*link = (uint16_t)(index + 1);
	return workload;
}

void workloads_seen(struct workloads *workloads, const char *key, uint64_t samples, uint64_t cpu_ns,
		    uint64_t now_ns)
{
	uint64_t number = now_ns / (BATCH_S * NS_PER_S);
	struct workload *workload = workloads_get(workloads, key);
	struct bucket *bucket = &workload->bucket[number % BUCKETS];

	if (!workloads->newest_ns && now_ns > workloads->began_ns + BATCH_S * NS_PER_S)
		workloads->began_ns = now_ns - BATCH_S * NS_PER_S; /* we waited for a sender */
	workloads->newest_ns = now_ns;
	workload->last_seen_ns = now_ns;
	if (bucket->number != number)
		*bucket = (struct bucket){.number = number};
	bucket->samples += samples;
	bucket->cpu_ns += cpu_ns;
}

size_t workloads_n(const struct workloads *workloads)
{
	return workloads->n;
}

/*
 * The end of the window: the newest data, so that every full bucket holds one batch, whenever the
 * question comes between two batches.
 */
static uint64_t workloads_window_end(const struct workloads *workloads, uint64_t now_ns)
{
	if (workloads->newest_ns && now_ns < workloads->newest_ns + SILENCE_NS)
		return workloads->newest_ns;
	return now_ns;
}

static double workloads_window_s(const struct workloads *workloads, uint64_t end_ns)
{
	double seconds = (double)(end_ns - workloads->began_ns) / 1e9;

	if (seconds > WORKLOADS_WINDOW_S)
		return WORKLOADS_WINDOW_S;
	return seconds < 0.5 ? 0.5 : seconds;
}

static struct workload_use workloads_use(const struct workloads *workloads,
					 const struct workload *workload, uint64_t end_ns)
{
	struct workload_use use = {.key = workload->key, .last_seen_ns = workload->last_seen_ns};
	uint64_t last = end_ns / (BATCH_S * NS_PER_S);

	for (size_t i = 0; i < BUCKETS; i++) {
		const struct bucket *bucket = &workload->bucket[i];

		if (bucket->number > last || bucket->number + BUCKETS <= last)
			continue;
		use.samples += bucket->samples;
		use.cpu_ns += bucket->cpu_ns;
	}
	use.cpus = (double)use.cpu_ns / 1e9 / workloads_window_s(workloads, end_ns);
	return use;
}

static int workloads_by_use(const void *a, const void *b)
{
	const struct workload_use *x = a, *y = b;

	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns < y->cpu_ns ? 1 : -1;
	return strcmp(x->key, y->key);
}

size_t workloads_list(const struct workloads *workloads, uint64_t now_ns, struct workload_use *uses,
		      size_t max)
{
	uint64_t end_ns = workloads_window_end(workloads, now_ns);
	struct workload_use *all = malloc(sizeof(*all) * (workloads->n + 1));
	size_t n = workloads->n < max ? workloads->n : max;

	if (!all)
		return 0;
	for (size_t i = 0; i < workloads->n; i++)
		all[i] = workloads_use(workloads, &workloads->entry[i], end_ns);
	qsort(all, workloads->n, sizeof(*all), workloads_by_use);
	memcpy(uses, all, n * sizeof(*all));
	free(all);
	return n;
}

double workloads_cpus(const struct workloads *workloads, uint64_t now_ns)
{
	uint64_t end_ns = workloads_window_end(workloads, now_ns);
	double cpus = 0;

	for (size_t i = 0; i < workloads->n; i++)
		cpus += workloads_use(workloads, &workloads->entry[i], end_ns).cpus;
	return cpus;
}
