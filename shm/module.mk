# Shared memory: linked into every process.
SHM_SRCS = shm/segment.c shm/queue.c shm/ledger.c shm/blame.c shm/blamed.c shm/table.c
