# Tests of viewer/. viewer_test starts the real program.
define viewer_test
TESTS += tests/viewer/$1
tests/viewer/$1_SRCS = tests/viewer/$1.c tests/viewer/samples.c $$(VIEWER_SRCS) $$(PROFILE_SRCS) $$(CHILD_SRCS)
tests/viewer/$1_LIBS = $$(VIEWER_LIBS) -lcmocka
endef
$(foreach t,text_test workloads_test slots_test functions_test,$(eval $(call viewer_test,$t)))
