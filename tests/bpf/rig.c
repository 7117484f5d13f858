/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See rig.h. Failures of the rig itself end the program: they are no result of a test.
 */
#include "tests/bpf/rig.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "supervisor/loader_perf.h"

#define TICK_NS 10000000ull

uint32_t rig_rate_hz = 99;

static void rig_die(const char *what)
{
	fprintf(stderr, "rig: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void *rig_map(int fd, size_t bytes, int protection)
{
	void *map = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		rig_die("mmap");
	return map;
}

void rig_open(struct rig *rig, pid_t target, uint64_t ring_bytes)
{
	memset(rig, 0, sizeof(*rig));
	config_defaults(&rig->config, MODE_RECORD);
	rig->config.all = target == 0;
	rig->config.targets_n = target != 0;
	rig->config.targets[0] = target;
	rig->config.ring_bytes = ring_bytes;
	rig->config.runtime.cpus = (uint32_t)libbpf_num_possible_cpus();
	if (rig->config.runtime.cpus > RIG_CPUS_MAX)
		rig_die("more cpus than this test expects");
	if (loader_bpf_open(&rig->bpf, &rig->config)) {
		fprintf(stderr, "rig: %s\n", rig->bpf.text);
		exit(2);
	}
	rig->ranges = rig_map(rig->bpf.map[BPF_RANGES],
			      rig->config.ranges_max * sizeof(struct record_range),
			      PROT_READ | PROT_WRITE);
	rig->cpus = rig_map(rig->bpf.map[BPF_CPUS], RIG_CPUS_MAX * sizeof(struct bpf_cpu), PROT_READ);
	for (uint32_t cpu = 0; cpu < rig->config.runtime.cpus; cpu++)
		rig->events[cpu] = loader_sampling_open(cpu, rig_rate_hz, rig->bpf.program);
	if (rig->events[0] < 0)
		rig_die("perf_event_open");
}

void rig_close(struct rig *rig)
{
	rig_forget(rig);
	for (uint32_t cpu = 0; cpu < rig->config.runtime.cpus; cpu++)
		if (rig->events[cpu] >= 0)
			close(rig->events[cpu]);
	munmap(rig->ranges, rig->config.ranges_max * sizeof(struct record_range));
	munmap(rig->cpus, RIG_CPUS_MAX * sizeof(struct bpf_cpu));
	loader_bpf_close(&rig->bpf);
}

/* What holds for every record, whatever it is a sample of. */
static bool rig_well_formed(struct rig *rig, const struct record_sample *s, size_t size)
{
	uint64_t bytes = sizeof(*s) + (s->kernel_frames + s->user_slots) * sizeof(struct frame);

	if (s->header.flags & RECORD_HAS_STACK)
		bytes += sizeof(struct record_regs) + s->stack_bytes;
	else if (s->stack_bytes)
		return false;
	if (s->header.kind != RECORD_SAMPLE || s->header.len_bytes != size || bytes != size)
		return false;
	if (size % 8 || size > RECORD_BYTES_MAX || s->cpu >= rig->config.runtime.cpus)
		return false;
	if (s->period_ns != 1000000000ull / rig_rate_hz || s->stop >= STOP_COUNT)
		return false;
	if (!!s->kernel_frames != !!(s->header.flags & RECORD_IN_KERNEL))
		return false;
	for (int i = 0; i < s->kernel_frames; i++)
		if (s->frames[i].kind != FRAME_KERNEL || !(s->frames[i].addr >> 63))
			return false;
	return true;
}

static int rig_on_sample(void *context, void *data, size_t size)
{
	struct rig *rig = context;
	struct record_sample *copy;

	if (!rig_well_formed(rig, data, size)) {
		rig->malformed = true;
		return 0;
	}
	if (rig->samples_n == RIG_SAMPLES_MAX)
		return 0;
	copy = malloc(size);
	if (!copy)
		rig_die("malloc");
	memcpy(copy, data, size);
	rig->samples[rig->samples_n++] = copy;
	return 0;
}

void rig_collect(struct rig *rig)
{
	struct ring_buffer *ring = ring_buffer__new(rig->bpf.map[BPF_EVENTS], rig_on_sample, rig, NULL);

	if (!ring)
		rig_die("ring_buffer__new");
	ring_buffer__consume(ring);
	ring_buffer__free(ring);
}

static void rig_ioctl(const struct rig *rig, unsigned long request)
{
	for (uint32_t cpu = 0; cpu < rig->config.runtime.cpus; cpu++)
		if (rig->events[cpu] >= 0 && ioctl(rig->events[cpu], request, 0))
			rig_die("ioctl");
}

void rig_sample(struct rig *rig, int ms, bool collect)
{
	size_t before = rig->samples_n, least = (size_t)ms * rig_rate_hz / 4000;

	rig_ioctl(rig, PERF_EVENT_IOC_ENABLE);
	/* On a busy machine they take their time: a quarter of what one busy process gives has to be there. */
	for (int at = 0; at < ms || (collect && rig->samples_n <= before + least && at < 20 * ms); at += 50) {
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
		if (collect)
			rig_collect(rig);
	}
	rig_ioctl(rig, PERF_EVENT_IOC_DISABLE);
	if (collect)
		rig_collect(rig);
}

void rig_forget(struct rig *rig)
{
	while (rig->samples_n)
		free(rig->samples[--rig->samples_n]);
}

uint64_t rig_taken(const struct rig *rig)
{
	uint64_t sum = 0;

	for (uint32_t cpu = 0; cpu < rig->config.runtime.cpus; cpu++)
		sum += rig->cpus[cpu].taken;
	return sum;
}

uint64_t rig_ring_full(const struct rig *rig)
{
	uint64_t sum = 0;

	for (uint32_t cpu = 0; cpu < rig->config.runtime.cpus; cpu++)
		sum += rig->cpus[cpu].ring_full;
	return sum;
}

static void rig_read_ranges(struct rig_process *process, FILE *maps)
{
	char line[512], rights[5];
	unsigned long start, end, offset, inode;

	while (fgets(line, sizeof(line), maps) && process->ranges_n < 64) {
		if (sscanf(line, "%lx-%lx %4s %lx %*s %lu", &start, &end, rights, &offset,
			   &inode) != 5)
			rig_die("maps");
		/* The top half of the address space (vsyscall) is no user stack's caller. */
		if (rights[2] != 'x' || start >> 63)
			continue;
		process->ranges[process->ranges_n++] = (struct record_range){
			start, end, offset, (uint32_t)inode, inode ? 0 : RANGE_ANON};
	}
}

void rig_read_process(struct rig_process *process, pid_t pid)
{
	char path[64], stat[1024] = "";
	unsigned long long ticks = 0;
	FILE *file;

	memset(process, 0, sizeof(*process));
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	file = fopen(path, "re");
	if (!file)
		rig_die(path);
	rig_read_ranges(process, file);
	fclose(file);
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file || !fgets(stat, sizeof(stat), file))
		rig_die(path);
	fclose(file);
	/* The 22nd field; the 2nd may hold anything but ends with the last ')'. */
	if (sscanf(strrchr(stat, ')') + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u"
		   " %*d %*d %*d %*d %*d %*d %llu",
		   &ticks) != 1)
		rig_die("stat");
	process->start_ticks = ticks;
}

void rig_install(struct rig *rig, pid_t pid, const struct rig_process *process, uint64_t exec_id,
		 uint32_t first, uint32_t flags)
{
	struct bpf_process entry = {
		.start_lo_ns = process->start_ticks * TICK_NS,
		.start_hi_ns = process->start_ticks * TICK_NS + TICK_NS - 1,
		.exec_id = exec_id,
		.first = first,
		.count = process->ranges_n,
		.flags = flags,
	};

	memcpy(rig->ranges + first, process->ranges,
	       process->ranges_n * sizeof(struct record_range));
	if (bpf_map_update_elem(rig->bpf.map[BPF_PROCS], &pid, &entry, BPF_ANY))
		rig_die("procs");
}

const struct record_regs *rig_regs(const struct record_sample *sample)
{
	return (const struct record_regs *)(sample->frames + sample->kernel_frames +
					    sample->user_slots);
}
