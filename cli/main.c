/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sconce: the command that users call. It reads flags, environment and configuration and starts the
 * supervisor, or asks one that runs. Exit codes: 0, 1 when something fails at run time, 2 when it was
 * called wrongly.
 */
#include <stdio.h>
#include <string.h>

#include "cli/doctor.h"
#include "cli/options.h"
#include "cli/record.h"
#include "cli/run.h"
#include "cli/seccomp.h"
#include "cli/status.h"

static const struct {
	const char *name;
	enum options_command command;
	int (*main)(struct options *options);
	const char *help;
} commands[] = {
	{"run", COMMAND_RUN, run_main,
	 "Profile the whole machine until Ctrl-C, with a viewer in the browser.\n"
	 "\n"
	 "  sudo sconce run\n"
	 "  sudo sconce run --rate 97 --listen 0.0.0.0:4041\n"
	 "  sudo OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318 sconce run\n"},
	{"record", COMMAND_RECORD, record_main,
	 "Profile for a while, into a file.\n"
	 "\n"
	 "  sudo sconce record -a -d 10s -o all.folded        the whole machine\n"
	 "  sudo sconce record -p 1234 -d 30s -o app.pb.gz    a process and its children\n"
	 "  sudo sconce record -o build.otlp -- make -j4      a program and its children\n"
	 "\n"
	 "The program runs as the user who called sudo; its exit code is passed on.\n"},
	{"status", COMMAND_STATUS, status_main,
	 "Show every process and every counter of a running sconce.\n"
	 "\n"
	 "  sudo sconce status\n"
	 "  sudo sconce status --json\n"},
	{"doctor", COMMAND_DOCTOR, doctor_main,
	 "Say what this machine gives, and what is lost without the rest.\n"
	 "\n"
	 "  sudo sconce doctor\n"
	 "\n"
	 "Exit code 0: profiling is possible. 1: it is not.\n"},
	{"seccomp-profile", COMMAND_SECCOMP, seccomp_main,
	 "Print the seccomp profile for the container of a role, as OCI JSON.\n"
	 "\n"
	 "  sconce seccomp-profile symbolizer > symbolizer.json\n"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int usage(FILE *out, int code)
{
	fputs("Sconce: a whole-system profiler for Linux.\n"
	      "\n"
	      "  sudo sconce run                                  profile, look at it in the browser\n"
	      "  sudo sconce record -a -d 10s -o all.folded       profile into a file\n"
	      "  sudo sconce status                               is it well?\n"
	      "  sudo sconce doctor                               what does it lack here?\n"
	      "\n"
	      "  sconce COMMAND --help    the options of a command\n"
	      "  sconce --version\n",
	      out);
	return code;
}

int main(int argc, char **argv)
{
	static struct options options;
	char error[OPTIONS_ERROR_BYTES];

	if (argc < 2)
		return usage(stderr, 2);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return usage(stdout, 0);
	if (strcmp(argv[1], "--version") == 0) {
		puts("sconce " SCONCE_VERSION);
		return 0;
	}
	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(argv[1], commands[i].name) != 0)
			continue;
		if (options_parse(&options, commands[i].command, argc - 2, argv + 2, error)) {
			fprintf(stderr, "sconce: %s (see: sconce %s --help)\n", error, argv[1]);
			return 2;
		}
		if (!options.help)
			return commands[i].main(&options);
		printf("%s\n", commands[i].help);
		options_help(commands[i].command);
		puts("\nEach is also SCONCE_<NAME> in the environment and a key of the YAML file.");
		return 0;
	}
	fprintf(stderr, "sconce: unknown command '%s' (see: sconce --help)\n", argv[1]);
	return 2;
}
