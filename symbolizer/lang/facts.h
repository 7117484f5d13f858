/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the recognition of a runtime needs of its file: symbols of any kind, static data,
 * relocations, and what a few instructions of a small function say: where its data is, at which
 * offset it reads a field, how it comes to its thread's part. No emulation: the first forms that
 * fit, within so many instructions, or nothing.
 *
 * All of it was written by somebody else. Work is linear in the bytes of the part looked at, which
 * are counted among those of the file (elffile.h); only facts_any_symbol() and facts_loop() look at
 * more than a few kilobytes of a file that is not a runtime's.
 */
#ifndef SCONCE_SYMBOLIZER_LANG_FACTS_H
#define SCONCE_SYMBOLIZER_LANG_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shm/table.h"
#include "symbolizer/cfi.h"
#include "symbolizer/elffile.h"

#define FACTS_INSNS_MAX	 64 /* of a function, for all but the loop */
#define FACTS_RELOCS_MAX (1u << 19)
#define FACTS_LOOP_BYTES (1u << 20) /* the longest function that is a loop */
#define FACTS_JUMPS_MAX	 256	    /* out of it */

/* An open file. Nothing is allocated: it is valid as long as that, and has no end of its own. */
struct facts {
	struct elffile *elf;
	/* Of the dynamic section, 0 = not there: addresses and bytes. */
	uint64_t symbols, strings, strings_bytes, gnu_hash, hash;
	struct {
		uint64_t vaddr, bytes;
		const uint8_t *at; /* NULL: not read yet */
	} relocs[2];		   /* .rela.dyn and .rela.plt */
	uint64_t dynamic, dynamic_bytes;
	uint64_t constant, constant_end; /* what is only read once the dynamic linker is through */
	struct cfi_section frames;	 /* .bytes NULL: not looked for yet */
};

struct facts_symbol {
	uint64_t vaddr,
	    size; /* size may be 0. Of a thread-local one vaddr is its offset in the block */
	bool thread_local_;
};

/* 0; -ENOTSUP: another machine's. A file without a dynamic section has no dynamic symbols. */
int facts_open(struct facts *facts, struct elffile *elf);

/* --- Symbols and data. --- */

/* A defined symbol of .dynsym, by the file's hash table: a few small reads. 0 or -ENOENT. */
int facts_symbol(struct facts *facts, const char *name, struct facts_symbol *symbol);
/* The same, or else of .symtab, by a pass over it: ask for few, and not in every file. */
int facts_any_symbol(struct facts *facts, const char *name, struct facts_symbol *symbol);

/* What the file says stands at an address, as far as it is in the file; false: not all of it is. */
bool facts_read(struct facts *facts, uint64_t vaddr, void *to, size_t bytes);
/* Text that ends in NUL, within size. */
bool facts_text(struct facts *facts, uint64_t vaddr, char *to, size_t size);
/* The pointer that will stand at an address: by its relocation, or what is there. 0 or -ENOENT. */
int facts_pointer(struct facts *facts, uint64_t vaddr, uint64_t *pointer);

/* Where the dynamic linker is to put what of a symbol of this name; type: R_X86_64_*. 0 or -ENOENT.
 */
int facts_relocation(struct facts *facts, const char *name, uint32_t type, uint64_t *vaddr);
/* The type of the relocation of what stands at an address; R_X86_64_NONE: there is none. */
uint32_t facts_relocation_type(struct facts *facts, uint64_t vaddr);

/* Which C library the file is linked to, by its needed libraries or its interpreter. */
enum table_libc facts_libc(struct facts *facts);
/* Does it need a library whose name begins so? */
bool facts_needs(struct facts *facts, const char *prefix);

/* --- The loop. --- */

/* The function that holds an address, by its FDE. 0 or -ENOENT. */
int facts_function(struct facts *facts, uint64_t vaddr, uint64_t *start, uint64_t *end);
/*
 * The function that holds vaddr, and what the compiler moved out of it: other FDEs into whose
 * middle it jumps, or that begin with a frame made already. Appends to runtime's loops and sets its
 * bias. 0, -ENOENT or -ENOSPC (TABLE_LOOPS of them are there).
 */
int facts_loop(struct facts *facts, uint64_t vaddr, struct table_runtime *runtime);

/* --- Code. --- */

enum facts_kind {
	FACTS_UNKNOWN,
	FACTS_CONSTANT,	  /* number: an address of the file, or just a number */
	FACTS_ARGUMENT,	  /* the register `of` as the function was entered with it, + number */
	FACTS_LOADED,	  /* what step `of` loaded, + number */
	FACTS_THREAD,	  /* thread pointer + number */
	FACTS_THREAD_GOT, /* thread pointer + what stands at address `of` + number */
	FACTS_THREAD_DTV, /* the variable whose {module, offset} stand at address `of`, + number */
};

struct facts_value {
	enum facts_kind kind;
	uint64_t of;
	int64_t number;
};

enum facts_form {
	FACTS_LOAD,    /* `bytes` at `at` are read (also: compared, added) */
	FACTS_STORE,   /* and may be written */
	FACTS_ADDRESS, /* only the address is taken */
	FACTS_CALL, /* at: where to, CONSTANT when known; rdi: what it is given. Jumps away too */
};

struct facts_step {
	enum facts_form form;
	struct facts_value at;
	struct facts_value rdi; /* FACTS_CALL */
	uint8_t bytes;		/* 0 of addresses and calls */
	uint8_t into;	  /* the register that was loaded (enum x86_register), X86_NO_REGISTER */
	int64_t compared; /* with which number, of a FACTS_LOAD of cmp or test; else 0 */
};

/*
 * What the function at vaddr does with memory, in the order of its bytes, as far as it is known
 * what its registers hold: `mov 0x10(%rdi),%rax; mov 8(%rax),%rcx` is a load from ARGUMENT rdi + 16
 * and one from LOADED 0 + 8. Slots of the GOT that hold addresses are read through, so that the
 * symbol's address is the constant. Accesses to the stack and of unknown addresses are left out.
 * How many steps.
 */
uint32_t facts_trace(struct facts *facts, uint64_t vaddr, struct facts_step *steps, uint32_t max);

/*
 * How the function at vaddr comes to a variable of its thread: sets thread and thread_at. All forms
 * of enum table_thread but keys. skip: so many other variables before. 0 or -ENOENT.
 */
int facts_thread(struct facts *facts, uint64_t vaddr, uint32_t skip, struct table_runtime *runtime);

/*
 * The nth address of the file's data that the function at vaddr uses (reads, writes, takes), the
 * same ones counted again. 0 or -ENOENT.
 */
int facts_operand(struct facts *facts, uint64_t vaddr, uint32_t nth, uint64_t *operand);

/*
 * The displacement of the nth access through a pointer (ARGUMENT or LOADED) in the function at
 * vaddr. 0 or -ENOENT.
 */
int facts_field(struct facts *facts, uint64_t vaddr, uint32_t nth, int64_t *displacement);

/* The key of pthread_getspecific() that the function at vaddr asks with: the address of where it is
 * kept, or of what is given to a function instead (*taken). 0 or -ENOENT. */
int facts_key(struct facts *facts, uint64_t vaddr, uint64_t *at, bool *taken);

#endif
