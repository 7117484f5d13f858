# sconce, the command; CLI_SRCS without its main, for the tests.
CLI_SRCS = cli/options.c cli/units.c cli/yaml.c cli/listen.c cli/facts.c cli/ceilings.c cli/cgroup.c cli/family.c cli/floor.c cli/snapshot.c cli/bpfstat.c cli/session.c \
	cli/program.c cli/run.c cli/record.c cli/status.c cli/checks.c cli/features.c \
	cli/places.c cli/probes.c cli/lacks.c cli/doctor.c cli/seccomp.c supervisor/profiles.c supervisor/log.c $(SHM_SRCS) $(PROTO_SRCS)
PROGRAMS += sconce
sconce_SRCS = cli/main.c $(CLI_SRCS)
sconce_LIBS = -lyaml
