# fake and probe are started by the tests in place of real roles; they are listed as programs of a
# test build, not as tests.
SUPERVISOR_TEST_SRCS = supervisor/wiring.c supervisor/spawn.c supervisor/watch.c supervisor/kernel.c \
	supervisor/drain.c supervisor/init.c supervisor/log.c $(SHM_SRCS) $(PROTO_SRCS)
define supervisor_test
TESTS += tests/supervisor/$1
tests/supervisor/$1_SRCS = tests/supervisor/$1.c $(SUPERVISOR_TEST_SRCS)
tests/supervisor/$1_LIBS = -lcmocka
endef
$(foreach t,wiring_test spawn_test watch_test,$(eval $(call supervisor_test,$t)))
$(eval $(call supervisor_test,init_test))
tests/supervisor/init_test_SRCS += supervisor/control.c tests/supervisor/standin.c
tests/supervisor/spawn_test_SRCS += tests/supervisor/standin.c
tests/supervisor/watch_test_SRCS += tests/supervisor/standin.c
PROGRAMS += tests/supervisor/fake tests/supervisor/probe
tests/supervisor/fake_SRCS = tests/supervisor/fake.c $(CHILD_SRCS)
tests/supervisor/probe_SRCS = tests/supervisor/probe.c
$(BUILD)/tests/supervisor/watch_test: | $(BUILD)/tests/supervisor/fake
$(BUILD)/tests/supervisor/init_test: | $(BUILD)/tests/supervisor/fake
$(BUILD)/tests/supervisor/spawn_test: | $(BUILD)/tests/supervisor/probe
# Not of cmocka: it runs in the containers as well.
TESTS += tests/supervisor/confinement_test
tests/supervisor/confinement_test_SRCS = tests/supervisor/confinement_test.c supervisor/log.c $(SANDBOX_SRCS) \
	$(SHM_SRCS) $(PROTO_SRCS)
tests/supervisor/confinement_test_LIBS = $(SANDBOX_LIBS)
TESTS += tests/supervisor/log_test
tests/supervisor/log_test_SRCS = tests/supervisor/log_test.c supervisor/log.c $(SHM_SRCS) $(PROTO_SRCS)
tests/supervisor/log_test_LIBS = -lcmocka
# A supervisor whose table gives one capability more than it should: tests/e2e/30-capabilities has to see it.
SPAWN_MORE = tests/supervisor/spawn_more
$(BUILD)/gen/$(SPAWN_MORE).c: supervisor/spawn.c
	@mkdir -p $(@D)
	$(Q)sed 's/^static const uint64_t capabilities.*{$$/&\n\t[ROLE_SAMPLER] = CAP(SYSLOG),/' $< >$@
	$(Q)! cmp -s $< $@
PROGRAMS += tests/supervisor/sconce-supervisor-more
tests/supervisor/sconce-supervisor-more_SRCS = $(filter-out supervisor/spawn.c,$(sconce-supervisor_SRCS)) gen/$(SPAWN_MORE).o
