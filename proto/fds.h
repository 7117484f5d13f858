/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where each process finds its file descriptors. The supervisor makes them all, keeps them, and
 * puts them at these numbers between fork and exec; everything else is closed. So a restarted
 * process finds the same objects in the same places, and no process opens anything by name that
 * another one made.
 *
 * 0 and 1 are /dev/null, 2 is the log.
 */
#ifndef SCONCE_PROTO_FDS_H
#define SCONCE_PROTO_FDS_H

#include "proto/role.h"

enum fd_common {
	FD_SUPERVISOR = 3, /* channel to the supervisor; in the supervisor itself: to the cli, or -1 */
	FD_CONFIG = 4,	   /* struct config, sealed */
	FD_LEDGER = 5,	   /* own ledger, read-write */
};

/* Made by the cli, which reads addresses and paths; each is absent where there is none. */
enum fd_supervisor {
	FD_SUPERVISOR_OUTPUT = 5,  /* the file of record */
	FD_SUPERVISOR_CONTROL = 6, /* listening sockets: control, */
	FD_SUPERVISOR_HTTP = 7,	   /* the viewer's page, */
	FD_SUPERVISOR_INTAKE = 8,  /* the viewer's intake */
	FD_SUPERVISOR_BINARIES = 9, /* the directory with the binaries of the roles; always there */
};

/* When it is to make a chunk of table memory; /dev/null when it is to load. */
enum fd_loader {
	FD_LOADER_CHUNKS = 6, /* BPF map: array of chunks */
};

enum fd_sampler {
	FD_SAMPLER_BROKER = 6,	/* channel */
	FD_SAMPLER_EVENTS = 7,	/* BPF map: ring buffer */
	FD_SAMPLER_PROCS = 8,	/* BPF map: hash pid -> struct bpf_process */
	FD_SAMPLER_RANGES = 9,	/* BPF map: mmapable array of struct record_range */
	FD_SAMPLER_CPUS = 10,	/* BPF map: mmapable array of struct bpf_cpu */
	FD_SAMPLER_FILES = 11,	/* BPF map: mmapable array of struct bpf_file */
	FD_SAMPLER_WORKERS = 16, /* + k * FD_SAMPLER_PER_WORKER + enum fd_sampler_worker */
	FD_SAMPLER_CHUNKS = 64,	/* + i: BPF map: chunk of table memory; up to TABLES_CHUNKS_MAX */
	FD_SIDEBAND = 128,	/* + i: perf side-band ring */
};

enum fd_sampler_worker {
	FD_SAMPLER_CHANNEL,
	FD_SAMPLER_SAMPLES_OWN,	  /* sample queue, producer segment, read-write */
	FD_SAMPLER_SAMPLES_OTHER, /* sample queue, consumer segment, read-only */
	FD_SAMPLER_PROCESS_OWN,
	FD_SAMPLER_PROCESS_OTHER,
	FD_SAMPLER_PER_WORKER
};

enum fd_broker {
	FD_BROKER_SAMPLER = 6,
	FD_BROKER_WORKERS = 16, /* + k: channel to worker k */
	FD_BROKER_LEDGERS = 32, /* + slot: everybody's ledger, read-only, for what is blamed there */
};

enum fd_symbolizer {
	FD_SYMBOLIZER_SAMPLER = 6,	 /* channel */
	FD_SYMBOLIZER_BROKER = 7,	 /* channel */
	FD_SYMBOLIZER_SAMPLES_OTHER = 8, /* sample queue, producer segment, read-only */
	FD_SYMBOLIZER_SAMPLES_OWN = 9,	 /* sample queue, consumer segment, read-write */
	FD_SYMBOLIZER_PROCESS_OTHER = 10,
	FD_SYMBOLIZER_PROCESS_OWN = 11,
	FD_SYMBOLIZER_OUTPUT_OWN = 12, /* output queue, producer segment, read-write */
	FD_SYMBOLIZER_OUTPUT_OTHER = 13,
	FD_SYMBOLIZER_LOG = 14,	     /* + 0, + 1: definition logs, read-write */
	FD_SYMBOLIZER_KALLSYMS = 16, /* /proc/kallsyms, opened by the supervisor; /dev/null if refused */
	FD_SYMBOLIZER_MODULES = 17,  /* /proc/modules likewise, to notice changes */
	FD_SYMBOLIZER_PEERS = 20,    /* + k: channel to worker k; /dev/null for itself */
};

enum fd_exporter {
	FD_EXPORTER_SPOOL = 6,	 /* + enum destination: spool segments, read-write */
	FD_EXPORTER_OUTPUT = 9,	 /* file of record; /dev/null for run */
	FD_EXPORTER_WORKERS = 16, /* + k * FD_EXPORTER_PER_WORKER + enum fd_exporter_worker */
};

enum fd_exporter_worker {
	FD_EXPORTER_OUTPUT_OTHER, /* output queue, producer segment, read-only */
	FD_EXPORTER_OUTPUT_OWN,	  /* output queue, consumer segment, read-write */
	FD_EXPORTER_LOG_A,	  /* definition logs, read-only */
	FD_EXPORTER_LOG_B,
	FD_EXPORTER_PER_WORKER
};

enum fd_viewer {
	FD_VIEWER_HTTP = 6,    /* listening TCP socket */
	FD_VIEWER_INTAKE = 7,  /* listening unix socket */
	FD_VIEWER_LEDGERS = 16, /* + slot: everybody's ledger, read-only; /dev/null where unused */
};

#endif
