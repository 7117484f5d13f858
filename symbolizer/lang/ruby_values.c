/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts: include/ruby/internal/core/r*.h, symbol.c, st.h and internal/class.h of Ruby. */
#include "symbolizer/lang/ruby_values.h"

#include <string.h>

/* Types of objects, in the low bits of their flags, and flags. */
enum {
	TYPE_MASK = 0x1f,
	TYPE_CLASS = 0x02,
	TYPE_MODULE = 0x03,
	TYPE_STRING = 0x05,
	TYPE_ARRAY = 0x07,
	TYPE_ICLASS = 0x1c, /* a module as it is included */
	FLAG_STRING_APART = 0x2000,
	FLAG_ARRAY_EMBEDDED = 0x2000,
};

#define HEAD_WORDS 5 /* the smallest object */

#define IDS_UNIT 512u /* names in one part of the array of all; each is {name, symbol} */

/* Instance variables of a class that are looked at. Those of the interpreter come first. */
#define VARIABLES_MAX 16u
#define SHAPES_MAX    256 /* from an object's to the first of all */
#define SHAPES_READ   32u /* at a time: mostly they are neighbours */
#define SHAPE_NONE    UINT32_MAX
#define SHAPE_IVAR    1
#define INCLUDED_MAX  4

static bool read_object(const struct ruby *ruby, uint64_t value, uint64_t *words)
{
	/* The others are numbers, nil and so on. */
	return value && (value & 7) == 0 && remote_read(ruby->remote, value, words, 8 * HEAD_WORDS);
}

static unsigned type_of(const uint64_t *words)
{
	return words[0] & TYPE_MASK;
}

bool ruby_string(const struct ruby *ruby, uint64_t value, char *to, size_t size)
{
	uint64_t words[HEAD_WORDS], from, bytes;

	if (!read_object(ruby, value, words) || type_of(words) != TYPE_STRING)
		return false;
	from = words[0] & FLAG_STRING_APART ? words[3] : value + ruby->layout->string_embedded;
	bytes = words[2];
	if (!(words[0] & FLAG_STRING_APART) && ruby->layout->string_embedded == 0x10)
		bytes = words[0] >> 14 & 31;
	if (bytes >= size)
		bytes = size - 1;
	to[bytes] = 0;
	return bytes == 0 || remote_read(ruby->remote, from, to, bytes);
}

bool ruby_element(const struct ruby *ruby, uint64_t array, uint64_t nth, uint64_t *value)
{
	uint64_t words[HEAD_WORDS], from, n;

	if (!read_object(ruby, array, words) || type_of(words) != TYPE_ARRAY)
		return false;
	from = words[0] & FLAG_ARRAY_EMBEDDED ? array + 16 : words[4];
	n = words[0] & FLAG_ARRAY_EMBEDDED ? words[0] >> 15 & 0x7f : words[2];
	return nth < n && remote_u64(ruby->remote, from + 8 * nth, value);
}

bool ruby_id(const struct ruby *ruby, uint64_t id, char *to, size_t size)
{
	/* Operators are their own serial number; below the others' stand four bits of their kind.
	 */
	uint64_t serial = id > ruby->layout->last_op_id ? id >> 4 : id, ids, unit, name;

	/* rb_symbols_t: {last serial number, st_table *, ids, ...} */
	return remote_u64(ruby->remote, ruby->symbols + 16, &ids) &&
	       ruby_element(ruby, ids, serial / IDS_UNIT, &unit) &&
	       ruby_element(ruby, unit, serial % IDS_UNIT * 2, &name) &&
	       ruby_string(ruby, name, to, size);
}

/* Instance variables of a class: the names of empty places are 0. */
struct variables {
	uint64_t name[VARIABLES_MAX], value[VARIABLES_MAX];
};

/* Before 3.2 they are in a table. */
static bool read_table(const struct ruby *ruby, const uint64_t *class, struct variables *variables)
{
	uint64_t table, head[3], entries[VARIABLES_MAX][3], n;

	/* RClass.ptr: {iv_index_tbl, iv_tbl, ...}; st_table from 0x20: {first, end, entries} */
	if (!remote_u64(ruby->remote, class[3] + 8, &table))
		return false;
	if (!table)
		return true;
	if (!remote_read(ruby->remote, table + 0x20, head, sizeof(head)))
		return false;
	n = head[1] < VARIABLES_MAX ? head[1] : VARIABLES_MAX;
	if (n && !remote_read(ruby->remote, head[2], entries, n * sizeof(entries[0])))
		return false;
	/* An entry: {hash, key, value} */
	for (uint64_t i = head[0]; i < n; i++) {
		variables->name[i] = entries[i][1];
		variables->value[i] = entries[i][2];
	}
	return true;
}

/* rb_shape_t of 3.2 (shape.h): which variable an object got after those of the parent. */
struct shape {
	uint64_t edges, name;
	uint32_t n, capacity; /* n: how many variables there are with it */
	uint8_t type, pool;
	uint32_t parent;
};

_Static_assert(sizeof(struct shape) == 32, "as it is in the process");

/* Of 3.2: the shape of an object, in its flags, says which value is whose. */
static bool read_shaped(const struct ruby *ruby, const uint64_t *class, struct variables *variables)
{
	uint32_t id = (uint32_t)(class[0] >> 32), from = 0, read = 0, n = 0;
	struct shape shapes[SHAPES_READ];
	const struct shape *shape;
	uint64_t values;

	for (int i = 0; i < SHAPES_MAX && id != SHAPE_NONE; i++, id = shape->parent) {
		if (id - from >= read) {
			/* Parents mostly are in front. */
			from = id < SHAPES_READ ? 0 : id - SHAPES_READ + 1;
			read = id - from + 1;
			if (!remote_read(ruby->remote, ruby->shapes + from * sizeof(*shapes),
					 shapes, read * sizeof(*shapes)))
				return false;
		}
		shape = &shapes[id - from];
		if (shape->type != SHAPE_IVAR || shape->n - 1 >= VARIABLES_MAX)
			continue;
		variables->name[shape->n - 1] = shape->name;
		n = shape->n > n ? shape->n : n;
	}
	values = class[ruby->layout->variables / 8];
	return n == 0 || remote_read(ruby->remote, values, variables->value, 8 * n);
}

/* Of a class before 3.3, of a type: an instance variable whose name users cannot write. 0: it has
 * none. */
static bool find_variable(const struct ruby *ruby, const uint64_t *class, const char *name,
			  unsigned types, uint64_t *value)
{
	struct variables variables = {0};
	uint64_t object[HEAD_WORDS];
	char text[32];

	*value = 0;
	if (!(ruby->layout->variables ? read_shaped : read_table)(ruby, class, &variables))
		return false;
	for (uint32_t i = 0; i < VARIABLES_MAX; i++) {
		if (!variables.name[i] || !read_object(ruby, variables.value[i], object) ||
		    !(types >> type_of(object) & 1))
			continue;
		if (!ruby_id(ruby, variables.name[i], text, sizeof(text)))
			return false;
		if (strcmp(text, name) == 0) {
			*value = variables.value[i];
			return true;
		}
	}
	return true;
}

static bool find_path(const struct ruby *ruby, uint64_t class, const uint64_t *words,
		      uint64_t *path)
{
	if (ruby->layout->class_path)
		return remote_u64(ruby->remote, class + ruby->layout->class_path, path);
	return find_variable(ruby, words, "__classpath__", 1u << TYPE_STRING, path);
}

static bool find_attached(const struct ruby *ruby, uint64_t class, const uint64_t *words,
			  uint64_t *object)
{
	if (ruby->layout->attached)
		return remote_u64(ruby->remote, class + ruby->layout->attached, object);
	return find_variable(ruby, words, "__attached__", 1u << TYPE_CLASS | 1u << TYPE_MODULE,
			     object);
}

static bool is_class(const uint64_t *words)
{
	return type_of(words) == TYPE_CLASS || type_of(words) == TYPE_MODULE;
}

static bool is_singleton(const struct ruby *ruby, const uint64_t *words)
{
	return type_of(words) == TYPE_CLASS && (words[0] & ruby->layout->singleton);
}

bool ruby_owner(const struct ruby *ruby, uint64_t class, char to[RUBY_CLASS_BYTES])
{
	uint64_t words[HEAD_WORDS], path;
	char kind = '#';

	to[0] = 0;
	if (!read_object(ruby, class, words))
		return false;
	for (int i = 0; i < INCLUDED_MAX && type_of(words) == TYPE_ICLASS; i++)
		if (class = words[1], !read_object(ruby, class, words))
			return false;
	if (is_singleton(ruby, words)) {
		kind = '.';
		if (!find_attached(ruby, class, words, &class))
			return false;
		/* Not of a class, but of a single object. */
		if (!read_object(ruby, class, words) || !is_class(words) ||
		    is_singleton(ruby, words))
			return true;
	}
	if (!is_class(words) || !find_path(ruby, class, words, &path))
		return false;
	/* Without a name there is no path, or one that begins with "#<Class:0x". */
	if ((path & ~8ull) == 0)
		return true;
	if (!ruby_string(ruby, path, to, RUBY_CLASS_BYTES - 1))
		return false;
	if (to[0] == '#')
		to[0] = 0;
	else
		strcat(to, (char[]){kind, 0});
	return true;
}
