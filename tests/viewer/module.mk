# Tests of viewer/. viewer_test starts the real program.
define viewer_test
TESTS += tests/viewer/$1
tests/viewer/$1_SRCS = tests/viewer/$1.c tests/viewer/samples.c $$(VIEWER_SRCS) $$(PROFILE_SRCS) $$(CHILD_SRCS)
tests/viewer/$1_LIBS = $$(VIEWER_LIBS) -lcmocka
endef
$(foreach t,text_test workloads_test slots_test functions_test,$(eval $(call viewer_test,$t)))

TESTS += tests/viewer/viewer_test
tests/viewer/viewer_test_SRCS = tests/viewer/viewer_test.c tests/viewer/harness.c tests/viewer/samples.c \
	$(PROFILE_SRCS) $(CHILD_SRCS)
tests/viewer/viewer_test_LIBS = $(PROFILE_LIBS) -lcmocka
$(BUILD)/tests/viewer/viewer_test: | $(BUILD)/sconce-viewer
