/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/x86.h"

#include <Zydis/Zydis.h>
#include <string.h>

static uint8_t x86_register(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
		return X86_NO_REGISTER;
	return (uint8_t)(whole - ZYDIS_REGISTER_RAX);
}

static void x86_memory(const ZydisDecodedOperand *from, uint64_t next, struct x86_operand *to)
{
	to->kind = X86_MEMORY;
	to->segment =
	    from->mem.segment == ZYDIS_REGISTER_FS || from->mem.segment == ZYDIS_REGISTER_GS;
	to->base = x86_register(from->mem.base);
	to->index = x86_register(from->mem.index);
	to->scale = from->mem.scale;
	to->number = from->mem.disp.value;
	if (from->mem.base == ZYDIS_REGISTER_RIP)
		to->number = (int64_t)(next + (uint64_t)to->number);
}

static void x86_operand(const ZydisDecodedOperand *from, uint64_t next, struct x86_operand *to)
{
	to->bytes = from->size / 8 < 256 ? (uint8_t)(from->size / 8) : 0;
	if (from->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		to->kind = X86_REGISTER;
		to->reg = x86_register(from->reg.value);
	} else if (from->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		x86_memory(from, next, to);
	} else if (from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		to->kind = X86_IMMEDIATE;
		to->number = from->imm.value.s;
	}
}

static uint8_t x86_kind(const ZydisDecodedInstruction *insn)
{
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
		return X86_NOP;
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFQ:
		return X86_PUSH;
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ:
		return X86_POP;
	case ZYDIS_MNEMONIC_RET:
		return X86_RETURN;
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_XABORT:
		return X86_HALT;
	case ZYDIS_MNEMONIC_MOV:
		return X86_MOVE;
	case ZYDIS_MNEMONIC_MOVSXD:
		return X86_MOVE_SIGNED;
	case ZYDIS_MNEMONIC_LEA:
		return X86_LEA;
	case ZYDIS_MNEMONIC_ADD:
		return X86_ADD;
	case ZYDIS_MNEMONIC_SUB:
		return X86_SUB;
	case ZYDIS_MNEMONIC_CMP:
		return X86_COMPARE;
	case ZYDIS_MNEMONIC_LEAVE:
		return X86_LEAVE;
	default:
		break;
	}
	if (insn->meta.category == ZYDIS_CATEGORY_CALL)
		return X86_CALL;
	if (insn->meta.category == ZYDIS_CATEGORY_UNCOND_BR)
		return X86_JUMP;
	/* loop, jrcxz and xbegin among them. */
	if (insn->meta.category == ZYDIS_CATEGORY_COND_BR)
		return X86_BRANCH;
	return X86_OTHER;
}

static uint8_t x86_condition(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_JNBE:
		return X86_ABOVE;
	case ZYDIS_MNEMONIC_JNB:
		return X86_ABOVE_EQUAL;
	case ZYDIS_MNEMONIC_JB:
		return X86_BELOW;
	case ZYDIS_MNEMONIC_JBE:
		return X86_BELOW_EQUAL;
	default:
		return X86_CONDITION_OTHER;
	}
}

static void x86_effects(const ZydisDecodedInstruction *from, const ZydisDecodedOperand *operands,
			uint64_t next, struct x86_insn *insn)
{
	for (int i = 0; i < from->operand_count; i++) {
		const ZydisDecodedOperand *o = &operands[i];
		bool writes = o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
		uint8_t reg;

		if (o->type == ZYDIS_OPERAND_TYPE_REGISTER && writes) {
			reg = x86_register(o->reg.value);
			if (reg != X86_NO_REGISTER)
				insn->writes |= (uint16_t)(1u << reg);
		}
		if (i >= from->operand_count_visible)
			continue;
		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY && writes)
			insn->stores = true;
		if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && o->imm.is_relative) {
			insn->has_target = true;
			insn->target = next + (uint64_t)o->imm.value.s;
		}
		if (i < 2)
			x86_operand(o, next, i == 0 ? &insn->a : &insn->b);
	}
}

bool x86_decode(const uint8_t *code, size_t n, uint64_t vaddr, struct x86_insn *insn)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction from;
	static ZydisDecoder decoder;
	static bool ready;

	if (!ready)
		ready = ZYAN_SUCCESS(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64));
	memset(insn, 0, sizeof(*insn));
	if (!ready || !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, n, &from, operands)))
		return false;
	insn->length = from.length;
	insn->kind = x86_kind(&from);
	insn->condition = x86_condition(from.mnemonic);
	insn->flags = from.cpu_flags && (from.cpu_flags->modified | from.cpu_flags->set_0 |
					 from.cpu_flags->set_1 | from.cpu_flags->undefined);
	x86_effects(&from, operands, vaddr + from.length, insn);
	if (insn->kind == X86_PUSH || insn->kind == X86_POP)
		insn->bytes = from.operand_width / 8;
	if (insn->kind == X86_RETURN && insn->a.kind == X86_IMMEDIATE)
		insn->bytes = (uint16_t)insn->a.number;
	/* Far and 16-bit transfers exist on paper. */
	if ((insn->kind == X86_CALL || insn->kind == X86_JUMP || insn->kind == X86_RETURN) &&
	    (from.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || from.operand_width == 16))
		return false;
	return insn->kind != X86_BRANCH || insn->has_target;
}
