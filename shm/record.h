/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 OR BSD-2-Clause */
/*
 * The records that flow from the kernel to the symbolizers.
 *
 * Who writes, who reads
 *   BPF writes struct record_sample into the ring buffer. The sampler copies the same bytes into the
 *   sample queue of one worker and looks at nothing but the fixed header fields. The symbolizer
 *   reads frames, registers and stack bytes. The sampler itself writes the other kinds into the
 *   process queue of a worker; they tell what a pid has mapped.
 *
 * Layout of a sample (every record is a multiple of 8 bytes; numbers are native endian)
 *
 *   +--------------------+----------------------+------------------+-----------+-----------------+
 *   | struct record_sample | kernel frames x 16 B | user frames x 16 | registers | bytes of stack  |
 *   +--------------------+----------------------+------------------+-----------+-----------------+
 *     fixed, 96 bytes      kernel_frames          user_slots         only if RECORD_HAS_STACK
 *
 *   Frames are leaf first. A user frame is either walked in BPF, or there is none and the record
 *   carries struct record_regs and stack_bytes bytes read from about the stack pointer upwards; then
 *   the symbolizer runs the same walk (bpf/unwind.bpf.h, compiled as an ordinary program).
 *
 * Life of a sample
 *   taken (seq given) -> in the ring -> in a sample queue -> symbolized -> merged -> shipped.
 *   Whoever cannot pass it on counts it as lost, with a reason of shm/counters.h.
 *
 * What each side may assume
 *   The kernel's records are trusted by the sampler. A symbolizer is handed bytes of processes that
 *   may lie: file ids, offsets and stack bytes are data, never indices to be used unchecked.
 *
 * How it may change
 *   In any way: the BPF object and all who read its records are of one build.
 *
 * Compiles in BPF and in C: it includes only <linux/types.h>.
 */
#ifndef SCONCE_SHM_RECORD_H
#define SCONCE_SHM_RECORD_H

#include <linux/types.h>

/* Deepest stacks kept. 127 is the kernel's own default limit (kernel.perf_event_max_stack). */
#define RECORD_KERNEL_FRAMES_MAX 127
#define RECORD_USER_FRAMES_MAX 1024
#define RECORD_STACK_BYTES_MAX 16384
/* The red zone of the ABI. At a `ret` the registers that were popped are still found there. */
#define RECORD_STACK_BELOW 128
/* The per-CPU scratch in which BPF builds a record; the per-CPU allocator's unit is 32 KiB. */
#define RECORD_BYTES_MAX 32768
#define RECORD_COMM_BYTES 16
#define RECORD_PATH_BYTES 256

enum record_kind {
	RECORD_SAMPLE = 1, /* ring, sample queue: struct record_sample */
	RECORD_PROCESS,	   /* process queue: struct record_process; forget what was known of the pid */
	RECORD_MAPPING,	   /* process queue: struct record_mapping */
	RECORD_EXIT,	   /* process queue: struct record_exit */
	RECORD_FILE,	   /* process queue: struct record_file */
};

/*
 * Why the user stack ends where it ends. REASON(name, text): text names the counter
 * (stop_<text>) and what users see. Append only.
 */
#define RECORD_STOPS(REASON)                                                                       \
	REASON(STOP_COMPLETE, "complete")	    /* reached the first function of the thread */         \
	REASON(STOP_NO_USER, "no_user")		    /* kernel thread, or no user registers */          \
	REASON(STOP_COMPAT32, "compat32")	    /* 32-bit process: kernel stack only */            \
	REASON(STOP_DEFERRED, "deferred")	    /* not walked here; registers and stack follow */   \
	REASON(STOP_NO_MAPPING, "no_mapping")	    /* return address in no executable range */        \
	REASON(STOP_NO_ROW, "no_row")		    /* no unwind row for the pc */                     \
	REASON(STOP_BAD_ROW, "bad_row")		    /* an unwind row that cannot be followed */        \
	REASON(STOP_FRAME_POINTER, "frame_pointer") /* frame pointer does not point up the stack */    \
	REASON(STOP_READ_FAULT, "read_fault")	    /* user memory could not be read */                \
	REASON(STOP_DEPTH, "depth")		    /* more frames than are kept */                    \
	REASON(STOP_STACK_END, "stack_end")	    /* walk left the bytes of stack in the record */       \
	REASON(STOP_EXECVE, "execve")		    /* between two programs: neither has a stack */    \
	REASON(STOP_REMAPPED, "remapped")	    /* other code is there than BPF knew of */

enum record_stop {
#define REASON(name, text) name,
	RECORD_STOPS(REASON)
#undef REASON
		STOP_COUNT
};

enum frame_kind {
	FRAME_NONE = 0,
	FRAME_KERNEL, /* addr = kernel address */
	FRAME_NATIVE, /* file_id + addr = offset in that file */
	FRAME_PC,     /* addr = absolute user pc, mapping not known or anonymous */
	FRAME_COOKIE, /* the slot belongs to the frame before it */
	/*
	 * A function of a script: addr = the runtime's own object for it, in the process; 0 = there is
	 * one here, but nothing could be read of it. file_id = the file of the runtime. A FRAME_COOKIE
	 * follows: file_id = where in the function, addr = by what to tell that the object still is the
	 * same when it is looked at later. What both mean is the language's (bpf/lang/x.h).
	 */
	FRAME_SCRIPT,
};

enum frame_flag {
	FRAME_RETURN = 1, /* addr is a return address: look up addr - 1 */
	FRAME_ANON = 2,	  /* FRAME_PC inside an anonymous executable range (JIT code) */
};

struct frame {
	__u8 kind;    /* enum frame_kind */
	__u8 flags;   /* enum frame_flag */
	__u16 language; /* FRAME_SCRIPT: enum language of bpf/langs.h; else 0 */
	__u32 file_id; /* given by the sampler, 0 = none */
	__u64 addr;
};

enum record_flag {
	RECORD_HAS_STACK = 1, /* struct record_regs and stack_bytes bytes stand after the frames */
	RECORD_IN_KERNEL = 2, /* the sample interrupted kernel code */
};

/* The first 8 bytes of every record. */
struct record_header {
	__u32 len_bytes; /* of the whole record, multiple of 8 */
	__u16 kind;	 /* enum record_kind */
	__u16 flags;	 /* enum record_flag for samples */
};

struct record_sample {
	struct record_header header;
	__u32 cpu;
	__u32 pid;	 /* thread group, in the initial pid namespace */
	__u64 seq;	 /* 1, 2, 3, ... per cpu; never reset while the BPF objects live */
	__u64 time_ns;	 /* CLOCK_BOOTTIME, like every time in this file */
	__u64 period_ns; /* CPU time that this sample stands for */
	__u64 start_ns;	 /* start of the thread group leader */
	__u64 exec_id;	 /* the kernel's self_exec_id: changes at execve */
	__u64 cgroup_id; /* in the v2 hierarchy */
	__u32 tid;
	__u16 kernel_frames;
	__u16 user_slots; /* struct frame slots, cookies included */
	__u8 stop;	  /* enum record_stop */
	__u8 unused;
	__u16 stack_bytes;
	__u32 slice; /* of BPF's range array, by which the user frames were resolved */
	char comm[RECORD_COMM_BYTES];
	struct frame frames[];
};

/* User registers at the interrupt, for a walk outside of the kernel. */
struct record_regs {
	__u64 pc, sp, fp; /* rip, rsp, rbp; pc, sp, x29 */
	__u64 flags;	  /* RECORD_REGS_* */
	__u64 extra[14];  /* the others, in the order of enum rule_register (shm/table.h) from rax on */
};
#define RECORD_REGS_SYSCALL 1 /* pc is behind a syscall instruction: look up pc - 1 */
#define RECORD_REGS_BELOW 2   /* the bytes of stack begin RECORD_STACK_BELOW below sp */

/*
 * A slice of BPF's range array, sorted by start. The sampler writes it, BPF looks pcs up in it, and
 * the broker's replies carry it. file offset of pc = pc - start + offset.
 */
struct record_range {
	__u64 start, end; /* [start, end) */
	__u64 offset;	  /* of start, in the file */
	__u32 file_id;	  /* 0 = anonymous */
	__u32 flags;	  /* RANGE_* */
};
#define RANGE_ANON 1
#define RANGE_VDSO 2 /* in what the broker answers; everywhere else it has a file id */
/* The vdso is in no file, but has a table and names under this id; ids of files do not come that
 * far. */
#define RECORD_VDSO_FILE_ID 0xffffffffu

enum process_flag {
	PROCESS_PENDING = 1, /* the broker was asked; ranges follow in another RECORD_PROCESS */
	PROCESS_GONE = 2,    /* asked for, but the process was not there any more */
};

/* A process is (pid, start_ns within [start_lo_ns, start_hi_ns], exec_id). */
struct record_process {
	struct record_header header;
	__u32 pid;
	__u32 parent_pid; /* 0 = not known */
	__u64 start_lo_ns, start_hi_ns;
	__u64 exec_id;
	__u32 flags; /* enum process_flag */
	__u32 mappings; /* number of RECORD_MAPPING records that follow directly */
	__u64 after;	/* position in the sample queue: samples before it are older than this */
};

struct record_mapping {
	struct record_header header;
	__u32 pid;
	__u32 unused;
	__u64 after; /* as in struct record_process */
	struct record_range range;
};

struct record_exit {
	struct record_header header;
	__u32 pid;
	__u32 unused;
	__u64 time_ns;
};

/* A file id was given. The path is what the kernel said, for show only; may be cut; ends in NUL. */
struct record_file {
	struct record_header header;
	__u32 file_id;
	__u32 dev_major, dev_minor;
	__u32 unused;
	__u64 inode;
	char path[RECORD_PATH_BYTES];
};

_Static_assert(sizeof(struct frame) == 16, "a frame is 16 bytes");
_Static_assert(sizeof(struct record_header) == 8, "header");
_Static_assert(sizeof(struct record_sample) == 96, "sample header");
_Static_assert(sizeof(struct record_regs) == 144, "registers");
_Static_assert(sizeof(struct record_range) == 32, "range");
_Static_assert(sizeof(struct record_process) == 56, "process");
_Static_assert(sizeof(struct record_mapping) == 56, "mapping");
_Static_assert(sizeof(struct record_exit) == 24, "exit");
_Static_assert(sizeof(struct record_file) == 288, "file");

#endif
