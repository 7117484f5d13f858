/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/resource.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define RESOURCE_TEXT_BYTES 1024

struct resource {
	struct profile *profile;
	struct profile_attribute attributes[PROFILE_ATTRIBUTES_MAX];
	size_t n;
	int err;
};

/* The first of equal keys counts (profile_resource), so what is stronger is added earlier. */
static void resource_add(struct resource *r, const char *key, const char *value)
{
	struct profile_attribute attribute;

	if (!*key || !*value || r->n == PROFILE_ATTRIBUTES_MAX)
		return;
	attribute.key = profile_string(r->profile, key, strlen(key));
	attribute.value = profile_string(r->profile, value, strlen(value));
	if (attribute.key && attribute.value)
		r->attributes[r->n++] = attribute;
	else
		r->err = ENOSPC;
}

static int resource_hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Copy without surrounding blanks, %xx decoded. */
static void resource_decode(char *to, size_t size, const char *from, size_t len)
{
	size_t used = 0;

	while (len && *from == ' ')
		from++, len--;
	while (len && from[len - 1] == ' ')
		len--;
	for (size_t i = 0; i < len && used + 1 < size; i++) {
		bool escaped = from[i] == '%' && i + 2 < len && resource_hex(from[i + 1]) >= 0 &&
			       resource_hex(from[i + 2]) >= 0;

		to[used++] =
		    escaped ? (char)(resource_hex(from[i + 1]) << 4 | resource_hex(from[i + 2]))
			    : from[i];
		i += escaped ? 2 : 0;
	}
	to[used] = '\0';
}

/* OTEL_RESOURCE_ATTRIBUTES: k=v,k2=v2 */
static void resource_add_list(struct resource *r, const char *list)
{
	char key[RESOURCE_TEXT_BYTES], value[RESOURCE_TEXT_BYTES];

	while (*list) {
		size_t len = strcspn(list, ","), name = strcspn(list, "=,");

		if (name < len) {
			resource_decode(key, sizeof(key), list, name);
			resource_decode(value, sizeof(value), list + name + 1, len - name - 1);
			resource_add(r, key, value);
		}
		list += len + (list[len] == ',');
	}
}

/* Basename of the executable; the kernel's mark for a replaced file is not part of the name. */
static void resource_executable(char *path, char *name, size_t size,
				const struct resource_process *process)
{
	static const char deleted[] = " (deleted)";
	size_t len;
	const char *slash;

	snprintf(path, size, "%s", process->executable);
	len = strlen(path);
	if (len > sizeof(deleted) - 1 && !strcmp(path + len - (sizeof(deleted) - 1), deleted))
		path[len - (sizeof(deleted) - 1)] = '\0';
	slash = strrchr(path, '/');
	snprintf(name, size, "%s", slash && slash[1] ? slash + 1 : path);
	if (!*name) {
		snprintf(name, size, "%s", process->comm);
		name[strcspn(name, "/:")] = '\0';
	}
}

static bool resource_unit_name(char *name, size_t size, const char *unit)
{
	static const char suffix[] = ".service";
	size_t len = strlen(unit);

	if (len < sizeof(suffix) || strcmp(unit + len - (sizeof(suffix) - 1), suffix) ||
	    !strncmp(unit, "user@", 5))
		return false;
	snprintf(name, size, "%.*s", (int)(len - (sizeof(suffix) - 1)), unit);
	return true;
}

uint32_t resource_define(struct profile *profile, const struct config *config,
			 const struct resource_process *process)
{
	struct resource r = {.profile = profile};
	char path[RESOURCE_TEXT_BYTES], name[RESOURCE_TEXT_BYTES], service[RESOURCE_TEXT_BYTES];

	resource_executable(path, name, sizeof(path), process);
	resource_add(&r, "service.name", config->service_name);
	resource_add_list(&r, config->resource_attributes);
	if (resource_unit_name(service, sizeof(service), process->unit))
		resource_add(&r, "service.name", service);
	resource_add(&r, "service.name", *name ? name : "unknown_service");
	resource_add(&r, "process.executable.name", name);
	resource_add(&r, "process.executable.path", path);
	resource_add(&r, "process.linux.cgroup", process->cgroup);
	resource_add(&r, "container.id", process->container_id);
	resource_add(&r, "systemd.unit", process->unit);
	resource_add(&r, "host.name", config->runtime.host_name);
	resource_add(&r, "host.id", config->runtime.host_id);
	resource_add(&r, "host.arch", config->runtime.host_arch);
	resource_add(&r, "os.type", "linux");
	if (r.err) {
		errno = r.err;
		return 0;
	}
	return profile_resource(profile, r.attributes, r.n);
}
