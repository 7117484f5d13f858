/* SPDX-License-Identifier: Apache-2.0 */
#include "viewer/ledgers.h"

#include <errno.h>
#include <string.h>

#include "proto/fds.h"
#include "viewer/viewer.h"

void ledgers_open(struct ledgers *ledgers, const struct ledger_writer *own)
{
	memset(ledgers, 0, sizeof(*ledgers));
	ledgers->own = own;
	for (int slot = 0; slot < SLOT_COUNT; slot++)
		if (slot != ROLE_VIEWER)
			ledgers->ledger[slot] = ledger_map(FD_VIEWER_LEDGERS + slot);
}

/* The counters of one slot. False when there are none. */
static bool ledgers_entry(const struct ledgers *ledgers, int slot, struct ledger_entry *entry)
{
	if (slot == ROLE_VIEWER) {
		*entry = ledgers->own->now;
		return true;
	}
	return ledgers->ledger[slot] && ledger_read(ledgers->ledger[slot], entry) == 0;
}

static bool ledgers_owns(int slot, enum counter counter)
{
	return !strcmp(counter_role(counter), role_name(slot_role(slot)));
}

void ledgers_sum(const struct ledgers *ledgers, struct ledgers_sum *sum)
{
	struct ledger_entry entry;

	memset(sum, 0, sizeof(*sum));
	for (int slot = 0; slot < SLOT_COUNT; slot++) {
		if (!ledgers_entry(ledgers, slot, &entry))
			continue;
		for (int c = 0; c < COUNTER_COUNT; c++)
			if (ledgers_owns(slot, (enum counter)c))
				sum->counter[c] += entry.counter[c];
	}
}

static uint64_t ledgers_sum_prefix(const struct ledgers_sum *sum, const char *prefix)
{
	uint64_t total = 0;

	for (int c = 0; c < COUNTER_COUNT; c++)
		if (!strncmp(counter_name((enum counter)c), prefix, strlen(prefix)))
			total += sum->counter[c];
	return total;
}

void ledgers_lost(const struct ledgers_sum *sum, struct ledgers_stage stages[LEDGERS_STAGES])
{
	/* The exporter's way to us loses samples too, behind its own door. */
	static const struct {
		const char *name, *prefixes[2];
	} rows[LEDGERS_STAGES] = {
	    {"kernel", {"lost_bpf_", NULL}},
	    {"sampler", {"lost_sampler_", NULL}},
	    {"symbolizer", {"lost_symbolizer_", NULL}},
	    {"exporter", {"lost_exporter_", "viewer_lost_"}},
	};

	for (size_t i = 0; i < LEDGERS_STAGES; i++) {
		stages[i] = (struct ledgers_stage){.name = rows[i].name};
		for (size_t p = 0; p < 2 && rows[i].prefixes[p]; p++)
			stages[i].lost += ledgers_sum_prefix(sum, rows[i].prefixes[p]);
	}
}

static double ledgers_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : -1;
}

double ledgers_named_percent(const struct ledgers_sum *sum)
{
	uint64_t named = sum->counter[C_frames_named];

	return ledgers_percent(named, named + sum->counter[C_frames_unnamed] +
					  sum->counter[C_frames_unknown]);
}

double ledgers_complete_percent(const struct ledgers_sum *sum)
{
	uint64_t complete = sum->counter[C_stop_complete] + sum->counter[C_stop_no_user] +
			    sum->counter[C_stop_execve];

	return ledgers_percent(complete, ledgers_sum_prefix(sum, "stop_"));
}

/* ---- /metrics ----------------------------------------------------------------------------- */

static void metrics_value(struct text *text, const char *name, const char *suffix, int worker,
			  uint64_t value)
{
	text_printf(text, "sconce_%s%s", name, suffix);
	if (worker >= 0)
		text_printf(text, "{worker=\"%d\"}", worker);
	text_printf(text, " %llu\n", (unsigned long long)value);
}

static void metrics_counter(struct text *text, enum counter counter, const bool *present,
			    const struct ledger_entry *entries)
{
	bool sum = counter_kind(counter) == COUNTER_SUM;
	const char *name = counter_name(counter), *suffix = sum ? "_total" : "";

	text_printf(text, "# HELP sconce_%s%s ", name, suffix);
	text_label(text, counter_help(counter));
	text_printf(text, "\n# TYPE sconce_%s%s %s\n", name, suffix, sum ? "counter" : "gauge");
	for (int slot = 0; slot < SLOT_COUNT; slot++) {
		bool worker = slot_role(slot) == ROLE_SYMBOLIZER;

		if (present[slot] && ledgers_owns(slot, counter))
			metrics_value(text, name, suffix, worker ? slot - ROLE_SYMBOLIZER : -1,
				      entries[slot].counter[counter]);
	}
}

void ledgers_metrics(void *context, const struct http_request *request, struct http_reply *reply)
{
	const struct viewer *viewer = context;
	struct ledger_entry entries[SLOT_COUNT];
	bool present[SLOT_COUNT];

	(void)request;
	reply->type = "text/plain; version=0.0.4; charset=utf-8";
	for (int slot = 0; slot < SLOT_COUNT; slot++)
		present[slot] = ledgers_entry(&viewer->ledgers, slot, &entries[slot]);
	for (int c = 0; c < COUNTER_COUNT; c++)
		metrics_counter(&reply->body, (enum counter)c, present, entries);
}
