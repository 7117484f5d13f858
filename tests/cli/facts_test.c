/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's build id, from notes as /sys/kernel/notes has them. */
#include "cli/facts.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static size_t put(uint8_t *out, const char *name, uint32_t type, const void *desc, uint32_t bytes)
{
	Elf64_Nhdr note = {(uint32_t)strlen(name) + 1, bytes, type};
	size_t n = sizeof(note), aligned = (note.n_namesz + 3) & ~3u;

	memcpy(out, &note, n);
	memcpy(out + n, name, note.n_namesz);
	n += aligned;
	memcpy(out + n, desc, bytes);
	return n + ((bytes + 3) & ~3u);
}

static void test_build_id(void **state)
{
	static const uint8_t id[20] = {0x48, 0xdc, 0x54, [19] = 0x44};
	uint8_t notes[256] = {0};
	char text[129];
	size_t n;

	(void)state;
	n = put(notes, "Linux", 0x101, "abcde", 5);
	n += put(notes + n, "Xen", NT_GNU_BUILD_ID, "no", 2);
	assert_false(facts_build_id(notes, n, text, sizeof(text)));
	n += put(notes + n, "GNU", NT_GNU_BUILD_ID, id, sizeof(id));
	assert_true(facts_build_id(notes, n, text, sizeof(text)));
	assert_string_equal(text, "48dc540000000000000000000000000000000044");
	n += put(notes + n, "Linux", 0x101, "behind", 6);
	assert_true(facts_build_id(notes, n, text, sizeof(text)));
	/* Cut off, or longer than it can be. */
	for (size_t cut = 0; cut < 60; cut++)
		assert_false(facts_build_id(notes, cut, text, sizeof(text)));
	assert_false(facts_build_id(notes, n, text, 40));
	memset(notes, 0xff, sizeof(notes));
	assert_false(facts_build_id(notes, sizeof(notes), text, sizeof(text)));
}

/* This machine's, beside what readelf makes of it. */
static void test_here(void **state)
{
	char line[512] = "", *id = NULL;
	struct config config;
	FILE *out;

	(void)state;
	config_defaults(&config, MODE_RUN);
	facts_find(&config);
	out = popen("file=$(mktemp) && cp /sys/kernel/notes $file &&"
		    "printf '.section .note.k,\"a\",@note\\n.incbin \"%s\"\\n' $file | "
		    "gcc -c -x assembler - -o $file.o && readelf -n $file.o; rm -f $file $file.o",
		    "r");
	assert_non_null(out);
	while (!id && fgets(line, sizeof(line), out))
		id = strstr(line, "Build ID: ");
	if (id) {
		id += strlen("Build ID: ");
		id[strcspn(id, "\n")] = 0;
		assert_string_equal(config.runtime.kernel_build_id, id);
	} else {
		print_message("readelf finds no build id in /sys/kernel/notes: not compared\n");
	}
	pclose(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_build_id),
	    cmocka_unit_test(test_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
