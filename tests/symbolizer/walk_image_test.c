/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over images of real processes, stopped anywhere: the same return addresses as libdw
 * finds with the process before it. Then over the same images with damage in them: whatever comes
 * out lies in a range, and it ends.
 *
 *   walk_image_test [N]   N images of each program (60)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolizer/peers.h"
#include "symbolizer/walk.h"
#include "tests/symbolizer/image.h"

#define DAMAGED_PER_IMAGE 20
#define WARM_MS		  100

static unsigned images = 60;
static struct reader reader;
static struct files files;
static struct filetables tables;
static struct peers peers;
static struct channel sampler;
static int sampler_end;
static struct image image;
static struct frame frames[RECORD_USER_FRAMES_MAX];
static uint32_t frames_n;
static enum record_stop stop;
static struct {
	unsigned images, whole, frames, shorter, longer, other, astray, damaged;
} sum;

static void open_files(void)
{
	int pair[2];

	memset(&reader, 0, sizeof(reader));
	reader_open(&reader, false);
	assert_int_equal(channel_pair(pair), 0);
	channel_init(&sampler, pair[0], ROLE_SYMBOLIZER, ROLE_SAMPLER, true);
	sampler_end = pair[1];
	assert_int_equal(files_open(&files, &reader, &sampler, 1 << 20), 0);
	filetable_open(&tables, &files, &sampler, 64 << 20);
	peers_open(&peers, &tables, 1, 0);
	memset(&sum, 0, sizeof(sum));
}

static void close_files(void)
{
	files_close(&files);
	reader_close(&reader);
	close(sampler.fd);
	close(sampler_end);
}

static void walk(void)
{
	frames_n = walk_stack(image.ranges, image.ranges_n, &image.regs, image.stack,
			      image.stack_bytes, &tables, frames, &stop);
}

static void show(const char *what)
{
	fprintf(stderr, "  %s: stop %d, sp %#lx, stack %zu bytes\n", what, stop,
		(unsigned long)image.regs.sp, image.stack_bytes);
	for (uint32_t i = 0; i < frames_n || i < image.pcs_n; i++) {
		uint64_t ours = i < frames_n ? image_pc(&image, &frames[i]) : 0;
		uint64_t theirs = i < image.pcs_n ? image.pcs[i] : 0;

		if (i < 12 || ours != theirs)
			fprintf(stderr, "    %2u  ours %#14lx  libdw %#14lx  %s\n", i,
				(unsigned long)ours, (unsigned long)theirs,
				i < frames_n && frames[i].file_id &&
					frames[i].file_id <= image.files_n
				    ? image.paths[frames[i].file_id - 1]
				    : "");
		if (i > 40)
			return;
	}
}

/* libdw takes the handler for the caller when libgcc is about to leave for it (ehreturn.h). */
static bool is_led_astray(uint32_t same)
{
	uint32_t id = same > 0 ? frames[same - 1].file_id : 0;

	return stop == STOP_COMPLETE && id > 0 && id <= image.files_n &&
	       strstr(image.paths[id - 1], "/libgcc_s");
}

static void compare(void)
{
	uint32_t n = frames_n < image.pcs_n ? frames_n : image.pcs_n, same = 0;

	while (same < n && image_pc(&image, &frames[same]) == image.pcs[same])
		same++;
	sum.images++;
	sum.frames += same;
	sum.whole += stop == STOP_COMPLETE;
	if (same < n && is_led_astray(same))
		sum.astray++;
	else if (same < n && sum.other++ < 3)
		show("another frame");
	else if (same == n && frames_n < image.pcs_n && sum.shorter++ < 1)
		show("shorter");
	else if (same == n && frames_n > image.pcs_n && image.pcs_whole && sum.longer++ < 3)
		show("longer");
}

static uint64_t random_next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Words of the stack, registers and ranges that were something else before. */
static void damage(uint64_t *seed)
{
	uint64_t *stack = (uint64_t *)(void *)image.stack, *regs = (uint64_t *)&image.regs;
	size_t words = image.stack_bytes / 8 < 512 ? image.stack_bytes / 8 : 512;
	const struct record_range *range = &image.ranges[random_next(seed) % image.ranges_n];

	for (int i = 0; i < 4 && words; i++)
		stack[random_next(seed) % words] =
		    i % 2 ? range->start + random_next(seed) % (range->end - range->start)
			  : image.regs.sp + random_next(seed) % 8192;
	if (random_next(seed) % 4 == 0)
		regs[random_next(seed) % (sizeof(image.regs) / 8)] = random_next(seed);
	if (random_next(seed) % 8 == 0)
		image.stack_bytes = random_next(seed) % (image.stack_bytes + 1);
	if (random_next(seed) % 8 == 0)
		image.ranges[random_next(seed) % image.ranges_n].start += random_next(seed) % 8192;
	if (random_next(seed) % 8 == 0)
		image.ranges[random_next(seed) % image.ranges_n].file_id ^= 1;
}

static void walk_damaged(uint64_t *seed)
{
	for (int i = 0; i < DAMAGED_PER_IMAGE; i++) {
		damage(seed);
		walk();
		assert_in_range(stop, STOP_COMPLETE, STOP_COUNT - 1);
		assert_in_range(frames_n, 1, RECORD_USER_FRAMES_MAX);
		for (uint32_t k = 1; k < frames_n; k++)
			assert_int_not_equal(image_pc(&image, &frames[k]), 0);
		sum.damaged++;
	}
}

static void pause_us(uint64_t us)
{
	struct timespec t = {.tv_sec = (time_t)(us / 1000000),
			     .tv_nsec = (long)(us % 1000000 * 1000)};

	nanosleep(&t, NULL);
}

/* Images of one program, of which so many in a hundred may be something else than libdw's. */
static void run(char *const argv[], unsigned allowed)
{
	uint64_t seed = 0x2545f4914f6cdd1dull;
	char name[128] = "";

	open_files();
	for (int i = 0; argv[i]; i++)
		snprintf(name + strlen(name), sizeof(name) - strlen(name), "%s%.40s", i ? " " : "",
			 argv[i]);
	image_start(&image, argv);
	pause_us(WARM_MS * 1000);
	for (unsigned i = 0; i < images; i++) {
		pause_us(random_next(&seed) % 5000);
		if (!image_take(&image, &files))
			break;
		tables.now_ns += 1000000000;
		walk();
		compare();
		walk_damaged(&seed);
	}
	image_end(&image);
	close_files();
	fprintf(stderr,
		"%-40.40s %3u images, %3u whole, %6u frames as libdw; shorter %u, longer %u, "
		"other %u, libdw astray %u; %u damaged\n",
		name, sum.images, sum.whole, sum.frames, sum.shorter, sum.longer, sum.other,
		sum.astray, sum.damaged);
	assert_int_equal(sum.images, images);
	/* See test_calls_that_are_linked(). */
	if (!getenv("LD_BIND_NOT"))
		assert_int_equal(sum.longer, 0);
	assert_true((sum.shorter + sum.other) * 100 <= allowed * sum.images);
}

/* build/[asan/]tests/symbolizer/x -> .../bench/workloads/unwind/name */
static char *workload(const char *name)
{
	static char path[4200];
	ssize_t n = readlink("/proc/self/exe", path, 4095);

	assert_true(n > 0);
	path[n] = 0;
	for (int i = 0; i < 3; i++)
		*strrchr(path, '/') = 0;
	strcat(path, "/bench/workloads/unwind/");
	strcat(path, name);
	return path;
}

#define RUN(allowed, ...) run((char *[]){__VA_ARGS__, NULL}, allowed)

static void test_workloads(void **state)
{
	(void)state;
	RUN(0, workload("native"), "burn", "--seconds", "60");
	RUN(0, workload("native"), "recursion", "--seconds", "60");
	RUN(0, workload("native"), "signal", "--seconds", "60");
	/* What was interrupted has its frames on the other stack, which a sample does not carry. */
	RUN(100, workload("native"), "altstack", "--seconds", "60");
	RUN(0, workload("native"), "vdso", "--seconds", "60");
	RUN(0, workload("native"), "syscall", "--seconds", "60");
	RUN(0, workload("plt"), "plt", "--seconds", "60");
	RUN(0, workload("stripped"), "burn", "--seconds", "60");
	/* libdw takes the handler for the caller when libgcc is about to leave for it (ehreturn.h).
	 */
	RUN(5, workload("throw"), "--seconds", "60");
}

static void test_programs_of_the_distribution(void **state)
{
	(void)state;
	RUN(0, "python3", "-c", "import json\nwhile True: json.dumps(list(range(50)), indent=1)");
	RUN(0, "perl", "-e",
	    "while (1) { $_ = 'abc' x 100; s/b(c)/$1/g; sort { $a <=> $b } 1..99 }");
	RUN(0, "bash", "-c", "while :; do x=${x:1:40}abc; [[ $x =~ b+ ]]; done");
	RUN(0, "sort", "--parallel=1", "/dev/zero");
	RUN(0, "xz", "-T1", "-9", "-c");
	RUN(0, "gzip", "-9", "-c");
	RUN(0, "sha256sum");
	RUN(0, "openssl", "dgst", "-sha512");
}

/*
 * Every call between programs and libraries goes through the linker, as the first one does
 * anywhere: its frame is counted from rbx. libdw takes rbx for undefined and sometimes stops there.
 */
static void test_calls_that_are_linked(void **state)
{
	(void)state;
	setenv("LD_BIND_NOT", "1", 1);
	RUN(0, workload("plt"), "plt", "--seconds", "60");
	assert_int_equal(sum.whole, images);
	RUN(0, "perl", "-e",
	    "while (1) { $_ = 'abc' x 100; s/b(c)/$1/g; sort { $a <=> $b } 1..99 }");
	assert_int_equal(sum.whole, images);
	RUN(0, "bash", "-c", "while :; do x=${x:1:40}abc; [[ $x =~ b+ ]]; done");
	assert_int_equal(sum.whole, images);
	unsetenv("LD_BIND_NOT");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_workloads),
	    cmocka_unit_test(test_programs_of_the_distribution),
	    cmocka_unit_test(test_calls_that_are_linked),
	};

	if (argc > 1)
		images = (unsigned)atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
