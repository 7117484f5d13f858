# The exporter: merges, encodes, spools, ships.
PROGRAMS += sconce-exporter
EXPORTER_SRCS = $(patsubst %,exporter/%.c,definitions translate resource batch intake spool transport file)
sconce-exporter_SRCS = exporter/main.c $(EXPORTER_SRCS) $(PROFILE_SRCS) $(PROFILE_FILE_SRCS) $(CHILD_SRCS)
sconce-exporter_LIBS = $(PROFILE_LIBS) -lcurl
