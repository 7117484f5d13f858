/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sconce-exporter: merges what the workers hand over and ships it. It answers for the last part of
 * the books: every sample that a worker handed over is in an output queue, in the open interval, in
 * a spool, or counted (shm/counters.h).
 *
 * The surprise: the loop sleeps in the network library, at most 100 ms, and looks at the queues
 * when it wakes up. Nothing here needs to be faster.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "exporter/batch.h"
#include "exporter/file.h"
#include "exporter/intake.h"
#include "exporter/places.h"
#include "exporter/spool.h"
#include "exporter/transport.h"
#include "supervisor/child.h"
#include "supervisor/sandbox.h"

#define MAIN_STEP_MS 100
#define MAIN_SHIP_NS 5000000000ull /* at the end, what is not shipped by then is given up */

struct exporter {
	struct child child;
	struct intake intake;
	struct batch batch;
	struct spool spools[DESTINATION_COUNT];
	struct transport transport;
	uint64_t flushed_ns; /* while draining: when the last interval was closed; 0 = not yet */
};

static bool main_uses(const struct config *config, enum destination destination)
{
	switch (destination) {
	case DESTINATION_VIEWER:
		return config->viewer.enabled;
	case DESTINATION_REMOTE:
		return *config->remote.url;
	case DESTINATION_FILE:
		return config->format != FORMAT_NONE;
	case DESTINATION_COUNT:
		break;
	}
	return false;
}

static void main_open(struct exporter *exporter)
{
	const struct config *config = exporter->child.config;
	int err = 0;

	/* A limit of file sizes is an error like a full disk. */
	signal(SIGXFSZ, SIG_IGN);
	for (int d = 0; d < DESTINATION_COUNT && !err; d++)
		if (main_uses(config, (enum destination)d))
			err = spool_open(&exporter->spools[d], FD_EXPORTER_SPOOL + d,
					 &exporter->child.ledger, (enum destination)d);
	if (err)
		fatal("cannot open a spool: %s", strerror(-err));
	err = intake_open(&exporter->intake, &exporter->child);
	if (err)
		fatal("cannot open the queues of the workers: %s", strerror(-err));
	err = batch_open(&exporter->batch, config);
	if (!err)
		err = transport_open(&exporter->transport, config, exporter->spools);
	if (err)
		fatal("cannot set up: %s", strerror(-err));
}

static void main_write_file(struct exporter *exporter)
{
	struct spool *spool = &exporter->spools[DESTINATION_FILE];
	const char *failed = NULL;
	int err;

	if (!spool->capacity)
		return;
	err = file_write(spool, &exporter->child.ledger, exporter->child.config, FD_EXPORTER_OUTPUT,
			 &failed);
	if (err)
		log_error("%s failed: %s", failed, strerror(-err));
}

/* The supervisor asked for the end: `more` says that there is still something in the queues. */
static void main_drain(struct exporter *exporter, bool more)
{
	uint64_t now = child_now_ns();

	if (more || exporter->child.drained)
		return;
	if (exporter->batch.opened_ns)
		intake_commit(&exporter->intake, &exporter->batch, exporter->spools);
	if (!exporter->flushed_ns)
		exporter->flushed_ns = now;
	if (!transport_idle(&exporter->transport) && now - exporter->flushed_ns < MAIN_SHIP_NS)
		return;
	/* Requests that are still under way become in doubt now, not by our end. */
	transport_close(&exporter->transport);
	main_write_file(exporter);
	child_drained(&exporter->child);
}

/* Everything is done: wait for the supervisor to end us. */
static void main_rest(void)
{
	struct pollfd p = {.fd = FD_SUPERVISOR, .events = POLLIN};

	poll(&p, 1, MAIN_STEP_MS);
}

static void main_turn(struct exporter *exporter)
{
	bool more = intake_read(&exporter->intake, &exporter->batch);

	if (batch_due(&exporter->batch, child_now_ns()) ||
	    (exporter->batch.opened_ns && intake_pressed(&exporter->intake)))
		intake_commit(&exporter->intake, &exporter->batch, exporter->spools);
	if (exporter->transport.multi)
		transport_step(&exporter->transport, more ? 0 : MAIN_STEP_MS);
	else
		main_rest();
	if (exporter->child.draining)
		main_drain(exporter, more);
}

int main(int argc, char **argv)
{
	static struct exporter exporter;

	child_start(&exporter.child, ROLE_EXPORTER, argc, argv);
	main_open(&exporter);
	child_ready(&exporter.child,
		    sandbox_enter(ROLE_EXPORTER, places_readable(exporter.child.config)));
	while (child_continue(&exporter.child))
		main_turn(&exporter);
	if (exporter.transport.multi)
		transport_close(&exporter.transport);
	intake_close(&exporter.intake);
	batch_close(&exporter.batch);
	for (int d = 0; d < DESTINATION_COUNT; d++)
		spool_close(&exporter.spools[d]);
	return 0;
}
