/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/listen.h"
#include "cli/units.h"
#include "cli/yaml.h"

#define RUN COMMAND_RUN
#define RECORD COMMAND_RECORD
#define STATUS COMMAND_STATUS
#define DOCTOR COMMAND_DOCTOR
#define BOTH (RUN | RECORD)
#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define PROFILES_PATH "v1development/profiles"

enum type {
	TYPE_NUMBER,   /* uint32_t */
	TYPE_BYTES,    /* uint64_t */
	TYPE_POWER,    /* uint64_t bytes, a power of two */
	TYPE_SECONDS,  /* uint32_t s */
	TYPE_MS,       /* uint32_t ms; a bare number counts milliseconds */
	TYPE_DURATION, /* uint64_t ms; a bare number counts seconds */
	TYPE_BOOL,     /* flag without value; --no-x says no */
	TYPE_TEXT,     /* char[max] */
	TYPE_BASE_URL, /* char[max]; the path of the signal is appended */
	TYPE_URL,      /* char[max] */
	TYPE_GZIP,     /* bool; gzip or none */
	TYPE_PROTOCOL, /* only checked */
	TYPE_PIDS,     /* appended to config.targets */
	TYPE_EXES,     /* appended to config.runtime_exe */
};

#define FIELD(name) offsetof(struct options, name)
#define TEXT(name) FIELD(name), 0, sizeof(((struct options *)0)->name)
#define OTEL(name) {"OTEL_EXPORTER_OTLP_" name, "OTEL_EXPORTER_OTLP_PROFILES_" name}

static const struct option {
	const char *name;
	char letter;
	unsigned commands;
	enum type type;
	size_t field;
	uint64_t min, max;
	const char *env[2]; /* besides SCONCE_<NAME>; the later one wins */
	const char *argument, *help;
} options_table[] = {
	/* clang-format off */
#define O(...) {__VA_ARGS__}
	O("rate", 'F', BOTH, TYPE_NUMBER, FIELD(config.rate_hz), 1, 1000, {0}, "HZ", "samples per second and CPU (run: 19, record: 99)"),
	O("pid", 'p', RECORD, TYPE_PIDS, 0, 0, 0, {0}, "PID", "this process; may be repeated, or 1,2,3"),
	O("all", 'a', RECORD, TYPE_BOOL, FIELD(config.all), 0, 0, {0}, NULL, "every process of the machine"),
	O("follow", 0, RECORD, TYPE_BOOL, FIELD(config.follow), 0, 0, {0}, NULL, "children as well (default; --no-follow)"),
	O("duration", 'd', RECORD, TYPE_DURATION, FIELD(duration_ms), 1, 365ull * 86400000, {0}, "TIME", "stop after this time: 30s, 5m"),
	O("output", 'o', RECORD, TYPE_TEXT, TEXT(output), {0}, "FILE", "write here: .folded, .pb.gz or .otlp"),
	O("viewer", 0, RUN, TYPE_BOOL, FIELD(config.viewer.enabled), 0, 0, {0}, NULL, "the viewer (default; --no-viewer)"),
	O("listen", 0, RUN, TYPE_TEXT, TEXT(config.viewer.listen), {0}, "ADDR", "the viewer's address (127.0.0.1:4041)"),
	O("viewer-token", 0, RUN, TYPE_TEXT, TEXT(config.viewer.token), {0}, "TEXT", "bearer token that the viewer asks for"),
	O("max-slots", 0, RUN, TYPE_NUMBER, FIELD(config.viewer.max_slots), 1, 1024, {"PROFILES_MAX_SLOTS"}, "N", "workloads open at a time (24)"),
	O("slot-ttl", 0, RUN, TYPE_SECONDS, FIELD(config.viewer.slot_ttl_s), 1, 86400 * 30, {"PROFILES_SLOT_TTL_SECONDS"}, "TIME", "close a slot nobody looked at for so long (120s)"),
	O("slot-memory", 0, RUN, TYPE_BYTES, FIELD(config.viewer.slot_max_bytes), 64 * KIB, GIB, {"PROFILES_SLOT_MAX_BYTES"}, "SIZE", "memory of one slot (8MiB)"),
	O("cleanup-interval", 0, RUN, TYPE_SECONDS, FIELD(config.viewer.cleanup_interval_s), 1, 86400, {"PROFILES_CLEANUP_INTERVAL_SECONDS"}, "TIME", "how often idle slots are looked for (15s)"),
	O("otlp-endpoint", 0, RUN, TYPE_BASE_URL, TEXT(config.remote.url), {"OTEL_EXPORTER_OTLP_ENDPOINT"}, "URL", "ship to URL/v1development/profiles"),
	O("otlp-profiles-endpoint", 0, RUN, TYPE_URL, TEXT(config.remote.url), {"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT"}, "URL", "ship to exactly this URL"),
	O("otlp-headers", 0, RUN, TYPE_TEXT, TEXT(config.remote.headers), OTEL("HEADERS"), "K=V,...", "headers of each request"),
	O("otlp-timeout", 0, RUN, TYPE_MS, FIELD(config.remote.timeout_ms), 0, 3600000, OTEL("TIMEOUT"), "TIME", "limit of one request (10s; bare: ms)"),
	O("otlp-compression", 0, RUN, TYPE_GZIP, FIELD(config.remote.gzip), 0, 0, OTEL("COMPRESSION"), "NAME", "gzip (default) or none"),
	O("otlp-protocol", 0, RUN, TYPE_PROTOCOL, 0, 0, 0, OTEL("PROTOCOL"), "NAME", "http/protobuf is the only one"),
	O("otlp-certificate", 0, RUN, TYPE_TEXT, TEXT(config.remote.certificate), OTEL("CERTIFICATE"), "FILE", "PEM file of trusted authorities"),
	O("otlp-client-key", 0, RUN, TYPE_TEXT, TEXT(config.remote.client_key), OTEL("CLIENT_KEY"), "FILE", "PEM file, for mutual TLS"),
	O("otlp-client-certificate", 0, RUN, TYPE_TEXT, TEXT(config.remote.client_certificate), OTEL("CLIENT_CERTIFICATE"), "FILE", "PEM file, for mutual TLS"),
	O("service-name", 0, BOTH, TYPE_TEXT, TEXT(config.service_name), {"OTEL_SERVICE_NAME"}, "TEXT", "service.name of everything"),
	O("resource-attributes", 0, BOTH, TYPE_TEXT, TEXT(config.resource_attributes), {"OTEL_RESOURCE_ATTRIBUTES"}, "K=V,...", "attributes of everything"),
	O("workers", 0, BOTH | DOCTOR, TYPE_NUMBER, FIELD(config.workers), 1, WORKERS_MAX, {0}, "N", "symbolizers (1)"),
	O("unwind-memory", 0, BOTH, TYPE_BYTES, FIELD(config.unwind_bytes), 4 * MIB, 256 * MIB, {0}, "SIZE", "unwind tables in the kernel, at most (64MiB)"),
	O("symbol-memory", 0, BOTH, TYPE_BYTES, FIELD(config.symbol_bytes), MIB, 16 * GIB, {0}, "SIZE", "symbol tables, per worker (64MiB)"),
	O("spool-memory", 0, BOTH | DOCTOR, TYPE_BYTES, FIELD(config.spool_bytes), 256 * KIB, 16 * GIB, {0}, "SIZE", "what waits for a receiver (32MiB)"),
	O("ring-memory", 0, BOTH, TYPE_POWER, FIELD(config.ring_bytes), 64 * KIB, GIB, {0}, "SIZE", "BPF ring buffer (4MiB)"),
	O("sample-queue", 0, BOTH | DOCTOR, TYPE_POWER, FIELD(config.sample_queue_bytes), 64 * KIB, GIB, {0}, "SIZE", "sampler to worker (4MiB)"),
	O("process-queue", 0, BOTH | DOCTOR, TYPE_POWER, FIELD(config.process_queue_bytes), 64 * KIB, GIB, {0}, "SIZE", "sampler to worker (1MiB)"),
	O("output-queue", 0, BOTH | DOCTOR, TYPE_POWER, FIELD(config.output_queue_bytes), 64 * KIB, GIB, {0}, "SIZE", "worker to exporter (4MiB)"),
	O("log-memory", 0, BOTH | DOCTOR, TYPE_BYTES, FIELD(config.log_bytes), 64 * KIB, GIB, {0}, "SIZE", "names, two per worker (8MiB)"),
	O("processes-max", 0, BOTH, TYPE_NUMBER, FIELD(config.processes_max), 64, 1 << 22, {0}, "N", "processes with known ranges (16384)"),
	O("ranges-max", 0, BOTH, TYPE_NUMBER, FIELD(config.ranges_max), 1024, 1 << 24, {0}, "N", "address ranges of all (131072)"),
	O("sideband-pages", 0, BOTH | DOCTOR, TYPE_NUMBER, FIELD(config.sideband_pages), 1, 8192, {0}, "N", "mmap and fork events, per CPU (64)"),
	O("stuck-timeout", 0, BOTH, TYPE_MS, FIELD(config.stuck_ms), 1000, 3600000, {0}, "TIME", "replace who stands still (10s; bare: ms)"),
	O("runtime-exe", 0, BOTH, TYPE_EXES, 0, 0, 0, {0}, "NAME", "runs scripts, too (as python3 does); repeated"),
	O("uid-base", 0, BOTH, TYPE_NUMBER, FIELD(config.uid_base), 1, 4294900000, {0}, "UID", "processes run as UID+2, UID+3 ... (61000)"),
	O("run-dir", 0, RUN | STATUS | DOCTOR, TYPE_TEXT, TEXT(config.run_dir), {0}, "DIR", "sockets (/run/sconce)"),
	O("containers", 0, RUN, TYPE_BOOL, FIELD(config.containers), 0, 0, {0}, NULL, "each process in a container (see deploy/oci)"),
	O("json", 0, STATUS, TYPE_BOOL, FIELD(json), 0, 0, {0}, NULL, "for programs"),
	O("config", 'c', BOTH | STATUS | DOCTOR, TYPE_TEXT, TEXT(config_file), {0}, "FILE", "YAML, keys as the flags: otlp_endpoint: ..."),
	O("unsafe-kernel", 0, BOTH, TYPE_BOOL, FIELD(unsafe_kernel), 0, 0, {0}, NULL, "start on a kernel that may hang"),
	O("verbose", 'v', BOTH, TYPE_BOOL, FIELD(verbose), 0, 0, {0}, NULL, "say more"),
	O("help", 'h', BOTH | STATUS | DOCTOR | COMMAND_SECCOMP, TYPE_BOOL, FIELD(help), 0, 0, {0}, NULL, "this text"),
	/* clang-format on */
};

#define OPTIONS_N (sizeof(options_table) / sizeof(options_table[0]))

__attribute__((format(printf, 3, 4))) static int options_fail(char *error, const char *origin,
							      const char *format, ...)
{
	int n = snprintf(error, OPTIONS_ERROR_BYTES, "%s: ", origin);
	va_list args;

	va_start(args, format);
	if (n > 0 && n < OPTIONS_ERROR_BYTES)
		vsnprintf(error + n, OPTIONS_ERROR_BYTES - (size_t)n, format, args);
	va_end(args);
	return -1;
}

/* A number of any kind within its bounds. */
static int options_set_number(const struct option *option, void *field, const char *value,
			      const char *origin, char *error)
{
	static const char *const expected[] = {
		[TYPE_NUMBER] = "a whole number",	   [TYPE_BYTES] = "a size like 8MiB",
		[TYPE_POWER] = "a size like 4MiB",	   [TYPE_SECONDS] = "a time like 30s",
		[TYPE_MS] = "a time like 10s or 500ms", [TYPE_DURATION] = "a time like 30s"};
	uint64_t number = 0;
	bool ok;

	if (option->type == TYPE_NUMBER)
		ok = units_number(value, &number);
	else if (option->type == TYPE_BYTES || option->type == TYPE_POWER)
		ok = units_bytes(value, &number);
	else
		ok = units_duration_ms(value, option->type == TYPE_MS ? 1 : 1000, &number);
	if (!ok)
		return options_fail(error, origin, "'%s' is not %s", value, expected[option->type]);
	if (option->type == TYPE_SECONDS)
		number = (number + 999) / 1000;
	if (number < option->min || number > option->max)
		return options_fail(error, origin, "'%s' is not between %llu and %llu", value,
				    (unsigned long long)option->min,
				    (unsigned long long)option->max);
	if (option->type == TYPE_POWER && (number & (number - 1)))
		return options_fail(error, origin, "'%s' is not a power of two", value);
	if (option->type == TYPE_BYTES || option->type == TYPE_POWER ||
	    option->type == TYPE_DURATION)
		*(uint64_t *)field = number;
	else
		*(uint32_t *)field = (uint32_t)number;
	return 0;
}

static int options_set_text(const struct option *option, char *field, const char *value,
			    const char *origin, char *error)
{
	const char *tail = "";
	int n;

	if (option->type != TYPE_TEXT && value[0]) {
		if (strncmp(value, "http://", 7) != 0 && strncmp(value, "https://", 8) != 0)
			return options_fail(error, origin, "'%s' does not start with http:// or https://",
					    value);
		if (option->type == TYPE_BASE_URL)
			tail = value[strlen(value) - 1] == '/' ? PROFILES_PATH : "/" PROFILES_PATH;
	}
	n = snprintf(field, option->max, "%s%s", value, tail);
	if (n < 0 || (uint64_t)n >= option->max)
		return options_fail(error, origin, "longer than %d bytes", (int)option->max - 1);
	return 0;
}

static int options_set_pids(struct config *config, const char *value, const char *origin,
			    char *error)
{
	char list[256], *save = NULL;

	if (snprintf(list, sizeof(list), "%s", value) >= (int)sizeof(list))
		return options_fail(error, origin, "list too long");
	for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		uint64_t pid;

		if (!units_number(p, &pid) || pid < 1 || pid > INT_MAX)
			return options_fail(error, origin, "'%s' is not a process id", p);
		if (config->targets_n == CONFIG_TARGETS_MAX)
			return options_fail(error, origin, "more than %d processes",
					    CONFIG_TARGETS_MAX);
		config->targets[config->targets_n++] = (int32_t)pid;
	}
	return 0;
}

/* Names as the last part of a path has them. */
static int options_set_exes(struct config *config, const char *value, const char *origin,
			    char *error)
{
	char list[CONFIG_EXES_MAX * CONFIG_EXE_BYTES], *save = NULL;

	if (snprintf(list, sizeof(list), "%s", value) >= (int)sizeof(list))
		return options_fail(error, origin, "list too long");
	for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		size_t n = 0;

		while (n < CONFIG_EXES_MAX && config->runtime_exe[n][0])
			n++;
		if (n == CONFIG_EXES_MAX)
			return options_fail(error, origin, "more than %d names", CONFIG_EXES_MAX);
		if (strchr(p, '/') || strlen(p) >= CONFIG_EXE_BYTES)
			return options_fail(error, origin, "'%s' is not the name of a file of at most "
							   "%d bytes, without its path",
					    p, CONFIG_EXE_BYTES - 1);
		strcpy(config->runtime_exe[n], p);
	}
	return 0;
}

static int options_set(struct options *options, const struct option *option, const char *value,
		       const char *origin, char *error)
{
	void *field = (char *)options + option->field;

	switch (option->type) {
	case TYPE_BOOL:
		if (!units_bool(value, field))
			return options_fail(error, origin, "'%s' is not true or false", value);
		return 0;
	case TYPE_GZIP:
		if (strcmp(value, "gzip") != 0 && strcmp(value, "none") != 0)
			return options_fail(error, origin, "'%s' is not gzip or none", value);
		*(bool *)field = value[0] == 'g';
		return 0;
	case TYPE_PROTOCOL:
		if (strcmp(value, "http/protobuf") != 0)
			return options_fail(error, origin, "'%s' is not http/protobuf", value);
		return 0;
	case TYPE_PIDS:
		return options_set_pids(&options->config, value, origin, error);
	case TYPE_EXES:
		return options_set_exes(&options->config, value, origin, error);
	case TYPE_TEXT:
	case TYPE_BASE_URL:
	case TYPE_URL:
		return options_set_text(option, field, value, origin, error);
	default:
		return options_set_number(option, field, value, origin, error);
	}
}

const char *options_name(size_t i)
{
	return i < OPTIONS_N ? options_table[i].name : NULL;
}

static const struct option *options_find(const char *name, size_t len)
{
	for (size_t i = 0; i < OPTIONS_N; i++)
		if (strlen(options_table[i].name) == len &&
		    memcmp(options_table[i].name, name, len) == 0)
			return &options_table[i];
	return NULL;
}

int options_set_key(struct options *options, const char *key, const char *value,
		    const char *origin, char *error)
{
	char name[128];
	const struct option *option;

	snprintf(name, sizeof(name), "%s", key);
	for (char *p = name; *p; p++)
		if (*p == '_')
			*p = '-';
	option = options_find(name, strlen(name));
	if (!option || option->letter == 'h' || option->letter == 'c')
		return options_fail(error, origin, "unknown option");
	/* One file serves all commands. */
	if (!(option->commands & options->command))
		return 0;
	return options_set(options, option, value, origin, error);
}

static int options_environment(struct options *options, const struct option *option, char *error)
{
	char own[64] = "SCONCE_";
	const char *names[3] = {option->env[0], option->env[1], own};
	size_t n = strlen(own);

	for (const char *p = option->name; *p; p++)
		own[n++] = (char)(*p == '-' ? '_' : toupper((unsigned char)*p));
	own[n] = 0;
	for (int i = 0; i < 3; i++) {
		const char *value = names[i] ? getenv(names[i]) : NULL;

		/* An empty variable counts as none, as OpenTelemetry has it. */
		if (value && value[0] && options_set(options, option, value, names[i], error))
			return -1;
	}
	return 0;
}

struct options_argv {
	int argc, i;
	char **argv;
};

/* The value of an option: behind "=", the rest of the word, or the next word. */
static int options_value(struct options *options, const struct option *option,
			 struct options_argv *at, const char *origin, const char *given,
			 char *error)
{
	if (!given && at->i + 1 < at->argc)
		given = at->argv[++at->i];
	if (!given)
		return options_fail(error, origin, "needs a value (%s)", option->argument);
	return options_set(options, option, given, origin, error);
}

static int options_long(struct options *options, struct options_argv *at, char *error)
{
	const char *word = at->argv[at->i], *name = word + 2, *value = strchr(name, '=');
	size_t len = value ? (size_t)(value - name) : strlen(name);
	const struct option *option = options_find(name, len);
	const char *boolean = "true";
	char origin[64];

	if (!option && len > 3 && strncmp(name, "no-", 3) == 0) {
		option = options_find(name + 3, len - 3);
		boolean = "false";
		if (option && (option->type != TYPE_BOOL || value))
			option = NULL;
	}
	snprintf(origin, sizeof(origin), "%.*s", (int)len + 2, word);
	if (!option || !(option->commands & options->command))
		return options_fail(error, origin, "unknown option");
	if (option->type == TYPE_BOOL)
		return options_set(options, option, value ? value + 1 : boolean, origin, error);
	return options_value(options, option, at, origin, value ? value + 1 : NULL, error);
}

static int options_letters(struct options *options, struct options_argv *at, char *error)
{
	for (const char *p = at->argv[at->i] + 1; *p; p++) {
		const struct option *option = NULL;
		char origin[3] = {'-', *p, 0};

		for (size_t i = 0; i < OPTIONS_N && !option; i++)
			if (options_table[i].letter == *p &&
			    (options_table[i].commands & options->command))
				option = &options_table[i];
		if (!option)
			return options_fail(error, origin, "unknown option");
		if (option->type != TYPE_BOOL)
			return options_value(options, option, at, origin, p[1] ? p + 1 : NULL,
					     error);
		options_set(options, option, "true", origin, error);
	}
	return 0;
}

static int options_flags(struct options *options, int argc, char **argv, char *error)
{
	struct options_argv at = {argc, 0, argv};
	int err = 0;

	for (; at.i < argc && !err; at.i++) {
		const char *word = argv[at.i];

		if (strcmp(word, "--") == 0) {
			if (options->command != COMMAND_RECORD)
				return options_fail(error, word, "this command takes no program");
			if (at.i + 1 == argc)
				return options_fail(error, word, "no program behind it");
			options->program = argv + at.i + 1;
			return 0;
		}
		if (word[0] == '-' && word[1] == '-')
			err = options_long(options, &at, error);
		else if (word[0] == '-' && word[1])
			err = options_letters(options, &at, error);
		else if (options->command == COMMAND_SECCOMP && !options->argument)
			options->argument = word;
		else
			return options_fail(error, word, options->command == COMMAND_RECORD
								 ? "a program goes behind --"
								 : "unexpected argument");
	}
	return err;
}

/* The exporter, which reads it, works in another directory. */
static int options_absolute(char *path, const char *flag, char *error)
{
	char whole[PATH_MAX];

	if (!*path || path[0] == '/')
		return 0;
	errno = 0;
	if (!realpath(path, whole) || strlen(whole) >= CONFIG_PATH_BYTES)
		return options_fail(error, flag, "%s: %s", path,
				    errno ? strerror(errno) : "the path is too long");
	strcpy(path, whole);
	return 0;
}

/* What one option alone cannot tell. */
static int options_check(struct options *options, char *error)
{
	static const struct {
		const char *suffix;
		enum config_format format;
	} formats[] = {{".folded", FORMAT_FOLDED}, {".pb.gz", FORMAT_PPROF}, {".otlp", FORMAT_OTLP}};
	struct config *config = &options->config;
	size_t len = strlen(options->output);

	if (config->run_dir[0] != '/' || strlen(config->run_dir) > 90)
		return options_fail(error, "--run-dir", "has to be an absolute path of at most 90 bytes");
	if (options_absolute(config->remote.certificate, "--otlp-certificate", error) ||
	    options_absolute(config->remote.client_certificate, "--otlp-client-certificate", error) ||
	    options_absolute(config->remote.client_key, "--otlp-client-key", error))
		return -1;
	if (config->sideband_pages & (config->sideband_pages - 1))
		return options_fail(error, "--sideband-pages", "has to be a power of two");
	if (config->viewer.enabled && !listen_valid(config->viewer.listen))
		return options_fail(error, "--listen", "'%s' is not a numeric address with a port, "
						       "like 127.0.0.1:4041",
				    config->viewer.listen);
	if (options->command != COMMAND_RECORD)
		return 0;
	if (!config->all && !config->targets_n && !options->program)
		return options_fail(error, "what to record", "give -p PID, -a (everything) or "
							     "-- program arguments");
	if (len == 0)
		return options_fail(error, "where to", "give -o FILE (.folded, .pb.gz or .otlp)");
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		size_t n = strlen(formats[i].suffix);

		if (len > n && strcmp(options->output + len - n, formats[i].suffix) == 0)
			config->format = formats[i].format;
	}
	if (config->format == FORMAT_NONE)
		return options_fail(error, options->output,
				    "the name has to end in .folded, .pb.gz or .otlp");
	return 0;
}

/*
 * The flags are read twice: first for --config and for what is wrong with them, then again on top of
 * file and environment.
 */
int options_parse(struct options *options, enum options_command command, int argc, char **argv,
		  char error[OPTIONS_ERROR_BYTES])
{
	enum config_mode mode = command == COMMAND_RECORD ? MODE_RECORD : MODE_RUN;
	struct options flags = {.command = command};

	memset(options, 0, sizeof(*options));
	config_defaults(&options->config, mode);
	options->command = command;
	if (options_flags(&flags, argc, argv, error))
		return -1;
	options->help = flags.help;
	if (flags.help)
		return 0;
	if (!flags.config_file[0] && getenv("SCONCE_CONFIG"))
		snprintf(flags.config_file, sizeof(flags.config_file), "%s",
			 getenv("SCONCE_CONFIG"));
	if (flags.config_file[0] && yaml_load(options, flags.config_file, error))
		return -1;
	for (size_t i = 0; i < OPTIONS_N; i++)
		if ((options_table[i].commands & command) &&
		    options_environment(options, &options_table[i], error))
			return -1;
	/* Lists do not add up over levels: the flags' list wins as a whole. */
	if (flags.config.targets_n)
		options->config.targets_n = 0;
	if (options_flags(options, argc, argv, error))
		return -1;
	options->config.verbose = options->verbose;
	return options_check(options, error);
}

void options_help(enum options_command command)
{
	for (size_t i = 0; i < OPTIONS_N; i++) {
		const struct option *o = &options_table[i];
		char left[48], letter[5] = "    ";

		if (!(o->commands & command))
			continue;
		if (o->letter)
			snprintf(letter, sizeof(letter), "-%c, ", o->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->name, o->argument ? " " : "",
			 o->argument ? o->argument : "");
		if (strlen(left) > 27)
			printf("  %s\n  %-27s %s\n", left, "", o->help);
		else
			printf("  %-27s %s\n", left, o->help);
	}
}
