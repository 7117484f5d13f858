/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The side-band events as the loader opens them: what a fork and an exec leave in the ring, and that
 * every record ends in struct sideband_trailer.
 */
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/tables.h"
#include "supervisor/loader_perf.h"

#define PAGES 128
#define CPUS_MAX 64
#define RECORD_MAX 4096

/* What was seen of one child. */
struct seen {
	uint32_t pid;
	uint64_t after_ns, before_ns;
	unsigned forks, execs, maps, exits, bad;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void seen_record(struct seen *seen, const struct perf_event_header *header)
{
	const uint32_t *ids = (const uint32_t *)(header + 1);
	struct sideband_trailer trailer;

	memcpy(&trailer, (const char *)header + header->size - sizeof(trailer), sizeof(trailer));
	/* FORK and EXIT are written by whoever did it: pid, ppid, ...; the others: pid, tid, ... */
	if (ids[0] != seen->pid)
		return;
	if (trailer.time_ns < seen->after_ns || trailer.time_ns > seen->before_ns)
		seen->bad++;
	switch (header->type) {
	case PERF_RECORD_FORK:
		seen->forks++;
		break;
	case PERF_RECORD_EXIT:
		seen->exits++;
		break;
	case PERF_RECORD_COMM:
		seen->execs += !!(header->misc & PERF_RECORD_MISC_COMM_EXEC);
		seen->bad += trailer.pid != seen->pid;
		break;
	case PERF_RECORD_MMAP2:
		seen->maps++;
		seen->bad += trailer.pid != seen->pid;
	}
}

static void seen_ring(struct seen *seen, const struct perf_event_mmap_page *page, size_t bytes)
{
	const char *data = (const char *)page + page->data_offset;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);

	for (uint64_t at = page->data_tail; at < head;) {
		_Alignas(8) char record[RECORD_MAX];
		struct perf_event_header header;

		for (size_t i = 0; i < sizeof(header); i++)
			((char *)&header)[i] = data[(at + i) % bytes];
		assert_in_range(header.size, sizeof(header), RECORD_MAX);
		for (size_t i = 0; i < header.size; i++)
			record[i] = data[(at + i) % bytes];
		seen_record(seen, (const struct perf_event_header *)record);
		at += header.size;
	}
}

static void test_fork_and_exec(void **state)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), bytes = PAGES * page_bytes;
	struct perf_event_mmap_page *rings[CPUS_MAX];
	int cpus = (int)sysconf(_SC_NPROCESSORS_CONF), fds[CPUS_MAX];
	struct seen seen = {0};

	(void)state;
	if (geteuid()) {
		print_message("skipped: perf events of all processes need root\n");
		skip();
	}
	assert_in_range(cpus, 1, CPUS_MAX);
	for (int cpu = 0; cpu < cpus; cpu++) {
		fds[cpu] = loader_sideband_open((uint32_t)cpu, PAGES);
		assert_true(fds[cpu] >= 0);
		rings[cpu] = mmap(NULL, page_bytes + bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
				  fds[cpu], 0);
		assert_true(rings[cpu] != MAP_FAILED);
	}
	seen.after_ns = now_ns();
	seen.pid = (uint32_t)fork();
	if (seen.pid == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	waitpid((pid_t)seen.pid, NULL, 0);
	seen.before_ns = now_ns();
	for (int cpu = 0; cpu < cpus; cpu++) {
		seen_ring(&seen, rings[cpu], bytes);
		munmap(rings[cpu], page_bytes + bytes);
		close(fds[cpu]);
	}
	assert_int_equal(seen.bad, 0);
	assert_int_equal(seen.forks, 1);
	assert_int_equal(seen.execs, 1);
	assert_int_equal(seen.exits, 1);
	/* The program, its loader, its libc, the vdso. */
	assert_true(seen.maps >= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_fork_and_exec)};

	alarm(30);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
