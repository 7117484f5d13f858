/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From resource attributes to the name of a workload. The rows of the table are tried from the top:
 * a container says more than the scope unit that its runtime put it in.
 */
#include "viewer/workload_key.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CONTAINER_ID_SHOWN 12

static const struct {
	const char *attribute, *kind;
} kubernetes[] = {
    {"k8s.deployment.name", "Deployment"},
    {"k8s.statefulset.name", "StatefulSet"},
    {"k8s.daemonset.name", "DaemonSet"},
    {"k8s.cronjob.name", "CronJob"},
    {"k8s.job.name", "Job"},
    {"k8s.argo_rollout.name", "Rollout"},
    {"k8s.replicaset.name", "ReplicaSet"},
    {"k8s.pod.name", "Pod"},
};

static const struct {
	const char *attribute, *kind;
	int shown; /* characters of the value, -1 = all */
} host[] = {
    {"container.id", "container", CONTAINER_ID_SHOWN},
    {"systemd.unit", "systemd", -1},
    {"process.executable.name", "process", -1},
    {"process.executable.path", "process", -1},
    {"service.name", "process", -1},
};

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

/* The value, or NULL when absent or empty. */
static const char *key_value(const struct otlp_attribute *attributes, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(attributes[i].key, key))
			return attributes[i].value[0] ? attributes[i].value : NULL;
	return NULL;
}

static const char *key_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void key_write(char *key, const char *namespace, const char *kind, const char *name,
		      int shown)
{
	snprintf(key, WORKLOAD_KEY_BYTES, "%s/%s/%.*s", namespace, kind, shown, name);
}

static int key_of_kubernetes(const struct otlp_attribute *attributes, size_t n, char *key)
{
	const char *namespace = key_value(attributes, n, "k8s.namespace.name");
	const char *kind = key_value(attributes, n, "odigos.workload.kind");
	const char *name = key_value(attributes, n, "odigos.workload.name");

	if (!namespace)
		return 0;
	for (size_t i = 0; i < ROWS(kubernetes) && !(kind && name); i++) {
		name = key_value(attributes, n, kubernetes[i].attribute);
		kind = name ? kubernetes[i].kind : NULL;
	}
	if (!name)
		return 0;
	key_write(key, namespace, kind, name, -1);
	workload_key_normalize(key);
	return 1;
}

void workload_key(const struct otlp_attribute *attributes, size_t n, char key[WORKLOAD_KEY_BYTES])
{
	if (key_of_kubernetes(attributes, n, key))
		return;
	for (size_t i = 0; i < ROWS(host); i++) {
		const char *name = key_value(attributes, n, host[i].attribute);

		if (!name)
			continue;
		if (!strcmp(host[i].kind, "process"))
			name = key_basename(name);
		key_write(key, "-", host[i].kind, name, host[i].shown);
		return;
	}
	key_write(key, "-", "process", "[unknown]", -1);
}

void workload_key_normalize(char *key)
{
	char *kind = strchr(key, '/');
	size_t len;

	if (!kind)
		return;
	len = strcspn(++kind, "/");
	for (size_t i = 0; i < ROWS(kubernetes); i++)
		if (strlen(kubernetes[i].kind) == len &&
		    !strncasecmp(kubernetes[i].kind, kind, len))
			memcpy(kind, kubernetes[i].kind, len);
}
