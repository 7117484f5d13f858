/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of running processes: what BPF would see of one (registers, stack, mappings), taken with
 * ptrace, beside what libdw makes of the same process at the same moment.
 */
#ifndef SCONCE_TESTS_SYMBOLIZER_IMAGE_H
#define SCONCE_TESTS_SYMBOLIZER_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <elfutils/libdwfl.h>

#include "shm/record.h"
#include "symbolizer/files.h"

#define IMAGE_STACK_BYTES (1u << 20)
#define IMAGE_RANGES_MAX  256u
#define IMAGE_FRAMES_MAX  2048u

struct image {
	pid_t pid;
	Dwfl *dwfl;
	struct record_regs regs;
	struct record_range ranges[IMAGE_RANGES_MAX];
	char paths[IMAGE_RANGES_MAX][256]; /* of the file with id i + 1 */
	uint32_t ranges_n, files_n;
	char *stack; /* IMAGE_STACK_BYTES */
	size_t stack_bytes;
	uint64_t pcs[IMAGE_FRAMES_MAX]; /* by libdw, innermost first */
	uint32_t pcs_n;
	bool pcs_whole; /* down to the first function of the thread */
};

/* Start a program with endless zeros to read. Its files go to `files` as they are met. */
void image_start(struct image *image, char *const argv[]);
/* Stop it where it is, take everything, let it go on. False when it has ended. */
bool image_take(struct image *image, struct files *files);
void image_end(struct image *image);

/* The address that a frame of ours stands for; 0 when it lies in no range. */
uint64_t image_pc(const struct image *image, const struct frame *frame);

#endif
