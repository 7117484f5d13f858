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
UNWIND_WORKLOADS := native stripped static throw plt $(if $(shell command -v musl-gcc),musl) \
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
$(UNWIND_DIR)/libtiny.so: bench/workloads/unwind/tiny.c
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(UNWIND_FLAGS) -fPIC -shared -o $@ $<
$(UNWIND_DIR)/plt: $(UNWIND_NATIVE) $(UNWIND_DIR)/libtiny.so
	$(call say,LOAD,$@)
	$(UNWIND_C) -DWITH_TINY -Wl,-z,lazy -Wl,-rpath,'$$ORIGIN' -L$(@D) -ltiny -lpthread
$(UNWIND_DIR)/throw: bench/workloads/unwind/throw.cc bench/workloads/unwind/chain.h
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -I. $(UNWIND_FLAGS) -o $@ $<
$(UNWIND_DIR)/rust: bench/workloads/unwind/rust.rs
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(UNWIND_RUSTC) -O -o $@ $<

# Short lives. A program is called by the name that it is started by.
SHORT_DIR = $(BUILD)/bench/workloads/short
workloads: $(addprefix $(SHORT_DIR)/,launch burn burn-5 burn-20 burn-100)

$(SHORT_DIR)/launch: bench/workloads/short/launch.c
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 $(WARNINGS) -o $@ $<
$(SHORT_DIR)/burn: bench/workloads/short/burn.c
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(UNWIND_FLAGS) -static -o $@ $<
$(SHORT_DIR)/burn-%: $(SHORT_DIR)/burn
	$(Q)ln -sf burn $@

# Go's, where there is a Go that is recent enough; with cgo where it finds a C compiler.
GO ?= $(shell command -v go || ls /usr/local/go/bin/go 2>/dev/null)
GO_DIR = $(BUILD)/bench/workloads/go
GO_ENV = GOCACHE=$(abspath $(BUILD))/gocache GOTOOLCHAIN=local GOFLAGS=-buildvcs=false GOPATH=$(abspath $(BUILD))/go
GO_BUILD = cd bench/workloads/go && $(GO_ENV) $1 $(GO) build $2 -o $(abspath $@)
ifneq ($(GO),)
workloads: $(addprefix $(GO_DIR)/,go-chain go-bare go-pie go-cgo)
endif

$(GO_DIR)/go-chain: bench/workloads/go/chain/chain.go
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(call GO_BUILD,CGO_ENABLED=0,-ldflags=-compressdwarf=false) ./chain
$(GO_DIR)/go-bare: bench/workloads/go/chain/chain.go
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(call GO_BUILD,CGO_ENABLED=0,-ldflags='-s -w') ./chain
$(GO_DIR)/go-pie: bench/workloads/go/chain/chain.go
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(call GO_BUILD,CGO_ENABLED=0,-buildmode=pie) ./chain
$(GO_DIR)/go-cgo: bench/workloads/go/cgo/cgo.go bench/workloads/go/cgo/part.c
	$(call say,LOAD,$@)
	@mkdir -p $(@D)
	$(Q)$(call GO_BUILD,CGO_ENABLED=1 CGO_CFLAGS='-O2 -fomit-frame-pointer -fno-optimize-sibling-calls',) ./cgo

# What bench/tables runs: it compiles the unwind table of one file.
BENCHES += bench/compile-table
workloads: $(BUILD)/bench/compile-table
bench/compile-table_SRCS = bench/compile-table.c $(EHFRAME_TEST_SRCS)
bench/compile-table_LIBS = $(SYMBOLIZER_LIBS)
