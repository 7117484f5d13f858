/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/cfirule.h"

#include "symbolizer/dwarfexpr.h"

/* Places of registers in the kernel's struct sigcontext of x86-64, counted from r8. */
enum { SIGCONTEXT_RBP = 80, SIGCONTEXT_RSP = 120, SIGCONTEXT_RIP = 128 };

#define CFIRULE_OFFSET_MAX (1 << 30) /* a larger frame is none */

static const struct table_rule cfirule_invalid = {.cfa = RULE_INVALID};
static const struct table_rule cfirule_stop = {.cfa = RULE_STOP};

/* DWARF's numbers of x86-64, in their order. */
static const uint8_t cfirule_registers[16] = {
    RULE_RAX, RULE_RDX, RULE_RCX, RULE_RBX, RULE_RSI, RULE_RDI, RULE_FP,  RULE_SP,
    RULE_R8,  RULE_R9,	RULE_R10, RULE_R11, RULE_R12, RULE_R13, RULE_R14, RULE_R15};

static bool cfirule_register(uint64_t dwarf, __u8 *reg)
{
	if (dwarf >= 16)
		return false;
	*reg = cfirule_registers[dwarf];
	return true;
}

static bool cfirule_base(uint64_t dwarf, int64_t offset, struct table_rule *rule)
{
	if (offset < -CFIRULE_OFFSET_MAX || offset > CFIRULE_OFFSET_MAX)
		return false;
	rule->cfa_offset = (__s32)offset;
	return cfirule_register(dwarf, &rule->cfa_register);
}

static bool cfirule_cfa(const struct cfi_rule *cfa, struct table_rule *rule)
{
	struct dwarfexpr e;

	rule->cfa = RULE_REGISTER;
	if (cfa->where == CFI_REGISTER)
		return cfirule_base(cfa->reg, cfa->value, rule);
	if (cfa->where != CFI_EXPRESSION)
		return false;
	e = dwarfexpr_read(cfa->expr, cfa->expr_bytes);
	if (e.form == DWARFEXPR_OTHER || (e.form != DWARFEXPR_SUM && (e.add < 0 || e.add > 255)))
		return false;
	if (e.form == DWARFEXPR_PLT) {
		rule->cfa = RULE_PLT;
		rule->cfa_register = RULE_SP;
		rule->cfa_offset = 8;
	} else if (!cfirule_base(e.reg, e.offset, rule)) {
		return false;
	}
	if (e.form == DWARFEXPR_DEREF)
		rule->cfa = RULE_DEREF;
	rule->add = (__u8)e.add;
	return true;
}

static bool cfirule_small(int64_t offset, __s16 *place)
{
	*place = (__s16)offset;
	return offset >= INT16_MIN && offset <= INT16_MAX;
}

/*
 * Where a register was saved, as an offset from the CFA or (*from_fp) from the frame pointer.
 * An address counted from the register that the CFA is counted from can be told from the CFA.
 */
static bool cfirule_saved(const struct cfi_rule *saved, const struct table_rule *rule,
			  bool *from_fp, __s16 *offset)
{
	struct dwarfexpr e;
	__u8 reg;

	*from_fp = false;
	if (saved->where == CFI_OFFSET)
		return cfirule_small(saved->value, offset);
	if (saved->where != CFI_EXPRESSION)
		return false;
	e = dwarfexpr_read(saved->expr, saved->expr_bytes);
	if (e.form != DWARFEXPR_SUM || e.offset < -CFIRULE_OFFSET_MAX ||
	    e.offset > CFIRULE_OFFSET_MAX)
		return false;
	if (e.reg == DWARFEXPR_CFA)
		return cfirule_small(e.offset, offset);
	if (!cfirule_register(e.reg, &reg))
		return false;
	if (rule->cfa == RULE_REGISTER && reg == rule->cfa_register)
		return cfirule_small(e.offset - rule->cfa_offset, offset);
	*from_fp = reg == RULE_FP;
	return *from_fp && cfirule_small(e.offset, offset);
}

static void cfirule_fp(const struct cfi_rule *saved, struct table_rule *rule)
{
	bool from_fp;

	if (saved->where == CFI_UNSPECIFIED || saved->where == CFI_SAME ||
	    (saved->where == CFI_REGISTER && saved->value == CFI_DWARF_FP)) {
		rule->fp = RULE_FP_SAME;
	} else if (cfirule_saved(saved, rule, &from_fp, &rule->fp_offset)) {
		rule->fp = from_fp ? RULE_FP_FP : RULE_FP_CFA;
	} else {
		rule->fp = RULE_FP_UNDEFINED;
		rule->fp_offset = 0;
	}
}

static bool cfirule_ra(const struct cfi_rule *saved, struct table_rule *rule)
{
	bool from_fp;

	if (saved->where == CFI_REGISTER) {
		rule->ra = RULE_RA_REGISTER;
		return saved->value >= 0 &&
		       cfirule_register((uint64_t)saved->value, &rule->ra_register);
	}
	rule->ra = RULE_RA_CFA;
	return cfirule_saved(saved, rule, &from_fp, &rule->ra_offset) && !from_fp;
}

static void cfirule_rbx(const struct cfi_rule *saved, struct table_rule *rule)
{
	bool from_fp;
	__s16 at;

	if (rule->ra != RULE_RA_CFA)
		return;
	if (saved->where == CFI_UNSPECIFIED || saved->where == CFI_SAME)
		rule->rbx = RULE_RBX_SAME;
	else if (cfirule_saved(saved, rule, &from_fp, &at) && !from_fp && at % 8 == 0 &&
		 at <= -8 * (RULE_RBX_SAME + 1) && at >= -8 * UINT8_MAX)
		rule->rbx = (__u8)(at / -8);
}

/* The caller's stack pointer is the CFA, unless the row says otherwise. */
static bool cfirule_sp_is_cfa(const struct cfi_rule *sp)
{
	return sp->where == CFI_UNSPECIFIED || (sp->where == CFI_VAL_OFFSET && sp->value == 0);
}

static bool cfirule_from_sp(const struct cfi_rule *saved, int64_t *offset)
{
	struct dwarfexpr e;

	if (saved->where != CFI_EXPRESSION)
		return false;
	e = dwarfexpr_read(saved->expr, saved->expr_bytes);
	*offset = e.offset;
	return e.form == DWARFEXPR_SUM && e.reg == CFI_DWARF_SP;
}

/* Three registers where a struct sigcontext has them, or it is none. */
static struct table_rule cfirule_signal(const struct cfi_row *row)
{
	struct table_rule rule = {.cfa = RULE_SIGNAL, .cfa_register = RULE_SP};
	int64_t fp, sp, ra;

	if (!cfirule_from_sp(&row->registers[CFI_FP], &fp) ||
	    !cfirule_from_sp(&row->registers[CFI_SP], &sp) ||
	    !cfirule_from_sp(&row->registers[CFI_RA], &ra) ||
	    fp - SIGCONTEXT_RBP != ra - SIGCONTEXT_RIP ||
	    sp - SIGCONTEXT_RSP != ra - SIGCONTEXT_RIP ||
	    !cfirule_base(CFI_DWARF_SP, ra - SIGCONTEXT_RIP, &rule))
		return cfirule_invalid;
	return rule;
}

struct table_rule cfirule_make(const struct cfi_row *row, bool signal, bool rbx)
{
	const struct cfi_rule *ra = &row->registers[CFI_RA];
	struct table_rule rule = {0};

	if (ra->where == CFI_UNDEFINED)
		return cfirule_stop;
	if (signal)
		return cfirule_signal(row);
	if (!cfirule_cfa(&row->cfa, &rule) || !cfirule_sp_is_cfa(&row->registers[CFI_SP]) ||
	    !cfirule_ra(ra, &rule))
		return cfirule_invalid;
	/* Where clone() starts a thread by hand, its notes count a return address below the stack.
	 */
	if (rule.cfa == RULE_REGISTER && rule.cfa_register == RULE_SP && rule.ra == RULE_RA_CFA &&
	    rule.cfa_offset + rule.ra_offset < 0)
		return cfirule_stop;
	cfirule_fp(&row->registers[CFI_FP], &rule);
	if (rbx)
		cfirule_rbx(&row->registers[CFI_RBX], &rule);
	return rule;
}
