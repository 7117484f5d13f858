# Fuzz targets of what others may write into our sockets and memory (tests/fuzz/fuzz.h): each is a test, with
# mutations that are the same each time, and not built by default, a libFuzzer program. Those of ELF files and
# machine code are in tests/symbolizer.
FUZZ_FLAGS = $(CPPFLAGS) -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
define fuzz_target
TESTS += tests/fuzz/$1_test
tests/fuzz/$1_test_SRCS = tests/fuzz/$1_fuzz.c tests/fuzz/mutate.c $2
tests/fuzz/$1_test_LIBS = $3
$$(BUILD)/tests/fuzz/$1_fuzz: tests/fuzz/$1_fuzz.c $(patsubst gen/%,$(BUILD)/gen/%,$2)
	@mkdir -p $$(@D)
	$$(Q)$$(CLANG) $$(FUZZ_FLAGS) -o $$@ $$^ $3
endef
$(eval $(call fuzz_target,queue,$(SHM_SRCS)))
$(eval $(call fuzz_target,table,shm/table.c symbolizer/walk.c))
$(eval $(call fuzz_target,maps,broker/target.c))
$(eval $(call fuzz_target,records,tests/fuzz/packets.c $(SYMBOLIZER_SRCS) $(CHILD_SRCS),$(SYMBOLIZER_LIBS)))
$(eval $(call fuzz_target,inbox,tests/fuzz/packets.c tests/sampler/tables_fake.c $(SAMPLER_SRCS) \
	supervisor/child.c supervisor/log.c $(SHM_SRCS) $(PROTO_SRCS)))
$(eval $(call fuzz_target,exporter,$(EXPORTER_SRCS) $(PROFILE_SRCS) \
	$(PROFILE_FILE_SRCS) $(CHILD_SRCS),$(PROFILE_LIBS) -lcurl))
$(eval $(call fuzz_target,perfmap,symbolizer/perfmap.c symbolizer/jitindex.c))
$(eval $(call fuzz_target,jitdump,symbolizer/jitdump.c symbolizer/jitindex.c))
$(eval $(call fuzz_target,golines,tests/symbolizer/goimage.c symbolizer/golines.c symbolizer/goinline.c \
	symbolizer/gomodule.c symbolizer/goplace.c symbolizer/window.c symbolizer/pclntab.c symbolizer/elfparts.c \
	symbolizer/elffile.c symbolizer/reader.c symbolizer/sha256.c symbolizer/cfientry.c symbolizer/cursor.c \
	$(SECTIONS_SRCS),$(SYMBOLIZER_LIBS)))
# These include the program's main.c.
$(eval $(call fuzz_target,broker,tests/fuzz/packets.c $(BROKER_SRCS) $(SANDBOX_SRCS) $(CHILD_SRCS),\
	$(SANDBOX_LIBS)))
$(eval $(call fuzz_target,supervisor,tests/fuzz/packets.c \
	$(patsubst %,supervisor/%.c,wiring spawn watch kernel control drain init log) $(SHM_SRCS) $(PROTO_SRCS)))
$(eval $(call fuzz_target,python,symbolizer/lang/python_lines.c symbolizer/lang/python_text.c symbolizer/remote.c \
	symbolizer/cursor.c))
