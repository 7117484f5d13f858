# Tests of bpf/ and of the loader: the walk as an ordinary program, then the object in the kernel.
TESTS += tests/bpf/walk_test
tests/bpf/walk_test_SRCS = tests/bpf/walk_test.c
tests/bpf/walk_test_LIBS = -lcmocka
