/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker as a whole: right names, deferred stacks walked, nothing lost and nothing twice
 * through kill -9, everything that is dropped counted, epochs, drain.
 */
#define _GNU_SOURCE
#include "bpf/langs.h"
#include "tests/symbolizer/harness.h"
#include "tests/symbolizer/packed.h"

#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#define PID    4711
#define START  1000000000ull
#define SELF   7 /* file id of this program */
#define DOCKER "0::/system.slice/docker-" ID ".scope\n"
#define ID     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define KALLSYMS                                                                                   \
	"ffffffff81000000 T _text\nffffffff81000100 t do_work\nffffffff81000200 T do_syscall_64\n" \
	"ffffffffc0001000 t driver_poll\t[driver]\n"

/* Registers and stack of the last known_leaf(), as a sample would have them. */
static ucontext_t leaf_context;
static uint64_t leaf_stack[512];

/* Functions with known names, far enough from each other. */
int known_leaf(int x);
int known_caller(int x);
/* It reads the whole stack, between variables too. */
__attribute__((noinline, no_sanitize("address"))) int known_leaf(int x)
{
	int err = getcontext(&leaf_context);
	const volatile uint64_t *stack = (void *)leaf_context.uc_mcontext.gregs[REG_RSP];

	for (size_t i = 0; i < sizeof(leaf_stack) / sizeof(*leaf_stack); i++)
		leaf_stack[i] = stack[i];
	return x * 3 + err;
}
__attribute__((noinline)) int known_caller(int x)
{
	return known_leaf(x) + 1;
}

struct self {
	char path[256];
	uint64_t start, end, offset; /* the executable mapping of this program */
};

static void self_find(struct self *self)
{
	uint64_t pc = (uint64_t)(uintptr_t)known_leaf;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], flags[8];
	unsigned long start, end, offset;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &start, &end, flags, &offset,
			   self->path) == 5 &&
		    pc >= start && pc < end)
			break;
	fclose(maps);
	self->start = start;
	self->end = end;
	self->offset = offset;
	assert_true(pc >= start && pc < end);
}

static uint64_t self_offset(const struct self *self, const void *fn, int behind)
{
	return (uint64_t)(uintptr_t)fn + (uint64_t)behind - self->start + self->offset;
}

static void configure(struct config *config)
{
	config_defaults(config, MODE_RUN);
	config->sample_queue_bytes = 1 << 20;
	config->process_queue_bytes = 1 << 16;
	config->output_queue_bytes = 1 << 20;
	config->log_bytes = 1 << 20;
	strcpy(config->runtime.kernel_build_id, "48dc540c");
}

static void introduce(struct harness *h, const struct self *self)
{
	harness_push_file(h, SELF, self->path);
	harness_push_process(h, PID, START, 0);
	harness_push_range(h, PID, self->start, self->end, self->offset, SELF, 0);
	harness_push_range(h, PID, 0x7fff00000000, 0x7fff00002000, 0, RECORD_VDSO_FILE_ID, 0);
	harness_send_info(h, PID, START, "/usr/bin/known", DOCKER);
	harness_send_file(h, SELF, self->path);
}

static struct record_sample sample_head(uint64_t seq)
{
	return (struct record_sample){.cpu = 1,
				      .pid = PID,
				      .tid = PID,
				      .seq = seq,
				      .time_ns = START + seq,
				      .period_ns = 1000,
				      .start_ns = START,
				      .exec_id = 3,
				      .stop = STOP_COMPLETE,
				      .comm = "known"};
}

static void test_names(void **state)
{
	struct record_sample head = sample_head(1);
	const struct symbol_location *location;
	const struct symbol_process *process;
	const struct symbol_mapping *mapping;
	const struct symbol_stack *stack;
	struct symbol_sample out;
	struct config config;
	struct harness h;
	struct self self;
	char text[4096];

	(void)state;
	self_find(&self);
	configure(&config);
	harness_open(&h, &config, KALLSYMS);
	harness_start(&h);
	introduce(&h, &self);
	{
		struct frame frames[] = {
		    {FRAME_KERNEL, 0, 0, 0, 0xffffffff81000123},
		    {FRAME_KERNEL, FRAME_RETURN, 0, 0, 0xffffffffc0001008},
		    {FRAME_KERNEL, FRAME_RETURN, 0, 0, 0xffffffff81000200}, /* behind do_work */
		    {FRAME_NATIVE, 0, 0, SELF, self_offset(&self, known_leaf, 1)},
		    {FRAME_NATIVE, FRAME_RETURN, 0, SELF, self_offset(&self, known_caller, 1)},
		    {FRAME_PC, 0, 0, 0, (uint64_t)(uintptr_t)known_leaf},
		    {FRAME_PC, 0, 0, 0, 0x7fff00000010},
		    {FRAME_PC, FRAME_ANON, 0, 0, 0x1234},
		    {FRAME_NATIVE, 0, 0, SELF, 0},
		};

		head.kernel_frames = 3;
		head.user_slots = 6;
		assert_int_equal(harness_push_sample(&h, head, frames, NULL, NULL), 0);
	}
	assert_true(harness_next(&h, &out, 10000));
	harness_stack(&h, &out, text, sizeof(text));
	assert_string_equal(text, "do_work;driver_poll;do_work;known_leaf;known_caller;known_leaf;"
				  "[vdso+0x10];[unknown];[worker_test+0x0]");
	assert_int_equal(out.seq, 1);
	assert_int_equal(out.pid, PID);
	assert_int_equal(out.period_ns, 1000);
	assert_string_equal(out.comm, "known");

	process = harness_definition(&h, out.epoch, SYMBOL_PROCESS, out.process);
	assert_non_null(process);
	assert_string_equal(harness_string(&h, out.epoch, process->executable), "/usr/bin/known");
	assert_string_equal(harness_string(&h, out.epoch, process->container_id), ID);

	stack = harness_definition(&h, out.epoch, SYMBOL_STACK, out.stack);
	location = harness_definition(&h, out.epoch, SYMBOL_LOCATION, stack->locations[0]);
	assert_int_equal(location->frame_type, SYMBOL_FRAME_KERNEL);
	assert_int_equal(location->address, 0x123); /* nothing of where the kernel lies */
	mapping = harness_definition(&h, out.epoch, SYMBOL_MAPPING, location->mapping);
	assert_string_equal(harness_string(&h, out.epoch, mapping->gnu_build_id), "48dc540c");
	location = harness_definition(&h, out.epoch, SYMBOL_LOCATION, stack->locations[1]);
	mapping = harness_definition(&h, out.epoch, SYMBOL_MAPPING, location->mapping);
	assert_int_equal(mapping->gnu_build_id, 0); /* a module's is another */
	location = harness_definition(&h, out.epoch, SYMBOL_LOCATION, stack->locations[3]);
	mapping = harness_definition(&h, out.epoch, SYMBOL_MAPPING, location->mapping);
	assert_non_null(mapping);
	assert_true(location->address >= mapping->start && location->address < mapping->limit);
	assert_string_equal(harness_string(&h, out.epoch, mapping->file), self.path);
	assert_int_equal(strlen(harness_string(&h, out.epoch, mapping->htlhash)), 32);
	/* Commits come before publishing: what was seen is in the books. */
	assert_int_equal(harness_counter(&h, C_symbolizer_symbolized), 1);
	assert_int_equal(harness_counter(&h, C_frames_named), 6);
	assert_int_equal(harness_counter(&h, C_frames_unnamed), 2);
	assert_int_equal(harness_counter(&h, C_frames_unknown), 1);
	harness_close(&h);
}

/* Of scripts that cannot be read: never left out, and in the place where the kernel found them. */
static void test_scripts_without_names(void **state)
{
	struct frame frames[] = {
	    {FRAME_NATIVE, 0, 0, SELF, 0},
	    {FRAME_SCRIPT, 0, LANG_PYTHON, SELF, 0x1000},
	    {FRAME_COOKIE, 0, 0, 77, 0x4711},
	    {FRAME_SCRIPT, 0, LANG_PYTHON, SELF, 0},
	    {FRAME_COOKIE, 0, 0, 0, 0},
	    {FRAME_NATIVE, FRAME_RETURN, 0, SELF, 0},
	    {FRAME_SCRIPT, 0, LANG_RUBY, 0, 0x2000},
	    {FRAME_COOKIE, 0, 0, 0, 0},
	    {FRAME_SCRIPT, 0, 999, SELF, 0x3000},
	    {FRAME_SCRIPT, 0, LANG_PHP, SELF, 0x3000}, /* without its cookie */
	};
	struct record_sample head = sample_head(1);
	const struct symbol_location *location;
	const struct symbol_stack *stack;
	struct message_other none = {.need.kind = OTHER_MEM, .file.error = EPERM};
	struct pollfd wait;
	struct symbol_sample out;
	struct message message = {0};
	struct config config;
	struct harness h;
	struct self self;
	char text[256];
	uint32_t mapping;

	(void)state;
	self_find(&self);
	frames[0].addr = self_offset(&self, known_leaf, 1);
	frames[5].addr = self_offset(&self, known_caller, 1);
	configure(&config);
	harness_open(&h, &config, KALLSYMS);
	harness_start(&h);
	introduce(&h, &self);
	head.user_slots = sizeof(frames) / sizeof(*frames);
	assert_int_equal(harness_push_sample(&h, head, frames, NULL, NULL), 0);
	/* It asks for the memory, which it does not get. */
	wait = (struct pollfd){.fd = h.sampler.fd, .events = POLLIN};
	h.sampler.peer_running = true;
	while (message.type != MESSAGE_NEED_OTHER) {
		assert_int_equal(poll(&wait, 1, 10000), 1);
		assert_int_equal(channel_recv(&h.sampler, &message, NULL, NULL), 0);
	}
	assert_int_equal(message.need_other.kind, OTHER_MEM);
	assert_int_equal(message.need_other.pid, PID);
	assert_int_equal(message.need_other.file_id, SELF);
	none.need.pid = PID;
	assert_int_equal(channel_send(&h.broker, MESSAGE_OTHER, &none, NULL, 0), 0);
	assert_true(harness_next(&h, &out, 10000));
	harness_stack(&h, &out, text, sizeof(text));
	assert_string_equal(text, "known_leaf;[python];[python];known_caller;[ruby];[script];[php]");
	stack = harness_definition(&h, out.epoch, SYMBOL_STACK, out.stack);
	location = harness_definition(&h, out.epoch, SYMBOL_LOCATION, stack->locations[0]);
	mapping = location->mapping;
	location = harness_definition(&h, out.epoch, SYMBOL_LOCATION, stack->locations[1]);
	assert_int_equal(location->frame_type, SYMBOL_FRAME_CPYTHON);
	assert_int_equal(location->address, 0);
	assert_int_equal(location->mapping, mapping);
	location = harness_definition(&h, out.epoch, SYMBOL_LOCATION, stack->locations[4]);
	assert_int_equal(location->frame_type, SYMBOL_FRAME_RUBY);
	assert_int_equal(location->mapping, 0);
	assert_int_equal(harness_counter(&h, C_scripts_unnamed), 5);
	assert_int_equal(harness_counter(&h, C_scripts_named), 0);
	assert_int_equal(harness_counter(&h, C_frames_unnamed), 5);
	assert_int_equal(harness_counter(&h, C_scripts_reads), 0);
	harness_close(&h);
}

/* Twenty processes map the same file, each in another place: it is looked into once. */
static void test_one_index(void **state)
{
	struct symbol_sample out;
	struct config config;
	struct harness h;
	struct self self;
	char text[256];

	(void)state;
	self_find(&self);
	configure(&config);
	harness_open(&h, &config, KALLSYMS);
	harness_start(&h);
	harness_push_file(&h, SELF, self.path);
	harness_send_file(&h, SELF, self.path);
	for (uint32_t i = 0; i < 20; i++) {
		const void *fn = i % 2 ? (const void *)known_leaf : (const void *)known_caller;
		uint64_t base = 0x500000000000 + i * 0x100000000;
		struct record_sample head = sample_head(i + 1);
		struct frame frame = {FRAME_PC, 0, 0, 0, base + self_offset(&self, fn, 1)};

		harness_push_process(&h, PID + i, START, 0);
		harness_push_range(&h, PID + i, base + self.offset,
				   base + self.offset + (self.end - self.start), self.offset, SELF,
				   0);
		harness_send_info(&h, PID + i, START, "/usr/bin/known", DOCKER);
		head.pid = head.tid = PID + i;
		head.user_slots = 1;
		assert_int_equal(harness_push_sample(&h, head, &frame, NULL, NULL), 0);
		assert_true(harness_next(&h, &out, 10000));
		harness_stack(&h, &out, text, sizeof(text));
		assert_string_equal(text, i % 2 ? "known_leaf" : "known_caller");
	}
	assert_int_equal(harness_counter(&h, C_symbolizer_symbolized), 20);
	assert_int_equal(harness_counter(&h, C_files_indexed), 1);
	assert_int_equal(harness_counter(&h, C_files_open), 1);
	assert_true(harness_counter(&h, C_symbol_bytes) > 0);
	harness_close(&h);
}

/* A stripped program whose only names are packed so; PACKED_XZ: in a file inside. */
static void packed_write(const char *path, enum packed_as as)
{
	static const char strings[] = "\0hidden";
	static _Alignas(8) uint8_t bytes[65536], packed[2][4096], inside[4096];
	Elf64_Sym symbols[2] = {
	    {0},
	    {.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_value = 0x1000, .st_size = 64}};
	struct packed_section s[2] = {{.name = ".symtab", .type = SHT_SYMTAB, .link = 2},
				      {.name = ".strtab", .type = SHT_STRTAB}};
	struct packed_section debugdata = {.name = ".gnu_debugdata", .data = packed[0]};
	const void *plain[2] = {symbols, strings};
	size_t n, length[2] = {sizeof(symbols), sizeof(strings)};
	Elf64_Phdr phdr = {.p_type = PT_LOAD, .p_flags = PF_X, .p_vaddr = 0x1000};
	Elf64_Ehdr *header = (void *)bytes;
	FILE *file;

	for (int i = 0; i < 2; i++) {
		s[i].flags = as == PACKED_XZ ? 0 : SHF_COMPRESSED;
		s[i].data = packed[i];
		s[i].bytes = packed_data(as == PACKED_XZ ? PACKED_PLAIN : as, plain[i], length[i],
					 length[i], packed[i], sizeof(packed[i]));
	}
	n = packed_elf(s, 2, as == PACKED_XZ ? inside : bytes, sizeof(inside));
	if (as == PACKED_XZ) {
		debugdata.bytes = packed_data(as, inside, n, 0, packed[0], sizeof(packed[0]));
		n = packed_elf(&debugdata, 1, bytes, sizeof(bytes) - sizeof(phdr));
	}
	assert_true(n > 0);
	header->e_phoff = n;
	header->e_phentsize = sizeof(phdr);
	header->e_phnum = 1;
	phdr.p_filesz = n;
	memcpy(bytes + n, &phdr, sizeof(phdr));
	file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, n + sizeof(phdr), 1, file), 1);
	fclose(file);
}

/* What unpacks has what it needs in there, where hardly a system call is to be had. */
static void test_packed(void **state)
{
	static const enum packed_as forms[] = {PACKED_ZLIB, PACKED_ZSTD, PACKED_XZ};
	char path[] = "/tmp/worker-test-XXXXXX", text[256];
	struct symbol_sample out;
	struct config config;
	struct harness h;

	(void)state;
	configure(&config);
	harness_open(&h, &config, KALLSYMS);
	harness_start(&h);
	harness_push_process(&h, PID, START, 0);
	harness_send_info(&h, PID, START, "/usr/bin/known", DOCKER);
	close(mkstemp(path));
	for (uint32_t i = 0; i < 3; i++) {
		struct record_sample head = sample_head(i + 1);
		struct frame frame = {FRAME_NATIVE, 0, 0, 50 + i, 0x10};

		unlink(path);
		packed_write(path, forms[i]);
		harness_push_file(&h, 50 + i, path);
		harness_send_file(&h, 50 + i, path);
		head.user_slots = 1;
		assert_int_equal(harness_push_sample(&h, head, &frame, NULL, NULL), 0);
		assert_true(harness_next(&h, &out, 10000));
		harness_stack(&h, &out, text, sizeof(text));
		assert_string_equal(text, "hidden");
	}
	unlink(path);
	harness_close(&h);
}

/* Ranges come 50 ms after the sample: it waits for them and is walked. */
static void test_deferred(void **state)
{
	const greg_t *gregs = leaf_context.uc_mcontext.gregs;
	struct record_regs regs = {0};
	struct record_sample head = sample_head(1);
	struct symbol_sample out;
	/* Not on the stack, of which only the end is copied. */
	static struct config config;
	static struct harness h;
	static struct self self;
	static char text[4096];

	(void)state;
	self_find(&self);
	configure(&config);
	harness_open(&h, &config, KALLSYMS);
	harness_start(&h);
	harness_push_process(&h, PID, START, PROCESS_PENDING);
	assert_int_equal(known_caller(1), 4);
	regs.pc = (uint64_t)gregs[REG_RIP];
	regs.sp = (uint64_t)gregs[REG_RSP];
	regs.fp = (uint64_t)gregs[REG_RBP];
	head.stop = STOP_DEFERRED;
	head.stack_bytes = sizeof(leaf_stack);
	assert_int_equal(harness_push_sample(&h, head, NULL, &regs, leaf_stack), 0);
	usleep(50000);
	introduce(&h, &self);
	assert_true(harness_next(&h, &out, 10000));
	harness_stack(&h, &out, text, sizeof(text));
	/* Who calls us lies in no range that the worker was told of. */
	assert_string_equal(text, "known_leaf;known_caller;test_deferred");
	assert_int_equal(out.stop, STOP_NO_MAPPING);
	assert_int_equal(harness_counter(&h, C_walked_outside), 1);

	/* The ranges never come: still a frame, after a bounded time. */
	head = sample_head(2);
	head.pid = PID + 1;
	head.stop = STOP_DEFERRED;
	head.stack_bytes = sizeof(leaf_stack);
	assert_int_equal(harness_push_sample(&h, head, NULL, &regs, leaf_stack), 0);
	assert_true(harness_next(&h, &out, 2000));
	harness_stack(&h, &out, text, sizeof(text));
	assert_string_equal(text, "[unknown]");
	assert_int_equal(out.stop, STOP_DEFERRED);
	harness_close(&h);
}

/* What the sampler tells of a process that execs: at this point of the sample queue. */
static void push_snapshot(struct harness *h, uint32_t pid, uint64_t exec_id,
			  const struct self *self, uint32_t flags)
{
	struct {
		struct record_process process;
		struct record_mapping mapping;
	} r = {
	    .process = {.header = {sizeof(r.process), RECORD_PROCESS, 0},
			.pid = pid,
			.start_lo_ns = START,
			.start_hi_ns = START,
			.exec_id = exec_id,
			.flags = flags,
			.mappings = self != NULL,
			.after = h->samples.cursor},
	    .mapping = {.header = {sizeof(r.mapping), RECORD_MAPPING, 0},
			.pid = pid,
			.after = h->samples.cursor},
	};

	if (self)
		r.mapping.range =
		    (struct record_range){self->start, self->end, self->offset, SELF, 0};
	assert_int_equal(queue_push(&h->process_queue, &r, self ? sizeof(r) : sizeof(r.process)),
			 0);
	queue_publish(&h->process_queue, h->process_queue.cursor);
}

static void push_leaf(struct harness *h, uint64_t seq, uint32_t pid, uint64_t exec_id)
{
	const greg_t *gregs = leaf_context.uc_mcontext.gregs;
	struct record_regs regs = {.pc = (uint64_t)gregs[REG_RIP],
				   .sp = (uint64_t)gregs[REG_RSP],
				   .fp = (uint64_t)gregs[REG_RBP]};
	struct record_sample head = sample_head(seq);

	head.pid = head.tid = pid;
	head.exec_id = exec_id;
	head.stop = STOP_DEFERRED;
	head.stack_bytes = sizeof(leaf_stack);
	assert_int_equal(harness_push_sample(h, head, NULL, &regs, leaf_stack), 0);
}

/*
 * While one sample waits for ranges, another process becomes another program: its samples from
 * before are walked by what it had mapped then.
 */
static void test_exec_while_waiting(void **state)
{
	enum { WAITS = PID, EXECS, SAMPLES = 3 };
	static const char *const want[SAMPLES] = {"known_leaf;known_caller;test_exec_while_waiting",
						  "known_leaf;known_caller;test_exec_while_waiting",
						  "[unknown]"};
	struct symbol_sample out;
	static struct config config;
	static struct harness h;
	static struct self self;
	static char text[4096];

	(void)state;
	self_find(&self);
	configure(&config);
	harness_open(&h, &config, KALLSYMS);
	harness_start(&h);
	harness_push_file(&h, SELF, self.path);
	harness_send_file(&h, SELF, self.path);
	harness_send_info(&h, WAITS, START, "/usr/bin/known", DOCKER);
	harness_send_info(&h, EXECS, START, "/usr/bin/known", DOCKER);
	assert_int_equal(known_caller(1), 4);
	push_snapshot(&h, WAITS, 3, NULL, PROCESS_PENDING);
	push_leaf(&h, 1, WAITS, 3);
	push_snapshot(&h, EXECS, 3, &self, 0);
	push_leaf(&h, 2, EXECS, 3);
	push_snapshot(&h, EXECS, 4, NULL, 0);
	push_leaf(&h, 3, EXECS, 4);
	usleep(50000);
	push_snapshot(&h, WAITS, 3, &self, 0);
	for (int i = 0; i < SAMPLES; i++) {
		assert_true(harness_next(&h, &out, 10000));
		harness_stack(&h, &out, text, sizeof(text));
		assert_int_equal(out.seq, i + 1);
		assert_string_equal(text, want[i]);
	}
	harness_close(&h);
}

/* A file that is overwritten while nobody runs it has another content and the same id. */
static void test_overwritten_file(void **state)
{
	char path[] = "/tmp/sconce-worker-test-XXXXXX", command[600], text[4096];
	struct record_sample head = sample_head(1);
	struct frame frame = {FRAME_NATIVE, 0, 0, 8, 0};
	struct message message;
	struct symbol_sample out;
	struct config config;
	struct harness h;
	struct self self;

	(void)state;
	self_find(&self);
	configure(&config);
	close(mkstemp(path));
	harness_open(&h, &config, KALLSYMS);
	harness_start(&h);
	harness_push_file(&h, 8, path);
	harness_send_file(&h, 8, path);
	harness_push_process(&h, PID, START, 0);
	harness_send_info(&h, PID, START, "/usr/bin/known", DOCKER);
	harness_push_range(&h, PID, self.start, self.end, self.offset, 8, 0);
	frame.addr = self_offset(&self, known_leaf, 0);
	head.user_slots = 1;
	snprintf(command, sizeof(command), "cat '%s' > '%s'", self.path, path);
	for (head.seq = 1; head.seq <= 2; head.seq++) {
		assert_int_equal(harness_push_sample(&h, head, &frame, NULL, NULL), 0);
		assert_true(harness_next(&h, &out, 2000));
		harness_stack(&h, &out, text, sizeof(text));
		assert_int_equal(strcmp(text, "known_leaf") == 0, head.seq == 2);
		assert_int_equal(system(command), 0);
		/* somebody runs it again */
		harness_push_range(&h, PID, self.start, self.end, self.offset, 8, 0);
	}
	/* and what the sampler was told of it does not hold any more */
	do
		assert_int_equal(channel_recv(&h.sampler, &message, NULL, NULL), 0);
	while (message.type == MESSAGE_NEED_FILE);
	assert_int_equal(message.type, MESSAGE_NO_TABLE);
	assert_int_equal(message.table.file_id, 8);
	assert_int_not_equal(message.table.bytes, 0);
	harness_close(&h);
	unlink(path);
}

/* A file that is not here is asked for, waited for, and not waited for twice. */
static void test_missing_file(void **state)
{
	struct record_sample head = sample_head(1);
	struct frame frame = {FRAME_NATIVE, 0, 0, 99, 0x1234};
	struct message message;
	struct symbol_sample out;
	struct config config;
	struct harness h;
	struct self self;
	char text[4096];

	(void)state;
	self_find(&self);
	configure(&config);
	harness_open(&h, &config, KALLSYMS);
	harness_start(&h);
	introduce(&h, &self);
	head.user_slots = 1;
	assert_int_equal(harness_push_sample(&h, head, &frame, NULL, NULL), 0);
	assert_true(harness_next(&h, &out, 2000));
	harness_stack(&h, &out, text, sizeof(text));
	assert_string_equal(text, "[?+0x1234]");
	assert_int_equal(channel_recv(&h.sampler, &message, NULL, NULL), 0);
	assert_int_equal(message.type, MESSAGE_NEED_FILE);
	assert_int_equal(message.need_file.file_id, 0); /* introduce everything */
	assert_int_equal(channel_recv(&h.sampler, &message, NULL, NULL), 0);
	assert_int_equal(message.need_file.file_id, 99);

	/* It comes after all: from now on the same frame has its name. */
	frame.addr = self_offset(&self, known_leaf, 0);
	harness_send_file(&h, 99, self.path);
	usleep(200000);
	head.seq = 2;
	assert_int_equal(harness_push_sample(&h, head, &frame, NULL, NULL), 0);
	assert_true(harness_next(&h, &out, 2000));
	harness_stack(&h, &out, text, sizeof(text));
	assert_string_equal(text, "known_leaf");
	harness_close(&h);
}

static void test_bad_and_poison(void **state)
{
	struct record_sample head = sample_head(1);
	struct record_header lie = {.len_bytes = 64, .kind = RECORD_SAMPLE};
	uint64_t record[8] = {0};
	struct symbol_sample out;
	struct config config;
	struct harness h;
	struct self self;

	(void)state;
	self_find(&self);
	configure(&config);
	harness_open(&h, &config, KALLSYMS);
	/* As three instances of it would have left it: ended by the first sample. */
	atomic_store(&h.books_rw->attempt_position, 0);
	atomic_store(&h.books_rw->attempts, 3);
	introduce(&h, &self);
	assert_int_equal(harness_push_sample(&h, head, NULL, NULL, NULL), 0);
	head.seq = 2;
	assert_int_equal(harness_push_sample(&h, head, NULL, NULL, NULL), 0);
	memcpy(record, &lie, sizeof(lie));
	assert_int_equal(queue_push(&h.samples, record, sizeof(record)), 0);
	head.seq = 3;
	head.stop = STOP_COUNT;
	assert_int_equal(harness_push_sample(&h, head, NULL, NULL, NULL), 0);
	head.stop = STOP_COMPLETE;
	assert_int_equal(harness_push_sample(&h, head, NULL, NULL, NULL), 0);
	harness_start(&h);
	assert_true(harness_next(&h, &out, 10000));
	assert_int_equal(out.seq, 2);
	assert_true(out.stack != 0);
	assert_true(harness_next(&h, &out, 10000));
	assert_int_equal(out.seq, 3);
	assert_int_equal(harness_counter(&h, C_lost_symbolizer_poison), 1);
	assert_int_equal(harness_counter(&h, C_lost_symbolizer_bad_record), 2);
	assert_int_equal(harness_counter(&h, C_symbolizer_samples), 5);
	harness_close(&h);
}

static void test_queue_full(void **state)
{
	const uint64_t n = 2000;
	struct record_sample head = sample_head(0);
	struct symbol_sample out;
	struct config config;
	struct harness h;
	struct self self;
	uint64_t got = 0;

	(void)state;
	self_find(&self);
	configure(&config);
	config.output_queue_bytes = QUEUE_CAPACITY_MIN;
	harness_open(&h, &config, KALLSYMS);
	introduce(&h, &self);
	harness_start(&h);
	for (uint64_t i = 1; i <= n; i++) {
		head.seq = i;
		assert_int_equal(harness_push_sample(&h, head, NULL, NULL, NULL), 0);
	}
	assert_true(harness_wait_counter(&h, C_symbolizer_samples, n, 10000));
	while (harness_next(&h, &out, 0))
		got++;
	assert_int_equal(got, QUEUE_CAPACITY_MIN / sizeof(out));
	assert_int_equal(harness_counter(&h, C_symbolizer_symbolized), got);
	assert_int_equal(harness_counter(&h, C_lost_symbolizer_queue_full), n - got);
	harness_close(&h);
}

/* Distinct frames fill the log; it turns over as the exporter follows, and stops when it does not.
 */
static void test_epochs(void **state)
{
	const uint64_t n = 3000;
	struct record_sample head = sample_head(0);
	struct symbol_sample out;
	uint32_t first = 0, last = 0;
	struct config config;
	struct harness h;
	struct self self;
	char text[4096], want[64];
	uint64_t sum;

	(void)state;
	self_find(&self);
	configure(&config);
	config.log_bytes = 65536;
	harness_open(&h, &config, KALLSYMS);
	introduce(&h, &self);
	harness_start(&h);
	head.user_slots = 1;
	for (uint64_t i = 1; i <= n; i++) {
		struct frame frame = {FRAME_NATIVE, 0, 0, SELF, (1ull << 40) + i};

		head.seq = i;
		assert_int_equal(harness_push_sample(&h, head, &frame, NULL, NULL), 0);
		if (i % 50 && i != n)
			continue;
		while (harness_counter(&h, C_symbolizer_samples) < i)
			usleep(200);
		while (harness_next(&h, &out, 0)) {
			first = first ? first : out.epoch;
			assert_true(out.epoch == last || out.epoch == last + 1 || last == 0);
			last = out.epoch;
			harness_stack(&h, &out, text, sizeof(text));
			snprintf(want, sizeof(want), "[worker_test+0x%llx]",
				 (1ull << 40) + (unsigned long long)out.seq);
			assert_string_equal(text, want);
		}
		harness_release(&h);
	}
	assert_true(last >= first + 4);
	assert_int_equal(harness_counter(&h, C_symbolizer_symbolized), n);
	assert_int_equal(harness_counter(&h, C_lost_symbolizer_log_full), 0);

	/* The exporter stands still: both logs fill up, and the rest is counted as lost. */
	for (uint64_t i = 1; i <= n; i++) {
		struct frame frame = {FRAME_NATIVE, 0, 0, SELF, (1ull << 41) + i};

		head.seq = n + i;
		assert_int_equal(harness_push_sample(&h, head, &frame, NULL, NULL), 0);
		if (i % 500 == 0)
			assert_true(harness_wait_counter(&h, C_symbolizer_samples, n + i, 10000));
	}
	sum = harness_counter(&h, C_symbolizer_symbolized) +
	      harness_counter(&h, C_lost_symbolizer_log_full);
	assert_true(harness_counter(&h, C_lost_symbolizer_log_full) > 0);
	assert_int_equal(sum, 2 * n);
	harness_close(&h);
}

/* Killed again and again while samples flow: each of them comes out once, with its name. */
static void test_kill(void **state)
{
	enum { KILLS = 25, PER_LIFE = 400 };
	static uint8_t seen[KILLS * PER_LIFE + 1];
	struct record_sample head = sample_head(0);
	struct symbol_sample out;
	struct config config;
	struct harness h;
	struct self self;
	uint64_t got = 0, total = KILLS * PER_LIFE;
	char text[4096];

	(void)state;
	memset(seen, 0, sizeof(seen));
	self_find(&self);
	configure(&config);
	config.sample_queue_bytes = 1 << 22;
	harness_open(&h, &config, KALLSYMS);
	srand(1);
	for (int life = 0; life < KILLS; life++) {
		uint64_t before = harness_counter(&h, C_symbolizer_samples);

		introduce(&h, &self);
		harness_start(&h);
		for (int i = 0; i < PER_LIFE; i++) {
			struct frame frame = {FRAME_NATIVE, 0, 0, SELF,
					      self_offset(&self, known_leaf, 1)};

			head.seq++;
			head.user_slots = 1;
			assert_int_equal(harness_push_sample(&h, head, &frame, NULL, NULL), 0);
			if (i == PER_LIFE / 2)
				usleep((useconds_t)(rand() % 4000));
		}
		/* A sample that ends three lives is given up, and rightly so: each gets on a little. */
		assert_true(harness_wait_counter(&h, C_symbolizer_samples, before + 1, 10000));
		if (life < KILLS - 1)
			harness_kill(&h);
	}
	while (got < total && harness_next(&h, &out, 10000)) {
		assert_in_range(out.seq, 1, total);
		assert_int_equal(seen[out.seq], 0);
		seen[out.seq] = 1;
		got++;
		if (got % 100 == 0) {
			harness_stack(&h, &out, text, sizeof(text));
			assert_string_equal(text, "known_leaf");
		}
	}
	assert_int_equal(got, total);
	assert_false(harness_next(&h, &out, 300));
	assert_int_equal(harness_counter(&h, C_symbolizer_symbolized), total);
	assert_int_equal(harness_counter(&h, C_symbolizer_samples), total);
	assert_int_equal(harness_counter(&h, C_lost_symbolizer_poison), 0);
	harness_close(&h);
}

/* The index of a queue's page, wherever the layout has it. */
static void rewind_queue(const struct queue_segments *segments, bool head)
{
	int fd = head ? segments->producer.rw : segments->consumer.rw;
	void *page = segment_map(fd, SEGMENT_PAGE, 1);

	assert_non_null(page);
	if (head)
		atomic_store(&((struct queue_head *)page)->head, 0);
	else
		atomic_store(&((struct queue_tail *)page)->tail, 0);
	munmap(page, SEGMENT_PAGE);
}

/* Ended between commit and publish: the next instance publishes what was committed, and no more. */
static void test_resume(void **state)
{
	const uint64_t n = 300;
	struct record_sample head = sample_head(0);
	struct symbol_sample out;
	struct config config;
	struct harness h;
	struct self self;

	(void)state;
	self_find(&self);
	configure(&config);
	harness_open(&h, &config, KALLSYMS);
	introduce(&h, &self);
	harness_start(&h);
	while (head.seq < n) {
		head.seq++;
		assert_int_equal(harness_push_sample(&h, head, NULL, NULL, NULL), 0);
	}
	assert_true(harness_wait_counter(&h, C_symbolizer_samples, n, 10000));
	harness_kill(&h);
	rewind_queue(&h.output_fds, true);
	rewind_queue(&h.samples_fds, false);
	rewind_queue(&h.process_fds, false);
	harness_start(&h);
	for (uint64_t i = 1; i <= n; i++) {
		assert_true(harness_next(&h, &out, 5000));
		assert_int_equal(out.seq, i);
	}
	assert_false(harness_next(&h, &out, 300));
	assert_int_equal(queue_used(&h.samples), 0);
	assert_int_equal(harness_counter(&h, C_symbolizer_symbolized), n);
	harness_close(&h);
}

static void scribble(int fd, size_t bytes)
{
	unsigned char *p = segment_map(fd, bytes, 1);

	assert_non_null(p);
	for (size_t i = 0; i < bytes; i++)
		p[i] = (unsigned char)(i * 37 + 11);
	munmap(p, bytes);
}

/* What it finds is the work of a liar: it makes order, and goes on with what comes now. */
static void test_inherited_nonsense(void **state)
{
	struct record_sample head = sample_head(0);
	struct symbol_sample out;
	struct config config;
	struct harness h;
	struct self self;
	char stack[256];

	(void)state;
	self_find(&self);
	configure(&config);
	for (int lie = 0; lie < 5; lie++) {
		harness_open(&h, &config, KALLSYMS);
		introduce(&h, &self);
		head.seq = 1;
		assert_int_equal(harness_push_sample(&h, head, NULL, NULL, NULL), 0);
		harness_start(&h);
		assert_true(harness_next(&h, &out, 10000));
		harness_release(&h);
		harness_kill(&h);
		if (lie == 0)
			scribble(h.ledger.rw, LEDGER_BYTES);
		if (lie == 1)
			scribble(h.output_fds.producer.rw, SEGMENT_PAGE);
		if (lie == 2)
			scribble(h.samples_fds.consumer.rw, SEGMENT_PAGE);
		if (lie == 3)
			scribble(h.logs[0].rw, SEGMENT_PAGE);
		if (lie >= 3)
			scribble(h.logs[1].rw, 2 * SEGMENT_PAGE);
		harness_start(&h);
		harness_push_process(&h, PID, START, 0);
		head.seq = 2;
		assert_int_equal(harness_push_sample(&h, head, NULL, NULL, NULL), 0);
		do
			assert_true(harness_next(&h, &out, 10000));
		while (out.seq != 2);
		harness_stack(&h, &out, stack, sizeof(stack));
		harness_close(&h);
	}
}

/* As long as the sampler has not heard that this worker is a new one, nothing is taken. */
static void test_introduction(void **state)
{
	struct record_sample head = sample_head(1);
	struct message_need_file need = {.file_id = 1};
	struct channel before;
	struct symbol_sample out;
	struct config config;
	struct harness h;
	struct self self;
	char bytes[64];
	int n = 0;

	(void)state;
	self_find(&self);
	configure(&config);
	harness_open(&h, &config, KALLSYMS);
	introduce(&h, &self);
	channel_init(&before, h.sampler_fds[1], ROLE_SYMBOLIZER, ROLE_SAMPLER, true);
	while (channel_send(&before, MESSAGE_NEED_FILE, &need, NULL, 0) == 0)
		n++;
	harness_start(&h);
	assert_int_equal(harness_push_sample(&h, head, NULL, NULL, NULL), 0);
	assert_false(harness_next(&h, &out, 300));
	while (n--)
		assert_true(recv(h.sampler_fds[0], bytes, sizeof(bytes), 0) > 0);
	assert_true(harness_next(&h, &out, 10000));
	assert_true(recv(h.sampler_fds[0], &bytes, sizeof(bytes), 0) > 8);
	memcpy(&need, bytes + 8, sizeof(need));
	assert_int_equal(need.file_id, 0);
	harness_close(&h);
}

static void test_drain(void **state)
{
	struct record_sample head = sample_head(0);
	struct message_empty none = {0};
	struct message message;
	struct config config;
	struct harness h;
	struct self self;
	struct pollfd fd;

	(void)state;
	self_find(&self);
	configure(&config);
	harness_open(&h, &config, KALLSYMS);
	introduce(&h, &self);
	harness_start(&h);
	for (int i = 0; i < 500; i++) {
		head.seq++;
		assert_int_equal(harness_push_sample(&h, head, NULL, NULL, NULL), 0);
	}
	assert_int_equal(channel_send(&h.supervisor, MESSAGE_DRAIN, &none, NULL, 0), 0);
	fd = (struct pollfd){.fd = h.supervisor_fds[0], .events = POLLIN};
	assert_int_equal(poll(&fd, 1, 10000), 1);
	assert_int_equal(channel_recv(&h.supervisor, &message, NULL, NULL), 0);
	assert_int_equal(message.type, MESSAGE_DRAINED);
	assert_int_equal(harness_counter(&h, C_symbolizer_symbolized), 500);
	/* What comes when the time is over is lost, but not without a name. */
	sleep(5);
	head.seq++;
	assert_int_equal(harness_push_sample(&h, head, NULL, NULL, NULL), 0);
	assert_true(harness_wait_counter(&h, C_lost_symbolizer_no_time, 1, 10000));
	assert_int_equal(harness_counter(&h, C_symbolizer_symbolized), 500);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),	 cmocka_unit_test(test_scripts_without_names),
	    cmocka_unit_test(test_one_index),
	    cmocka_unit_test(test_packed),	 cmocka_unit_test(test_deferred),
	    cmocka_unit_test(test_exec_while_waiting),
	    cmocka_unit_test(test_overwritten_file),
	    cmocka_unit_test(test_missing_file), cmocka_unit_test(test_bad_and_poison),
	    cmocka_unit_test(test_queue_full),	 cmocka_unit_test(test_epochs),
	    cmocka_unit_test(test_kill),	 cmocka_unit_test(test_resume),
	    cmocka_unit_test(test_inherited_nonsense),
	    cmocka_unit_test(test_introduction),
	    cmocka_unit_test(test_drain),
	};

	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
