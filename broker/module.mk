# sconce-broker, and what its tests link.
BROKER_SRCS = broker/target.c broker/open.c broker/other.c broker/memory.c

PROGRAMS += sconce-broker
sconce-broker_SRCS = broker/main.c $(BROKER_SRCS) $(CHILD_CORE_SRCS) $(SANDBOX_SRCS)
sconce-broker_LIBS = $(SANDBOX_LIBS)
