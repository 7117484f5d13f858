/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a method is, in memory that looks as Ruby's would: what the machine's own Ruby does not
 * have, and what none has.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/lang/ruby.h"
#include "symbolizer/lang/ruby_values.h"

#define CLASS	 0x02ull
#define STRING	 0x05ull
#define ARRAY	 0x07ull
#define IVAR	 1
#define NO_SHAPE UINT32_MAX

/* Names of IDs, by their serial number; an ID has its kind in its four lowest bits. */
enum { OTHER = 200, CLASSPATH, ATTACHED, SERIALS };
#define ID(serial) ((uint64_t)(serial) << 4 | 2)

struct string {
	uint64_t flags, class, bytes;
	char text[48];
};

/* A class takes 40 bytes, what 3.2 and later keep with it stands behind. */
struct class
{
	uint64_t words[24];
	uint64_t values[20];
};

/* rb_shape_t of 3.2 */
struct shape {
	uint64_t edges, name;
	uint32_t n, capacity;
	uint8_t type, pool;
	uint32_t parent;
};

static struct string names[SERIALS], path = {STRING, 0, 0, ""};
static uint64_t unit[2 * SERIALS], units[1], unit_array[5], ids_array[5], symbols[3];
static struct shape shapes[600];
static struct class owner, meta;
static struct remote remote;
static struct ruby ruby;

static void set_string(struct string *string, const char *text)
{
	*string = (struct string){.flags = STRING, .bytes = strlen(text)};
	memcpy(string->text, text, strlen(text));
}

static void set_array(uint64_t *array, const uint64_t *values, uint64_t n)
{
	memcpy(array, (uint64_t[]){ARRAY, 0, n, n, (uint64_t)values}, 5 * sizeof(*array));
}

static void name_id(int serial, const char *text)
{
	set_string(&names[serial], text);
	unit[2 * serial] = (uint64_t)&names[serial];
}

static int open_memory(void **state)
{
	(void)state;
	remote.fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	name_id(OTHER, "@other");
	name_id(CLASSPATH, "__classpath__");
	name_id(ATTACHED, "__attached__");
	set_array(unit_array, unit, 2 * SERIALS);
	units[0] = (uint64_t)unit_array;
	set_array(ids_array, units, 1);
	symbols[2] = (uint64_t)ids_array;
	return remote.fd < 0;
}

static int close_memory(void **state)
{
	(void)state;
	return close(remote.fd);
}

static void begin(uint32_t version)
{
	remote_begin(&remote);
	memset(shapes, 0, sizeof(shapes));
	shapes[0].parent = NO_SHAPE;
	memset(&owner, 0, sizeof(owner));
	memset(&meta, 0, sizeof(meta));
	ruby =
	    (struct ruby){&remote, ruby_layout_find(version), (uint64_t)symbols, (uint64_t)shapes};
	assert_non_null(ruby.layout);
	set_string(&path, "Shop::Cart");
}

/* The next variable of a class of 3.2. */
static void add(struct class *class, uint32_t id, int serial, const void *value)
{
	uint32_t parent = (uint32_t)(class->words[0] >> 32), n = shapes[parent].n + 1;

	shapes[id] = (struct shape){.name = ID(serial), .n = n, .type = IVAR, .parent = parent};
	class->words[0] = (uint64_t)id << 32 | (uint32_t) class->words[0];
	class->words[4] = (uint64_t) class->values;
	class->values[n - 1] = (uint64_t)value;
}

static void expect(const struct class *class, const char *want)
{
	char have[RUBY_CLASS_BYTES];

	assert_true(ruby_owner(&ruby, (uint64_t) class, have));
	assert_string_equal(have, want);
}

static void test_a_variable_by_shape(void **state)
{
	(void)state;
	begin(RUBY_VERSION(3, 2));
	owner.words[0] = CLASS;
	add(&owner, 590, OTHER, &names[OTHER]);
	add(&owner, 13, CLASSPATH, &path);
	/* Not a variable: the class was frozen. */
	shapes[300] = (struct shape){.n = 2, .type = 2, .parent = 13};
	owner.words[0] = 300ull << 32 | CLASS;
	add(&owner, 301, OTHER, &names[OTHER]);
	expect(&owner, "Shop::Cart#");
}

static void test_a_singleton_by_shape(void **state)
{
	(void)state;
	begin(RUBY_VERSION(3, 2));
	owner.words[0] = CLASS;
	add(&owner, 40, CLASSPATH, &path);
	meta.words[0] = CLASS | 0x1000;
	add(&meta, 41, ATTACHED, &owner);
	expect(&meta, "Shop::Cart.");
}

static void test_more_variables_than_are_read(void **state)
{
	(void)state;
	begin(RUBY_VERSION(3, 2));
	owner.words[0] = CLASS;
	add(&owner, 1, CLASSPATH, &path);
	for (uint32_t i = 2; i <= 20; i++)
		add(&owner, i, OTHER, NULL);
	expect(&owner, "Shop::Cart#");
}

static void test_no_variable(void **state)
{
	(void)state;
	begin(RUBY_VERSION(3, 2));
	owner.words[0] = CLASS;
	expect(&owner, "");
	add(&owner, 9, OTHER, &path);
	expect(&owner, "");
}

/* None of them is read for ever, or from where nothing is. */
static void test_shapes_that_are_none(void **state)
{
	char have[RUBY_CLASS_BYTES];

	(void)state;
	begin(RUBY_VERSION(3, 2));
	owner.words[0] = 7ull << 32 | CLASS;
	shapes[7].parent = 7;
	expect(&owner, "");
	shapes[7].parent = 500;
	shapes[500].parent = 7;
	assert_false(ruby_owner(&ruby, (uint64_t)&owner, have));
	remote_begin(&remote);
	shapes[7] = (struct shape){.name = ID(OTHER), .n = 0, .type = IVAR, .parent = NO_SHAPE};
	expect(&owner, "");
	shapes[7].n = UINT32_MAX;
	expect(&owner, "");
	shapes[7].n = 16;
	assert_false(ruby_owner(&ruby, (uint64_t)&owner, have));
	owner.words[0] = (UINT32_MAX - 1ull) << 32 | CLASS;
	assert_false(ruby_owner(&ruby, (uint64_t)&owner, have));
}

/* The flag of a singleton class is another one from 3.4 on. */
static void test_a_singleton_of_3_4(void **state)
{
	(void)state;
	begin(RUBY_VERSION(3, 4));
	owner.words[0] = CLASS | 0x1000;
	owner.words[0x98 / 8] = (uint64_t)&path;
	meta.words[0] = CLASS | 0x2000;
	meta.words[0x80 / 8] = (uint64_t)&owner;
	expect(&owner, "Shop::Cart#");
	expect(&meta, "Shop::Cart.");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_variable_by_shape),
	    cmocka_unit_test(test_a_singleton_by_shape),
	    cmocka_unit_test(test_more_variables_than_are_read),
	    cmocka_unit_test(test_no_variable),
	    cmocka_unit_test(test_shapes_that_are_none),
	    cmocka_unit_test(test_a_singleton_of_3_4),
	};

	return cmocka_run_group_tests(tests, open_memory, close_memory);
}
