# A symbolizer that lies; tests/e2e/27-liar puts it in the place of the real one.
PROGRAMS += tests/hostile/liar
tests/hostile/liar_SRCS = $(patsubst %,tests/hostile/%.c,liar messages tables memory life) \
	$(SYMBOLIZER_SRCS) $(SANDBOX_SRCS) $(CHILD_SRCS)
tests/hostile/liar_LIBS = $(SYMBOLIZER_LIBS) $(SANDBOX_LIBS) -lpthread
