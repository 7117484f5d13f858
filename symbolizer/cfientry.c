/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of `.eh_frame` and `.debug_frame`. An entry that is not understood is stepped over;
 * its length is all that must be true.
 */
#include "symbolizer/cfientry.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#define CFIENTRY_AUGMENTATION_MAX 8
#define CFIENTRY_APPLICATION	  0x70 /* bits of an encoding: relative to what */

static bool cfientry_value(uint8_t encoding, struct cursor *c, uint64_t *value)
{
	unsigned size = encoding & 7;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
		*value = cursor_number(c, 8);
		break;
	case DW_EH_PE_udata2:
	case DW_EH_PE_udata4:
	case DW_EH_PE_udata8:
		*value = cursor_number(c, 1u << (size - 1));
		break;
	case DW_EH_PE_sdata2:
	case DW_EH_PE_sdata4:
	case DW_EH_PE_sdata8:
		*value = (uint64_t)cursor_signed(c, 1u << (size - 1));
		break;
	case DW_EH_PE_uleb128:
		*value = cursor_uleb(c);
		break;
	case DW_EH_PE_sleb128:
		*value = (uint64_t)cursor_sleb(c);
		break;
	default:
		return false;
	}
	return !c->bad;
}

bool cfientry_address(const struct cfi_section *section, uint8_t encoding, struct cursor *c,
		      uint64_t *address)
{
	uint64_t place = section->vaddr + (uint64_t)(c->at - section->bytes);

	if ((encoding & DW_EH_PE_indirect) || !cfientry_value(encoding, c, address))
		return false;
	switch (encoding & CFIENTRY_APPLICATION) {
	case 0:
		return true;
	case DW_EH_PE_pcrel:
		*address += place;
		return true;
	}
	return false;
}

/* Where the personality is does not matter, only where it ends. */
static bool cfientry_skip_personality(struct cursor *c)
{
	uint8_t encoding = (uint8_t)cursor_number(c, 1);
	uint64_t ignored;

	return (encoding & CFIENTRY_APPLICATION) != DW_EH_PE_aligned &&
	       cfientry_value(encoding, c, &ignored);
}

/* What the letters of the augmentation say. The 'z' that leads them gives the length of the data.
 */
static bool cfientry_augmentation(struct cfi_cie *cie, const char *letters, struct cursor *c)
{
	struct cursor data;
	const uint8_t *bytes;
	size_t n;

	if (*letters == 0)
		return true;
	if (*letters++ != 'z')
		return false;
	n = cursor_uleb(c);
	bytes = cursor_take(c, n);
	if (!bytes)
		return false;
	cie->augmented = true;
	data = cursor_over(bytes, n);
	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = (uint8_t)cursor_number(&data, 1);
			break;
		case 'L':
			cursor_number(&data, 1);
			break;
		case 'P':
			if (!cfientry_skip_personality(&data))
				return false;
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* arm64: return addresses are signed with the B key */
			break;
		default:
			return false;
		}
	}
	return !data.bad;
}

static bool cfientry_cie(struct cursor c, struct cfi_cie *cie)
{
	uint8_t version = (uint8_t)cursor_number(&c, 1);
	const char *letters = (const char *)c.at;
	const uint8_t *end =
	    memchr(c.at, 0,
		   cursor_left(&c) < CFIENTRY_AUGMENTATION_MAX ? cursor_left(&c)
							       : CFIENTRY_AUGMENTATION_MAX);
	uint64_t ra;

	if (!end || (version != 1 && version != 3 && version != 4))
		return false;
	c.at = end + 1;
	/* Version 4: the sizes of an address and of a segment selector. */
	if (version == 4 && (cursor_number(&c, 1) != 8 || cursor_number(&c, 1) != 0))
		return false;
	cie->code_align = cursor_uleb(&c);
	cie->data_align = cursor_sleb(&c);
	ra = version == 1 ? cursor_number(&c, 1) : cursor_uleb(&c);
	cie->encoding = DW_EH_PE_absptr;
	if (ra != CFI_DWARF_RA || !cfientry_augmentation(cie, letters, &c))
		return false;
	cie->program = c.at;
	cie->program_bytes = cursor_left(&c);
	return !c.bad && cie->program_bytes <= CFI_INITIAL_MAX;
}

struct cfientry {
	struct cursor body; /* behind the identifier */
	uint64_t id, id_at; /* identifier, and where it stands in the section */
	bool cie;
};

/* 1: an entry; 0: a terminator. What follows a terminator is still looked at: linkers put input
 * sections behind one another, each with its own. */
static int cfientry_next(const struct cfi_section *section, size_t *at, struct cfientry *e)
{
	struct cursor c = cursor_over(section->bytes + *at, section->size - *at);
	uint64_t length = cursor_number(&c, 4);
	unsigned id_bytes = 4;
	const uint8_t *body;

	if (length == 0xffffffff) {
		length = cursor_number(&c, 8);
		id_bytes = 8;
	}
	body = cursor_take(&c, length);
	if (c.bad)
		return -EINVAL;
	*at = (size_t)(c.at - section->bytes);
	if (length == 0)
		return 0;
	e->body = cursor_over(body, length);
	e->id_at = (uint64_t)(body - section->bytes);
	e->id = cursor_number(&e->body, id_bytes);
	if (e->body.bad)
		return 0;
	e->cie = section->debug ? e->id == (id_bytes == 4 ? 0xffffffffu : ~0ull) : e->id == 0;
	return 1;
}

/* Leave the CIE of an FDE in *cie. FDEs of one CIE mostly stand together. */
static bool cfientry_find_cie(const struct cfi_section *section, const struct cfientry *e,
			      struct cfi_cie *cie)
{
	uint64_t at = section->debug ? e->id : e->id_at - e->id;
	struct cfientry of;
	size_t end = at;

	if (at >= section->size) /* also when e->id is larger than e->id_at */
		return false;
	if (cie->program && cie->at == at)
		return true;
	*cie = (struct cfi_cie){.at = at};
	if (cfientry_next(section, &end, &of) <= 0 || !of.cie || !cfientry_cie(of.body, cie))
		cie->program = NULL;
	return cie->program != NULL;
}

int cfi_read(const struct cfi_section *section, size_t *at, struct cfi_fde *fde)
{
	struct cfientry e;
	uint64_t bytes;
	int got = cfientry_next(section, at, &e);

	if (got <= 0)
		return got;
	if (e.cie || !cfientry_find_cie(section, &e, &fde->cie))
		return 0;
	if (!cfientry_address(section, fde->cie.encoding, &e.body, &fde->start) ||
	    !cfientry_value(fde->cie.encoding & 0x0f, &e.body, &bytes))
		return 0;
	if (fde->cie.augmented)
		cursor_take(&e.body, cursor_uleb(&e.body));
	if (e.body.bad || bytes == 0 || __builtin_add_overflow(fde->start, bytes, &fde->end))
		return 0;
	fde->program = e.body.at;
	fde->program_bytes = cursor_left(&e.body);
	return 1;
}
