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
