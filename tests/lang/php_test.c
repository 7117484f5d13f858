/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PHP: what is recognized, what names are made of, and whether samples of a known chain have it.
 *
 *   php_test [-n SAMPLES] ROOT ...
 * takes the samples of the php of each root instead (of debootstrap; / is this system), with
 * opcache and without, and with both kinds of JIT, and prints them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/lang/php.h"
#include "tests/lang/check.h"
#include "tests/lang/livefile.h"

#define CHAIN	    "bench/workloads/php/chain.php"
#define SECONDS	    "100" /* more than a run takes */
#define LOOP_BEHIND 3	  /* lines */

/* --- Samples. --- */

#define OPCACHE "-dopcache.enable_cli=1"
#define BUFFER	"-dopcache.jit_buffer_size=32M"

static const struct mode {
	const char *name, *how;
	const char *options[3];
	bool jit, cut; /* the native stack ends at code that nobody can say anything of */
} modes[] = {
    {"plain", "loop", {NULL}, false, false},
    {"opcache", "loop", {OPCACHE}, false, false},
    {"jit tracing", "loop", {OPCACHE, BUFFER, "-dopcache.jit=tracing"}, true, false},
    {"jit function", "loop", {OPCACHE, BUFFER, "-dopcache.jit=function"}, true, false},
    {"plain, C", "hash", {NULL}, false, false},
    {"jit, C", "hash", {OPCACHE, BUFFER, "-dopcache.jit=tracing"}, true, false},
    {"plain, regex", "regex", {NULL}, false, true},
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

/* Does the native stack go from the first function through each run of the loop? */
static bool natives_are_whole(const struct live_stack *stack)
{
	uint32_t loops = 0;

	for (uint32_t i = 0; i < stack->frames_n; i++)
		loops += !strcmp(stack->frames[i].name, "execute_ex");
	/* {main}, the callbacks of array_map() and usort(), the generator. */
	return stack->stop == STOP_COMPLETE && loops == 4;
}

static uint32_t whole_natives(pid_t pid, uint32_t samples)
{
	struct live *live = live_open(pid);
	uint64_t seed = 88172645463325252ull;
	uint32_t whole = 0;

	assert_non_null(live);
	for (uint32_t i = 0; i < samples; i++) {
		live_pause(&seed, 3000);
		whole += natives_are_whole(live_sample(live, pid));
	}
	live_close(live);
	return whole;
}

/* argv begins with the program, or with what starts it in a root. */
static struct check_result run(const char *const *program, const char *script,
			       const struct mode *mode, uint32_t samples, uint32_t *whole)
{
	struct check_workload workload;
	struct check_result result = {0};
	const char *argv[12];
	size_t n = 0;

	while (*program)
		argv[n++] = *program++;
	for (size_t i = 0; i < 3 && mode->options[i]; i++)
		argv[n++] = mode->options[i];
	argv[n++] = script;
	argv[n++] = SECONDS;
	argv[n++] = mode->how;
	argv[n] = NULL;
	if (!check_start(&workload, (char *const *)argv))
		return result;
	/* The loop begins so far behind its function. What the JIT makes knows no more than that.
	 */
	if (!mode->jit && !strcmp(mode->how, "loop"))
		workload.chain.frames[workload.chain.n - 1].first += LOOP_BEHIND;
	result = check_run(workload.pid, &workload.chain,
			   (struct check_options){.samples = samples, .label = mode->name});
	*whole = mode->cut ? 0 : whole_natives(workload.pid, samples / 4);
	check_stop(&workload);
	return result;
}

static void test_samples(void **state)
{
	static const char *const program[] = {"php", NULL};

	(void)state;
	if (!check_program("php")) {
		fprintf(stderr, "skipped: there is no php (package php-cli)\n");
		skip();
	}
	for (size_t i = 0; i < MODES; i++) {
		uint32_t whole;
		struct check_result result = run(program, CHAIN, &modes[i], 60, &whole);

		assert_true(check_passes(&result));
		if (!modes[i].cut)
			assert_in_range(whole, 14, 15);
	}
}

/* --- Names, out of memory that is made here. --- */

enum { FUNCTION = 0x1000, NAME = 0x2000, FILE_NAME = 0x3000, CLASS = 0x4000, CLASS_NAME = 0x5000 };

static struct lang_runtime runtime = {
    .walk.fields = {[PHP_LAST] = 80 / 4,
		    [PHP_LINE_START] = 160 / 4,
		    [PHP_OPCODES] = 88 / 8,
		    [PHP_FILENAME] = 152 / 8},
};
static char memory[0x6000];
static struct lang_function function;

static void put(uint64_t at, const void *bytes, size_t n)
{
	memcpy(memory + at, bytes, n);
}

static void put_u64(uint64_t at, uint64_t value)
{
	put(at, &value, sizeof(value));
}

static void put_string(uint64_t at, const char *text, size_t n)
{
	put_u64(at + PHP_STRING_HASH, 0x8000000000000000ull | (unsigned char)text[0] | n << 8);
	put_u64(at + PHP_STRING_HASH + 8, n);
	put(at + sizeof(struct php_string), text, n);
}

static uint64_t u64_at(uint64_t at)
{
	uint64_t value;

	memcpy(&value, memory + at, sizeof(value));
	return value;
}

/* As the walker has it (php_push() of bpf/lang/php.bpf.c). */
static uint64_t cookie_of_all(void)
{
	uint64_t cookie = php_cookie_head((const struct php_function *)(memory + FUNCTION));
	uint32_t last, start;

	memcpy(&last, memory + FUNCTION + 80, 4);
	memcpy(&start, memory + FUNCTION + 160, 4);
	cookie = php_mix(cookie, u64_at(FUNCTION + 88));
	cookie = php_mix(cookie, FILE_NAME);
	cookie = php_mix(cookie, (uint64_t)last << 32 | start);
	for (uint64_t at = NAME; at <= FILE_NAME; at += FILE_NAME - NAME) {
		if (at == NAME && !u64_at(FUNCTION + 8))
			continue;
		cookie = php_mix(cookie, u64_at(at + PHP_STRING_HASH));
		cookie = php_mix(cookie, u64_at(at + PHP_STRING_HASH + 8));
	}
	return (cookie & ~7ull) | PHP_WHOLE | PHP_FILE_HASH |
	       (u64_at(FUNCTION + 8) ? PHP_NAME_HASH : 0);
}

static void put_method(void)
{
	uint32_t last = 9, start = 12;

	memset(memory, 0, sizeof(memory));
	memory[FUNCTION] = PHP_USER;
	put_u64(FUNCTION + 8, NAME);
	put_u64(FUNCTION + 16, CLASS);
	put_u64(FUNCTION + 88, 0x700000);
	put_u64(FUNCTION + 152, FILE_NAME);
	put(FUNCTION + 80, &last, 4);
	put(FUNCTION + 160, &start, 4);
	put_u64(CLASS + 8, CLASS_NAME);
	put_string(NAME, "total", 5);
	put_string(FILE_NAME, "/srv/shop.php", 13);
	put_string(CLASS_NAME, "Shop\\Cart", 9);
}

static bool name_it(uint32_t where, uint64_t cookie)
{
	struct lang_frame frame = {FUNCTION, cookie, where};
	struct remote remote = {.fd = memfd_create("memory", MFD_CLOEXEC)};
	bool named;

	assert_int_equal(pwrite(remote.fd, memory, sizeof(memory), 0), sizeof(memory));
	memset(&function, 0, sizeof(function));
	remote_begin(&remote);
	named = php_lang.name_frame(&remote, &runtime, &frame, &function);
	close(remote.fd);
	return named;
}

static void test_names(void **state)
{
	static const char anonymous[] = "class@anonymous\0/srv/shop.php:3$0";

	(void)state;
	put_method();
	assert_true(name_it(14, cookie_of_all()));
	assert_string_equal(function.name, "Shop\\Cart::total");
	assert_string_equal(function.file, "/srv/shop.php");
	assert_int_equal(function.line, 14);
	assert_int_equal(function.start_line, 12);
	put_string(CLASS_NAME, anonymous, sizeof(anonymous) - 1);
	assert_true(name_it(14, cookie_of_all()));
	assert_string_equal(function.name, "class@anonymous::total");
	/* Without a name. */
	put_u64(FUNCTION + 8, 0);
	assert_true(name_it(14, cookie_of_all()));
	assert_string_equal(function.name, "{main}");
	assert_true(name_it(14 | PHP_INCLUDED, cookie_of_all()));
	assert_string_equal(function.name, "include(shop.php)");
	assert_int_equal(function.line, 14);
	memory[FUNCTION] = PHP_EVAL;
	assert_true(name_it(14, cookie_of_all()));
	assert_string_equal(function.name, "eval()");
}

/* Another function at the same place. */
static void test_what_has_changed_has_no_name(void **state)
{
	static const uint64_t places[] = {
	    FUNCTION,	    FUNCTION + 8,   FUNCTION + 16, FUNCTION + 80, FUNCTION + 88,
	    FUNCTION + 152, FUNCTION + 160, NAME + 8,	   NAME + 16,	  FILE_NAME + 8};
	uint64_t cookie;

	(void)state;
	put_method();
	cookie = cookie_of_all();
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		put_method();
		memory[places[i]] ^= 4;
		assert_false(name_it(14, cookie));
	}
	put_method();
	assert_true(name_it(14, cookie));
	/* The texts that the walker could not read do not count. */
	assert_false(name_it(14, cookie & ~(uint64_t)PHP_NAME_HASH));
}

static void test_texts_are_bounded(void **state)
{
	char *text = memory + NAME + sizeof(struct php_string);

	(void)state;
	put_method();
	put_u64(NAME + 16, 1ull << 40);
	assert_false(name_it(14, cookie_of_all()));
	put_u64(NAME + 16, 0xf00);
	memset(text, 'x', 0xf00);
	assert_true(name_it(14, cookie_of_all()));
	assert_int_equal(strlen(function.name), sizeof(function.name) - 1);
	put_u64(CLASS_NAME + 16, 0xf00);
	memset(memory + CLASS_NAME + sizeof(struct php_string), 'y', 0xf00);
	assert_true(name_it(14, cookie_of_all()));
	assert_int_equal(strlen(function.name), sizeof(function.name) - 1);
	put_method();
	put_u64(NAME + 16, 0);
	assert_false(name_it(14, cookie_of_all()));
}

/* --- The file. --- */

/* What this program is recognized as, with all that says which version it is overwritten. */
static const struct livefile *recognize(const char *program, const char *version)
{
	static const char mark[] = "X-Powered-By: PHP/";
	char path[] = "/tmp/sconce-php-XXXXXX", *bytes, *at;
	int fd = mkstemp(path), from = open(program, O_RDONLY | O_CLOEXEC);
	const struct livefile *file;
	struct stat st;
	size_t n;

	assert_int_equal(fstat(from, &st), 0);
	n = (size_t)st.st_size;
	at = bytes = malloc(n);
	assert_int_equal(read(from, bytes, n), n);
	close(from);
	for (; version && (at = memmem(at, (size_t)(bytes + n - at), mark, 18)); at++)
		memcpy(at + 18, version, strlen(version));
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
	free(bytes);
	file = livefile_get(livefile_id(path, path, 0, 0));
	unlink(path);
	return file;
}

static void test_which_file_it_is(void **state)
{
	const struct livefile *file;
	char path[4096];

	(void)state;
	assert_int_equal(recognize("/proc/self/exe", NULL)->recognized, -ENOENT);
	if (!realpath("/usr/bin/php", path))
		skip();
	file = recognize(path, NULL);
	assert_int_equal(file->recognized, 0);
	assert_int_equal(file->runtime.walk.language, LANG_PHP);
	assert_int_not_equal(file->runtime.walk.loops[0].end, 0);
	/* Until 7.4 a generator had one thing more before its frame. */
	assert_int_equal(file->runtime.walk.fields[PHP_GENERATOR],
			 file->runtime.version[0] == '7' ? 64 : 56);
	/* Another version is none that we know; a wrong one is found out. */
	file = recognize(path, "9.3.");
	assert_int_equal(file->recognized, -ENOTSUP);
	assert_memory_equal(file->runtime.version, "9.3.", 4);
	assert_int_equal(recognize(path, "7.4.")->recognized, -ENOTSUP);
	assert_int_equal(recognize(path, "x.x.")->recognized, -ENOTSUP);
	livefile_forget();
}

/* --- Other roots. --- */

static bool matrix_root(const char *root, uint32_t samples)
{
	const char *program[] = {"chroot", root, "php", NULL};
	char copy[4096], command[12288];
	bool good = true;

	snprintf(copy, sizeof(copy), "%s/tmp/sconce-php", root);
	snprintf(command, sizeof(command), "rm -rf '%s' && cp -r bench/workloads/php '%s'", copy,
		 copy);
	if (system(command))
		return false;
	for (size_t i = 0; i < MODES; i++) {
		uint32_t whole = 0;
		struct check_result result;

		fprintf(stderr, "%s: ", root);
		result = run(program, "/tmp/sconce-php/chain.php", &modes[i], samples, &whole);
		if (!modes[i].cut)
			fprintf(stderr, "    native stacks whole: %u of %u\n", whole, samples / 4);
		good = good && check_passes(&result);
	}
	snprintf(command, sizeof(command), "rm -rf '%s'", copy);
	return !system(command) && good;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_what_has_changed_has_no_name),
	    cmocka_unit_test(test_texts_are_bounded),
	    cmocka_unit_test(test_which_file_it_is),
	    cmocka_unit_test(test_samples),
	};
	uint32_t samples = 200;
	bool good = true;
	int c;

	while ((c = getopt(argc, argv, "n:")) != -1)
		samples = c == 'n' ? (uint32_t)atoi(optarg) : samples;
	if (optind == argc)
		return cmocka_run_group_tests(tests, NULL, NULL);
	for (int i = optind; i < argc; i++)
		good = matrix_root(argv[i], samples) && good;
	return good ? 0 : 1;
}
