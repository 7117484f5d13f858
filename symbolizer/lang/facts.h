/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the recognition of a runtime needs of its file: symbols of any kind, static data, relocations by
 * name, and what a few instructions of a small function say: where its data is, at which offset it reads
 * a field, how it comes to its thread's part. No emulation: the first forms that fit, within 64
 * instructions, or nothing.
 */
#ifndef SCONCE_SYMBOLIZER_LANG_FACTS_H
#define SCONCE_SYMBOLIZER_LANG_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/table.h"
#include "symbolizer/elffile.h"

struct facts_symbol {
	uint64_t vaddr, size; /* size may be 0. Of a thread-local one vaddr is its offset in the block */
	bool thread_local_;
};

/* By name in .dynsym, else in .symtab. 0; -ENOENT; or what reading gave. */
int facts_symbol(struct elffile *elf, const char *name, struct facts_symbol *symbol);

/* What the file says stands at an address, as far as it is in the file. */
bool facts_read(struct elffile *elf, uint64_t vaddr, void *to, size_t bytes);

/* Where the dynamic linker is to put what of a symbol of this name; type: R_X86_64_*. 0 or -ENOENT. */
int facts_relocation(struct elffile *elf, const char *name, uint32_t type, uint64_t *vaddr);

/*
 * The loop: the function that holds vaddr (by its FDE), and what the compiler moved out of it: the other
 * FDEs into whose middle it jumps. Sets loops and bias. 0 or -ENOENT.
 */
int facts_loop(struct elffile *elf, uint64_t vaddr, struct table_runtime *runtime);

/*
 * How the function at vaddr comes to a variable of its thread: sets thread and thread_at. All forms of
 * enum table_thread but keys. skip: so many accesses before. 0 or -ENOENT.
 */
int facts_thread(struct elffile *elf, uint64_t vaddr, uint32_t skip, struct table_runtime *runtime);

/* The address that the nth rip-relative operand of the function at vaddr points to. 0 or -ENOENT. */
int facts_operand(struct elffile *elf, uint64_t vaddr, uint32_t nth, uint64_t *operand);

/* Which C library the file is linked to, by its needed libraries or its interpreter. */
enum table_libc facts_libc(struct elffile *elf);

#endif
