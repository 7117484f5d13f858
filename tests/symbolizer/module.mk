# Tests of symbolizer/. The worker test starts the program itself.
SYMBOLIZER_TEST_LIBS = $(SYMBOLIZER_LIBS) -lcmocka
define symbolizer_test
TESTS += tests/symbolizer/$1
tests/symbolizer/$1_SRCS = tests/symbolizer/$1.c $(SYMBOLIZER_SRCS) $(CHILD_SRCS)
tests/symbolizer/$1_LIBS = $(SYMBOLIZER_TEST_LIBS)
endef
$(foreach t,elf_test reader_test ring_test changing_test kallsyms_test cgroup_test define_test \
	process_test patience_test peers_test crash_test golines_test files_test,\
	$(eval $(call symbolizer_test,$t)))

tests/symbolizer/golines_test_SRCS += tests/symbolizer/goimage.c
tests/symbolizer/files_test_SRCS += tests/symbolizer/packed.c

TESTS += tests/symbolizer/worker_test
tests/symbolizer/worker_test_SRCS = tests/symbolizer/worker_test.c tests/symbolizer/harness.c \
	tests/symbolizer/packed.c $(SHM_SRCS) $(PROTO_SRCS)
tests/symbolizer/worker_test_LIBS = -lcmocka -lz -lzstd -llzma
$(BUILD)/tests/symbolizer/worker_test: | $(BUILD)/sconce-symbolizer

# The worker's program beside the reader's own code, which says whether there is a ring here.
TESTS += tests/symbolizer/ways_test
tests/symbolizer/ways_test_SRCS = tests/symbolizer/ways_test.c tests/symbolizer/harness.c \
	symbolizer/reader.c $(SHM_SRCS) $(PROTO_SRCS)
tests/symbolizer/ways_test_LIBS = -l:liburing.a -lcmocka
$(BUILD)/tests/symbolizer/ways_test: | $(BUILD)/sconce-symbolizer

# Not built by default: it wants clang and its own run time.
ELF_FUZZ_SRCS = tests/fuzz/elf_fuzz.c symbolizer/elffile.c symbolizer/symbols.c \
	symbolizer/reader.c symbolizer/demangle.c symbolizer/sha256.c symbolizer/elfparts.c \
	symbolizer/cfientry.c symbolizer/cursor.c symbolizer/window.c $(SECTIONS_SRCS)
$(BUILD)/tests/fuzz/elf_fuzz: $(ELF_FUZZ_SRCS)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS) -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -o $@ $^ \
		$(SYMBOLIZER_LIBS)

# Unwind tables: made by hand and damaged, then against libdw (EHFRAME_ALL=1: every file there is).
EHFRAME_TEST_SRCS = tests/symbolizer/tables.c $(EHFRAME_SRCS) symbolizer/elffile.c \
	symbolizer/reader.c symbolizer/sha256.c shm/table.c
define ehframe_test
TESTS += tests/symbolizer/$1
tests/symbolizer/$1_SRCS = tests/symbolizer/$1.c $(EHFRAME_TEST_SRCS)
tests/symbolizer/$1_LIBS = $(SYMBOLIZER_TEST_LIBS) -ldw
endef
$(foreach t,ehframe_test ehframe_libdw_test gotable_test tablebuild_test codeflow_test codegaps_cfi_test ehreturn_test,$(eval $(call ehframe_test,$t)))
tests/symbolizer/ehframe_test_SRCS += tests/symbolizer/cfi_image.c
tests/symbolizer/gotable_test_SRCS += tests/symbolizer/cfi_image.c
tests/symbolizer/ehframe_libdw_test_SRCS += tests/symbolizer/cfa_world.c

EHFRAME_FUZZ_SRCS = tests/fuzz/ehframe_fuzz.c $(EHFRAME_TEST_SRCS)
$(BUILD)/tests/fuzz/ehframe_fuzz: $(EHFRAME_FUZZ_SRCS)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS) -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -o $@ $^ $(SYMBOLIZER_LIBS)

# The walk over real processes, beside libdw.
TESTS += tests/symbolizer/walk_image_test
tests/symbolizer/walk_image_test_SRCS = tests/symbolizer/walk_image_test.c tests/symbolizer/image.c \
	$(SYMBOLIZER_SRCS) $(CHILD_SRCS)
tests/symbolizer/walk_image_test_LIBS = $(SYMBOLIZER_TEST_LIBS) -ldw
$(BUILD)/tests/symbolizer/walk_image_test: \
	| $(addprefix $(BUILD)/bench/workloads/unwind/,native plt stripped throw)

CODEFLOW_FUZZ_SRCS = tests/fuzz/codeflow_fuzz.c $(CODEFLOW_SRCS)
$(BUILD)/tests/fuzz/codeflow_fuzz: $(CODEFLOW_FUZZ_SRCS)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS) -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -o $@ $^ -lZydis

# Packed sections.
PACKED_TEST_SRCS = tests/symbolizer/packed.c $(SECTIONS_SRCS) symbolizer/elffile.c symbolizer/elfparts.c \
	symbolizer/cfientry.c symbolizer/cursor.c symbolizer/reader.c symbolizer/sha256.c
TESTS += tests/symbolizer/sections_test
tests/symbolizer/sections_test_SRCS = tests/symbolizer/sections_test.c $(PACKED_TEST_SRCS)
tests/symbolizer/sections_test_LIBS = $(SYMBOLIZER_TEST_LIBS)
$(eval $(call fuzz_target,sections,$(PACKED_TEST_SRCS),$(SYMBOLIZER_LIBS)))
# What processes say of code that they make.
JIT_TEST_SRCS = symbolizer/jitindex.c symbolizer/perfmap.c symbolizer/jitdump.c
define jit_test
TESTS += tests/symbolizer/$1
tests/symbolizer/$1_SRCS = tests/symbolizer/$1.c $(JIT_TEST_SRCS)
tests/symbolizer/$1_LIBS = -lcmocka
endef
$(foreach t,perfmap_test jitdump_test,$(eval $(call jit_test,$t)))
$(eval $(call symbolizer_test,jit_test))

# Runtimes of languages and the names of scripts, with a language that is made up.
define scripts_test
TESTS += tests/symbolizer/$1
tests/symbolizer/$1_SRCS = tests/symbolizer/$1.c symbolizer/remote.c \
	$(filter-out $(LANG_SRCS),$(SYMBOLIZER_SRCS)) $(CHILD_SRCS)
tests/symbolizer/$1_LIBS = $(SYMBOLIZER_TEST_LIBS)
endef
$(foreach t,scripts_test runtimes_test,$(eval $(call scripts_test,$t)))

# Files that belong to others.
TESTS += tests/symbolizer/others_test
tests/symbolizer/others_test_SRCS = tests/symbolizer/others_test.c tests/symbolizer/packed.c \
	$(SYMBOLIZER_SRCS) $(CHILD_SRCS)
tests/symbolizer/others_test_LIBS = $(SYMBOLIZER_TEST_LIBS)
$(eval $(call fuzz_target,companions,$(PACKED_TEST_SRCS) symbolizer/companions.c,$(SYMBOLIZER_LIBS)))

include tests/symbolizer/dwarf.mk

# What a runtime's file says of itself: real ones, and small ones with every form of access.
FORMS_DIR = $(patsubst %/asan,%,$(patsubst %/tsan,%,$(patsubst %/clang,%,$(BUILD))))/tests/symbolizer/forms
FORMS :=
# $1 name, $2 compiler with flags
define form
FORMS += $(FORMS_DIR)/$1
$(FORMS_DIR)/$1: tests/symbolizer/facts_forms.c
	$$(call say,CC,$1)
	@mkdir -p $$(@D)
	$$(Q)$2 -O2 -w -o $$@.$$$$$$$$ $$< && mv $$@.$$$$$$$$ $$@
endef
$(eval $(call form,program,gcc -pie -fPIE))
$(eval $(call form,fixed,gcc -no-pie -fno-pie))
$(eval $(call form,clang,$(CLANG) -pie -fPIE))
$(eval $(call form,initial.so,gcc -shared -fPIC -ftls-model=initial-exec))
$(eval $(call form,library.so,gcc -shared -fPIC))
$(eval $(call form,noplt.so,gcc -shared -fPIC -fno-plt))
$(eval $(call form,desc.so,gcc -shared -fPIC -mtls-dialect=gnu2))
TESTS += tests/symbolizer/lang_facts_test
tests/symbolizer/lang_facts_test_SRCS = tests/symbolizer/lang_facts_test.c $(FACTS_SRCS) $(EHFRAME_SRCS) \
	symbolizer/elffile.c symbolizer/reader.c symbolizer/sha256.c
tests/symbolizer/lang_facts_test_LIBS = $(SYMBOLIZER_TEST_LIBS)
$(BUILD)/tests/symbolizer/lang_facts_test: | $(FORMS)
