/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/units.h"

static struct options options;
static char error[OPTIONS_ERROR_BYTES];
static char file[] = "/tmp/options-test-XXXXXX";

/* arguments end with NULL */
static int parse(enum options_command command, ...)
{
	char *argv[16];
	int argc = 0;
	va_list args;

	va_start(args, command);
	while ((argv[argc] = va_arg(args, char *)))
		argc++;
	va_end(args);
	error[0] = 0;
	return options_parse(&options, command, argc, argv, error);
}

#define good(...) assert_int_equal(parse(__VA_ARGS__, NULL), 0)

static void bad(const char *says)
{
	if (!strstr(error, says))
		fail_msg("'%s' does not say '%s'", error, says);
}

#define refuses(says, ...)                                                                         \
	do {                                                                                       \
		assert_int_equal(parse(__VA_ARGS__, NULL), -1);                                    \
		bad(says);                                                                         \
	} while (0)

static void write_file(const char *text)
{
	FILE *f = fopen(file, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int clean(void **state)
{
	static const char *const names[] = {"SCONCE_RATE", "SCONCE_LISTEN", "SCONCE_CONFIG",
					    "SCONCE_VIEWER", "PROFILES_MAX_SLOTS",
					    "PROFILES_SLOT_TTL_SECONDS", "PROFILES_SLOT_MAX_BYTES",
					    "PROFILES_CLEANUP_INTERVAL_SECONDS",
					    "OTEL_EXPORTER_OTLP_ENDPOINT",
					    "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT",
					    "OTEL_EXPORTER_OTLP_HEADERS",
					    "OTEL_EXPORTER_OTLP_PROFILES_HEADERS",
					    "OTEL_EXPORTER_OTLP_TIMEOUT",
					    "OTEL_EXPORTER_OTLP_COMPRESSION",
					    "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_SERVICE_NAME",
					    "OTEL_RESOURCE_ATTRIBUTES", "SCONCE_OTLP_HEADERS",
					    "SCONCE_RUN_DIR"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	return 0;
}

static void defaults(void **state)
{
	(void)state;
	good(COMMAND_RUN);
	assert_int_equal(options.config.mode, MODE_RUN);
	assert_int_equal(options.config.rate_hz, 19);
	assert_true(options.config.all);
	assert_true(options.config.viewer.enabled);
	assert_string_equal(options.config.remote.url, "");
	good(COMMAND_RECORD, "-a", "-o", "x.folded");
	assert_int_equal(options.config.mode, MODE_RECORD);
	assert_int_equal(options.config.rate_hz, 99);
	assert_false(options.config.viewer.enabled);
	good(COMMAND_STATUS, "--json");
	assert_true(options.json);
}

static void flags_win_over_environment_over_file(void **state)
{
	(void)state;
	write_file("rate: 11\nlisten: 127.0.0.1:1\nmax_slots: 3\n");
	good(COMMAND_RUN, "-c", file);
	assert_int_equal(options.config.rate_hz, 11);
	assert_int_equal(options.config.viewer.max_slots, 3);
	setenv("SCONCE_RATE", "12", 1);
	setenv("PROFILES_MAX_SLOTS", "4", 1);
	good(COMMAND_RUN, "--config", file);
	assert_int_equal(options.config.rate_hz, 12);
	assert_int_equal(options.config.viewer.max_slots, 4);
	assert_string_equal(options.config.viewer.listen, "127.0.0.1:1");
	good(COMMAND_RUN, "--rate=13", "--config", file);
	assert_int_equal(options.config.rate_hz, 13);
	setenv("SCONCE_CONFIG", file, 1);
	good(COMMAND_RUN);
	assert_string_equal(options.config.viewer.listen, "127.0.0.1:1");
	setenv("SCONCE_RATE", "", 1);
	good(COMMAND_RUN);
	assert_int_equal(options.config.rate_hz, 11);
}

static void yaml_nests_and_says_where(void **state)
{
	(void)state;
	write_file("# comment\notlp:\n  endpoint: http://c:4318\n  headers: \"a=b\"\nviewer: false\n");
	good(COMMAND_RUN, "-c", file);
	assert_string_equal(options.config.remote.url, "http://c:4318/v1development/profiles");
	assert_string_equal(options.config.remote.headers, "a=b");
	assert_false(options.config.viewer.enabled);
	write_file("rate: 11\nnonsense: 1\n");
	refuses(":2: nonsense: unknown option", COMMAND_RUN, "-c", file);
	write_file("rate: [1]\n");
	refuses(":1: a list", COMMAND_RUN, "-c", file);
	write_file("rate: {a\n");
	refuses(file, COMMAND_RUN, "-c", file);
	write_file("just text\n");
	refuses("mapping", COMMAND_RUN, "-c", file);
	write_file("a: {b: {c: {d: {e: 1}}}}\n");
	refuses("deeply", COMMAND_RUN, "-c", file);
	write_file("rate: 0\n");
	refuses(":1: rate: '0' is not between", COMMAND_RUN, "-c", file);
	refuses("cannot read /nowhere/x: No such file", COMMAND_RUN, "-c", "/nowhere/x");
	/* One file for all commands: what another one has is not an error. */
	write_file("output: x.folded\nlisten: 127.0.0.1:9\nrate: 21\n");
	good(COMMAND_STATUS, "-c", file);
	good(COMMAND_RECORD, "-c", file, "-a");
	assert_int_equal(options.config.rate_hz, 21);
}

static void opentelemetry_variables(void **state)
{
	(void)state;
	setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/", 1);
	setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=1", 1);
	setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2500", 1);
	setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none", 1);
	setenv("OTEL_SERVICE_NAME", "s", 1);
	setenv("OTEL_RESOURCE_ATTRIBUTES", "k=v", 1);
	good(COMMAND_RUN);
	assert_string_equal(options.config.remote.url, "http://c:4318/v1development/profiles");
	assert_string_equal(options.config.remote.headers, "a=1");
	assert_int_equal(options.config.remote.timeout_ms, 2500);
	assert_false(options.config.remote.gzip);
	assert_string_equal(options.config.service_name, "s");
	assert_string_equal(options.config.resource_attributes, "k=v");
	setenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "https://p/exactly", 1);
	setenv("OTEL_EXPORTER_OTLP_PROFILES_HEADERS", "a=2", 1);
	good(COMMAND_RUN);
	assert_string_equal(options.config.remote.url, "https://p/exactly");
	assert_string_equal(options.config.remote.headers, "a=2");
	setenv("SCONCE_OTLP_HEADERS", "a=3", 1);
	good(COMMAND_RUN, "--otlp-endpoint", "http://flag");
	assert_string_equal(options.config.remote.url, "http://flag/v1development/profiles");
	assert_string_equal(options.config.remote.headers, "a=3");
	/* A file is a file: nothing is shipped from a recording. */
	good(COMMAND_RECORD, "-a", "-o", "x.otlp");
	assert_string_equal(options.config.remote.url, "");
	assert_string_equal(options.config.service_name, "s");
	setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1);
	refuses("OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' is not http/protobuf", COMMAND_RUN);
}

static void slot_variables(void **state)
{
	(void)state;
	setenv("PROFILES_MAX_SLOTS", "5", 1);
	setenv("PROFILES_SLOT_TTL_SECONDS", "90", 1);
	setenv("PROFILES_SLOT_MAX_BYTES", "1048576", 1);
	setenv("PROFILES_CLEANUP_INTERVAL_SECONDS", "3", 1);
	good(COMMAND_RUN);
	assert_int_equal(options.config.viewer.max_slots, 5);
	assert_int_equal(options.config.viewer.slot_ttl_s, 90);
	assert_int_equal(options.config.viewer.slot_max_bytes, 1048576);
	assert_int_equal(options.config.viewer.cleanup_interval_s, 3);
	setenv("PROFILES_MAX_SLOTS", "many", 1);
	refuses("PROFILES_MAX_SLOTS: 'many' is not a whole number", COMMAND_RUN);
}

static void runtime_exes(void **state)
{
	(void)state;
	setenv("SCONCE_RUNTIME_EXE", "uwsgi,my-app", 1);
	good(COMMAND_RUN, "--runtime-exe", "other");
	assert_string_equal(options.config.runtime_exe[0], "uwsgi");
	assert_string_equal(options.config.runtime_exe[1], "my-app");
	assert_string_equal(options.config.runtime_exe[2], "other");
	assert_string_equal(options.config.runtime_exe[3], "");
	unsetenv("SCONCE_RUNTIME_EXE");
	good(COMMAND_RECORD, "-a", "-o", "x.otlp", "--runtime-exe", "a,b,c,d,e,f,g,h");
	assert_string_equal(options.config.runtime_exe[7], "h");
	refuses("'/bin/x' is not the name of a file", COMMAND_RUN, "--runtime-exe", "/bin/x");
	refuses("more than 8 names", COMMAND_RUN, "--runtime-exe", "a,b,c,d,e,f,g,h,i");
}

static void recording(void **state)
{
	(void)state;
	good(COMMAND_RECORD, "-F97", "-d", "1.5s", "-p", "1,2", "-p3", "-vo", "a.pb.gz");
	assert_int_equal(options.config.rate_hz, 97);
	assert_int_equal(options.duration_ms, 1500);
	assert_int_equal(options.config.targets_n, 3);
	assert_int_equal(options.config.targets[2], 3);
	assert_int_equal(options.config.format, FORMAT_PPROF);
	assert_true(options.verbose);
	assert_false(options.config.all);
	assert_true(options.config.follow);
	good(COMMAND_RECORD, "--no-follow", "-o", "a.otlp", "--", "make", "-j4");
	assert_int_equal(options.config.format, FORMAT_OTLP);
	assert_false(options.config.follow);
	assert_string_equal(options.program[0], "make");
	assert_string_equal(options.program[1], "-j4");
	refuses("give -p PID", COMMAND_RECORD, "-o", "a.folded");
	refuses("give -o FILE", COMMAND_RECORD, "-a");
	refuses("a.txt: the name has to end", COMMAND_RECORD, "-a", "-o", "a.txt");
	refuses(".folded: the name has to end", COMMAND_RECORD, "-a", "-o", ".folded");
	refuses("a program goes behind --", COMMAND_RECORD, "-a", "make");
	refuses("no program behind", COMMAND_RECORD, "-o", "a.otlp", "--");
	refuses("'x' is not a process id", COMMAND_RECORD, "-p", "x", "-o", "a.otlp");
	refuses("'0' is not a process id", COMMAND_RECORD, "-p", "0", "-o", "a.otlp");
}

static void what_is_wrong_is_named(void **state)
{
	(void)state;
	refuses("--foo: unknown option", COMMAND_RUN, "--foo");
	refuses("--foo: unknown option", COMMAND_RUN, "--foo=1");
	refuses("-x: unknown option", COMMAND_RUN, "-x");
	refuses("-p: unknown option", COMMAND_RUN, "-p", "1");
	refuses("--no-rate: unknown option", COMMAND_RUN, "--no-rate");
	refuses("unexpected argument", COMMAND_RUN, "now");
	refuses("--rate: needs a value (HZ)", COMMAND_RUN, "--rate");
	refuses("--rate: 'fast' is not a whole number", COMMAND_RUN, "--rate", "fast");
	refuses("--rate: '-1' is not a whole number", COMMAND_RUN, "--rate", "-1");
	refuses("-F: '0' is not between 1 and 1000", COMMAND_RUN, "-F", "0");
	refuses("'9' is not between 1 and 8", COMMAND_RUN, "--workers", "9");
	refuses("not a power of two", COMMAND_RUN, "--sample-queue", "3MiB");
	refuses("not a size like", COMMAND_RUN, "--sample-queue", "4MiBs");
	refuses("numeric address", COMMAND_RUN, "--listen", "localhost:80");
	refuses("numeric address", COMMAND_RUN, "--listen", "4041");
	refuses("http:// or https://", COMMAND_RUN, "--otlp-endpoint", "collector:4318");
	refuses("not gzip or none", COMMAND_RUN, "--otlp-compression", "zstd");
	refuses("absolute path", COMMAND_RUN, "--run-dir", "here");
	refuses("No such file", COMMAND_RUN, "--otlp-certificate", "not/there.pem");
	setenv("SCONCE_VIEWER", "perhaps", 1);
	refuses("SCONCE_VIEWER: 'perhaps' is not true or false", COMMAND_RUN);
}

static void files_of_the_exporter_become_absolute(void **state)
{
	(void)state;
	assert_int_equal(chdir("/etc"), 0);
	good(COMMAND_RUN, "--otlp-certificate", "../etc/passwd");
	assert_string_equal(options.config.remote.certificate, "/etc/passwd");
	good(COMMAND_RUN, "--otlp-client-key", "/not/there.pem");
	assert_string_equal(options.config.remote.client_key, "/not/there.pem");
}

static void text_that_is_too_long_is_refused(void **state)
{
	char text[2000];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	refuses("longer than 127 bytes", COMMAND_RUN, "--service-name", text);
	memcpy(text, "http://", 7);
	refuses("longer than 511 bytes", COMMAND_RUN, "--otlp-endpoint", text);
	text[500] = 0; /* fits alone, but not with what is appended */
	refuses("longer than", COMMAND_RUN, "--otlp-endpoint", text);
}

static void every_option_has_a_variable_and_a_key(void **state)
{
	static char seen[64][64];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; options_name(i); i++) {
		for (size_t k = 0; k < n; k++)
			assert_string_not_equal(seen[k], options_name(i));
		snprintf(seen[n++], sizeof(seen[0]), "%s", options_name(i));
		assert_true(strlen(options_name(i)) < 40);
	}
	assert_in_range(n, 30, 63);
}

/* What users read fits their terminal. */
static void help_is_at_most_80_columns_wide(void **state)
{
	int out = dup(STDOUT_FILENO);
	char line[256];
	FILE *f;

	(void)state;
	assert_non_null(freopen(file, "w", stdout));
	options_help(COMMAND_RUN);
	options_help(COMMAND_RECORD);
	options_help(COMMAND_STATUS);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);
	f = fopen(file, "r");
	while (fgets(line, sizeof(line), f))
		if (strlen(line) > 81)
			fail_msg("too wide: %s", line);
	fclose(f);
}

static void units(void **state)
{
	uint64_t v;

	(void)state;
	assert_true(units_bytes("8MiB", &v) && v == 8 << 20);
	assert_true(units_bytes("8M", &v) && v == 8 << 20);
	assert_true(units_bytes("64K", &v) && v == 65536);
	assert_true(units_bytes("1.5KiB", &v) && v == 1536);
	assert_true(units_bytes("1GB", &v) && v == 1000000000);
	assert_true(units_bytes("77", &v) && v == 77);
	assert_false(units_bytes("", &v));
	assert_false(units_bytes("MiB", &v));
	assert_false(units_bytes("-1", &v));
	assert_false(units_bytes("+1", &v));
	assert_false(units_bytes(" 1", &v));
	assert_false(units_bytes("0x10", &v));
	assert_false(units_bytes("1e9", &v));
	assert_false(units_bytes("99999999999GiB", &v));
	assert_true(units_duration_ms("5s", 1000, &v) && v == 5000);
	assert_true(units_duration_ms("5", 1000, &v) && v == 5000);
	assert_true(units_duration_ms("5", 1, &v) && v == 5);
	assert_true(units_duration_ms("250ms", 1000, &v) && v == 250);
	assert_true(units_duration_ms("2m", 1000, &v) && v == 120000);
	assert_true(units_duration_ms("1h", 1000, &v) && v == 3600000);
	assert_false(units_duration_ms("5 s", 1000, &v));
	assert_false(units_duration_ms("inf", 1000, &v));
	assert_true(units_number("0", &v) && v == 0);
	assert_false(units_number("1.5", &v));
	assert_false(units_number("9999999999999999", &v));
}

static int setup(void **state)
{
	int fd = mkstemp(file);

	(void)state;
	close(fd);
	return fd < 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(defaults, clean),
		cmocka_unit_test_setup(flags_win_over_environment_over_file, clean),
		cmocka_unit_test_setup(yaml_nests_and_says_where, clean),
		cmocka_unit_test_setup(opentelemetry_variables, clean),
		cmocka_unit_test_setup(slot_variables, clean),
		cmocka_unit_test_setup(runtime_exes, clean),
		cmocka_unit_test_setup(recording, clean),
		cmocka_unit_test_setup(what_is_wrong_is_named, clean),
		cmocka_unit_test_setup(files_of_the_exporter_become_absolute, clean),
		cmocka_unit_test_setup(text_that_is_too_long_is_refused, clean),
		cmocka_unit_test_setup(every_option_has_a_variable_and_a_key, clean),
		cmocka_unit_test_setup(help_is_at_most_80_columns_wide, clean),
		cmocka_unit_test_setup(units, clean),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
