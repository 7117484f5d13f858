# Tests of shm/. The kill test starts itself anew as producer and as consumer.
SHM_TEST_LIBS = -lcmocka -lpthread
define shm_test
TESTS += tests/shm/$1
tests/shm/$1_SRCS = tests/shm/$1.c $(SHM_SRCS)
tests/shm/$1_LIBS = $(SHM_TEST_LIBS)
endef
$(foreach t,segment_test ledger_test blame_test queue_test queue_hostile_test queue_stress_test queue_kill_test,\
	$(eval $(call shm_test,$t)))
