# What scenarios need beside workloads.
HOSTILE = $(addprefix $(BUILD)/tests/hostile/,hangfs crowd)
workloads: $(HOSTILE)

$(HOSTILE): $(BUILD)/tests/hostile/%: tests/hostile/%.c
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $< -lpthread
