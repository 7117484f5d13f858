/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the BPF object and says in one line why that did not work.
 *
 * libbpf explains itself by printing, the verifier with pages of log whose last lines matter. Both
 * are caught here and boiled down to one line.
 */
#include "supervisor/loader_bpf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/sconce.skel.h"
#include "bpf/tables.h"

#define WAKEUP_SHARE 8 /* the ring wakes its reader when 1/8 of it is in use */

/* What libbpf gives the verifier at most. The reason is at its end; pages that are not needed are not there. */
#define VERIFIER_LOG_BYTES (16 << 20)

/* libbpf's callback takes no argument, hence static. */
static char last_warning[LOADER_TEXT_BYTES / 2];
static char verifier_reason[LOADER_TEXT_BYTES / 2];

/* Keep [from, to), as much of it as fits. */
static void loader_keep(char *where, size_t size, const char *from, const char *to)
{
	size_t n = (size_t)(to - from) < size ? (size_t)(to - from) : size - 1;

	memcpy(where, from, n);
	where[n] = '\0';
}

/* The reason of a refusal is the line above the last one, "processed N insns". */
static void loader_keep_reason(const char *log)
{
	const char *end = NULL, *start;

	for (const char *p = log; (p = strstr(p, "\nprocessed ")); p++)
		end = p;
	if (!end)
		return;
	for (start = end; start > log && start[-1] != '\n'; start--)
		;
	loader_keep(verifier_reason, sizeof(verifier_reason), start, end);
}

__attribute__((format(printf, 2, 0))) static int loader_on_print(enum libbpf_print_level level,
								  const char *format, va_list args)
{
	static char text[VERIFIER_LOG_BYTES];
	const char *start;

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(text, sizeof(text), format, args);
	if (strstr(text, "PROG LOAD LOG")) {
		loader_keep_reason(text);
		return 0;
	}
	/* What it says on the way out repeats what it said before. */
	if (strstr(text, "failed to load object") || strstr(text, "failed to load BPF skeleton"))
		return 0;
	start = strncmp(text, "libbpf: ", 8) ? text : text + 8;
	loader_keep(last_warning, sizeof(last_warning), start, start + strcspn(start, "\n"));
	return 0;
}

__attribute__((format(printf, 3, 4))) static int loader_fail(struct loader_bpf *bpf, int err,
							     const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(bpf->text, sizeof(bpf->text), format, args);
	va_end(args);
	return err;
}

static int loader_explain(struct loader_bpf *bpf, int err)
{
	if (verifier_reason[0])
		return loader_fail(bpf, err, "this kernel refuses the BPF program: %s",
				   verifier_reason);
	if (err == -EPERM || err == -EACCES)
		return loader_fail(bpf, err,
				   "loading BPF is not permitted: start as root, or with CAP_BPF "
				   "and CAP_PERFMON, and without kernel lockdown");
	return loader_fail(bpf, err, "cannot load BPF (sconce doctor says what it needs): %s: %s",
			   strerror(-err), last_warning);
}

static uint32_t loader_chunks(const struct config *config)
{
	return (uint32_t)(config->unwind_bytes / TABLES_CHUNK_BYTES);
}

static int loader_check(struct loader_bpf *bpf, const struct config *config)
{
	uint64_t ring = config->ring_bytes;

	if (ring < (uint64_t)sysconf(_SC_PAGESIZE) || ring > 1u << 30 || (ring & (ring - 1)) ||
	    !config->runtime.cpus || config->runtime.cpus > CONFIG_CPUS_MAX || !loader_chunks(config) ||
	    loader_chunks(config) > TABLES_CHUNKS_MAX || config->targets_n > CONFIG_TARGETS_MAX ||
	    !config->rate_hz || !config->ranges_max || !config->processes_max)
		return loader_fail(bpf, -EINVAL, "impossible configuration: %u cpus, a ring of %llu bytes",
				   config->runtime.cpus, (unsigned long long)ring);
	return 0;
}

/* Before loading the sizes of the maps, where they are not fixed; behind it their descriptors. */
static int loader_maps(struct loader_bpf *bpf, const struct config *config, bool loaded)
{
	const struct {
		enum kernel_object object;
		struct bpf_map *map;
		uint32_t entries;
	} maps[] = {
		{BPF_PROCS, bpf->object->maps.procs, config->processes_max},
		{BPF_RANGES, bpf->object->maps.ranges, config->ranges_max},
		{BPF_CPUS, bpf->object->maps.cpus, config->runtime.cpus},
		{BPF_CHUNKS, bpf->object->maps.chunks, loader_chunks(config)},
		{BPF_TARGETS, bpf->object->maps.targets, config->all ? 1 : TABLES_TARGETS_MAX},
		{BPF_EVENTS, bpf->object->maps.events, (uint32_t)config->ring_bytes},
		{BPF_FILES, bpf->object->maps.files, 0},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]) && !err; i++)
		if (loaded)
			bpf->map[maps[i].object] = bpf_map__fd(maps[i].map);
		else if (maps[i].entries)
			err = bpf_map__set_max_entries(maps[i].map, maps[i].entries);
	return err;
}

static void loader_set(struct sconce_bpf *object, const struct config *config)
{
	object->rodata->setting_all = config->all;
	object->rodata->setting_wakeup_bytes = config->ring_bytes / WAKEUP_SHARE;
	/* A program that will not be attached need not be accepted by the kernel either. */
	bpf_program__set_autoload(object->progs.sconce_fork, !config->all && config->follow);
	bpf_program__set_autoload(object->progs.sconce_free, !config->all);
}

static int loader_fill_targets(struct loader_bpf *bpf, const struct config *config)
{
	uint32_t one = 1;

	for (uint32_t i = 0; !config->all && i < config->targets_n; i++)
		if (bpf_map_update_elem(bpf->map[BPF_TARGETS], &config->targets[i], &one, BPF_ANY))
			return loader_fail(bpf, -errno, "cannot fill the table of targets: %s",
					   strerror(errno));
	return 0;
}

static int loader_attach(struct loader_bpf *bpf)
{
	if (sconce_bpf__attach(bpf->object))
		return loader_fail(bpf, -errno, "cannot attach to tracepoints: %s", last_warning);
	bpf->links[0] = bpf->object->links.sconce_fork ? bpf_link__fd(bpf->object->links.sconce_fork) : 0;
	bpf->links[1] = bpf->object->links.sconce_free ? bpf_link__fd(bpf->object->links.sconce_free) : 0;
	return 0;
}

static void loader_take_fds(struct loader_bpf *bpf, const struct config *config)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	loader_maps(bpf, config, true);
	bpf->program = bpf_program__fd(bpf->object->progs.sconce_sample);
	if (bpf_obj_get_info_by_fd(bpf->program, &info, &size) == 0)
		bpf->program_insns = info.verified_insns;
}

int loader_bpf_open(struct loader_bpf *bpf, const struct config *config)
{
	int err;

	memset(bpf, 0, sizeof(*bpf));
	last_warning[0] = verifier_reason[0] = '\0';
	libbpf_set_print(loader_on_print);
	err = loader_check(bpf, config);
	if (err)
		return err;
	bpf->object = sconce_bpf__open();
	if (!bpf->object)
		return loader_explain(bpf, -errno);
	loader_set(bpf->object, config);
	err = loader_maps(bpf, config, false);
	if (!err)
		err = sconce_bpf__load(bpf->object);
	if (err)
		return loader_explain(bpf, err);
	loader_take_fds(bpf, config);
	bpf->map[BPF_CHUNK] = loader_bpf_chunk(bpf->map[BPF_CHUNKS], 0);
	if (bpf->map[BPF_CHUNK] < 0)
		return loader_fail(bpf, bpf->map[BPF_CHUNK], "cannot make memory for unwind tables: %s",
				   strerror(-bpf->map[BPF_CHUNK]));
	/* Targets first: a child that is forked right behind must find its parent. */
	err = loader_fill_targets(bpf, config);
	return err ? err : loader_attach(bpf);
}

int loader_bpf_chunk(int chunks, uint32_t index)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "chunk", sizeof(uint32_t), TABLES_CHUNK_BYTES,
				1, &opts);
	int err;

	if (fd < 0)
		return -errno;
	/* In the place of one that was made by a loader who died before it could tell. */
	if (bpf_map_update_elem(chunks, &index, &fd, BPF_ANY) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

void loader_bpf_close(struct loader_bpf *bpf)
{
	if (bpf->map[BPF_CHUNK] > 0)
		close(bpf->map[BPF_CHUNK]);
	sconce_bpf__destroy(bpf->object);
}
