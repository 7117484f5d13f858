/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cli/status.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "cli/bpfstat.h"
#include "cli/snapshot.h"
#include "proto/channel.h"
#include "shm/blamed.h"
#include "shm/unread.h"
#include "supervisor/profiles.h"

#define ANSWER_MS 5000

/* What /proc knows of a process; zero where it is gone or may not be read. */
struct status_process {
	uint32_t uid;
	uint64_t capabilities; /* CapEff */
	double cpu_s;
	uint64_t pss_bytes;
	uint64_t own_bytes, limit_bytes; /* shared with nobody, and how much of it it may have */
};

static const char *const capability_names[] = {"CHOWN",
					       "DAC_OVERRIDE",
					       "DAC_READ_SEARCH",
					       "FOWNER",
					       "FSETID",
					       "KILL",
					       "SETGID",
					       "SETUID",
					       "SETPCAP",
					       "LINUX_IMMUTABLE",
					       "NET_BIND_SERVICE",
					       "NET_BROADCAST",
					       "NET_ADMIN",
					       "NET_RAW",
					       "IPC_LOCK",
					       "IPC_OWNER",
					       "SYS_MODULE",
					       "SYS_RAWIO",
					       "SYS_CHROOT",
					       "SYS_PTRACE",
					       "SYS_PACCT",
					       "SYS_ADMIN",
					       "SYS_BOOT",
					       "SYS_NICE",
					       "SYS_RESOURCE",
					       "SYS_TIME",
					       "SYS_TTY_CONFIG",
					       "MKNOD",
					       "LEASE",
					       "AUDIT_WRITE",
					       "AUDIT_CONTROL",
					       "SETFCAP",
					       "MAC_OVERRIDE",
					       "MAC_ADMIN",
					       "SYSLOG",
					       "WAKE_ALARM",
					       "BLOCK_SUSPEND",
					       "AUDIT_READ",
					       "PERFMON",
					       "BPF",
					       "CHECKPOINT_RESTORE"};

#define CAPABILITIES (sizeof(capability_names) / sizeof(capability_names[0]))

static FILE *status_open(int pid, const char *name)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return fopen(path, "re");
}

/* The number behind "field:" in a file of /proc. */
static uint64_t status_field(int pid, const char *name, const char *field, int base)
{
	FILE *file = status_open(pid, name);
	char line[256];
	uint64_t value = 0;

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, field, strlen(field)) == 0) {
			value = strtoull(line + strlen(field), NULL, base);
			break;
		}
	if (file)
		fclose(file);
	return value;
}

static double status_cpu_s(int pid)
{
	FILE *file = status_open(pid, "stat");
	unsigned long long user = 0, system = 0;
	char line[1024], *p = NULL;

	if (file && fgets(line, sizeof(line), file))
		p = strrchr(line, ')'); /* the name may hold anything */
	if (p && sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
			&system) != 2)
		user = system = 0;
	if (file)
		fclose(file);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static struct status_process status_process(const struct config *config,
					    const struct message_status_process *p)
{
	struct status_process process = {.uid = p->uid};

	if (p->pid <= 0 || config->containers)
		return process;
	process.uid = (uint32_t)status_field(p->pid, "status", "Uid:", 10);
	process.capabilities = status_field(p->pid, "status", "CapEff:", 16);
	process.cpu_s = status_cpu_s(p->pid);
	process.pss_bytes = status_field(p->pid, "smaps_rollup", "Pss:", 10) * 1024;
	process.own_bytes = status_field(p->pid, "status", "RssAnon:", 10) * 1024;
	process.limit_bytes = status_field(p->pid, "limits", "Max data size", 10);
	if (process.limit_bytes) /* "unlimited" is not a number */
		process.limit_bytes += status_field(p->pid, "limits", "Max stack size", 10);
	return process;
}

static void status_capabilities_text(uint64_t set, char *text, size_t size)
{
	size_t n = 0;

	snprintf(text, size, "none");
	if (__builtin_popcountll(set) > 8)
		snprintf(text, size, "%d of %zu", __builtin_popcountll(set), CAPABILITIES);
	for (size_t i = 0; i < CAPABILITIES && __builtin_popcountll(set) <= 8; i++)
		if (set & 1ull << i && n < size)
			n += (size_t)snprintf(text + n, size - n, "%s%s", n ? "," : "",
					      capability_names[i]);
}

static const char *const layer_names[] = {
#define LAYER(NAME, name) #name,
    PROFILE_LAYERS(LAYER)
#undef LAYER
};

/* What a process says that it is confined by. */
static uint32_t status_layers(const struct snapshot *s, uint32_t slot)
{
	const struct ledger *ledger = slot < SLOT_COUNT ? s->ledgers[slot] : NULL;

	return ledger ? (uint32_t)atomic_load(&ledger->layers) : 0;
}

/* "seccomp,landlock", or what it lacks: "without root". */
static void status_layers_text(uint32_t layers, enum role role, char *text, size_t size)
{
	uint32_t lacks = profiles_layers(role) & ~layers;
	size_t n = 0;

	*text = 0;
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < LAYER_COUNT; i++)
			if ((pass ? lacks : layers) & 1u << i && n < size)
				n += (size_t)snprintf(text + n, size - n, "%s%s",
						      pass && !(lacks & ((1u << i) - 1))
							  ? " without "
						      : n ? ","
							  : "",
						      layer_names[i]);
}

static double status_uptime_s(const struct config *config)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9 - (double)config->runtime.start_ns / 1e9;
}

static void status_print_quarantine(const struct snapshot *s)
{
	struct blamed blamed;

	for (int slot = 0; slot < SLOT_COUNT; slot++)
		for (uint32_t at = 0; blamed_next(s->ledgers[slot], &at, &blamed);)
			printf("quarantined: %s, by the %s in slot %d\n", blamed.text,
			       role_name(slot_role(slot)), slot);
}

/* Of all workers: "python 3.15: layout unknown (/usr/bin/python3.15)". */
static bool status_unread_next(const struct snapshot *s, int *slot, uint32_t *at,
			       struct unread_runtime *runtime)
{
	for (; *slot < SLOT_COUNT; (*slot)++, *at = 0)
		if (unread_next(s->ledgers[*slot], at, runtime))
			return true;
	return false;
}

static void status_print_unread(const struct snapshot *s)
{
	struct unread_runtime runtime;
	uint32_t at = 0;

	for (int slot = 0; status_unread_next(s, &slot, &at, &runtime);)
		printf("%s%s%s: layout unknown (%s), its functions are not shown\n",
		       runtime.language, runtime.version[0] ? " " : "", runtime.version,
		       runtime.path);
}

static void status_print_unread_json(const struct snapshot *s)
{
	struct unread_runtime runtime;
	const char *comma = "";
	uint32_t at = 0;

	printf("],\"unread\":[");
	for (int slot = 0; status_unread_next(s, &slot, &at, &runtime); comma = ",")
		printf("%s{\"language\":\"%s\",\"version\":\"%s\",\"path\":\"%s\"}", comma,
		       runtime.language, runtime.version, runtime.path);
}

static void status_print_quarantine_json(const struct snapshot *s)
{
	struct blamed blamed;
	const char *comma = "";

	printf("],\"quarantined\":[");
	for (int slot = 0; slot < SLOT_COUNT; slot++)
		for (uint32_t at = 0; blamed_next(s->ledgers[slot], &at, &blamed); comma = ",")
			printf("%s{\"what\":\"%s\",\"role\":\"%s\",\"slot\":%d}", comma, blamed.text,
			       role_name(slot_role(slot)), slot);
}

static void status_print(const struct snapshot *s, const struct bpfstat *bpf)
{
	const struct message_status *status = &s->status;
	const struct config *config = s->config;
	char capabilities[128], layers[128];
	const char *role = "";

	printf("%u Hz, up %.0f s, ", config->rate_hz, status_uptime_s(config));
	if (!config->containers)
		printf("BPF maps %.1f MiB, ", (double)bpf->map_bytes / 0x1p20);
	printf("kernel at most %.0f, all memory at most %.0f MiB%s%s\n",
	       (double)config->runtime.memory.kernel_bytes / 0x1p20,
	       (double)config->runtime.memory.all_bytes / 0x1p20,
	       config->viewer.enabled ? ", http://" : "",
	       config->viewer.enabled ? config->viewer.listen : "");
	if (config->runtime.lacks[0])
		printf("with less than there could be: %s (sconce doctor says more)\n",
		       config->runtime.lacks);
	if (bpf->run_count)
		printf("BPF: %.0f ns per run, %llu runs\n",
		       (double)bpf->run_ns / (double)bpf->run_count,
		       (unsigned long long)bpf->run_count);
	putchar('\n');
	printf("%-12s %4s %8s %6s %8s %8s %8s %8s %8s  %s\n", "process", "slot", "pid", "uid",
	       "cpu s", "pss MiB", "own MiB", "at most", "restarts", "capabilities; confined by");
	for (uint32_t i = 0; i < status->processes_n; i++) {
		const struct message_status_process *p = &status->processes[i];
		struct status_process process = status_process(config, p);

		status_capabilities_text(process.capabilities, capabilities, sizeof(capabilities));
		*layers = 0;
		/* The loader lives too shortly to be asked. */
		if (p->pid && p->role != ROLE_LOADER)
			status_layers_text(status_layers(s, p->slot), (enum role)p->role, layers,
					   sizeof(layers));
		printf("%-12s %4u %8d %6u %8.2f %8.1f %8.1f %8.0f %8u  %s%s%s",
		       role_name((enum role)p->role), p->slot, p->pid, process.uid, process.cpu_s,
		       (double)process.pss_bytes / 0x1p20, (double)process.own_bytes / 0x1p20,
		       (double)process.limit_bytes / 0x1p20, p->restarts,
		       !p->pid		    ? "(not running)"
		       : config->containers ? "(in a container)"
					    : capabilities,
		       *layers ? "; " : "", layers);
		if (p->abandoned)
			printf("  abandoned %u", p->abandoned);
		putchar('\n');
	}
	status_print_quarantine(s);
	status_print_unread(s);
	for (enum counter c = 0; c < COUNTER_COUNT; c++) {
		if (strcmp(role, counter_role(c)) != 0)
			printf("\n%s\n", counter_role(c));
		role = counter_role(c);
		printf("  %-32s %14llu  %s\n", counter_name(c), (unsigned long long)s->counter[c],
		       counter_help(c));
	}
}

/* All strings are ours or numeric: none needs escaping. */
static void status_print_json(const struct snapshot *s, const struct bpfstat *bpf)
{
	const struct message_status *status = &s->status;
	const struct config *config = s->config;
	const struct config_memory *memory = &config->runtime.memory;

	printf("{\"version\":\"%s\",\"rate_hz\":%u,\"uptime_s\":%.3f,\"viewer_url\":\"%s%s\","
	       "\"bpf_map_bytes\":%llu,\"bpf_run_ns\":%llu,\"bpf_run_count\":%llu,"
	       "\"memory_limit_bytes\":%llu,\"shared_limit_bytes\":%llu,"
	       "\"kernel_limit_bytes\":%llu,\"lost\":%llu,\"lacks\":\"%s\",\"processes\":[",
	       SCONCE_VERSION, config->rate_hz, status_uptime_s(config),
	       config->viewer.enabled ? "http://" : "",
	       config->viewer.enabled ? config->viewer.listen : "",
	       (unsigned long long)bpf->map_bytes, (unsigned long long)bpf->run_ns,
	       (unsigned long long)bpf->run_count, (unsigned long long)memory->all_bytes,
	       (unsigned long long)memory->shared_bytes,
	       (unsigned long long)memory->kernel_bytes,
	       (unsigned long long)snapshot_lost(s), config->runtime.lacks);
	for (uint32_t i = 0; i < status->processes_n; i++) {
		const struct message_status_process *p = &status->processes[i];
		struct status_process process = status_process(config, p);
		const char *comma = "";

		printf("%s{\"role\":\"%s\",\"slot\":%u,\"pid\":%d,\"uid\":%u,\"capabilities\":[",
		       i ? "," : "", role_name((enum role)p->role), p->slot, p->pid, process.uid);
		for (size_t c = 0; c < CAPABILITIES; c++)
			if (process.capabilities & 1ull << c) {
				printf("%s\"%s\"", comma, capability_names[c]);
				comma = ",";
			}
		printf("],\"layers\":[");
		for (int l = 0, n = 0; l < LAYER_COUNT; l++)
			if (status_layers(s, p->slot) & 1u << l)
				printf("%s\"%s\"", n++ ? "," : "", layer_names[l]);
		printf("],\"cpu_s\":%.2f,\"pss_bytes\":%llu,\"own_bytes\":%llu,\"limit_bytes\":%llu,"
		       "\"restarts\":%u,\"abandoned\":%u}",
		       process.cpu_s, (unsigned long long)process.pss_bytes,
		       (unsigned long long)process.own_bytes,
		       (unsigned long long)process.limit_bytes, p->restarts, p->abandoned);
	}
	status_print_quarantine_json(s);
	status_print_unread_json(s);
	printf("],\"counters\":{");
	for (enum counter c = 0; c < COUNTER_COUNT; c++)
		printf("%s\"%s\":%llu", c ? "," : "", counter_name(c),
		       (unsigned long long)s->counter[c]);
	printf("}}\n");
}

static int status_connect(const char *run_dir)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -errno;
	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", run_dir,
		     RUN_CONTROL_SOCKET) >= (int)sizeof(address.sun_path))
		return -ENAMETOOLONG;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int status_ask(int fd, struct snapshot *snapshot)
{
	struct message_empty none = {0};
	struct pollfd answer = {fd, POLLIN, 0};
	struct channel channel;
	struct message message;
	int fds[MESSAGE_FDS_MAX], err;
	size_t fds_n;

	channel_init(&channel, fd, ROLE_CLI, ROLE_SUPERVISOR, true);
	err = channel_send(&channel, MESSAGE_STATUS, &none, NULL, 0);
	if (!err && poll(&answer, 1, ANSWER_MS) != 1)
		err = -ETIMEDOUT;
	if (!err)
		err = channel_recv(&channel, &message, fds, &fds_n);
	if (!err && message.type != MESSAGE_STATUS_REPLY)
		err = -EPROTO;
	if (!err)
		snapshot_take(snapshot, &message.status, fds, fds_n);
	if (!err && !snapshot->config)
		err = -EPROTO;
	return err;
}

int status_main(struct options *options)
{
	const char *run_dir = options->config.run_dir;
	static struct snapshot snapshot;
	struct bpfstat bpf = {0};
	int fd = status_connect(run_dir), err;

	if (fd == -EACCES || fd == -EPERM) {
		fprintf(stderr, "sconce: status needs root: sudo sconce status\n");
		return 1;
	}
	if (fd < 0) {
		fprintf(stderr, "sconce: not running (%s/%s: %s); start it with: sudo sconce run\n",
			run_dir, RUN_CONTROL_SOCKET, strerror(-fd));
		return 1;
	}
	err = status_ask(fd, &snapshot);
	close(fd);
	if (err) {
		fprintf(stderr, "sconce: no answer from the supervisor: %s\n", strerror(-err));
		return 1;
	}
	for (uint32_t i = 0; i < snapshot.status.processes_n; i++)
		if (snapshot.status.processes[i].role == ROLE_SUPERVISOR &&
		    !snapshot.config->containers)
			bpfstat_read(&bpf, snapshot.status.processes[i].pid);
	if (options->json)
		status_print_json(&snapshot, &bpf);
	else
		status_print(&snapshot, &bpf);
	snapshot_free(&snapshot);
	return 0;
}
