/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernel functions, modules and BPF programs included, from /proc/kallsyms. Read once,
 * when the first kernel frame asks, and again when the list of modules has changed, or when what
 * was asked for may be in a BPF program that came since.
 *
 * No absolute kernel address leaves this module: an offset counts from the start of the kernel's
 * text, or of the module's. Where the kernel hides its addresses (kptr_restrict) nothing is found.
 */
#ifndef SCONCE_SYMBOLIZER_KALLSYMS_H
#define SCONCE_SYMBOLIZER_KALLSYMS_H

#include <stdbool.h>
#include <stdint.h>

struct kallsyms_entry {
	uint64_t addr;
	uint32_t name;	 /* offset in names */
	uint16_t module; /* index in modules, 0 = the kernel itself */
	uint8_t rank, unused;
};

struct kallsyms_module {
	uint32_t name;
	bool passing;  /* its symbols come and go by themselves */
	uint64_t base; /* its lowest function */
};

struct kallsyms {
	int fd, modules_fd;
	bool loaded;
	bool missed;	   /* nothing was known of an address, or only what may be old */
	bool passing_used; /* somebody keeps what a program was called */
	uint64_t modules_hash, checked_ns;
	uint64_t passing_hash, loaded_ns, reload_ns; /* loaded_ns 0 = just now */
	struct kallsyms_entry *entries;
	struct kallsyms_module *modules;
	char *names;
	uint32_t entries_n, entries_room, modules_n, names_bytes, names_room;
};

struct kallsyms_found {
	const char *name;   /* valid until kallsyms_refresh() */
	const char *module; /* "" = the kernel itself */
	uint64_t offset;    /* from the start of the text of either */
};

/* The fds stay the caller's. */
void kallsyms_open(struct kallsyms *kallsyms, int fd, int modules_fd);
void kallsyms_close(struct kallsyms *kallsyms);

bool kallsyms_find(struct kallsyms *kallsyms, uint64_t addr, struct kallsyms_found *found);

/* Look, at most every ten seconds, whether there are others now. True: forget what was found. */
bool kallsyms_refresh(struct kallsyms *kallsyms, uint64_t now_ns);

#endif
