# Tests of exporter/.
define exporter_test
TESTS += tests/exporter/$1
tests/exporter/$1_SRCS = tests/exporter/$1.c tests/exporter/server.c tests/profile/build.c \
	$(EXPORTER_SRCS) $(PROFILE_SRCS) $(PROFILE_FILE_SRCS) $(CHILD_SRCS)
tests/exporter/$1_LIBS = -lcmocka $(PROFILE_LIBS) -lcurl -lpthread
endef
$(foreach t,spool_test transport_test exporter_test,$(eval $(call exporter_test,$t)))
# It runs the program itself.
$(BUILD)/tests/exporter/exporter_test: | $(BUILD)/sconce-exporter
