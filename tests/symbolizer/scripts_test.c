/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names out of the memory of a process: when it is asked for, read, tried again and given up. The
 * language is made up, its objects lie in this very process, and the test turns the clock.
 */
#define _GNU_SOURCE
#include "symbolizer/scripts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "supervisor/child.h"

#define S	1000000000ull
#define ROOM	(1u << 20)
#define FILE_ID 9

struct object {
	uint64_t cookie;
	char name[16];
};

static struct {
	struct scripts scripts;
	struct runtimes runtimes;
	struct files files;
	struct reader reader;
	struct channel worker, sampler;
	struct processes processes;
	struct process *process;
	struct file *file;
	struct blame blame;
	uint64_t now_ns;
	uint32_t sleep_us; /* so long takes a name */
	int calls;
} world;

static struct object objects[] = {{17, "main"}, {18, "helper"}};

/* --- The language. --- */

static int made_up_recognize(struct elffile *elf, const char *module, struct lang_runtime *runtime)
{
	(void)elf, (void)module, (void)runtime;
	return -ENOENT;
}

static bool made_up_name(struct remote *remote, const struct lang_runtime *runtime,
			 const struct lang_frame *frame, struct lang_function *function)
{
	struct object object;

	assert_int_equal(runtime->layout[0], 4711);
	assert_int_equal(world.blame.busy, 1);
	assert_int_equal(world.blame.at.device, 0);
	assert_int_equal(world.blame.at.inode,
			 world.process->start_lo_ns + world.process->node.key);
	world.calls++;
	usleep(world.sleep_us);
	if (!remote_read(remote, frame->object, &object, sizeof(object)) ||
	    object.cookie != frame->cookie)
		return false;
	strcpy(function->name, object.name);
	strcpy(function->file, "a.script");
	function->line = frame->where;
	function->start_line = 1;
	return true;
}

static const struct lang made_up = {"made-up", "cpython", made_up_recognize, made_up_name};
const struct lang *const langs[LANG_COUNT] = {[LANG_PYTHON] = &made_up,
					      [LANG_PHP] = &made_up,
					      [LANG_RUBY] = &made_up,
					      [LANG_PERL] = &made_up};

int lang_recognize(struct elffile *elf, const char *module, struct lang_runtime *runtime)
{
	(void)elf, (void)module, (void)runtime;
	return -ENOENT;
}

/* --- The world. --- */

static int setup(void **state)
{
	int fds[2];

	(void)state;
	memset(&world, 0, sizeof(world));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
	channel_init(&world.worker, fds[0], ROLE_SYMBOLIZER, ROLE_SAMPLER, true);
	channel_init(&world.sampler, fds[1], ROLE_SAMPLER, ROLE_SYMBOLIZER, true);
	reader_open(&world.reader, false);
	assert_int_equal(files_open(&world.files, &world.reader, &world.worker, ROOM), 0);
	world.files.blame = &world.blame;
	assert_int_equal(processes_open(&world.processes, 8192, 1024), 0);
	assert_int_equal(
	    scripts_open(&world.scripts, &world.runtimes, &world.files, &world.worker, ROOM), 0);
	world.now_ns = 1000 * S;
	scripts_turn(&world.scripts, &world.processes, world.now_ns);
	world.process = processes_get(&world.processes, (uint32_t)getpid(), 900 * S);
	world.process->exec_id = 7;
	world.file = files_get(&world.files, FILE_ID);
	world.file->runtime_sought = true;
	world.file->runtime = calloc(1, sizeof(*world.file->runtime));
	world.file->runtime->walk.language = LANG_PYTHON;
	world.file->runtime->layout[0] = 4711;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	scripts_close(&world.scripts);
	assert_int_equal(world.scripts.memories, 0);
	processes_close(&world.processes);
	files_close(&world.files);
	reader_close(&world.reader);
	close(world.worker.fd);
	close(world.sampler.fd);
	return 0;
}

static void after(uint64_t ns)
{
	world.now_ns += ns;
	scripts_turn(&world.scripts, &world.processes, world.now_ns);
}

static int questions(void)
{
	struct message message;
	int n = 0;

	while (channel_recv(&world.sampler, &message, NULL, NULL) == 0) {
		assert_int_equal(message.type, MESSAGE_NEED_OTHER);
		assert_int_equal(message.need_other.kind, OTHER_MEM);
		assert_int_equal(message.need_other.file_id, FILE_ID);
		n++;
	}
	return n;
}

static void answer_of(const struct process *process, int fd)
{
	struct message_other message = {
	    .need = {.file_id = FILE_ID, .pid = process->node.key, .kind = OTHER_MEM},
	    .start_lo_ns = process->start_lo_ns,
	    .file.error = fd < 0 ? EPERM : 0};

	scripts_message(&world.scripts, &message, fd);
}

static int memory_of(pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_return_code(fd, errno);
	return fd;
}

/* What the frame is called: what is known, else what is read. "" = not known. */
static const char *name_of(const struct object *object, uint64_t was, uint32_t where)
{
	struct frame frames[] = {
	    {FRAME_SCRIPT, 0, LANG_PYTHON, FILE_ID, (uint64_t)(uintptr_t)object},
	    {FRAME_COOKIE, 0, 0, where, was}};
	struct scripts_slot *slot =
	    scripts_find(&world.scripts, world.process, world.file, &frames[0], &frames[1]);
	static char known[32];
	const struct lang_function *function;

	assert_non_null(slot);
	if (slot->location && !scripts_is_due(&world.scripts, slot))
		return slot->retry_ns ? "" : "known";
	function = scripts_read(&world.scripts, world.process, world.file, slot, &frames[0]);
	slot->location = 1;
	assert_int_equal(world.blame.busy, 0);
	if (!function)
		return "";
	snprintf(known, sizeof(known), "%.16s:%u", function->name, function->line);
	assert_string_equal(function->file, "a.script");
	return known;
}

/* --- The tests. --- */

static void test_read_once(void **state)
{
	uint64_t begin_ns;

	(void)state;
	assert_non_null(scripts_begin(&world.scripts, world.process, FILE_ID));
	assert_int_equal(questions(), 1);
	answer_of(world.process, memory_of(getpid()));
	assert_null(scripts_begin(&world.scripts, world.process, FILE_ID));
	assert_string_equal(name_of(&objects[0], 17, 3), "main:3");
	assert_string_equal(name_of(&objects[1], 18, 4), "helper:4");
	assert_string_equal(name_of(&objects[0], 17, 5), "main:5");
	begin_ns = child_now_ns();
	for (int i = 0; i < 100000; i++)
		name_of(&objects[0], 17, 3);
	print_message("%.0f ns to find a frame that is known\n",
		      (double)(child_now_ns() - begin_ns) / 100000);
	assert_string_equal(name_of(&objects[0], 17, 3), "known");
	assert_int_equal(world.calls, 3);
	assert_int_equal(world.scripts.read, 3);
	assert_int_equal(world.scripts.reads, 3);
	assert_int_equal(questions(), 0);
	/* Another file has the id, or its content: nothing that was known holds. */
	world.file->generation++;
	assert_string_equal(name_of(&objects[0], 17, 3), "main:3");
}

/* The object is another one's by now: no name is better than that one's. */
static void test_recycled(void **state)
{
	int n = 0;

	(void)state;
	scripts_begin(&world.scripts, world.process, FILE_ID);
	answer_of(world.process, memory_of(getpid()));
	for (int i = 0; i < 600; i++) {
		assert_string_equal(name_of(&objects[0], 99, 3), "");
		after(S / 10);
	}
	n = world.calls;
	/* 0, 1, 3, 7, 15, 31 s */
	assert_true(n >= 5 && n <= 7);
	/* Or it was not there for a moment. */
	objects[0].cookie = 99;
	after(70 * S);
	assert_string_equal(name_of(&objects[0], 99, 3), "main:3");
	after(S);
	assert_string_equal(name_of(&objects[0], 99, 3), "known");
	objects[0].cookie = 17;
}

static void test_no_frame(void **state)
{
	struct frame lost = {FRAME_SCRIPT, 0, LANG_PYTHON, FILE_ID, 0},
		     some = {FRAME_SCRIPT, 0, LANG_PYTHON, FILE_ID, 0x1000},
		     cookie = {FRAME_COOKIE, 0, 0, 1, 2};

	(void)state;
	assert_null(scripts_find(&world.scripts, world.process, world.file, &lost, &cookie));
	assert_null(scripts_find(&world.scripts, world.process, world.file, &some, NULL));
	assert_null(scripts_find(&world.scripts, world.process, world.file, &some, &lost));
	assert_null(scripts_find(&world.scripts, NULL, world.file, &some, &cookie));
}

static void test_not_given(void **state)
{
	int n = 0;

	(void)state;
	assert_non_null(scripts_begin(&world.scripts, world.process, FILE_ID));
	answer_of(world.process, -1);
	assert_null(scripts_begin(&world.scripts, world.process, FILE_ID));
	for (int i = 0; i < 36000; i++) {
		after(S / 10);
		assert_string_equal(name_of(&objects[0], 17, 3), "");
		n += questions();
	}
	/* 1, 2, 4, ... 32 s, then once a minute. */
	assert_true(n >= 60 && n <= 70);
	assert_int_equal(world.calls, 0);
	/* Allowed at last: shown at once. */
	answer_of(world.process, memory_of(getpid()));
	after(S / 5);
	assert_string_equal(name_of(&objects[0], 17, 3), "main:3");
	world.process->exited = true;
	after(100 * S);
	name_of(&objects[1], 18, 3);
	assert_int_equal(questions(), 0);
}

/* Who has too much to do drops a question and says nothing. */
static void test_lost_question(void **state)
{
	int n = 0;

	(void)state;
	scripts_begin(&world.scripts, world.process, FILE_ID);
	assert_int_equal(questions(), 1);
	for (int i = 0; i < 80; i++) {
		assert_string_equal(name_of(&objects[0], 17, 3), "");
		after(S / 100);
		n += questions();
	}
	/* 0.1, 0.3 and 0.7 s. */
	assert_in_range(n, 2, 3);
	answer_of(world.process, memory_of(getpid()));
	after(S / 10);
	assert_string_equal(name_of(&objects[0], 17, 3), "main:3");
	/* Where nobody ever answers, once a minute in the end. */
	world.process->exec_id = 8;
	n = 0;
	for (int i = 0; i < 36000; i++) {
		after(S / 10);
		assert_string_equal(name_of(&objects[0], 17, 3), "");
		n += questions();
	}
	assert_in_range(n, 60, 75);
}

/*
 * The answer to what was asked before an execve: a parent's memory, if the child was made by
 * vfork(). It goes on when the child is another program, so that nothing tells but what it has.
 */
static void test_memory_of_another(void **state)
{
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	objects[0].cookie = 99;
	scripts_begin(&world.scripts, world.process, FILE_ID);
	answer_of(world.process, memory_of(child));
	assert_int_equal(questions(), 1);
	assert_string_equal(name_of(&objects[0], 99, 3), "");
	after(S / 5);
	/* Another frame is tried; as long as there was no name the memory is asked for. */
	assert_string_equal(name_of(&objects[0], 99, 4), "");
	assert_int_equal(questions(), 1);
	answer_of(world.process, memory_of(getpid()));
	assert_int_equal(world.scripts.memories, 1);
	/* At once: what failed did so there. */
	assert_string_equal(name_of(&objects[0], 99, 3), "main:3");
	assert_string_equal(name_of(&objects[0], 99, 4), "main:4");
	after(5 * S);
	assert_string_equal(name_of(&objects[0], 98, 4), "");
	assert_int_equal(questions(), 0);
	objects[0].cookie = 17;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* What was known is of the program before; so is a descriptor that comes for that. */
static void test_execve(void **state)
{
	(void)state;
	scripts_begin(&world.scripts, world.process, FILE_ID);
	answer_of(world.process, memory_of(getpid()));
	assert_string_equal(name_of(&objects[0], 17, 3), "main:3");
	assert_int_equal(questions(), 1);
	world.process->exec_id = 8;
	assert_non_null(scripts_begin(&world.scripts, world.process, FILE_ID));
	assert_int_equal(world.scripts.memories, 0);
	assert_string_equal(name_of(&objects[0], 17, 3), "");
	assert_int_equal(questions(), 1);
	answer_of(world.process, memory_of(getpid()));
	after(S / 5);
	assert_string_equal(name_of(&objects[0], 17, 3), "main:3");
}

/* Of a process that has ended the descriptor gives nothing: it is let go, and asked for anew. */
static void test_ended(void **state)
{
	pid_t child = fork();
	int fd;

	(void)state;
	if (child == 0) {
		pause();
		_exit(0);
	}
	fd = memory_of(child);
	scripts_begin(&world.scripts, world.process, FILE_ID);
	answer_of(world.process, fd);
	assert_string_equal(name_of(&objects[0], 17, 3), "main:3");
	assert_int_equal(questions(), 1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_string_equal(name_of(&objects[0], 17, 4), "");
	assert_int_equal(world.scripts.memories, 0);
	assert_string_equal(name_of(&objects[0], 17, 3), "known");
	after(2 * S);
	assert_string_equal(name_of(&objects[0], 17, 4), "");
	assert_int_equal(questions(), 1);
	answer_of(world.process, memory_of(getpid()));
	after(S / 5);
	assert_string_equal(name_of(&objects[0], 17, 4), "main:4");
}

/* Who lets us wait gets fewer names, not the whole time. */
static void test_slow(void **state)
{
	int before;

	(void)state;
	scripts_begin(&world.scripts, world.process, FILE_ID);
	answer_of(world.process, memory_of(getpid()));
	world.sleep_us = 30000;
	for (uint32_t where = 0; where < 100; where++)
		name_of(&objects[0], 17, where);
	/* 250 ms at once, ... */
	assert_true(world.calls >= 1 && world.calls <= 9);
	before = world.calls;
	for (uint32_t i = 0; i < 40; i++) {
		after(S / 10);
		for (uint32_t where = 0; where < 100; where++)
			name_of(&objects[0], 17, where);
	}
	/* ... and an eighth of these 4 s. */
	assert_true(world.calls > before && world.calls <= before + 20);
	world.sleep_us = 0;
	for (uint32_t i = 0; i < 10; i++) {
		after(S);
		for (uint32_t where = 0; where < 100; where++)
			name_of(&objects[0], 17, where);
	}
	for (uint32_t where = 0; where < 100; where++)
		assert_string_equal(name_of(&objects[0], 17, where), "known");
}

static void test_bounded(void **state)
{
	struct process *first = world.process, *last = NULL;
	uint64_t bytes = world.files.scripts_bytes;

	(void)state;
	assert_int_equal(bytes, world.scripts.slots_n * sizeof(struct scripts_slot));
	assert_true(bytes <= ROOM && bytes > ROOM / 4);
	scripts_begin(&world.scripts, first, FILE_ID);
	answer_of(first, memory_of(getpid()));
	for (uint32_t where = 0; where < 100000; where++)
		name_of(&objects[0], 17, where);
	for (uint32_t i = 0; i < SCRIPTS_MEMORIES_MAX; i++) {
		last = processes_get(&world.processes, 100000 + i, 900 * S);
		scripts_begin(&world.scripts, last, FILE_ID);
		answer_of(last, memory_of(getpid()));
	}
	assert_int_equal(world.scripts.memories, SCRIPTS_MEMORIES_MAX);
	/* The first had to give its own away, and asks again when it needs it. */
	questions();
	after(2 * S);
	assert_string_equal(name_of(&objects[1], 18, 1), "");
	assert_int_equal(questions(), 1);
	for (uint32_t i = 0; i < SCRIPTS_PROCESSES_MAX; i++)
		scripts_begin(&world.scripts, processes_get(&world.processes, 200000 + i, 900 * S),
			      FILE_ID);
	assert_int_equal(world.scripts.processes.count, SCRIPTS_PROCESSES_MAX);
	assert_true(world.scripts.memories < SCRIPTS_MEMORIES_MAX);
	/* Nobody knows them any more. */
	processes_close(&world.processes);
	assert_int_equal(processes_open(&world.processes, 64, 1024), 0);
	after(2 * S);
	assert_int_equal(world.scripts.processes.count, 0);
	assert_int_equal(world.scripts.memories, 0);
}

/* A process whose memory nobody ever fills; it ends with us. */
static pid_t silent_process(uint64_t *address)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register all = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ready[2];
	char byte = 0;
	pid_t pid;

	assert_true(page != MAP_FAILED);
	assert_return_code(pipe(ready), errno);
	pid = fork();
	if (pid == 0) {
		int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		all.range.start = (uintptr_t)page;
		all.range.len = 4096;
		byte = fd >= 0 && !ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &all);
		if (write(ready[1], &byte, 1) == 1 && byte)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	munmap(page, 4096);
	*address = (uintptr_t)page;
	if (byte)
		return pid;
	waitpid(pid, NULL, 0);
	print_message("skipped: no userfaultfd here\n");
	skip();
	return 0;
}

/* The kernel waits for nobody when somebody else reads: there is no name. */
static void test_memory_that_never_comes(void **state)
{
	uint64_t address;
	pid_t silent;

	(void)state;
	silent = silent_process(&address);
	scripts_begin(&world.scripts, world.process, FILE_ID);
	answer_of(world.process, memory_of(silent));
	alarm(60);
	assert_string_equal(name_of((const struct object *)(uintptr_t)address, 17, 1), "");
	alarm(0);
	assert_int_equal(world.calls, 1);
	assert_int_equal(world.scripts.memories, 1);
	kill(silent, SIGKILL);
	waitpid(silent, NULL, 0);
}

/* Who is held up all the same leaves behind by whom: that process, and no file. */
static void test_blamed(void **state)
{
	struct blame *shared =
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t number = world.process->start_lo_ns + world.process->node.key;
	pid_t reader;

	(void)state;
	assert_true(shared != MAP_FAILED);
	world.sleep_us = 100000000;
	scripts_begin(&world.scripts, world.process, FILE_ID);
	answer_of(world.process, memory_of(getpid()));
	reader = fork();
	if (reader == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		world.files.blame = shared;
		world.blame.busy = 1; /* which the language looks at */
		world.blame.at.inode = number;
		name_of(&objects[0], 17, 1);
		_exit(0);
	}
	for (int i = 0; i < 1000 && !shared->busy; i++)
		usleep(10000);
	usleep(400000);
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
	assert_int_equal(shared->busy, 1);
	blame_resume(shared, 400);
	assert_true(blame_refuses(shared, 0, number));
	for (int i = 1; i < BLAME_FILES; i++)
		assert_int_equal(shared->files[i].points, 0);
	munmap(shared, 4096);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_read_once),
	    TEST(test_recycled),
	    TEST(test_no_frame),
	    TEST(test_not_given),
	    TEST(test_execve),
	    TEST(test_ended),
	    TEST(test_lost_question),
	    TEST(test_memory_of_another),
	    TEST(test_slow),
	    TEST(test_bounded),
	    TEST(test_memory_that_never_comes),
	    TEST(test_blamed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
