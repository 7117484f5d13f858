/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/pclntab.h"

#include <errno.h>
#include <string.h>

#include "symbolizer/goplace.h"

#define PCLNTAB_BYTES_MAX  (128u << 20) /* in one piece */
#define PCLNTAB_STEP_BYTES 10		/* two numbers of at most five */
/*
 * Looked through for one number. The function with the most of them has 11,768, in a program of
 * 545,759 functions; a file made to have this many in each of 64 calls holds us up for 60 ms.
 */
#define PCLNTAB_STEPS_MAX 65536u

const uint8_t *pclntab_bytes(const struct pclntab *tab, uint64_t offset, uint64_t bytes)
{
	if (offset > tab->size || bytes > tab->size - offset)
		return NULL;
	return tab->bytes ? tab->bytes + offset
			  : window_bytes(tab->window, tab->offset + offset, bytes);
}

/* 0 where the bytes end. */
static uint64_t pclntab_number(const struct pclntab *tab, uint64_t offset, unsigned n)
{
	const uint8_t *bytes = pclntab_bytes(tab, offset, n);
	struct cursor c;

	if (!bytes)
		return 0;
	c = cursor_over(bytes, n);
	return cursor_number(&c, n);
}

/* Where the parts are, as offsets one behind the other. */
static void pclntab_read_parts(struct pclntab *tab, uint64_t at)
{
	uint64_t *const parts[] = {&tab->names, &tab->units, &tab->files, &tab->steps, &tab->table};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		*parts[i] = pclntab_number(tab, at + 8 * i, 8);
}

static int pclntab_read_header(struct pclntab *tab, struct elffile *file)
{
	uint64_t functions = pclntab_number(tab, 8, 8);

	if (pclntab_number(tab, 4, 4) != 0x08010000) /* padding, unit of code, size of pointers */
		return -ENOENT;
	tab->entry_bytes = 8;
	tab->magic = (uint32_t)pclntab_number(tab, 0, 4);
	switch (tab->magic) {
	case PCLNTAB_1_2:
		tab->table = 16;
		/* Behind the functions and the end of the last one. */
		tab->files = pclntab_number(tab, tab->table + 16 * functions + 8, 4);
		break;
	case PCLNTAB_1_16:
		pclntab_read_parts(tab, 24);
		break;
	case PCLNTAB_1_18:
	case PCLNTAB_1_20:
		tab->entry_bytes = 4;
		pclntab_read_parts(tab, 32);
		tab->text = goplace_text(file, tab->vaddr, pclntab_number(tab, 24, 8));
		break;
	default:
		return -ENOENT;
	}
	if (tab->names > tab->size || tab->units > tab->size || tab->files > tab->size ||
	    tab->steps > tab->size || tab->table > tab->size ||
	    functions > (tab->size - tab->table) / (2 * tab->entry_bytes))
		return -ENOENT;
	tab->functions = (uint32_t)functions;
	return functions > PCLNTAB_FUNCTIONS_MAX ? -EFBIG : 0;
}

static int pclntab_find_place(struct pclntab *tab, struct elffile *file)
{
	struct goplace place;
	int err = goplace_find(file, &place);

	memset(tab, 0, sizeof(*tab));
	if (err)
		return err;
	tab->offset = place.offset;
	tab->vaddr = place.vaddr;
	tab->size = place.size;
	return 0;
}

int pclntab_open(struct pclntab *tab, struct elffile *file)
{
	int err = pclntab_find_place(tab, file);

	if (err)
		return err;
	if (tab->size > PCLNTAB_BYTES_MAX)
		return -EFBIG;
	tab->bytes = elffile_bytes(file, tab->offset, tab->size);
	return tab->bytes ? pclntab_read_header(tab, file) : -errno;
}

int pclntab_open_in(struct pclntab *tab, struct elffile *file, struct window *window)
{
	int err = pclntab_find_place(tab, file);

	tab->window = window;
	return err ? err : pclntab_read_header(tab, file);
}

const char *pclntab_text(const struct pclntab *tab, uint64_t offset)
{
	uint64_t left = offset < tab->size ? tab->size - offset : 0, n = 128;

	/* Most are short, and what is not looked at is not read. */
	for (; left; n *= 2) {
		uint64_t some = n < left ? n : left;
		const uint8_t *bytes = pclntab_bytes(tab, offset, some);

		if (bytes && memchr(bytes, 0, some))
			return (const char *)bytes;
		if (!bytes || some == left || n == PCLNTAB_NAME_MAX)
			break;
	}
	return NULL;
}

/* What the formats have in common begins with the name; what follows is not. */
static void pclntab_read_function(const struct pclntab *tab, uint64_t at,
				  struct pclntab_function *function)
{
	bool oldest = tab->magic == PCLNTAB_1_2;
	const char *name = pclntab_text(tab, tab->names + pclntab_number(tab, at, 4));

	function->name = name ? name : "";
	function->steps = (uint32_t)pclntab_number(tab, at + 12, 4);
	function->file_steps = (uint32_t)pclntab_number(tab, at + 16, 4);
	function->line_steps = (uint32_t)pclntab_number(tab, at + 20, 4);
	function->pcdata_n = (uint32_t)pclntab_number(tab, at + 24, 4);
	at += 28;
	function->unit = 0;
	function->start_line = 0;
	if (!oldest) {
		function->unit = (uint32_t)pclntab_number(tab, at, 4);
		at += 4;
	}
	if (tab->magic == PCLNTAB_1_20) {
		function->start_line = (uint32_t)pclntab_number(tab, at, 4);
		at += 4;
	}
	/* The function's kind, its flags, nothing, the number. Before 1.12 all four are the number.
	 */
	function->flags = oldest ? 0 : (uint32_t)pclntab_number(tab, at + 1, 1);
	function->funcdata_n = (uint32_t)pclntab_number(tab, at + 3, 1);
	if (oldest && !function->funcdata_n)
		function->funcdata_n = (uint32_t)pclntab_number(tab, at, 1);
	function->pcdata = at + 4;
}

bool pclntab_function(const struct pclntab *tab, uint32_t index, struct pclntab_function *function)
{
	unsigned n = tab->entry_bytes;
	uint64_t entry = tab->table + 2ull * n * index, at;

	function->start = tab->text + pclntab_number(tab, entry, n);
	function->end = tab->text + pclntab_number(tab, entry + 2 * n, n);
	if (function->end <= function->start)
		return false;
	at = pclntab_number(tab, entry + n, n);
	if (at > tab->size)
		return false;
	/* The first format counts from its beginning. */
	at += tab->steps ? tab->table : 0;
	if (!pclntab_bytes(tab, at, 44))
		return false;
	pclntab_read_function(tab, at + n, function);
	return true;
}

bool pclntab_find(const struct pclntab *tab, uint64_t vaddr, struct pclntab_function *function)
{
	unsigned n = tab->entry_bytes;
	uint32_t low = 0, high = tab->functions;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (tab->text + pclntab_number(tab, tab->table + 2ull * n * middle, n) <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && pclntab_function(tab, low - 1, function) && vaddr >= function->start &&
	       vaddr < function->end;
}

static void pclntab_begin_at(const struct pclntab *tab, const struct pclntab_function *function,
			     uint32_t steps_at, struct pclntab_steps *steps)
{
	*steps = (struct pclntab_steps){.tab = tab,
					.at = steps_at ? tab->steps + steps_at : 0,
					.from = function->start,
					.to = function->start,
					.end = function->end,
					.moved = -1};
}

void pclntab_begin(const struct pclntab *tab, const struct pclntab_function *function,
		   struct pclntab_steps *steps)
{
	pclntab_begin_at(tab, function, function->steps, steps);
}

/* At most five bytes: all functions may share the same ones. */
static uint32_t pclntab_varint(struct cursor *c)
{
	uint32_t value = 0;

	for (unsigned shift = 0; shift < 35; shift += 7) {
		uint32_t byte = (uint32_t)cursor_number(c, 1);

		value |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	c->bad = true;
	return 0;
}

bool pclntab_next(struct pclntab_steps *steps)
{
	uint64_t size = steps->tab->size, left = steps->at < size ? size - steps->at : 0;
	uint32_t change, by;
	const uint8_t *bytes;
	struct cursor c;

	if (steps->to >= steps->end || steps->at == 0 || left == 0)
		return false;
	left = left < PCLNTAB_STEP_BYTES ? left : PCLNTAB_STEP_BYTES;
	bytes = pclntab_bytes(steps->tab, steps->at, left);
	if (!bytes)
		return false;
	c = cursor_over(bytes, left);
	change = pclntab_varint(&c);
	by = pclntab_varint(&c);
	/* No change ends the steps, but for the first of them. */
	if (c.bad || by == 0 || (change == 0 && steps->to > steps->from))
		return false;
	steps->at += left - cursor_left(&c);
	steps->moved = (int32_t)((uint32_t)steps->moved + ((change >> 1) ^ -(change & 1)));
	steps->from = steps->to;
	steps->to = by < steps->end - steps->from ? steps->from + by : steps->end;
	return true;
}

uint32_t pclntab_pcdata(const struct pclntab *tab, const struct pclntab_function *function,
			uint32_t index)
{
	if (index >= function->pcdata_n)
		return 0;
	return (uint32_t)pclntab_number(tab, function->pcdata + 4ull * index, 4);
}

bool pclntab_funcdata(const struct pclntab *tab, const struct pclntab_function *function,
		      uint32_t index, uint64_t *value)
{
	uint64_t at = function->pcdata + 4ull * function->pcdata_n;
	unsigned n = tab->entry_bytes;

	if (index >= function->funcdata_n)
		return false;
	if (n == 8)
		at = (at + 7) / 8 * 8; /* addresses, since the whole table is aligned to 32 */
	if (!pclntab_bytes(tab, at + (uint64_t)n * index, n))
		return false;
	*value = pclntab_number(tab, at + (uint64_t)n * index, n);
	return n == 8 ? *value != 0 : *value != UINT32_MAX;
}

int32_t pclntab_value(const struct pclntab *tab, const struct pclntab_function *function,
		      uint32_t steps_at, uint64_t vaddr)
{
	struct pclntab_steps steps;

	pclntab_begin_at(tab, function, steps_at, &steps);
	for (uint32_t i = 0; i < PCLNTAB_STEPS_MAX && pclntab_next(&steps); i++)
		if (vaddr < steps.to)
			return (int32_t)steps.moved;
	return -1;
}

const char *pclntab_file(const struct pclntab *tab, const struct pclntab_function *function,
			 int32_t number)
{
	uint64_t at = tab->files, text;

	if (number < 0)
		return NULL;
	if (tab->units) {
		text = pclntab_number(
		    tab, tab->units + 4 * ((uint64_t)function->unit + (uint32_t)number), 4);
		return text == UINT32_MAX ? NULL : pclntab_text(tab, tab->files + text);
	}
	/* The first of the numbers is how many there are, itself included. */
	if (number == 0 || (uint64_t)number >= pclntab_number(tab, at, 4))
		return NULL;
	text = pclntab_number(tab, at + 4ull * (uint32_t)number, 4);
	return text ? pclntab_text(tab, text) : NULL;
}
