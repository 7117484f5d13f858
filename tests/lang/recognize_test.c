/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of real runtimes with damage in them: where headers, symbols, relocations and the
 * decoded functions are. Recognition ends, soon, and reads nothing that is not there.
 *
 *   recognize_test [N]	  N damaged copies of each (30)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/langs.h"
#include "tests/lang/livefile.h"
#include "tests/lang/specimens.h"

#define SECONDS_MAX 240

static unsigned copies = 30;

static uint64_t random_next(void)
{
	static uint64_t seed = 0x2545f4914f6cdd1dull;

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static struct unpacked read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct unpacked file = {0};
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	file.bytes = file.room = (uint64_t)st.st_size;
	file.data = mmap(NULL, file.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(file.data, MAP_FAILED);
	close(fd);
	return file;
}

/* A private mapping is a copy already; elffile_open_memory() takes it. */
static int recognize(struct unpacked *file, const char *path, struct lang_runtime *runtime)
{
	struct elffile elf;
	int err = elffile_open_memory(&elf, file);

	memset(runtime, 0, sizeof(*runtime));
	if (err)
		return err;
	err = lang_recognize(&elf, strrchr(path, '/') + 1, runtime);
	elffile_close(&elf);
	return err;
}

static void damage(struct unpacked *file, const struct table_runtime *walk)
{
	uint64_t tenth = file->bytes / 10, loop = walk->loops[0].start;
	/* Headers; .dynsym to .rela.dyn; the loop and what stands around it; section headers;
	 * anywhere. */
	const uint64_t places[][2] = {{16, 1024},
				      {1024, tenth},
				      {loop & ~0xffffull, 0x20000},
				      {file->bytes - 4096, 4096},
				      {0, file->bytes}};

	for (uint64_t n = 1 + random_next() % 64; n; n--) {
		const uint64_t *place = places[random_next() % 5];
		uint64_t at = place[0] + random_next() % place[1];

		if (at >= file->bytes)
			continue;
		if (random_next() % 2)
			file->data[at] ^= (uint8_t)(1u << random_next() % 8);
		else
			file->data[at] = random_next() % 2 ? 0xff : 0;
	}
}

/* The file of the specimen's runtime, found as the walk finds it. */
static const struct livefile *runtime_of(enum language language)
{
	struct live *live = specimen_take(language);
	const struct snapshot_head *head;
	const struct livefile *file;

	if (!live)
		return NULL;
	head = &live->snapshot.head;
	file = head->made_by ? livefile_get(head->ranges[head->made_by - 1].file_id) : NULL;
	live_close(live);
	assert_non_null(file);
	return file;
}

static void recognize_damaged(enum language language)
{
	const struct livefile *file = runtime_of(language);
	struct lang_runtime runtime;
	struct unpacked bytes;
	unsigned same = 0;

	if (!file) {
		print_message("%s: not here\n", specimens[language].name);
		skip();
	}
	bytes = read_file(file->path);
	assert_int_equal(recognize(&bytes, file->path, &runtime), 0);
	assert_memory_equal(&runtime, &file->runtime, sizeof(runtime));
	for (unsigned i = 0; i < copies; i++) {
		bytes = read_file(file->path);
		damage(&bytes, &file->runtime.walk);
		same += recognize(&bytes, file->path, &runtime) == 0;
		assert_int_equal(runtime.version[LANG_VERSION_BYTES - 1], 0);
	}
	print_message("%s: %u damaged, %u of them recognized all the same\n", file->path, copies,
		      same);
}

#define LANGUAGE(NAME, name)                                                                       \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		recognize_damaged(LANG_##NAME);                                                    \
	}
LANGUAGES(LANGUAGE)
#undef LANGUAGE

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define LANGUAGE(NAME, name) cmocka_unit_test(test_##name),
	    LANGUAGES(LANGUAGE)
#undef LANGUAGE
	};
	int failed;

	if (argc > 1)
		copies = (unsigned)atoi(argv[1]);
	else
		alarm(SECONDS_MAX); /* what does not end is a failure */
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	livefile_forget();
	return failed;
}
