# Tests of broker/: its parts against our own children, then the program as it is run.
TESTS += tests/broker/open_test tests/broker/other_test tests/broker/broker_test
tests/broker/open_test_SRCS = tests/broker/open_test.c tests/broker/victim.c $(BROKER_SRCS) shm/blame.c
tests/broker/open_test_LIBS = -lcmocka -lpthread
tests/broker/other_test_SRCS = tests/broker/other_test.c tests/broker/victim.c $(BROKER_SRCS) shm/blame.c
tests/broker/other_test_LIBS = -lcmocka -lpthread
$(BUILD)/tests/broker/other_test: | $(BUILD)/tests/hostile/hangfs
tests/broker/broker_test_SRCS = tests/broker/broker_test.c tests/broker/victim.c $(SHM_SRCS) $(PROTO_SRCS)
tests/broker/broker_test_LIBS = -lcmocka -lpthread
$(BUILD)/tests/broker/broker_test: | $(BUILD)/sconce-broker
