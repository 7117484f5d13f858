# The child half, linked into every process that the supervisor starts: what its main begins with, and
# what confines it.
SANDBOX_SRCS = supervisor/sandbox.c supervisor/filter.c supervisor/profiles.c supervisor/landlock.c \
	supervisor/emptyroot.c
SANDBOX_LIBS = -lseccomp
CHILD_CORE_SRCS = supervisor/child.c supervisor/log.c $(SHM_CORE_SRCS) $(PROTO_CORE_SRCS)
CHILD_SRCS = $(CHILD_CORE_SRCS) $(SHM_SRCS) $(PROTO_SRCS)
PROGRAMS += sconce-supervisor
sconce-supervisor_SRCS = supervisor/main.c supervisor/wiring.c supervisor/spawn.c supervisor/watch.c \
	supervisor/kernel.c supervisor/control.c supervisor/drain.c supervisor/init.c supervisor/log.c \
	$(SHM_CORE_SRCS) $(PROTO_CORE_SRCS)
