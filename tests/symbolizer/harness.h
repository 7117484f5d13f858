/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker with everything around it made by hand: the test is supervisor, sampler, broker and
 * exporter. The worker is the real program, started at the real fds, and may be killed and started
 * again on the same ones.
 */
#ifndef SCONCE_TESTS_SYMBOLIZER_HARNESS_H
#define SCONCE_TESTS_SYMBOLIZER_HARNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/channel.h"
#include "proto/config.h"
#include "shm/ledger.h"
#include "shm/queue.h"
#include "shm/symbol.h"

struct harness {
	struct segment config, ledger, logs[2];
	struct queue_segments samples_fds, process_fds, output_fds;
	int supervisor_fds[2], sampler_fds[2], broker_fds[2]; /* [0] ours, [1] the worker's */
	int kallsyms, modules;
	struct queue samples, process_queue; /* producer */
	struct queue output;		     /* consumer */
	struct channel supervisor, sampler, broker;
	const struct ledger *books;
	struct ledger *books_rw;
	const struct symbol_log *log[2];
	pid_t pid;
	void (*confine)(void); /* the worker calls it before it starts; NULL: nothing */
};

/* kallsyms: the text that the worker gets. */
void harness_open(struct harness *h, const struct config *config, const char *kallsyms);
void harness_close(struct harness *h);

/* Start the worker and wait for its READY. */
void harness_start(struct harness *h);
void harness_kill(struct harness *h);

void harness_push_process(struct harness *h, uint32_t pid, uint64_t start_ns, uint32_t flags);
void harness_push_range(struct harness *h, uint32_t pid, uint64_t start, uint64_t end,
			uint64_t offset, uint32_t file_id, uint32_t flags);
void harness_push_file(struct harness *h, uint32_t file_id, const char *path);
void harness_send_info(struct harness *h, uint32_t pid, uint64_t start_ns, const char *executable,
		       const char *cgroup);
/* path NULL: the broker could not open it. */
void harness_send_file(struct harness *h, uint32_t file_id, const char *path);
/* Push one sample; frames may be NULL, regs too. */
int harness_push_sample(struct harness *h, struct record_sample head, const struct frame *frames,
			const struct record_regs *regs, const void *stack);
/* The next sample that the worker put out, within timeout_ms. */
bool harness_next(struct harness *h, struct symbol_sample *sample, int timeout_ms);
/* Give back what was taken. */
void harness_release(struct harness *h);

/* A definition of the sample's epoch; NULL when there is none. */
const void *harness_definition(const struct harness *h, uint32_t epoch, enum symbol_kind kind,
			       uint32_t id);
const char *harness_string(const struct harness *h, uint32_t epoch, uint32_t id);
/* Function names of a sample's stack, "leaf;caller;...". */
void harness_stack(const struct harness *h, const struct symbol_sample *sample, char *text,
		   size_t size);

uint64_t harness_counter(const struct harness *h, enum counter counter);
/* Wait until a counter has reached a value; false after timeout_ms. */
bool harness_wait_counter(const struct harness *h, enum counter counter, uint64_t value,
			  int timeout_ms);

#endif
