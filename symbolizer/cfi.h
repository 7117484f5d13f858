/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information as it stands in `.eh_frame` and `.debug_frame`: its entries (CIE, FDE),
 * and the programs in them, run to the rows that they describe.
 *
 * Only what a walk needs is kept of a row: the CFA and the rules of the frame pointer, the stack
 * pointer, the return address and rbx. Nothing is allocated; the work is linear in the bytes,
 * because the initial instructions of a CIE, which run anew for each of its FDEs, are few
 * (CFI_INITIAL_MAX). Expressions are not read here (dwarfexpr.h), they are bytes inside the
 * section.
 */
#ifndef SCONCE_SYMBOLIZER_CFI_H
#define SCONCE_SYMBOLIZER_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CFI_INITIAL_MAX 256 /* bytes of a CIE's instructions; compilers write under 30 */
#define CFI_STATES_MAX	8   /* depth of remember_state */

/* DWARF's numbers of x86-64. */
enum cfi_dwarf_register {
	CFI_DWARF_RBX = 3,
	CFI_DWARF_FP = 6,
	CFI_DWARF_SP = 7,
	CFI_DWARF_RA = 16
};

/* The registers that we follow. */
enum cfi_register { CFI_FP, CFI_SP, CFI_RA, CFI_RBX, CFI_REGISTERS };

enum cfi_where {
	CFI_UNSPECIFIED = 0,
	CFI_SAME,
	CFI_UNDEFINED,
	CFI_OFFSET,	    /* at CFA + value */
	CFI_VAL_OFFSET,	    /* is CFA + value */
	CFI_REGISTER,	    /* in register `value`; as a CFA: reg + value */
	CFI_EXPRESSION,	    /* at what the expression gives; as a CFA: what it gives */
	CFI_VAL_EXPRESSION, /* is what the expression gives */
};

struct cfi_rule {
	enum cfi_where where;
	uint32_t reg; /* of a CFA */
	int64_t value;
	const uint8_t *expr;
	size_t expr_bytes;
};

/* What holds from one pc to the next row. A CFA is unspecified, a register or an expression. */
struct cfi_row {
	struct cfi_rule cfa;
	struct cfi_rule registers[CFI_REGISTERS];
};

struct cfi_section {
	const uint8_t *bytes;
	size_t size;
	uint64_t vaddr; /* of the section; 0 for .debug_frame */
	bool debug;	/* .debug_frame: other identifiers, no pointer encodings */
};

struct cfi_cie {
	size_t at; /* in the section */
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding; /* of addresses */
	bool augmented, signal;
	const uint8_t *program;
	size_t program_bytes;
};

struct cfi_fde {
	struct cfi_cie cie;  /* kept from one cfi_read() to the next */
	uint64_t start, end; /* virtual addresses */
	const uint8_t *program;
	size_t program_bytes;
};

/*
 * Read the entry at *at and move *at behind it. 1: an FDE. 0: something else (CIE, terminator, an
 * entry that is not understood). -EINVAL: the rest of the section makes no sense, or it has ended.
 * *fde is zeroed before the first call for a section.
 */
int cfi_read(const struct cfi_section *section, size_t *at, struct cfi_fde *fde);

typedef void cfi_row_fn(void *arg, uint64_t vaddr, const struct cfi_row *row);
/*
 * Run an FDE's program: fn is called with ascending addresses inside the FDE. A row of NULL holds
 * up to the end: the program makes no sense from there on.
 */
void cfi_run(const struct cfi_section *section, const struct cfi_fde *fde, cfi_row_fn *fn,
	     void *arg);

#endif
