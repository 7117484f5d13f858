/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/memory.h"

int processes_open(struct processes *processes, uint32_t max, uint32_t ranges_max)
{
	memset(processes, 0, sizeof(*processes));
	processes->max = max;
	processes->ranges_max = ranges_max;
	return lru_init(&processes->table, max);
}

static void process_forget_ranges(struct processes *processes, struct process *process)
{
	processes->ranges -= process->ranges_n;
	free(process->ranges);
	process->ranges = NULL;
	process->ranges_n = process->ranges_room = 0;
}

static void process_free(struct processes *processes, struct process *process)
{
	lru_remove(&processes->table, &process->node);
	process_forget_ranges(processes, process);
	free(process->executable);
	free(process->cgroup);
	free(process);
}

void processes_close(struct processes *processes)
{
	struct process *process;

	while ((process = lru_oldest(&processes->table)))
		process_free(processes, process);
	lru_fini(&processes->table);
}

static struct process *process_new(struct processes *processes, uint32_t pid, uint64_t lo_ns,
				   uint64_t hi_ns)
{
	struct process *process;

	if (processes->table.count >= processes->max)
		process_free(processes, lru_oldest(&processes->table));
	process = calloc(1, sizeof(*process));
	if (!process)
		memory_over("a process");
	process->start_lo_ns = lo_ns;
	process->start_hi_ns = hi_ns;
	lru_add(&processes->table, &process->node, pid);
	return process;
}

/* The entry of this pid, made anew when it is of a process that started at another time. */
static struct process *process_at(struct processes *processes, uint32_t pid, uint64_t lo_ns,
				  uint64_t hi_ns)
{
	struct process *process = lru_get(&processes->table, pid);

	if (process && process->start_lo_ns <= hi_ns && lo_ns <= process->start_hi_ns)
		return process;
	if (process)
		process_free(processes, process);
	return process_new(processes, pid, lo_ns, hi_ns);
}

struct process *processes_get(struct processes *processes, uint32_t pid, uint64_t start_ns)
{
	return process_at(processes, pid, start_ns, start_ns);
}

/* Forget the ranges; who it is stays for show until the broker has told anew. */
static void process_reset(struct processes *processes, struct process *process, uint64_t exec_id)
{
	process_forget_ranges(processes, process);
	if (process->exec_id && exec_id && process->exec_id != exec_id) {
		process->info_known &= process->info_exec_id >= exec_id;
		process->waited = process->comm_of_leader = false;
		process->wait_until_ns = 0;
		process->comm[0] = 0;
	}
	process->id = 0;
}

static void process_on_process(struct processes *processes, const struct record_header *header)
{
	const struct record_process *record = (const void *)header;
	struct process *process =
	    process_at(processes, record->pid, record->start_lo_ns, record->start_hi_ns);

	process_reset(processes, process, record->exec_id);
	process->introduced = true;
	process->exited = false;
	process->start_lo_ns = record->start_lo_ns;
	process->start_hi_ns = record->start_hi_ns;
	process->exec_id = record->exec_id;
	process->flags = record->flags;
	processes->arrivals++;
}

static bool process_make_room(struct processes *processes, struct process *process, uint32_t more)
{
	uint32_t need = process->ranges_n + more;
	void *p;

	if (need > PROCESS_RANGES_MAX || processes->ranges + more > processes->ranges_max)
		return false;
	if (need <= process->ranges_room)
		return true;
	need = need < 8 ? 8 : need + need / 2;
	p = realloc(process->ranges, need * sizeof(*process->ranges));
	if (!p)
		memory_over("address ranges");
	process->ranges = p;
	process->ranges_room = need;
	return true;
}

static void process_insert_at(struct process *process, uint32_t at,
			      const struct record_range *range)
{
	memmove(process->ranges + at + 1, process->ranges + at,
		(process->ranges_n - at) * sizeof(*range));
	process->ranges[at] = *range;
	process->ranges_n++;
}

/* What was mapped there before is not any more: cut it away. */
static uint32_t process_cut(struct process *process, uint64_t start, uint64_t end)
{
	uint32_t n = 0, at = 0;
	struct record_range *ranges = process->ranges, tail = {0};

	for (uint32_t i = 0; i < process->ranges_n; i++) {
		struct record_range old = ranges[i];

		if (old.end > end && old.start < end) {
			tail = old;
			tail.offset += end - old.start;
			if (old.start < start)
				tail.start = end;
			else {
				ranges[n] = tail;
				ranges[n++].start = end;
				tail.end = 0;
				continue;
			}
		}
		if (old.start >= start && old.start < end)
			continue;
		if (old.start < start && old.end > start)
			old.end = start;
		if (old.start < start)
			at = n + 1;
		ranges[n++] = old;
	}
	process->ranges_n = n;
	/* A hole in the middle of one: there is room for two more. */
	if (tail.end)
		process_insert_at(process, at, &tail);
	return at;
}

static void process_on_mapping(struct processes *processes, const struct record_header *header)
{
	const struct record_mapping *record = (const void *)header;
	struct process *process = lru_get(&processes->table, record->pid);
	const struct record_range *range = &record->range;
	uint32_t before, n;

	if (!process || !process->introduced || range->start >= range->end)
		return;
	/* So many new ranges that the rest of the table has to go: the oldest processes do. */
	while (processes->ranges + 2 > processes->ranges_max &&
	       lru_oldest(&processes->table) != process)
		process_free(processes, lru_oldest(&processes->table));
	if (!process_make_room(processes, process, 2))
		return;
	before = n = process->ranges_n;
	if (n > 0 && process->ranges[n - 1].end > range->start)
		n = process_cut(process, range->start, range->end);
	process_insert_at(process, n, range);
	processes->ranges += process->ranges_n - before;
	processes->arrivals++;
}

static void processes_forget_first(struct processes *processes)
{
	const struct processes_end *end = &processes->ended[processes->ended_first];
	struct process *process = lru_get(&processes->table, end->pid);

	/* Or it goes on after all, or another one has its pid. */
	if (process && process->exited && process->exited_at == end->exited_at)
		process_free(processes, process);
	processes->ended_first = (processes->ended_first + 1) % PROCESSES_ENDED;
	processes->ended_n--;
}

/* It is kept all the same: samples that it left behind may still be on their way. */
static void process_on_exit(struct processes *processes, const struct record_header *header)
{
	const struct record_exit *record = (const void *)header;
	struct process *process;

	if (processes->ended_n == PROCESSES_ENDED)
		processes_forget_first(processes);
	process = lru_get(&processes->table, record->pid);
	if (!process || process->start_lo_ns > record->time_ns)
		return;
	process->exited = true;
	process->exited_at = processes->head;
	processes->ended[(processes->ended_first + processes->ended_n++) % PROCESSES_ENDED] =
	    (struct processes_end){process->exited_at, record->pid};
}

void processes_sweep(struct processes *processes, uint64_t done)
{
	while (processes->ended_n && processes->ended[processes->ended_first].exited_at <= done)
		processes_forget_first(processes);
}

bool processes_record(struct processes *processes, const struct record_header *record)
{
	static const struct {
		size_t bytes;
		void (*handle)(struct processes *, const struct record_header *);
	} kinds[] = {
	    [RECORD_PROCESS] = {sizeof(struct record_process), process_on_process},
	    [RECORD_MAPPING] = {sizeof(struct record_mapping), process_on_mapping},
	    [RECORD_EXIT] = {sizeof(struct record_exit), process_on_exit},
	};

	if (record->kind >= sizeof(kinds) / sizeof(*kinds) || !kinds[record->kind].handle ||
	    record->len_bytes != kinds[record->kind].bytes)
		return false;
	kinds[record->kind].handle(processes, record);
	return true;
}

void processes_info(struct processes *processes, const struct message_process_info *info)
{
	struct process *process = lru_get(&processes->table, info->pid);
	uint32_t n =
	    info->cgroup_bytes < sizeof(info->cgroup) ? info->cgroup_bytes : sizeof(info->cgroup);

	if (process && process->start_lo_ns > info->start_hi_ns)
		return; /* the pid is another's by now */
	process = process_at(processes, info->pid, info->start_lo_ns, info->start_hi_ns);
	process->info_known = true;
	process->info_exec_id = info->exec_id;
	processes->arrivals++;
	/* It was gone: who it was before is all that will ever be known. */
	if (!info->executable[0] && !n)
		return;
	free(process->executable);
	process->executable = NULL;
	if (info->executable[0])
		process->executable = strndup(info->executable, sizeof(info->executable) - 1);
	if (!process->cgroup)
		process->cgroup = malloc(sizeof(*process->cgroup));
	if (process->cgroup)
		cgroup_parse(process->cgroup, info->cgroup, n);
	process->id = 0;
}

bool process_ranges_hold(const struct process *process, uint64_t exec_id)
{
	return process->ranges_n > 0 && !(process->flags & PROCESS_PENDING) &&
	       (process->exec_id == 0 || process->exec_id == exec_id);
}

bool process_ranges_may_come(const struct process *process, uint64_t exec_id)
{
	return !process_ranges_hold(process, exec_id) &&
	       (!process->introduced || (process->flags & PROCESS_PENDING) ||
		process->exec_id < exec_id);
}

const struct record_range *process_find_range(const struct process *process, uint64_t pc)
{
	uint32_t low = 0, high = process->ranges_n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (process->ranges[middle].start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && pc < process->ranges[low - 1].end ? &process->ranges[low - 1] : NULL;
}

void process_name(struct process *process, const char comm[RECORD_COMM_BYTES], bool leader)
{
	if (process->comm[0] && (process->comm_of_leader || !leader))
		return;
	process->comm_of_leader = leader;
	if (strncmp(process->comm, comm, RECORD_COMM_BYTES) == 0)
		return;
	memcpy(process->comm, comm, RECORD_COMM_BYTES);
	process->id = 0;
}
