# Shared memory: linked into every process. Those who hold a privilege read no queue and name nothing.
SHM_CORE_SRCS = shm/segment.c shm/queue.c shm/ledger.c shm/blame.c shm/table.c
SHM_SRCS = $(SHM_CORE_SRCS) shm/queue_consumer.c shm/counter_names.c shm/blamed.c shm/unread.c
