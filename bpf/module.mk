# The kernel side, and the program that loads it (its sources are in supervisor/).
BPF_SRCS = bpf/maps.bpf.c bpf/sample.bpf.c bpf/fork.bpf.c
