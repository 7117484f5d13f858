# The exporter: merges, encodes, spools, ships.
PROGRAMS += sconce-exporter
EXPORTER_SRCS = $(patsubst %,exporter/%.c,definitions translate resource batch intake spool transport file)
# places.c is for its main alone: it changes how the whole process asks for names.
sconce-exporter_SRCS = exporter/main.c exporter/places.c $(EXPORTER_SRCS) $(PROFILE_SRCS) $(PROFILE_FILE_SRCS) $(CHILD_SRCS) $(SANDBOX_SRCS)
sconce-exporter_LIBS = $(PROFILE_LIBS) -lcurl $(SANDBOX_LIBS)
