comma := ,
# Debug information: small programs with known answers, and against llvm-symbolizer and addr2line.
DWARF_TEST_SRCS = tests/symbolizer/dwarf_program.c $(DWARF_SRCS) $(SECTIONS_SRCS) \
	symbolizer/elffile.c symbolizer/symbols.c symbolizer/reader.c symbolizer/sha256.c \
	symbolizer/elfparts.c symbolizer/cfientry.c symbolizer/cursor.c
define dwarf_test
TESTS += tests/symbolizer/$1
tests/symbolizer/$1_SRCS = tests/symbolizer/$1.c $(DWARF_TEST_SRCS)
tests/symbolizer/$1_LIBS = $(SYMBOLIZER_TEST_LIBS)
$(BUILD)/tests/symbolizer/$1: | $(DWARF_PROGRAMS) $(DWARF_SEEDS)
endef

# Each compiled once, for all modes: they are what is looked at. Renamed into place, because two
# modes may be built at once.
DWARF_HERE = tests/symbolizer
DWARF_DIR = $(patsubst %/asan,%,$(patsubst %/tsan,%,$(patsubst %/clang,%,$(BUILD))))/$(DWARF_HERE)/dwarf
DWARF_C = $(DWARF_HERE)/dwarf_c.c $(DWARF_HERE)/dwarf_c2.c
DWARF_CXX = $(DWARF_HERE)/dwarf_cxx.cc
DWARF_PROGRAMS :=
# $1 name, $2 compiler with flags, $3 sources
define dwarf_program
DWARF_PROGRAMS += $(DWARF_DIR)/$1
$(DWARF_DIR)/$1: $3
	$$(call say,CC,$1)
	@mkdir -p $$(@D)
	$$(Q)$2 -I. -O2 -w -o $$@.new $3 && mv $$@.new $$@
endef
$(foreach v,2 3 4 5,$(eval $(call dwarf_program,gcc-c$v,gcc -gdwarf-$v,$(DWARF_C))))
$(foreach v,2 4 5,$(eval $(call dwarf_program,clang-c$v,$(CLANG) -gdwarf-$v,$(DWARF_C))))
$(eval $(call dwarf_program,gcc-c-lto,gcc -g -flto,$(DWARF_C)))
$(eval $(call dwarf_program,gcc-c-dropped,gcc -g -ffunction-sections -Wl$(comma)--gc-sections,$(DWARF_C)))
$(eval $(call dwarf_program,gcc-x5,g++ -gdwarf-5,$(DWARF_CXX)))
$(eval $(call dwarf_program,gcc-x4,g++ -gdwarf-4,$(DWARF_CXX)))
$(eval $(call dwarf_program,gcc-x-packed,g++ -gdwarf-5 -gz,$(DWARF_CXX)))
$(eval $(call dwarf_program,clang-x4,$(CLANG)++ -gdwarf-4,$(DWARF_CXX)))
$(eval $(call dwarf_program,clang-x-dropped,$(CLANG)++ -gdwarf-5 -ffunction-sections -Wl$(comma)--gc-sections,$(DWARF_CXX)))
# One unit's code with holes that are the other's too.
DWARF_PROGRAMS += $(DWARF_DIR)/gcc-x-comdat
$(DWARF_DIR)/gcc-x-comdat: $(DWARF_HERE)/dwarf_comdat.cc
	$(call say,CC,gcc-x-comdat)
	@mkdir -p $(@D)
	$(Q)for n in FIRST SECOND; do g++ -g -O2 -ffunction-sections -falign-functions=1 -fno-toplevel-reorder \
		-D$$n -c -o $@-$$n.o $< || exit 1; done; g++ -o $@.new $@-FIRST.o $@-SECOND.o && mv $@.new $@
# The .dwo files lie beside the objects.
define dwarf_split_program
DWARF_PROGRAMS += $(DWARF_DIR)/$1
$(DWARF_DIR)/$1: $3
	$$(call say,CC,$1)
	@mkdir -p $$(@D)
	$$(Q)$2 -gsplit-dwarf -I. -O2 -w -c -o $$@.o $3 && $2 -o $$@ $$@.o
endef
$(eval $(call dwarf_split_program,gcc-x-split4,g++ -gdwarf-4,$(DWARF_CXX)))
$(eval $(call dwarf_split_program,gcc-x-split5,g++ -gdwarf-5,$(DWARF_CXX)))
$(eval $(call dwarf_split_program,clang-x-split4,$(CLANG)++ -gdwarf-4,$(DWARF_CXX)))
$(eval $(call dwarf_split_program,clang-x-split5,$(CLANG)++ -gdwarf-5,$(DWARF_CXX)))
# Two that share what dwz took out of them: X.alt is that, X.original the program as it was.
DWARF_PROGRAMS += $(DWARF_DIR)/dwz-x5 $(DWARF_DIR)/dwz-x4
$(DWARF_DIR)/dwz-x4: $(DWARF_DIR)/dwz-x5
$(DWARF_DIR)/dwz-x5: $(DWARF_DIR)/gcc-x5 $(DWARF_DIR)/gcc-x4
	$(call say,DWZ,dwz-x5)
	$(Q)cd $(DWARF_DIR) && rm -rf dwz && mkdir dwz && cp gcc-x5 dwz/x5 && cp gcc-x4 dwz/x4 && \
		dwz -m dwz/alt dwz/x5 dwz/x4 && \
		for n in x5 x4; do ln -sf dwz/alt dwz-$$n.alt && ln -sf gcc-$$n dwz-$$n.original && \
			cp dwz/$$n dwz-$$n; done
# What fuzzing begins with: one unit, and nothing of the C library.
DWARF_SEED_FLAGS = -nostdlib -static -Wl$(comma)-e$(comma)other_work -Wl$(comma)--build-id=none
DWARF_SEEDS :=
define dwarf_seed
DWARF_SEEDS += $(DWARF_DIR)/seed-$1
$(DWARF_DIR)/seed-$1: $(DWARF_HERE)/dwarf_c2.c
	@mkdir -p $$(@D)
	$$(Q)$2 -I. -O2 -c -o $$@.o $(DWARF_HERE)/dwarf_c2.c && \
		$2 $(DWARF_SEED_FLAGS) -o $$@.new $$@.o && $3 mv $$@.new $$@
endef
$(foreach v,2 3 4 5,$(eval $(call dwarf_seed,gcc$v,gcc -gdwarf-$v)))
$(foreach v,4 5,$(eval $(call dwarf_seed,clang$v,$(CLANG) -gdwarf-$v)))
$(eval $(call dwarf_seed,packed,gcc -gdwarf-5 -gz))
$(eval $(call dwarf_seed,gcc-split4,gcc -gdwarf-4 -gsplit-dwarf))
$(eval $(call dwarf_seed,clang-split5,$(CLANG) -gdwarf-5 -gsplit-dwarf -fsplit-dwarf-inlining))
$(eval $(call dwarf_seed,gcc-split5,gcc -gdwarf-5 -gsplit-dwarf,llvm-dwp -e $$@.new -o $$@.dwp &&))
$(eval $(call dwarf_seed,clang-split4,$(CLANG) -gdwarf-4 -gsplit-dwarf,dwp -e $$@.new -o $$@.dwp &&))
$(eval $(call dwarf_seed,dwz,gcc -gdwarf-4,cp $$@.new $$@.2 && dwz -m $$@.alt $$@.new $$@.2 &&))
$(BUILD)/tests/fuzz/dwarf_test: | $(DWARF_SEEDS)
$(eval $(call fuzz_target,dwarf,$(filter-out tests/symbolizer/dwarf_program.c,$(DWARF_TEST_SRCS)),$(SYMBOLIZER_LIBS)))
$(foreach t,dwarf_test dwarf_others_test,$(eval $(call dwarf_test,$t)))
tests/symbolizer/dwarf_others_test_SRCS += tests/symbolizer/dwarf_answers.c tests/symbolizer/dwarf_libdw.c
tests/symbolizer/dwarf_others_test_LIBS += -ldw
