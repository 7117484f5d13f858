/* SPDX-License-Identifier: Apache-2.0 */
#include "viewer/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void slots_init(struct slots *slots, const struct slots_limits *limits)
{
	memset(slots, 0, sizeof(*slots));
	slots->limits = *limits;
}

static void slot_empty(struct slot *slot)
{
	for (size_t i = 0; i < SLOT_PARTS; i++) {
		profile_free(slot->part[i]);
		slot->part[i] = NULL;
	}
	slot->newest = 0;
}

static struct slot **slots_link(struct slots *slots, const char *key)
{
	struct slot **link = &slots->first;

	while (*link && strcmp((*link)->key, key))
		link = &(*link)->next;
	return link;
}

static void slots_remember(struct slots *slots, const struct slot *slot, enum slot_end why,
			   const char *by, uint64_t now_ns)
{
	struct slot_ended *ended = &slots->ended[slots->ended_n++ % SLOTS_ENDED_MAX];

	memset(ended, 0, sizeof(*ended));
	memcpy(ended->key, slot->key, sizeof(ended->key));
	strncpy(ended->by, by, sizeof(ended->by) - 1);
	ended->time_ns = now_ns;
	ended->why = why;
}

static void slots_end(struct slots *slots, struct slot **link, enum slot_end why, const char *by,
		      uint64_t now_ns)
{
	struct slot *slot = *link;

	slots_remember(slots, slot, why, by, now_ns);
	*link = slot->next;
	slots->n--;
	slot_empty(slot);
	free(slot);
}

void slots_fini(struct slots *slots)
{
	while (slots->first)
		slots_end(slots, &slots->first, SLOT_CLOSED, "", 0);
}

struct slot *slots_find(const struct slots *slots, const char *key)
{
	struct slot *slot = slots->first;

	while (slot && strcmp(slot->key, key))
		slot = slot->next;
	return slot;
}

struct slot *slots_use(struct slots *slots, const char *key, uint64_t now_ns)
{
	struct slot *slot = slots_find(slots, key);

	if (slot)
		slot->last_request_ns = now_ns;
	return slot;
}

static void slots_evict(struct slots *slots, const char *by, uint64_t now_ns)
{
	struct slot **oldest = &slots->first;

	for (struct slot **link = oldest; *link; link = &(*link)->next)
		if ((*link)->last_request_ns < (*oldest)->last_request_ns)
			oldest = link;
	slots_end(slots, oldest, SLOT_EVICTED, by, now_ns);
	slots->evicted++;
}

struct slot *slots_open(struct slots *slots, const char *key, uint64_t now_ns)
{
	struct slot *slot = slots_use(slots, key, now_ns);

	if (slot)
		return slot;
	slot = calloc(1, sizeof(*slot));
	if (!slot)
		return NULL;
	strncpy(slot->key, key, sizeof(slot->key) - 1);
	while (slots->n && slots->n >= slots->limits.max_slots)
		slots_evict(slots, slot->key, now_ns);
	slot->opened_ns = slot->last_request_ns = now_ns;
	slot->next = slots->first;
	slots->first = slot;
	slots->n++;
	return slot;
}

bool slots_clear(struct slots *slots, const char *key, uint64_t now_ns)
{
	struct slot *slot = slots_use(slots, key, now_ns);

	if (!slot)
		return false;
	slot_empty(slot);
	slot->dropped = 0;
	slot->last_data_ns = 0;
	return true;
}

void slots_close(struct slots *slots, const char *key, uint64_t now_ns)
{
	struct slot **link = slots_link(slots, key);

	if (*link)
		slots_end(slots, link, SLOT_CLOSED, "", now_ns);
}

void slots_sweep(struct slots *slots, uint64_t now_ns)
{
	struct slot **link = &slots->first;

	while (*link) {
		if ((*link)->last_request_ns + slots->limits.ttl_ns < now_ns) {
			slots_end(slots, link, SLOT_EXPIRED, "", now_ns);
			slots->expired++;
		} else {
			link = &(*link)->next;
		}
	}
}

const struct slot_ended *slots_last_end(const struct slots *slots, const char *key)
{
	uint64_t oldest = slots->ended_n > SLOTS_ENDED_MAX ? slots->ended_n - SLOTS_ENDED_MAX : 0;

	for (uint64_t i = slots->ended_n; i > oldest; i--) {
		const struct slot_ended *ended = &slots->ended[(i - 1) % SLOTS_ENDED_MAX];

		if (!strcmp(ended->key, key))
			return slots_find(slots, key) ? NULL : ended;
	}
	return NULL;
}

const char *slot_end_text(enum slot_end why)
{
	static const char *const texts[] = {
	    [SLOT_EVICTED] = "evicted",
	    [SLOT_EXPIRED] = "expired",
	    [SLOT_CLOSED] = "closed",
	};

	return texts[why];
}

/* The part to fill, made if need be; NULL without memory. */
static struct profile *slot_newest(struct slots *slots, struct slot *slot)
{
	struct profile **part = &slot->part[slot->newest];

	if (!*part)
		*part = profile_new(slots->limits.max_bytes / SLOT_PARTS);
	return *part;
}

/* Begin the next part; what stood there was the oldest. */
static void slot_rotate(struct slot *slot)
{
	struct profile **part;

	slot->newest = (slot->newest + 1) % SLOT_PARTS;
	part = &slot->part[slot->newest];
	if (!*part)
		return;
	slot->dropped += profile_samples_total(*part);
	profile_free(*part);
	*part = NULL;
}

static int slot_try(struct slots *slots, struct slot *slot, struct copy *copy, uint32_t sample)
{
	struct profile *part = slot_newest(slots, slot);

	if (!part)
		return -ENOMEM;
	copy_to(copy, part);
	return copy_sample(copy, sample);
}

void slot_add(struct slots *slots, struct slot *slot, struct copy *copy, uint32_t sample,
	      uint64_t now_ns)
{
	uint64_t count;
	int err = slot_try(slots, slot, copy, sample);

	slot->last_data_ns = now_ns;
	/* A part without a sample has all the room there is: another would not take it either. */
	if (err == -ENOSPC && profile_samples_n(slot->part[slot->newest])) {
		slot_rotate(slot);
		err = slot_try(slots, slot, copy, sample);
	}
	if (!err)
		return;
	profile_sample_at(copy->from, sample, &count);
	slot->dropped += count;
	/* It may hold half of what was refused. */
	if (slot->part[slot->newest] && !profile_samples_n(slot->part[slot->newest])) {
		profile_free(slot->part[slot->newest]);
		slot->part[slot->newest] = NULL;
		copy_to(copy, NULL);
	}
}

uint64_t slot_samples(const struct slot *slot)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < SLOT_PARTS; i++)
		if (slot->part[i])
			samples += profile_samples_total(slot->part[i]);
	return samples;
}

size_t slot_bytes(const struct slot *slot)
{
	size_t bytes = 0;

	for (size_t i = 0; i < SLOT_PARTS; i++)
		if (slot->part[i])
			bytes += profile_bytes(slot->part[i]);
	return bytes;
}

size_t slots_bytes(const struct slots *slots)
{
	size_t bytes = 0;

	for (const struct slot *slot = slots->first; slot; slot = slot->next)
		bytes += slot_bytes(slot);
	return bytes;
}
