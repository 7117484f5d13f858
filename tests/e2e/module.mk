# What scenarios need beside workloads.
HOSTILE = $(addprefix $(BUILD)/tests/hostile/,hangfs crowd forged forged-3.11)
workloads: $(HOSTILE)

$(filter-out %3.11,$(HOSTILE)): $(BUILD)/tests/hostile/%: tests/hostile/%.c
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(FORGED) -o $@ $< -lpthread

# What it exports is what makes it look like something else.
$(BUILD)/tests/hostile/forged: FORGED = -rdynamic
$(BUILD)/tests/hostile/forged-3.11: FORGED = -rdynamic -DFORGED=0x030b02f0
$(BUILD)/tests/hostile/forged-3.11: tests/hostile/forged.c
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(FORGED) -o $@ $< -lpthread
