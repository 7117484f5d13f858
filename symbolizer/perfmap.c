/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/perfmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEX_DIGITS 16

/* A name that pieces have, for moving the names together. */
struct used {
	uint32_t name, piece;
};

void perfmap_init(struct perfmap *map, size_t bytes_max)
{
	memset(map, 0, sizeof(*map));
	/* Offsets of names have 32 bits. */
	map->bytes_max = bytes_max < UINT32_MAX ? bytes_max : UINT32_MAX;
	map->names_bytes = 1;
}

void perfmap_fini(struct perfmap *map)
{
	jitindex_fini(&map->index);
	free(map->names);
	memset(map, 0, sizeof(*map));
}

size_t perfmap_bytes(const struct perfmap *map)
{
	return jitindex_bytes(&map->index) + map->names_room;
}

int perfmap_settle(struct perfmap *map)
{
	return jitindex_settle(&map->index);
}

static int perfmap_compare(const void *a, const void *b)
{
	const struct used *x = a, *y = b;

	return x->name < y->name ? -1 : x->name > y->name;
}

/* Give the room of names back that no piece has any more. In their order names only move down. */
static void perfmap_compact(struct perfmap *map)
{
	struct jitindex_piece *pieces = map->index.pieces;
	struct used *used = malloc((map->index.n + 1ul) * sizeof(*used));
	uint32_t to = 1, last = 0, last_to = 0;

	if (!used)
		return;
	for (uint32_t i = 0; i < map->index.n; i++)
		used[i] = (struct used){pieces[i].what, i};
	qsort(used, map->index.n, sizeof(*used), perfmap_compare);
	for (uint32_t i = 0; i < map->index.n; i++) {
		if (used[i].name != last) {
			size_t bytes = strlen(map->names + used[i].name) + 1;

			memmove(map->names + to, map->names + used[i].name, bytes);
			last = used[i].name;
			last_to = to;
			to += (uint32_t)bytes;
		}
		pieces[used[i].piece].what = last_to;
	}
	map->names_bytes = to;
	free(used);
}

/* Before there is no room: is there some when what is not needed is given up? */
static bool perfmap_make_room(struct perfmap *map, size_t more)
{
	size_t sum = map->names_bytes + jitindex_bytes(&map->index) + more;

	if (sum <= map->bytes_max)
		return true;
	if (map->full)
		return false;
	if (perfmap_settle(map) == 0)
		perfmap_compact(map);
	/* Almost full is full, or every few lines all names would be moved. */
	sum = map->names_bytes + jitindex_bytes(&map->index) + more;
	map->full = sum > map->bytes_max / 8 * 7;
	return sum <= map->bytes_max;
}

/* Where the name was put; 0 = there is no room. */
static uint32_t perfmap_store(struct perfmap *map, const char *name, size_t n)
{
	size_t need = map->names_bytes + n + 1, room = map->names_room + map->names_room / 4;
	uint32_t at = (uint32_t)map->names_bytes;
	void *p;

	if (need > map->names_room) {
		room = room < need + 4096 ? need + 4096 : room;
		room = room > map->bytes_max && need <= map->bytes_max ? map->bytes_max : room;
		p = realloc(map->names, room);
		if (!p)
			return 0;
		map->names = p;
		map->names_room = room;
	}
	memcpy(map->names + at, name, n);
	map->names[at + n] = 0;
	map->names_bytes = need;
	return at;
}

/* A number of at most 64 bits and the blanks behind it. Where it ends; NULL: there is none. */
static const char *perfmap_number(const char *at, const char *end, uint64_t *value)
{
	const char *first;

	if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	*value = 0;
	for (first = at; at < end && at - first <= HEX_DIGITS; at++) {
		unsigned c = (unsigned char)*at, digit = c - '0';

		if (digit > 9)
			digit = (c | 32u) >= 'a' && (c | 32u) <= 'f' ? (c | 32u) - 'a' + 10 : 16;
		if (digit == 16)
			break;
		*value = *value << 4 | digit;
	}
	if (at == first || at - first > HEX_DIGITS || at == end || (*at != ' ' && *at != '\t'))
		return NULL;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

static bool perfmap_line(struct perfmap *map, const char *line, const char *end)
{
	uint64_t start, bytes;
	uint32_t name;
	size_t n;

	line = perfmap_number(line, end, &start);
	line = line ? perfmap_number(line, end, &bytes) : NULL;
	if (!line || !jitindex_possible(start, bytes))
		return false;
	n = strnlen(line, (size_t)(end - line));
	while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' '))
		n--;
	n = n > PERFMAP_NAME_MAX ? PERFMAP_NAME_MAX : n;
	if (n == 0)
		return false;
	name = perfmap_make_room(map, n + 1 + 2 * sizeof(struct jitindex_piece))
		   ? perfmap_store(map, line, n)
		   : JITINDEX_NOTHING;
	/* Without room for the name it is at least known that the older one does not hold. */
	if (name == JITINDEX_NOTHING && jitindex_bytes(&map->index) > map->bytes_max)
		return false;
	return jitindex_add(&map->index, start, (uint32_t)bytes, name) == 0 && name;
}

size_t perfmap_feed(struct perfmap *map, const char *text, size_t n)
{
	const char *at = text, *end = text + n, *line_end;

	while ((line_end = memchr(at, '\n', (size_t)(end - at)))) {
		bool fits = line_end - at <= PERFMAP_LINE_MAX && !map->skipping;

		if (fits && perfmap_line(map, at, line_end))
			map->lines++;
		else
			map->refused++;
		map->skipping = false;
		at = line_end + 1;
	}
	if (map->skipping || end - at > PERFMAP_LINE_MAX) {
		map->skipping = true;
		at = end;
	}
	return (size_t)(at - text);
}

const char *perfmap_find(const struct perfmap *map, uint64_t address)
{
	const struct jitindex_piece *piece = jitindex_find(&map->index, address);

	return piece ? map->names + piece->what : NULL;
}
