/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes code at run time, and tells of it or does not: see bench/workloads/README.md. The chain is
 * main;run;[outer];[middle];between;[spin], those in brackets in anonymous memory, written in
 * machine code with frame pointers; all others, between too, are compiled without.
 *
 *   jit none|map|twice|late|foreign|dump SECONDS [FOLDER]
 *
 * The main thread is named jit-one, then jit-two and, with a dump, jit-three, SECONDS of CPU time
 * each.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define SLOT  64
#define PLAIN __attribute__((noinline, noclone))

enum { OUTER, MIDDLE, SPIN, MOVED, SLOTS };

/* push %rbp; mov %rsp,%rbp; movabs $0,%rax; call *%rax; pop %rbp; ret */
static const uint8_t calling[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0,    0,	  0,
				  0,	0,    0,    0,	  0,	0xff, 0xd0, 0x5d, 0xc3};
#define TARGET 6
/* push %rbp; mov %rsp,%rbp; twice mov $500000,%ecx; 1: dec %ecx; jnz 1b; then pop %rbp; ret */
static const uint8_t spinning[] = {0x55, 0x48, 0x89, 0xe5, 0xb9, 0x20, 0xa1, 0x07,
				   0x00, 0xff, 0xc9, 0x75, 0xfc, 0xb9, 0x20, 0xa1,
				   0x07, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
#define SECOND_LOOP 13

static uint8_t *code;
static void (*volatile spin)(void);
static volatile unsigned long between_calls;
static FILE *map;
static char map_path[64];
static int dump = -1;

static double cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* --- What is told. --- */

static void say_map(int slot, size_t bytes, const char *name)
{
	if (!map)
		return;
	fprintf(map, "%lx %zx %s\n", (unsigned long)(code + slot * SLOT), bytes, name);
	fflush(map);
}

static void dump_write(const void *bytes, size_t n)
{
	if (dump >= 0 && write(dump, bytes, n) != (ssize_t)n)
		fail("dump");
}

static void dump_prefix(uint32_t id, size_t body)
{
	struct timespec t;
	uint32_t words[4];
	uint64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &t);
	ns = (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
	words[0] = id;
	words[1] = (uint32_t)(body + sizeof(words));
	memcpy(words + 2, &ns, sizeof(ns));
	dump_write(words, sizeof(words));
}

static void dump_load(int slot, size_t bytes, const char *name)
{
	uint64_t start = (uint64_t)(code + slot * SLOT);
	uint64_t words[] = {(uint64_t)getpid() << 32 | (uint64_t)getpid(), start, start, bytes,
			    (uint64_t)slot};

	dump_prefix(0, sizeof(words) + strlen(name) + 1 + bytes);
	dump_write(words, sizeof(words));
	dump_write(name, strlen(name) + 1);
	dump_write(code + slot * SLOT, bytes);
}

static void dump_move(int from, int to, size_t bytes)
{
	uint64_t old_start = (uint64_t)(code + from * SLOT), start = (uint64_t)(code + to * SLOT);
	uint64_t words[] = {(uint64_t)getpid() << 32 | (uint64_t)getpid(),
			    start,
			    old_start,
			    start,
			    bytes,
			    (uint64_t)from};

	dump_prefix(1, sizeof(words));
	dump_write(words, sizeof(words));
}

static void dump_lines(int slot, const char *file, int first, int second)
{
	uint64_t start = (uint64_t)(code + slot * SLOT);
	uint64_t head[] = {start, 2}, one[] = {start, (uint64_t)first};
	uint64_t two[] = {start + SECOND_LOOP, (uint64_t)second};

	dump_prefix(2, sizeof(head) + sizeof(one) + strlen(file) + 1 + sizeof(two) + 2);
	dump_write(head, sizeof(head));
	dump_write(one, sizeof(one));
	dump_write(file, strlen(file) + 1);
	dump_write(two, sizeof(two));
	dump_write("\xff", 2);
}

static void dump_begin(const char *folder)
{
	uint32_t header[10] = {0x4a695444, 1, sizeof(header), 62, 0, (uint32_t)getpid()};
	char path[4096];

	snprintf(path, sizeof(path), "%s/jit-%d.dump", folder, getpid());
	dump = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	/* The mapping is how others know of it. */
	if (dump < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0) == MAP_FAILED)
		fail(path);
	dump_write(header, sizeof(header));
}

static void map_begin(int foreign)
{
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", getpid());
	map = fopen(map_path, "we");
	if (!map || (foreign && fchown(fileno(map), 12345, 12345)))
		fail(map_path);
}

/* --- The chain. --- */

static PLAIN void between(void)
{
	spin();
	between_calls++;
}

static uint8_t *map_code(int fd, int prot, int flags)
{
	void *at = mmap(NULL, SLOTS * SLOT, prot, flags, fd, 0);

	if (at == MAP_FAILED)
		fail("mmap");
	return at;
}

/* Private, or shared without a file, or a memfd that is writable here and executable there. */
static void make_code(const char *mode)
{
	int twice = !strcmp(mode, "twice") ? memfd_create("doublemapper", MFD_CLOEXEC) : -1;
	int shared = !strcmp(mode, "late");
	void *targets[] = {NULL, (void *)between};
	uint8_t *to;

	if (twice >= 0 && ftruncate(twice, SLOTS * SLOT))
		fail("memfd");
	to =
	    map_code(twice, PROT_READ | PROT_WRITE,
		     twice >= 0 ? MAP_SHARED : (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS);
	code = twice >= 0 ? map_code(twice, PROT_READ | PROT_EXEC, MAP_SHARED) : to;
	targets[OUTER] = code + MIDDLE * SLOT;
	for (int slot = OUTER; slot <= MIDDLE; slot++) {
		memcpy(to + slot * SLOT, calling, sizeof(calling));
		memcpy(to + slot * SLOT + TARGET, &targets[slot], sizeof(targets[slot]));
	}
	memcpy(to + SPIN * SLOT, spinning, sizeof(spinning));
	memcpy(to + MOVED * SLOT, spinning, sizeof(spinning));
	if (code == to && mprotect(code, SLOTS * SLOT, PROT_READ | PROT_EXEC))
		fail("mprotect");
}

static PLAIN void run(const char *name, double seconds)
{
	void (*outer)(void) = (void (*)(void))(void *)code;
	double end = cpu_time() + seconds;

	prctl(PR_SET_NAME, name);
	while (cpu_time() < end)
		outer();
}

static void say_all(void)
{
	say_map(OUTER, sizeof(calling), "outer");
	say_map(MIDDLE, sizeof(calling), "middle");
	say_map(SPIN, sizeof(spinning), "spin_first");
	dump_load(OUTER, sizeof(calling), "outer");
	dump_load(MIDDLE, sizeof(calling), "middle");
	dump_lines(SPIN, "/src/spin.jit", 10, 20);
	dump_load(SPIN, sizeof(spinning), "spin_first");
}

int main(int argc, char **argv)
{
	double seconds = argc > 2 ? atof(argv[2]) : 1;
	int late = argc > 2 && !strcmp(argv[1], "late");

	if (argc < 3)
		return 2;
	make_code(argv[1]);
	spin = (void (*)(void))(void *)(code + SPIN * SLOT);
	if (!strcmp(argv[1], "map") || !strcmp(argv[1], "twice") || !strcmp(argv[1], "foreign"))
		map_begin(!strcmp(argv[1], "foreign"));
	if (!strcmp(argv[1], "dump") && argc > 3)
		dump_begin(argv[3]);
	say_all();
	run("jit-one", late ? seconds / 4 : seconds);
	if (late) {
		map_begin(0);
		say_all();
	} else {
		/* Other code, as far as anybody can see. */
		say_map(SPIN, sizeof(spinning), "spin_second");
		dump_lines(SPIN, "/src/other.jit", 30, 40);
		dump_load(SPIN, sizeof(spinning), "spin_second");
	}
	run("jit-two", seconds);
	if (dump >= 0) {
		spin = (void (*)(void))(void *)(code + MOVED * SLOT);
		dump_move(SPIN, MOVED, sizeof(spinning));
		run("jit-three", seconds);
	}
	if (map && unlink(map_path))
		fail(map_path);
	return 0;
}
