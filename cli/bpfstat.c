/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bpfstat.h"

#include <dirent.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAPS_MAX 64

struct bpfstat_maps {
	uint32_t ids[MAPS_MAX];
	size_t n;
};

static bool bpfstat_has(const struct bpfstat_maps *maps, uint32_t id)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->ids[i] == id)
			return true;
	return false;
}

/* One file of fdinfo: is it a map, which one, how large? A map held twice counts once. */
static void bpfstat_fdinfo(struct bpfstat *bpfstat, struct bpfstat_maps *maps, const char *path)
{
	unsigned long long bytes = 0;
	unsigned id = 0;
	char line[128];
	FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "memlock: %llu", &bytes);
		sscanf(line, "map_id: %u", &id);
	}
	if (file)
		fclose(file);
	if (id && maps->n < MAPS_MAX && !bpfstat_has(maps, id)) {
		maps->ids[maps->n++] = id;
		bpfstat->map_bytes += bytes;
	}
}

static void bpfstat_maps(struct bpfstat *bpfstat, struct bpfstat_maps *maps, int pid)
{
	struct dirent *entry;
	char path[300];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", pid, entry->d_name);
		if (entry->d_name[0] != '.')
			bpfstat_fdinfo(bpfstat, maps, path);
	}
	if (dir)
		closedir(dir);
}

static int bpfstat_bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* Add one program if it is a sampling program on one of these maps. */
static void bpfstat_program(struct bpfstat *bpfstat, const struct bpfstat_maps *maps, uint32_t id)
{
	union bpf_attr attr = {.prog_id = id};
	struct bpf_prog_info info = {0};
	uint32_t used[MAPS_MAX] = {0};
	int fd = bpfstat_bpf(BPF_PROG_GET_FD_BY_ID, &attr);

	if (fd < 0)
		return;
	info.map_ids = (uint64_t)(uintptr_t)used;
	info.nr_map_ids = MAPS_MAX;
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info = (uint64_t)(uintptr_t)&info;
	attr.info.info_len = sizeof(info);
	if (bpfstat_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) == 0 &&
	    info.type == BPF_PROG_TYPE_PERF_EVENT) {
		for (uint32_t i = 0; i < info.nr_map_ids && i < MAPS_MAX; i++)
			if (bpfstat_has(maps, used[i])) {
				bpfstat->run_ns += info.run_time_ns;
				bpfstat->run_count += info.run_cnt;
				break;
			}
	}
	close(fd);
}

void bpfstat_read(struct bpfstat *bpfstat, int supervisor_pid)
{
	struct bpfstat_maps maps = {.n = 0};
	union bpf_attr attr = {0};

	memset(bpfstat, 0, sizeof(*bpfstat));
	bpfstat_maps(bpfstat, &maps, supervisor_pid);
	while (maps.n && bpfstat_bpf(BPF_PROG_GET_NEXT_ID, &attr) == 0) {
		uint32_t id = attr.next_id;

		bpfstat_program(bpfstat, &maps, id);
		memset(&attr, 0, sizeof(attr));
		attr.start_id = id;
	}
}
