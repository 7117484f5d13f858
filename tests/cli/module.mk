# What users type.
TESTS += tests/cli/options_test
tests/cli/options_test_SRCS = tests/cli/options_test.c $(CLI_SRCS)
tests/cli/options_test_LIBS = -lcmocka -lyaml
