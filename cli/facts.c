/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cli/facts.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "cli/ceilings.h"

static void facts_line(const char *path, char *line, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, line, size - 1);

	if (fd >= 0)
		close(fd);
	line[n > 0 ? n : 0] = 0;
	line[strcspn(line, "\n")] = 0;
}

/* "0-3" or "0,2-7": the highest number, plus one. */
static uint32_t facts_cpus(void)
{
	char line[256], *last;
	long cpus;

	facts_line("/sys/devices/system/cpu/possible", line, sizeof(line));
	last = line + strlen(line);
	while (last > line && last[-1] >= '0' && last[-1] <= '9')
		last--;
	cpus = *last ? atol(last) + 1 : sysconf(_SC_NPROCESSORS_CONF);
	return cpus < 1 ? 1 : cpus > CONFIG_CPUS_MAX ? CONFIG_CPUS_MAX : (uint32_t)cpus;
}

bool facts_build_id(const void *notes, size_t n, char *text, size_t size)
{
	const uint8_t *p = notes;
	Elf64_Nhdr note;

	for (; n >= sizeof(note); p += note.n_descsz, n -= note.n_descsz) {
		uint64_t name;

		memcpy(&note, p, sizeof(note));
		name = (note.n_namesz + 3ull) & ~3ull;
		p += sizeof(note);
		n -= sizeof(note);
		if (name > n || note.n_descsz > n - name)
			break;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(p, "GNU", 4) &&
		    note.n_descsz < size / 2) {
			for (uint32_t i = 0; i < note.n_descsz; i++)
				snprintf(text + 2 * i, 3, "%02x", p[name + i]);
			return note.n_descsz > 0;
		}
		p += name;
		n -= name;
		/* What follows is aligned as well. */
		note.n_descsz = (note.n_descsz + 3) & ~3u;
		if (note.n_descsz > n)
			break;
	}
	return false;
}

static void facts_kernel_build_id(char *text, size_t size)
{
	int fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
	char notes[4096];
	ssize_t n = fd < 0 ? 0 : read(fd, notes, sizeof(notes));

	if (fd >= 0)
		close(fd);
	if (n <= 0 || !facts_build_id(notes, (size_t)n, text, size))
		text[0] = 0;
}

void facts_find(struct config *config)
{
	struct config_runtime *runtime = &config->runtime;
	struct timespec now;
	struct utsname name = {0};
	const char *arch;
	char line[16];

	clock_gettime(CLOCK_BOOTTIME, &now);
	runtime->start_ns = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
	runtime->cpus = facts_cpus();
	facts_line("/proc/sys/kernel/perf_event_paranoid", line, sizeof(line));
	runtime->perf_event_paranoid = atoi(line);
	if (getrandom(runtime->instance, sizeof(runtime->instance), 0) < 0)
		memcpy(runtime->instance, &runtime->start_ns, sizeof(runtime->start_ns));
	uname(&name);
	/* The names that OpenTelemetry gives to architectures. */
	arch = strcmp(name.machine, "x86_64") == 0    ? "amd64"
	       : strcmp(name.machine, "aarch64") == 0 ? "arm64"
						      : name.machine;
	snprintf(runtime->host_arch, sizeof(runtime->host_arch), "%.31s", arch);
	snprintf(runtime->host_name, sizeof(runtime->host_name), "%s", name.nodename);
	snprintf(runtime->os_release, sizeof(runtime->os_release), "%s", name.release);
	facts_line("/etc/machine-id", runtime->host_id, sizeof(runtime->host_id));
	facts_kernel_build_id(runtime->kernel_build_id, sizeof(runtime->kernel_build_id));
	ceilings_set(config);
}
