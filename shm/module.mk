# Shared memory: linked into every process.
SHM_SRCS = shm/segment.c shm/queue.c shm/ledger.c shm/table.c
