/* SPDX-License-Identifier: Apache-2.0 */
/* profile/folded.c and profile/pprof.c: known content, byte by byte or field by field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "profile/folded.h"
#include "profile/pprof.h"
#include "proto/pprof/profile.pb-c.h"
#include "tests/profile/build.h"

static void test_folded(void **state)
{
	struct profile *p = build_profile();
	char *text;
	size_t len;

	(void)state;
	assert_int_equal(folded_write(p, &text, &len), 0);
	assert_string_equal(text, "io thread;[truncated: no_row];[prog+0x1abc] 2\n"
				  "prog;main;work:er;helper;leaf_[i];vfs_read_[k] 7\n"
				  "samples;main;work:er 8\n");
	assert_int_equal(len, strlen(text));
	free(text);
	profile_clear(p);
	assert_int_equal(folded_write(p, &text, &len), 0);
	assert_string_equal(text, "");
	free(text);
	profile_free(p);
}

static Perftools__Profiles__Profile *unpack(const uint8_t *bytes, size_t len)
{
	static uint8_t raw[65536];
	z_stream stream = {.next_in = (Bytef *)bytes,
			   .avail_in = (uInt)len,
			   .next_out = raw,
			   .avail_out = sizeof(raw)};

	assert_int_equal(inflateInit2(&stream, 31), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	inflateEnd(&stream);
	return perftools__profiles__profile__unpack(NULL, stream.total_out, raw);
}

#define S(i) (p->string_table[i])

/* Sample 0 of build_profile(): vfs_read <- leaf inlined into helper <- work;er <- main. */
static void check_stack(const Perftools__Profiles__Profile *p)
{
	static const char *const names[] = {"vfs_read", "leaf", "helper", "work;er", "main"};
	const Perftools__Profiles__Sample *s = p->sample[0];
	size_t k = 0;

	assert_int_equal(s->n_location_id, 4);
	for (size_t i = 0; i < s->n_location_id; i++) {
		const Perftools__Profiles__Location *l = p->location[s->location_id[i] - 1];

		assert_int_equal(l->id, s->location_id[i]);
		for (size_t j = 0; j < l->n_line; j++, k++)
			assert_string_equal(S(p->function[l->line[j]->function_id - 1]->name),
					    names[k]);
	}
	assert_int_equal(k, 5);
}

static void test_pprof(void **state)
{
	struct profile *from = build_profile();
	Perftools__Profiles__Profile *p;
	const Perftools__Profiles__Sample *s;
	uint8_t *bytes;
	size_t len;

	(void)state;
	assert_int_equal(pprof_write(from, &bytes, &len), 0);
	p = unpack(bytes, len);
	assert_non_null(p);
	assert_string_equal(S(0), "");
	assert_int_equal(p->n_sample_type, 2);
	assert_string_equal(S(p->sample_type[0]->type), "samples");
	assert_string_equal(S(p->sample_type[0]->unit), "count");
	assert_string_equal(S(p->sample_type[1]->type), "cpu");
	assert_string_equal(S(p->sample_type[1]->unit), "nanoseconds");
	assert_int_equal(p->period, 10101010);
	assert_true(p->time_nanos == 1700000000000000000ll);
	assert_true(p->duration_nanos == 5000000000ll);
	assert_int_equal(p->n_sample, 5);
	s = p->sample[0];
	assert_int_equal(s->n_value, 2);
	assert_int_equal(s->value[0], 3);
	assert_int_equal(s->value[1], 3 * 10101010);
	assert_int_equal(s->n_label, 4);
	assert_string_equal(S(s->label[0]->key), "process");
	assert_string_equal(S(s->label[0]->str), "prog");
	assert_string_equal(S(s->label[1]->key), "thread");
	assert_string_equal(S(s->label[2]->key), "pid");
	assert_int_equal(s->label[2]->num, 5);
	assert_string_equal(S(s->label[3]->key), "tid");
	assert_int_equal(s->label[3]->num, 6);
	check_stack(p);
	assert_string_equal(S(p->mapping[0]->filename), "/usr/bin/prog");
	assert_string_equal(S(p->mapping[0]->build_id), "0123abcd");
	assert_true(p->mapping[0]->has_functions && p->mapping[0]->has_filenames &&
		    p->mapping[0]->has_line_numbers && p->mapping[0]->has_inline_frames);
	assert_false(p->mapping[1]->has_line_numbers || p->mapping[1]->has_inline_frames);
	perftools__profiles__profile__free_unpacked(p, NULL);
	free(bytes);
	profile_free(from);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_folded),
	    cmocka_unit_test(test_pprof),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
