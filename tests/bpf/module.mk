# Tests of bpf/ and of the loader: the walk as an ordinary program, then the object in the kernel.
TESTS += tests/bpf/walk_test tests/bpf/walk_rows_test tests/bpf/load_test tests/bpf/loader_test \
	tests/bpf/sideband_test tests/bpf/rows_test tests/bpf/scripts_test
tests/bpf/walk_test_SRCS = tests/bpf/walk_test.c
tests/bpf/walk_test_LIBS = -lcmocka
tests/bpf/walk_rows_test_SRCS = tests/bpf/walk_rows_test.c
tests/bpf/walk_rows_test_LIBS = -lcmocka
tests/bpf/load_test_SRCS = tests/bpf/load_test.c tests/bpf/rig.c tests/bpf/busy.c \
	tests/bpf/chain.c $(LOADER_SRCS) $(PROTO_SRCS) shm/segment.c
tests/bpf/load_test_LIBS = -lcmocka $(LOADER_LIBS)
tests/bpf/loader_test_SRCS = tests/bpf/loader_test.c $(SHM_SRCS) $(PROTO_SRCS)
tests/bpf/loader_test_LIBS = -lcmocka
$(BUILD)/tests/bpf/loader_test: | $(BUILD)/sconce-loader
tests/bpf/sideband_test_SRCS = tests/bpf/sideband_test.c supervisor/loader_perf.c
tests/bpf/sideband_test_LIBS = -lcmocka
RIG_SRCS = tests/bpf/rig.c tests/bpf/busy.c tests/bpf/frameless.c tests/bpf/tables.c \
	sampler/store.c sampler/slices.c shm/table.c $(EHFRAME_SRCS) symbolizer/elffile.c \
	symbolizer/reader.c symbolizer/sha256.c $(LOADER_SRCS) $(PROTO_SRCS) $(SHM_SRCS)
tests/bpf/rows_test_SRCS = tests/bpf/rows_test.c tests/bpf/chain.c $(RIG_SRCS)
tests/bpf/rows_test_LIBS = -lcmocka $(SYMBOLIZER_LIBS) $(LOADER_LIBS)
$(BUILD)/tests/bpf/frameless.o: CFLAGS += -O2 -fomit-frame-pointer
tests/bpf/scripts_test_SRCS = tests/bpf/scripts_test.c tests/bpf/scripts.c $(RIG_SRCS)
tests/bpf/scripts_test_LIBS = -lcmocka -ldl $(SYMBOLIZER_LIBS) $(LOADER_LIBS)
$(BUILD)/tests/bpf/scripts_test: | $(BUILD)/tests/bpf/tls_static.so $(BUILD)/tests/bpf/tls_dynamic.so
$(BUILD)/tests/bpf/tls_static.so: TLS_MODEL = initial-exec
$(BUILD)/tests/bpf/tls_dynamic.so: TLS_MODEL = global-dynamic
$(BUILD)/tests/bpf/tls_%.so: tests/bpf/tls_library.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -g -O2 $(WARNINGS) -fPIC -shared -ftls-model=$(TLS_MODEL) -o $@ $<
