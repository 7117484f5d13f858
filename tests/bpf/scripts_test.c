/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of scripts in the kernel, between the native ones to which they belong: with a runtime
 * that is made up (scripts.h), the frames of which are sound, missing, hostile, and kept for a
 * thread in every way that there is.
 */
#define _GNU_SOURCE
#include "tests/bpf/scripts.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <cmocka.h>

#include "bpf/langs.h"
#include "tests/bpf/busy.h"
#include "tests/bpf/rig.h"
#include "tests/bpf/tables.h"

#define RING_BYTES   (1u << 22)
#define SAMPLES_MIN  8
#define SAMPLE_TURNS 500
#define RATE_HZ	     997

static struct rig rig;
static struct store store;
static struct rig_process process;
static struct table_header *own_table;
static struct table_runtime runtime;

/* Two functions, called by C that was called by three; and what the walk makes of them. */
static const int two_runs[] = {5, 4, 0, 3, 2, 1, 0, -1};
#define TWO_RUNS "c54lc321lc."

static void skip_unless_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("skipped: loading BPF needs root\n");
	skip();
}

/* What the child has mapped we have, too. */
static void make(const int *functions)
{
	rig_read_process(&process, getpid());
	scripts_make(functions);
	scripts_runtime(&runtime, &process.ranges[0]);
}

static pid_t start(void (*work)(void), bool tells)
{
	pid_t pid = busy_start(work);

	memset(&store, 0, sizeof(store));
	rig_open(&rig, pid, RING_BYTES);
	assert_int_equal(
	    store_open(&store, rig.bpf.map[BPF_FILES], rig.bpf.map[BPF_CHUNK], TABLES_CHUNK_BYTES),
	    0);
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	rig_read_process(&process, pid);
	for (int i = 0; i < SAMPLE_TURNS && !rig.samples_n; i++)
		rig_sample(&rig, 10, true);
	assert_true(rig.samples_n > 0);
	rig_install(&rig, pid, &process, rig.samples[0]->exec_id, 0, BPF_PROCESS_EXEC_KNOWN);
	own_table = tables_install(&store, &process, pid, tells ? &runtime : NULL);
	return pid;
}

static void sample(void)
{
	rig_forget(&rig);
	for (int i = 0; i < SAMPLE_TURNS && rig.samples_n < SAMPLES_MIN; i++)
		rig_sample(&rig, 10, true);
	assert_true(rig.samples_n >= SAMPLES_MIN);
	assert_false(rig.malformed);
}

static void end(pid_t pid)
{
	busy_end(pid);
	rig_close(&rig);
	munmap(store.files, (TABLES_FILES_MAX + 1) * sizeof(struct bpf_file));
	munmap(store.words, TABLES_CHUNK_BYTES);
	free(own_table);
	own_table = NULL;
}

/* l: the loop, c: C that has to do with it, m: made code, '.': any number of other native frames.
 */
static char native_shape(const struct frame *frame)
{
	const struct record_range *own = &process.ranges[0];
	uint64_t pc = frame->addr - own->offset + own->start;

	if (frame->flags & FRAME_ANON)
		return 'm';
	if (frame->kind != FRAME_NATIVE || frame->file_id != own->file_id)
		return '.';
	return scripts_in_loop(pc) ? 'l' : scripts_in_c(pc) ? 'c' : '.';
}

/* 1 to 9: that function, with all that belongs to it; ?: lost; !: wrong. */
static char script_shape(const struct frame *frame)
{
	long function = (struct scripts_code *)frame->addr - scripts_code;

	if (frame->language != runtime.language || frame->file_id != process.ranges[0].file_id ||
	    frame[1].kind != FRAME_COOKIE)
		return '!';
	if (!frame->addr)
		return frame[1].file_id || frame[1].addr ? '!' : '?';
	if (function < 1 || function >= SCRIPTS_MAX ||
	    frame[1].file_id != scripts_where((int)function) ||
	    frame[1].addr != scripts_cookie((int)function))
		return '!';
	return (char)('0' + function % 10);
}

/* A letter for each frame, leaf first. */
static const char *shape(const struct record_sample *sample)
{
	static char text[RECORD_USER_FRAMES_MAX + 1];
	const struct frame *frames = sample->frames + sample->kernel_frames;
	size_t n = 0;

	for (uint32_t i = 0; i < sample->user_slots; i++) {
		bool script = frames[i].kind == FRAME_SCRIPT && i + 1 < sample->user_slots;
		char letter = script ? script_shape(&frames[i]) : native_shape(&frames[i]);

		i += script;
		if (letter != '.' || !n || text[n - 1] != '.')
			text[n++] = letter;
	}
	text[n] = 0;
	return text;
}

static void assert_all(const char *expected, enum record_stop stop)
{
	sample();
	for (size_t i = 0; i < rig.samples_n; i++) {
		assert_string_equal(shape(rig.samples[i]), expected);
		assert_int_equal(rig.samples[i]->stop, stop);
	}
}

static void assert_work(void (*work)(void), const char *expected)
{
	pid_t pid = start(work, true);

	assert_all(expected, STOP_COMPLETE);
	end(pid);
}

static void test_two_activations(void **state)
{
	pid_t pid;

	(void)state;
	skip_unless_root();
	make(two_runs);
	assert_work(scripts_work, TWO_RUNS);
	/* The same process if its file tells of no runtime, and one that has just begun. */
	pid = start(scripts_work, false);
	assert_all("clclc.", STOP_COMPLETE);
	end(pid);
	make((const int[]){-1});
	assert_work(scripts_work, "clclc.");
	/* Fewer than the native stack has room for: nothing is shown twice. */
	make((const int[]){2, 0, -1});
	assert_work(scripts_work, "c2lclc.");
}

/* What cannot be read is said once, where it was met, and the native stack goes on. */
static void test_lost(void **state)
{
	(void)state;
	skip_unless_root();
	make(two_runs);
	scripts_frame[3].back = (void *)8;
	assert_work(scripts_work, "c54lc3?lc.");
	make(two_runs);
	scripts_frame[1].code = (void *)(UINT64_MAX - 7);
	assert_work(scripts_work, "c5?lclc.");
	make(two_runs);
	scripts_thread = (void *)16;
	assert_work(scripts_work, "c?lclc.");
	make(two_runs);
	assert_work(scripts_work_lost, "c?lclc.");
}

/* A ring of frames ends when the record is full, and so does a list that is too long for it. */
static void test_too_many(void **state)
{
	int functions[SCRIPTS_MAX];

	(void)state;
	skip_unless_root();
	for (int ring = 0; ring < 2; ring++) {
		pid_t pid;

		for (int i = 0; i < SCRIPTS_MAX - 1; i++)
			functions[i] = i + 1;
		functions[SCRIPTS_MAX - 1] = -1;
		make(functions);
		if (ring)
			scripts_frame[6].back = scripts_frame;
		pid = start(scripts_work, true);
		sample();
		for (size_t i = 0; i < rig.samples_n; i++) {
			const char *letters = shape(rig.samples[i]);

			assert_int_equal(rig.samples[i]->stop, STOP_DEPTH);
			assert_in_range(rig.samples[i]->user_slots, RECORD_USER_FRAMES_MAX - 1,
					RECORD_USER_FRAMES_MAX);
			assert_memory_equal(letters, ring ? "c1234567123" : "c1234567890", 11);
			assert_null(strpbrk(letters, "!?"));
		}
		end(pid);
	}
}

/* Wherever the border between two chunks lies in what the table tells of the runtime. */
static void test_in_two_chunks(void **state)
{
	uint32_t words, *second;
	struct bpf_file *file;
	int chunk;
	pid_t pid;

	(void)state;
	skip_unless_root();
	make(two_runs);
	pid = start(scripts_work, true);
	chunk = loader_bpf_chunk(rig.bpf.map[BPF_CHUNKS], 1);
	assert_true(chunk >= 0);
	second = mmap(NULL, TABLES_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, chunk, 0);
	assert_true(second != MAP_FAILED);
	file = &store.files[process.ranges[0].file_id % TABLES_FILES_MAX];
	words = (uint32_t)table_words(own_table);
	for (uint32_t behind = 0; behind <= TABLE_RUNTIME_WORDS; behind += 4) {
		uint32_t before = words - behind;

		file->first = TABLES_CHUNK_WORDS - before;
		memcpy(store.words + file->first, own_table + 1, 4 * before);
		memcpy(second, (const uint32_t *)(own_table + 1) + before, 4 * behind);
		assert_all(TWO_RUNS, STOP_COMPLETE);
	}
	munmap(second, TABLES_CHUNK_BYTES);
	close(chunk);
	end(pid);
}

/* Code in no file is its runtime's, if that is of a language that makes some. */
static void test_made_code(void **state)
{
	struct bpf_process entry;
	uint32_t anon = 0;
	pid_t pid;

	(void)state;
	skip_unless_root();
	for (int made = 0; made < 2; made++) {
		make(two_runs);
		runtime.language = made ? LANG_RUBY : LANG_PYTHON;
		runtime.thread = TABLE_THREAD_NONE;
		/* Ruby's walker knows made code by a caller near the first one, and has it nowhere else. */
		runtime.loops[0].start = runtime.loops[0].end = runtime.loops[1].start;
		pid = start(scripts_work_made, true);
		for (uint32_t i = 0; i < process.ranges_n; i++)
			anon = process.ranges[i].flags & RANGE_ANON ? i + 1 : anon;
		/* its file, nobody's, and what is no range of the process, or no file's */
		for (uint32_t by = 0; by < 5; by++) {
			uint32_t bad[] = {1, 0, process.ranges_n + 1, UINT32_MAX, anon};

			assert_int_equal(bpf_map_lookup_elem(rig.bpf.map[BPF_PROCS], &pid, &entry),
					 0);
			entry.made_by = bad[by];
			assert_int_equal(
			    bpf_map_update_elem(rig.bpf.map[BPF_PROCS], &pid, &entry, BPF_ANY), 0);
			assert_all(made && by == 0 ? "?mc." : "mc.", STOP_COMPLETE);
		}
		end(pid);
	}
	assert_true(anon > 0);
}

/* --- What a thread keeps for the runtime. --- */

static void assert_thread(enum table_thread kind, const void *at)
{
	/* Nothing is found where it was before. */
	scripts_thread = NULL;
	runtime.thread = kind;
	runtime.thread_at = scripts_vaddr(&runtime, &process.ranges[0], at);
	assert_work(scripts_work, TWO_RUNS);
}

/* Where a library has the first relocation of this kind. */
static void *relocated(const char *library, uint64_t type, void ***word)
{
	void **(*word_at)(void), *handle = dlopen(library, RTLD_NOW);
	const Elf64_Rela *rela = NULL;
	struct link_map *map;
	size_t bytes = 0;

	assert_non_null(handle);
	word_at = (void **(*)(void))dlsym(handle, "tls_word_at");
	assert_non_null(word_at);
	*word = word_at();
	assert_int_equal(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
	for (const Elf64_Dyn *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_RELA)
			rela = (const Elf64_Rela *)d->d_un.d_ptr;
		if (d->d_tag == DT_RELASZ)
			bytes = d->d_un.d_val;
	}
	for (size_t i = 0; i < bytes / sizeof(*rela); i++)
		if (ELF64_R_TYPE(rela[i].r_info) == type)
			return (void *)(map->l_addr + rela[i].r_offset);
	fail_msg("%s has no relocation of type %lu", library, (unsigned long)type);
	return NULL;
}

/* Beside this program. */
static const char *library(const char *name)
{
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);

	assert_true(n > 0);
	path[n] = 0;
	strcpy(strrchr(path, '/') + 1, name);
	return path;
}

static void test_variables_of_libraries(void **state)
{
	static const struct {
		const char *library;
		uint64_t type;
		enum table_thread kind;
	} way[] = {{"tls_static.so", R_X86_64_TPOFF64, TABLE_THREAD_GOT},
		   {"tls_dynamic.so", R_X86_64_DTPMOD64, TABLE_THREAD_DTV}};

	(void)state;
	skip_unless_root();
	for (int i = 0; i < 2; i++) {
		void **word, *at = relocated(library(way[i].library), way[i].type, &word);

		make(two_runs);
		*word = &scripts_state;
		assert_thread(way[i].kind, at);
	}
}

static void test_keys(void **state)
{
	static pthread_key_t key[3 * 32];
	static uint32_t wrong = UINT32_MAX;

	(void)state;
	skip_unless_root();
	for (size_t i = 0; i < sizeof(key) / sizeof(key[0]); i++)
		assert_int_equal(pthread_key_create(&key[i], NULL), 0);
	for (size_t i = 0; i < sizeof(key) / sizeof(key[0]); i += 62) {
		make(two_runs);
		print_message("key %u\n", key[i]);
		pthread_setspecific(key[i], &scripts_state);
		assert_thread(TABLE_THREAD_KEY, &key[i]);
		pthread_setspecific(key[i], NULL);
	}
	make(two_runs);
	runtime.thread = TABLE_THREAD_KEY;
	runtime.thread_at = scripts_vaddr(&runtime, &process.ranges[0], &wrong);
	assert_work(scripts_work, "c?lclc.");
	for (size_t i = 0; i < sizeof(key) / sizeof(key[0]); i++)
		pthread_key_delete(key[i]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_two_activations),
	    cmocka_unit_test(test_lost),
	    cmocka_unit_test(test_too_many),
	    cmocka_unit_test(test_in_two_chunks),
	    cmocka_unit_test(test_made_code),
	    cmocka_unit_test(test_variables_of_libraries),
	    cmocka_unit_test(test_keys),
	};

	/* All, or those that are named so. */
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	/* A rig that hangs ends, and its children with it. */
	alarm(200);
	rig_rate_hz = RATE_HZ;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
