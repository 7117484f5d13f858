# The child half (log, child, sandbox), linked into every process that the supervisor starts, and the
# supervisor itself.
CHILD_SRCS = supervisor/child.c supervisor/log.c supervisor/sandbox.c $(SHM_SRCS) $(PROTO_SRCS)
PROGRAMS += sconce-supervisor
sconce-supervisor_SRCS = supervisor/main.c supervisor/wiring.c supervisor/spawn.c supervisor/watch.c \
	supervisor/kernel.c supervisor/control.c supervisor/drain.c supervisor/log.c \
	$(SHM_SRCS) $(PROTO_SRCS)
