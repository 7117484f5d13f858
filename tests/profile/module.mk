# Tests of profile/.
define profile_test
TESTS += tests/profile/$1
tests/profile/$1_SRCS = tests/profile/$1.c tests/profile/build.c $(PROFILE_SRCS) $(PROFILE_FILE_SRCS)
tests/profile/$1_LIBS = -lcmocka $(PROFILE_LIBS)
endef
$(foreach t,profile_test otlp_test formats_test,$(eval $(call profile_test,$t)))
$(patsubst %,$(BUILD)/tests/profile/%.o,otlp_test formats_test): | \
	$(patsubst %.c,$(BUILD)/%.o,$(OTLP_GEN) gen/proto/pprof/profile.pb-c.c)
