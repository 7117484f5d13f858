/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that runs scripts, as far as a walker can see: a function that stands for the
 * interpreter loop, entered twice with C between, and frames of scripts in memory, as CPython 3.12
 * keeps them (the form with the fewest rules). They are as whoever starts it has made them.
 */
#ifndef SCONCE_TESTS_BPF_SCRIPTS_H
#define SCONCE_TESTS_BPF_SCRIPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/lang/python.h"
#include "shm/record.h"
#include "shm/table.h"

#define SCRIPTS_MAX 1000

struct scripts_code {
	uint64_t name, file, lines;
	uint32_t first, unused;
	char room[PYTHON_CODE_BYTES];
};

struct scripts_frame {
	struct scripts_code *code;
	struct scripts_frame *back;
	uint64_t at; /* in the bytecode */
	uint8_t owner;
	char room[PYTHON_FRAME_BYTES];
};

struct scripts_state {
	uint64_t thread;
	struct scripts_frame *frame;
	char room[PYTHON_STATE_BYTES];
};

extern struct scripts_state scripts_state;
extern struct scripts_frame scripts_frame[SCRIPTS_MAX];
extern struct scripts_code scripts_code[SCRIPTS_MAX];
/* What the thread keeps for the runtime. */
extern __thread struct scripts_state *scripts_thread;

/* Functions, leaf first, by number of their code; 0 = here C called the loop. -1 ends. */
void scripts_make(const int *functions);
/* Where in its bytecode the function with that number is, and its cookie. */
uint32_t scripts_where(int function);
uint64_t scripts_cookie(int function);

/* The runtime in the file that `own` has mapped, which is this program. Found by the thread
 * pointer. */
void scripts_runtime(struct table_runtime *runtime, const struct record_range *own);
/* As the file has it. */
uint64_t scripts_vaddr(const struct table_runtime *runtime, const struct record_range *own,
		       const void *at);

/* Spin in C that was called by the loop that was called by C that was called by the loop. */
void scripts_work(void);
/* The same without a thread pointer. */
void scripts_work_lost(void);
/* Spin in code that lies in no file. */
void scripts_work_made(void);
/* Does this address lie in the loop, or in C that has to do with it? */
bool scripts_in_loop(uintptr_t pc);
bool scripts_in_c(uintptr_t pc);

#endif
