/* SPDX-License-Identifier: Apache-2.0 */
#include "viewer/footer.h"

#include "shm/blamed.h"
#include "shm/unread.h"

static void footer_slots(struct text *text, const struct slots *slots)
{
	text_printf(text, "<p>%u / %u slots · ", slots->n, slots->limits.max_slots);
	text_bytes(text, slots_bytes(slots));
	text_str(text, " / ");
	text_bytes(text, slots->limits.max_bytes * slots->limits.max_slots);
	text_printf(text, " · TTL %llu s</p>\n",
		    (unsigned long long)(slots->limits.ttl_ns / 1000000000ull));
}

/* "12 (kernel 10, sampler 2)", or "0". */
static void footer_lost(struct text *text, const struct ledgers_sum *sum)
{
	struct ledgers_stage stages[LEDGERS_STAGES];
	const char *before = " (";
	uint64_t lost = 0;

	ledgers_lost(sum, stages);
	for (size_t i = 0; i < LEDGERS_STAGES; i++)
		lost += stages[i].lost;
	text_printf(text, "%s%llu lost", lost ? "<span class=\"bad\">" : "",
		    (unsigned long long)lost);
	for (size_t i = 0; i < LEDGERS_STAGES; i++) {
		if (!stages[i].lost)
			continue;
		text_printf(text, "%s%s %llu", before, stages[i].name,
			    (unsigned long long)stages[i].lost);
		before = ", ";
	}
	text_str(text, lost ? ")</span>" : "");
}

static void footer_percent(struct text *text, double percent, const char *what)
{
	if (percent >= 0)
		text_printf(text, " · %.1f&nbsp;%% of %s", percent, what);
}

/* What ended or held up those who looked into it. */
static void footer_quarantine(struct text *text, const struct ledgers *ledgers)
{
	const char *before = " · <span class=\"bad\">not looked into: ";
	struct blamed blamed;

	for (int slot = 0; slot < SLOT_COUNT; slot++)
		for (uint32_t at = 0; blamed_next(ledgers->ledger[slot], &at, &blamed);) {
			text_str(text, before);
			text_html(text, blamed.text);
			before = ", ";
		}
	text_str(text, *before == ',' ? "</span>" : "");
}

/* Runtimes whose scripts show as the C that runs them. */
static void footer_unread(struct text *text, const struct ledgers *ledgers)
{
	struct unread_runtime runtime;

	for (int slot = 0; slot < SLOT_COUNT; slot++)
		for (uint32_t at = 0; unread_next(ledgers->ledger[slot], &at, &runtime);) {
			text_str(text, " · <span class=\"bad\">");
			text_html(text, runtime.language);
			text_str(text, runtime.version[0] ? " " : "");
			text_html(text, runtime.version);
			text_str(text, ": layout unknown (");
			text_html(text, runtime.path);
			text_str(text, ")</span>");
		}
}

static void footer_quality(struct text *text, const struct viewer *viewer)
{
	struct ledgers_sum sum;

	ledgers_sum(&viewer->ledgers, &sum);
	text_printf(text, "<p>This machine: %llu samples taken, ",
		    (unsigned long long)sum.counter[C_taken]);
	footer_lost(text, &sum);
	footer_percent(text, ledgers_named_percent(&sum), "frames have a name");
	footer_percent(text, ledgers_complete_percent(&sum), "stacks are complete");
	footer_quarantine(text, &viewer->ledgers);
	footer_unread(text, &viewer->ledgers);
	text_str(text, "</p>\n");
}

/* What the machine does not give, as the cli has found. */
static void footer_lacks(struct text *text, const char *lacks)
{
	if (!lacks[0])
		return;
	text_str(text, "<p>With less than there could be: ");
	text_html(text, lacks);
	text_str(text, " (<code>sconce doctor</code> says more)</p>\n");
}

void footer_write(struct text *text, const struct viewer *viewer)
{
	text_str(text, "<footer>\n");
	footer_slots(text, &viewer->slots);
	footer_quality(text, viewer);
	footer_lacks(text, viewer->child.config->runtime.lacks);
	text_str(text, "</footer>\n");
}
