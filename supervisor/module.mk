# The child half (log, child, sandbox), linked into every process that the supervisor starts, and the
# supervisor itself.
CHILD_SRCS = supervisor/child.c supervisor/log.c supervisor/sandbox.c $(SHM_SRCS) $(PROTO_SRCS)
