# What users type.
TESTS += tests/cli/options_test tests/cli/floor_test tests/cli/checks_test tests/cli/ceilings_test tests/cli/cgroup_test \
	tests/cli/facts_test
tests/cli/ceilings_test_SRCS = tests/cli/ceilings_test.c cli/ceilings.c $(SHM_SRCS) $(PROTO_SRCS)
tests/cli/ceilings_test_LIBS = -lcmocka
tests/cli/cgroup_test_SRCS = tests/cli/cgroup_test.c cli/cgroup.c
tests/cli/cgroup_test_LIBS = -lcmocka
tests/cli/checks_test_SRCS = tests/cli/checks_test.c $(CLI_SRCS)
tests/cli/checks_test_LIBS = -lcmocka -lyaml
tests/cli/floor_test_SRCS = tests/cli/floor_test.c cli/floor.c
tests/cli/floor_test_LIBS = -lcmocka
tests/cli/options_test_SRCS = tests/cli/options_test.c $(CLI_SRCS)
tests/cli/options_test_LIBS = -lcmocka -lyaml
tests/cli/facts_test_SRCS = tests/cli/facts_test.c cli/facts.c cli/ceilings.c $(SHM_SRCS) $(PROTO_SRCS)
tests/cli/facts_test_LIBS = -lcmocka
