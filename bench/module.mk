# One measurement for bench/unwind-cost.
BENCHES += bench/unwind_cost
bench/unwind_cost_SRCS = bench/unwind_cost.c tests/bpf/scripts.c $(RIG_SRCS)
bench/unwind_cost_LIBS = $(SYMBOLIZER_LIBS) $(LOADER_LIBS)
workloads: $(BUILD)/bench/unwind_cost

# Workloads with known answers: `make workloads`. One folder per language, see workloads/README.md.
WORKLOAD_DIR = $(BUILD)/bench/workloads/c
WORKLOAD_FLAGS = -std=gnu11 -g -O2 -fno-omit-frame-pointer -fno-inline -fno-optimize-sibling-calls \
	$(WARNINGS)
WORKLOADS = $(addprefix $(WORKLOAD_DIR)/,chain churn churn-child dl dl-a.so dl-b.so)

.PHONY: workloads
workloads: $(WORKLOADS)

$(WORKLOAD_DIR)/%: bench/workloads/c/%.c bench/workloads/c/burn.h
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -I. $(WORKLOAD_FLAGS) -o $@ $< -lpthread -ldl
$(WORKLOAD_DIR)/dl-%.so: bench/workloads/c/dl-lib.c bench/workloads/c/burn.h
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -I. $(WORKLOAD_FLAGS) -DLETTER=$* -fPIC -shared -o $@ $<

# Chains without frame pointers. What needs a compiler that is not here is left out; bench/unwind says so.
UNWIND_DIR = $(BUILD)/bench/workloads/unwind
UNWIND_FLAGS = -g -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -Wall -Wextra -Werror
UNWIND_NATIVE = bench/workloads/unwind/native.c bench/workloads/unwind/chain.h
UNWIND_RUSTC := $(shell PATH="$$PATH:$$HOME/.cargo/bin:/root/.cargo/bin" command -v rustc)
UNWIND_WORKLOADS := native stripped static throw throw-stripped plt dlopen \
	$(if $(shell command -v musl-gcc),musl musl-dynamic musl-stripped) \
	$(if $(UNWIND_RUSTC),rust)

workloads: $(addprefix $(UNWIND_DIR)/,$(UNWIND_WORKLOADS))

UNWIND_C = $(Q)mkdir -p $(@D) && $(CC) -I. -std=gnu11 $(UNWIND_FLAGS) -o $@ bench/workloads/unwind/native.c

$(UNWIND_DIR)/native: $(UNWIND_NATIVE)
	$(call say,LOAD,$@)
	$(UNWIND_C) -lpthread
$(UNWIND_DIR)/stripped: $(UNWIND_NATIVE)
	$(call say,LOAD,$@)
	$(UNWIND_C) -s -rdynamic -lpthread
$(UNWIND_DIR)/static: $(UNWIND_NATIVE)
	$(call say,LOAD,$@)
	$(UNWIND_C) -static -lpthread
$(UNWIND_DIR)/musl: $(UNWIND_NATIVE)
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)musl-gcc -I. -std=gnu11 $(UNWIND_FLAGS) -static -o $@ $< -lpthread
$(UNWIND_DIR)/musl-dynamic: $(UNWIND_NATIVE)
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)musl-gcc -I. -std=gnu11 $(UNWIND_FLAGS) -o $@ $< -lpthread
# Of the C library no symbol stays, of the chain those that its frames are known by.
$(UNWIND_DIR)/musl-stripped: $(UNWIND_DIR)/musl
	$(call say,LOAD,$@)
	$(Q)objcopy --wildcard --strip-all $(patsubst %,--keep-symbol='%',main _start chain_* leaf_* \
		thread_main compare handler) $< $@
$(UNWIND_DIR)/libtiny.so: bench/workloads/unwind/tiny.c
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(UNWIND_FLAGS) -fPIC -shared -o $@ $<
$(UNWIND_DIR)/plt: $(UNWIND_NATIVE) $(UNWIND_DIR)/libtiny.so
	$(call say,LOAD,$@)
	$(UNWIND_C) -DWITH_TINY -Wl,-z,lazy -Wl,-rpath,'$$ORIGIN' -L$(@D) -ltiny -lpthread
# Four libraries of one size whose frames differ.
UNWIND_PARTS = $(addprefix $(UNWIND_DIR)/libpart-,a.so b.so c.so d.so)
UNWIND_ROOM = $(patsubst a,24,$(patsubst b,56,$(patsubst c,104,$(patsubst d,200,$1))))
$(UNWIND_DIR)/libpart-%.so: bench/workloads/unwind/part.c bench/workloads/unwind/chain.h
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -I. -std=gnu11 $(UNWIND_FLAGS) -DLETTER=$* -DROOM=$(call UNWIND_ROOM,$*) -fPIC -shared -o $@ $<
$(UNWIND_DIR)/dlopen: $(UNWIND_NATIVE) $(UNWIND_PARTS)
	$(call say,LOAD,$@)
	$(UNWIND_C) -DWITH_PARTS -Wl,-rpath,'$$ORIGIN' -ldl -lpthread
$(UNWIND_DIR)/throw: bench/workloads/unwind/throw.cc bench/workloads/unwind/chain.h
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -I. $(UNWIND_FLAGS) -o $@ $<
$(UNWIND_DIR)/throw-stripped: bench/workloads/unwind/throw.cc bench/workloads/unwind/chain.h
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -I. $(UNWIND_FLAGS) -s -rdynamic -o $@ $<
$(UNWIND_DIR)/rust: bench/workloads/unwind/rust.rs
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(UNWIND_RUSTC) -O -o $@ $<

# Zig, where there is one: `make workloads ZIG="python3 -m ziglang"` takes the one of PyPI.
ZIG ?= $(shell command -v zig)
ZIG_DIR = $(BUILD)/bench/workloads/zig
workloads: $(if $(ZIG),$(addprefix $(ZIG_DIR)/chain-,Fast Safe))

$(ZIG_DIR)/chain-%: bench/workloads/zig/chain.zig
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(ZIG) build-exe -O Release$* -femit-bin=$@ $<

# Short lives.
SHORT_DIR = $(BUILD)/bench/workloads/short
workloads: $(addprefix $(SHORT_DIR)/,launch burn)

$(SHORT_DIR)/launch: bench/workloads/short/launch.c
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 $(WARNINGS) -o $@ $<
$(SHORT_DIR)/burn: bench/workloads/short/burn.c
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(UNWIND_FLAGS) -static -o $@ $<

# Code that is made at run time.
JIT_WORKLOAD = $(BUILD)/bench/workloads/jit/jit
ifeq ($(ARCH),x86)
workloads: $(JIT_WORKLOAD)
endif

$(JIT_WORKLOAD): bench/workloads/jit/jit.c
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(UNWIND_FLAGS) -o $@ $<

# What changes in the life of a process; everything twice, under two names.
LIFE_DIR = $(BUILD)/bench/workloads/life
LIFE_CC = $(Q)mkdir -p $(@D) && $(CC) -I. -std=gnu11 $(UNWIND_FLAGS) -DCOLOR=$*
LIFE_SOURCES = bench/workloads/life/life.c bench/workloads/life/life.h
workloads: $(foreach color,red blue,$(LIFE_DIR)/$(color) $(LIFE_DIR)/$(color)-static $(LIFE_DIR)/$(color).so)

workloads: $(LIFE_DIR)/long

$(LIFE_DIR)/long: bench/workloads/life/long.c bench/workloads/life/life.h
	$(call say,LOAD,$@)
	$(LIFE_CC) -o $@ $< -lpthread -ldl
$(LIFE_DIR)/%-static: $(LIFE_SOURCES)
	$(call say,LOAD,$@)
	$(LIFE_CC) -static -DLIFE_STATIC -o $@ $< -lpthread
$(LIFE_DIR)/%.so: bench/workloads/life/lib.c bench/workloads/life/life.h
	$(call say,LOAD,$@)
	$(LIFE_CC) -fPIC -shared -o $@ $<
$(LIFE_DIR)/%: $(LIFE_SOURCES)
	$(call say,LOAD,$@)
	$(LIFE_CC) -o $@ $< -lpthread -ldl

# Go's, where there is a Go that is recent enough; with cgo where it finds a C compiler.
GO ?= $(shell command -v go || ls /usr/local/go/bin/go 2>/dev/null)
GO_DIR = $(BUILD)/bench/workloads/go
GO_PROGRAMS = go-chain go-bare go-pie go-cgo go-lines go-lines-bare
# Files of one release and what it builds from, the release itself when it is not the one that is here.
GO_RELEASE = $(patsubst go,,$(notdir $(@D)))
GO_WITHOUT_VCS = $(if $(filter $(addprefix go1.1,0.% 1.% 2.% 3.% 4.% 5.% 6.% 7.%),$1),,-buildvcs=false)
GO_ENV = GOCACHE=$(abspath $(BUILD))/gocache GOPATH=$(abspath $(BUILD))/go GOENV=off \
	GOTOOLCHAIN=$(or $(GO_RELEASE),local) GOFLAGS=$(call GO_WITHOUT_VCS,$(GO_RELEASE))
GO_BUILD = $(call say,LOAD,$@); mkdir -p $(@D) && cd bench/workloads/go && $(GO_ENV) $1 $(GO) build $2 -o $(abspath $@)
GO_CHAIN = bench/workloads/go/chain/chain.go
GO_LINES = $(addprefix bench/workloads/go/lines/,lines.go empty.s)
GO_CGO = bench/workloads/go/cgo/cgo.go bench/workloads/go/cgo/part.c
ifneq ($(GO),)
workloads: $(addprefix $(GO_DIR)/,$(GO_PROGRAMS))
endif

# Other releases of Go, which the go command fetches: `make workloads-go GO_RELEASES="go1.25.3 go1.21.13"`.
GO_RELEASES =
.PHONY: workloads-go
workloads-go: $(foreach release,$(GO_RELEASES),$(addprefix $(GO_DIR)/$(release)/,$(GO_PROGRAMS)))

$(addsuffix /go-chain,$(GO_DIR) $(addprefix $(GO_DIR)/,$(GO_RELEASES))): $(GO_CHAIN)
	$(Q)$(call GO_BUILD,CGO_ENABLED=0,-ldflags=-compressdwarf=false) ./chain
$(addsuffix /go-bare,$(GO_DIR) $(addprefix $(GO_DIR)/,$(GO_RELEASES))): $(GO_CHAIN)
	$(Q)$(call GO_BUILD,CGO_ENABLED=0,-ldflags='-s -w') ./chain
$(addsuffix /go-pie,$(GO_DIR) $(addprefix $(GO_DIR)/,$(GO_RELEASES))): $(GO_CHAIN)
	$(Q)$(call GO_BUILD,CGO_ENABLED=0,-buildmode=pie) ./chain
$(addsuffix /go-lines,$(GO_DIR) $(addprefix $(GO_DIR)/,$(GO_RELEASES))): $(GO_LINES)
	$(Q)$(call GO_BUILD,CGO_ENABLED=0,) ./lines
$(addsuffix /go-lines-bare,$(GO_DIR) $(addprefix $(GO_DIR)/,$(GO_RELEASES))): $(GO_LINES)
	$(Q)$(call GO_BUILD,CGO_ENABLED=0,-ldflags='-s -w') ./lines
$(addsuffix /go-cgo,$(GO_DIR) $(addprefix $(GO_DIR)/,$(GO_RELEASES))): $(GO_CGO)
	$(Q)$(call GO_BUILD,CGO_ENABLED=1 CGO_CFLAGS='-O2 -fomit-frame-pointer -fno-optimize-sibling-calls',) ./cgo

# What bench/tables runs: it compiles the unwind table of one file.
BENCHES += bench/compile-table
workloads: $(BUILD)/bench/compile-table
bench/compile-table_SRCS = bench/compile-table.c $(EHFRAME_TEST_SRCS)
bench/compile-table_LIBS = $(SYMBOLIZER_LIBS)

# What bench/reads runs: it reads files as the symbolizer does.
BENCHES += bench/read-files
workloads: $(BUILD)/bench/read-files
bench/read-files_SRCS = bench/read-files.c $(EHFRAME_SRCS) symbolizer/symbols.c symbolizer/demangle.c \
	symbolizer/elffile.c symbolizer/reader.c symbolizer/sha256.c shm/table.c
bench/read-files_LIBS = $(SYMBOLIZER_LIBS)

# One measurement for bench/lines.
BENCHES += bench/find-lines
bench/find-lines_SRCS = bench/find-lines.c $(DWARF_TEST_SRCS)
bench/find-lines_LIBS = $(SYMBOLIZER_LIBS)
# What bench/names runs: it names addresses as the symbolizer does.
BENCHES += bench/find-names
workloads: $(BUILD)/bench/find-names
bench/find-names_SRCS = bench/find-names.c $(SYMBOLIZER_SRCS) $(CHILD_SRCS)
bench/find-names_LIBS = $(SYMBOLIZER_LIBS)
