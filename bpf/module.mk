# The kernel side, and the program that loads it (its sources are in supervisor/).
BPF_SRCS = bpf/maps.bpf.c bpf/sample.bpf.c bpf/fork.bpf.c \
	bpf/lang/python.bpf.c bpf/lang/php.bpf.c bpf/lang/ruby.bpf.c bpf/lang/perl.bpf.c

PROGRAMS += sconce-loader
LOADER_SRCS = supervisor/loader_bpf.c supervisor/loader_perf.c
LOADER_LIBS = -lbpf -lelf -lz
sconce-loader_SRCS = supervisor/loader.c $(LOADER_SRCS) supervisor/log.c $(SANDBOX_SRCS) \
	$(SHM_CORE_SRCS) $(PROTO_CORE_SRCS)
sconce-loader_LIBS = $(LOADER_LIBS) $(SANDBOX_LIBS)
$(BUILD)/supervisor/loader_bpf.o: $(BUILD)/gen/bpf/sconce.skel.h
