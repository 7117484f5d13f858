# Tests of proto/.
TESTS += tests/proto/channel_test
tests/proto/channel_test_SRCS = tests/proto/channel_test.c $(PROTO_SRCS) shm/segment.c
tests/proto/channel_test_LIBS = -lcmocka
