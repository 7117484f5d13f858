# Tests of sampler/: everything but main and the bpf() calls, which tables_fake.c stands for.
define sampler_test
TESTS += tests/sampler/$1
tests/sampler/$1_SRCS = tests/sampler/$1.c tests/sampler/tables_fake.c $$(SAMPLER_SRCS) \
	supervisor/child.c supervisor/log.c $$(SHM_SRCS) $$(PROTO_SRCS)
tests/sampler/$1_LIBS = -lcmocka
endef
$(foreach t,ranges_test slices_test files_test processes_test ring_test pump_test store_test,\
	$(eval $(call sampler_test,$t)))
