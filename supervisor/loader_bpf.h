/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF object in the kernel: sized from the configuration, loaded, its tracepoints attached.
 */
#ifndef SCONCE_SUPERVISOR_LOADER_BPF_H
#define SCONCE_SUPERVISOR_LOADER_BPF_H

#include <stdint.h>

#include "proto/config.h"
#include "proto/messages.h"

#define LOADER_LINKS_MAX 2
#define LOADER_TEXT_BYTES 240

struct sconce_bpf;

struct loader_bpf {
	struct sconce_bpf *object;
	/* Borrowed from the object, for whoever does not want to know libbpf; 0 = there is none. */
	int map[BPF_OBJECT_COUNT];
	int links[LOADER_LINKS_MAX];
	int program; /* for the sampling events */
	uint32_t program_insns;	      /* as the verifier counted; 0 where it does not say */
	char text[LOADER_TEXT_BYTES]; /* after a failure: what to do about it */
};

/*
 * Load for this configuration, and fill the targets. 0, or -errno with text set; loader_bpf_close()
 * in both cases.
 */
int loader_bpf_open(struct loader_bpf *bpf, const struct config *config);
void loader_bpf_close(struct loader_bpf *bpf);

/* One more chunk of table memory, number `index` of the map of chunks. Its fd, or -errno. */
int loader_bpf_chunk(int chunks, uint32_t index);

#endif
