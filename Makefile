# SPDX-License-Identifier: Apache-2.0
#
# Two commands: `sudo make run` and `sudo make check`. Each folder lists its own programs, sources and
# tests in a module.mk; the rules are here.
#
#   make                 build everything into build/
#   make MODE=asan       the same with AddressSanitizer and UBSan, into build/asan (or tsan)
#   make CC=clang V=1    another compiler; show the commands

MODE ?= release
CLANG ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
ifeq ($(MODE),release)
BUILD ?= build
MODE_FLAGS := -O2
else ifeq ($(MODE),asan)
BUILD ?= build/asan
MODE_FLAGS := -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
else ifeq ($(MODE),tsan)
BUILD ?= build/tsan
MODE_FLAGS := -O1 -fsanitize=thread
else
$(error MODE is release, asan or tsan)
endif

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
# Frame pointers: we profile ourselves too.
CFLAGS += -std=gnu11 -g -fno-omit-frame-pointer $(MODE_FLAGS) $(WARNINGS)
CPPFLAGS += -I. -I$(BUILD)/gen -DSCONCE_VERSION='"$(shell cat VERSION)"'
ARCH := $(shell uname -m | sed -e s/x86_64/x86/ -e s/aarch64/arm64/)
BPF_CFLAGS := -O2 -g -Wall -Wextra -Werror -target bpf -D__TARGET_ARCH_$(ARCH) -I. \
	-idirafter /usr/include/$(shell uname -m)-linux-gnu

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $1 $2)

PROGRAMS :=
TESTS :=
BENCHES :=
.DEFAULT_GOAL := all
include $(sort $(wildcard */module.mk tests/*/module.mk))

all: $(addprefix $(BUILD)/,$(PROGRAMS))
tests: $(addprefix $(BUILD)/,$(TESTS))
print-tests:
	$(Q)printf '%s\n' $(sort $(TESTS))

# A program, test or bench P is linked from P_SRCS with P_LIBS; P_CPPFLAGS for its own sources.
define link_rule
$(BUILD)/$1: $(patsubst %.c,$(BUILD)/%.o,$(filter %.c,$($1_SRCS))) $(addprefix $(BUILD)/,$(filter %.o,$($1_SRCS)))
	$$(call say,LD,$1)
	@mkdir -p $$(@D)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $$@ $$^ $($1_LIBS)
endef
$(foreach p,$(PROGRAMS) $(TESTS) $(BENCHES),$(eval $(call link_rule,$p)))

$(BUILD)/%.o: %.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# .proto -> C, compiled without our warnings: protoc-c writes what it writes.
$(BUILD)/gen/%.pb-c.c $(BUILD)/gen/%.pb-c.h: %.proto
	$(call say,PROTO,$<)
	@mkdir -p $(BUILD)/gen
	$(Q)protoc-c -I. --c_out=$(BUILD)/gen $<
$(BUILD)/gen/%.o: $(BUILD)/gen/%.c
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(filter-out $(WARNINGS),$(CFLAGS)) -c -o $@ $<

# Each .bpf.c compiles alone; bpftool links them into one object and writes the skeleton.
$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/bpf/sconce.o: $(patsubst %.c,$(BUILD)/%.o,$(BPF_SRCS))
	$(call say,BPFLD,$@)
	$(Q)$(BPFTOOL) gen object $@ $^
$(BUILD)/gen/bpf/sconce.skel.h: $(BUILD)/bpf/sconce.o
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name sconce_bpf > $@

.PHONY: all tests print-tests deps run check check-quick matrix matrix-build matrix-kernels matrix-runtimes
.PHONY: headers budget bench lines soak clean format
.SECONDARY:

# What a fresh Debian 12 lacks. Silent and without a network when all of it is there.
deps:
	$(Q)tools/install-deps $(DEPS)

run:
	$(Q)$(MAKE) --no-print-directory deps
	$(Q)$(MAKE) --no-print-directory all
	$(Q)exec $(BUILD)/sconce run $(ARGS)

check:
	$(Q)$(MAKE) --no-print-directory deps DEPS=check
	$(Q)tests/run

# The object on other kernels, under qemu (tests/matrix/run SUITE ... for some of them), and scripts under all
# versions of their runtimes that can be had (tests/matrix/runtimes PATTERN ...).
matrix: matrix-kernels matrix-runtimes
matrix-kernels matrix-runtimes: matrix-build
matrix-build:
	$(Q)$(MAKE) --no-print-directory deps DEPS=matrix
	$(Q)$(MAKE) --no-print-directory all $(BUILD)/tests/bpf/scripts_test
matrix-kernels:
	$(Q)BUILD=$(BUILD) CC=$(CC) tests/matrix/run $(SUITES)
matrix-runtimes:
	$(Q)SCONCE_BUILD=$(abspath $(BUILD)) tests/matrix/runtimes $(RUNTIMES)

# Every header compiles alone.
headers:
	$(Q)for h in $$(git ls-files '*.h' | grep -v '^bpf/.*\.bpf\.h$$\|^bpf/kernel\.h$$\|^bpf/maps\.h$$\|^tests/bpf/host/'); do \
		echo "#include \"$$h\"" | $(CC) $(CPPFLAGS) $(CFLAGS) -fsyntax-only -x c - || exit 1; done

budget:
	$(Q)tools/budget

# Names, files and lines of some fifty programs beside what others make of them: the table of bench/README.md.
lines:
	$(Q)$(MAKE) --no-print-directory $(BUILD)/tests/symbolizer/dwarf_others_test $(BUILD)/tests/symbolizer/golines_test
	$(Q)tests/tools/lines_table.py $(ARGS)

bench: all workloads
	$(Q)bench/overhead
	$(Q)bench/unwind-cost
	$(Q)bench/scripts
	$(Q)bench/tables
	$(Q)bench/reads
	$(Q)bench/names

# Lives that come and go, and whether anything is left of them: three minutes. Then half an hour in which
# somebody of the agent is killed each second.
soak: all workloads
	$(Q)bench/soak
	$(Q)STORM_SECONDS=1800 tests/e2e/31-storm
	$(Q)HOSTILE_SILENT=1 tests/e2e/39-hostile-scripts

format:
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
