# sconce-sampler. What is linked by its tests too, without main and the bpf() calls:
SAMPLER_SRCS = sampler/ranges.c sampler/slices.c sampler/processes.c sampler/files.c \
	sampler/workers.c sampler/introduce.c sampler/ring.c sampler/sideband.c sampler/pump.c \
	sampler/inbox.c sampler/store.c shm/table.c

PROGRAMS += sconce-sampler
sconce-sampler_SRCS = sampler/main.c sampler/tables.c $(SAMPLER_SRCS) $(CHILD_CORE_SRCS) $(SANDBOX_SRCS)
sconce-sampler_LIBS = $(SANDBOX_LIBS)
