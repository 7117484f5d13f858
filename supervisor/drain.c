/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/drain.h"

#include "supervisor/kernel.h"
#include "supervisor/log.h"
#include "supervisor/watch.h"

#define NS_PER_MS 1000000ull
#define END_MS 3000 /* longer than watch.c waits for a death */

static const struct {
	enum role role;
	uint64_t limit_ms;
} stages[] = {
	{ROLE_SAMPLER, 2000},
	{ROLE_SYMBOLIZER, 5000},
	{ROLE_EXPORTER, 8000},
	{ROLE_VIEWER, 2000},
};

#define STAGES (sizeof(stages) / sizeof(stages[0]))

static bool begun;
static size_t stage;
static uint64_t stage_ns;

void drain_begin(void)
{
	if (begun)
		return;
	begun = true;
	stage_ns = watch_now_ns();
	kernel_stop();
}

bool drain_begun(void)
{
	return begun;
}

/* Tell everyone of this stage, also those that were started again meanwhile. */
static bool drain_done(enum role role)
{
	struct message_empty none = {0};
	bool done = true;

	for (int i = 0; i < SLOT_COUNT; i++) {
		struct slot *s = watch_slot(i);

		if (slot_role(i) != role || s->state == SLOT_OFF)
			continue;
		if (s->state == SLOT_RUNNING && !s->drain_sent)
			s->drain_sent =
				channel_send(&s->channel, MESSAGE_DRAIN, &none, NULL, 0) == 0;
		done &= s->state == SLOT_RUNNING && s->drained;
	}
	return done;
}

/*
 * A worker that is late is stuck in a sample: it gives up by itself before. The next one gives up that
 * sample, and does the rest.
 */
static bool drain_again(void)
{
	static bool again;
	bool once = stages[stage].role == ROLE_SYMBOLIZER && !again;

	for (int i = ROLE_SYMBOLIZER; once && i < SLOT_COUNT; i++)
		if (!watch_slot(i)->drained)
			watch_kill(i, "stuck at the end");
	again |= once;
	return once;
}

bool drain_tick(void)
{
	uint64_t now = watch_now_ns();

	while (stage < STAGES) {
		bool done = drain_done(stages[stage].role);

		if (!done && now - stage_ns <= stages[stage].limit_ms * NS_PER_MS)
			return false;
		if (!done)
			log_warn("%s did not finish within %d ms", role_name(stages[stage].role),
				 (int)stages[stage].limit_ms);
		if (done || !drain_again())
			stage++;
		stage_ns = now;
	}
	return watch_stop() || now - stage_ns > END_MS * NS_PER_MS;
}
