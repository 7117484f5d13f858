/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/cgroup.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ID_DIGITS 64

/* Which line names the workload best; larger wins. */
enum line_rank { LINE_NONE, LINE_OTHER, LINE_ROOT, LINE_V1_SYSTEMD, LINE_V2, LINE_CONTAINER };

struct text {
	const char *p;
	size_t n;
};

static bool cgroup_ends(struct text t, const char *suffix)
{
	size_t n = strlen(suffix);

	return t.n > n && memcmp(t.p + t.n - n, suffix, n) == 0;
}

static size_t cgroup_hex_run(struct text t)
{
	size_t n = 0;

	while (n < t.n && ((t.p[n] >= '0' && t.p[n] <= '9') || (t.p[n] >= 'a' && t.p[n] <= 'f')))
		n++;
	return n;
}

/*
 * The id in one component: bare, or behind a runtime's prefix that ends in - or : (docker-ID.scope,
 * cri-containerd-ID.scope, crio-ID.scope, libpod-ID.scope, kubepods...:cri-containerd:ID). The
 * monitor of a container (crio-conmon-, libpod-conmon-) is not in it.
 */
static const char *cgroup_find_id(struct text t)
{
	if (cgroup_ends(t, ".scope"))
		t.n -= 6;
	if (t.n < ID_DIGITS)
		return NULL;
	t.p += t.n - ID_DIGITS;
	if (cgroup_hex_run((struct text){t.p, ID_DIGITS}) != ID_DIGITS)
		return NULL;
	if (t.n == ID_DIGITS)
		return t.p;
	if (t.p[-1] != '-' && t.p[-1] != ':')
		return NULL;
	t.n -= ID_DIGITS + 1;
	if (t.n >= 6 && memcmp(t.p - 1 - 6, "conmon", 6) == 0)
		return NULL;
	return t.p;
}

static void cgroup_copy(char *to, size_t size, struct text from)
{
	size_t n = from.n < size - 1 ? from.n : size - 1;

	for (size_t i = 0; i < n; i++)
		to[i] = from.p[i];
	to[n] = 0;
}

/*
 * For a reader in a cgroup namespace of its own, paths begin at its root, and those that are not below
 * it lead there by "..": how far up says where the reader is, and nothing of the workload.
 */
static struct text cgroup_skip_ups(struct text path)
{
	while (path.n >= 3 && memcmp(path.p, "/..", 3) == 0 && (path.n == 3 || path.p[3] == '/')) {
		path.p += 3;
		path.n -= 3;
	}
	return path.n ? path : (struct text){"/", 1};
}

/* Look at every component; the innermost wins, and a unit counts only inside of the container. */
static void cgroup_parse_path(struct cgroup *cgroup, struct text path)
{
	size_t at = 0;

	path = cgroup_skip_ups(path);
	cgroup_copy(cgroup->path, sizeof(cgroup->path), path);
	cgroup->container_id[0] = cgroup->unit[0] = 0;
	while (at < path.n) {
		const char *slash = memchr(path.p + at, '/', path.n - at);
		size_t end = slash ? (size_t)(slash - path.p) : path.n;
		struct text part = {path.p + at, end - at};
		const char *id = cgroup_find_id(part);

		if (id) {
			cgroup_copy(cgroup->container_id, sizeof(cgroup->container_id),
				    (struct text){id, ID_DIGITS});
			cgroup->unit[0] = 0;
		} else if (cgroup_ends(part, ".service") || cgroup_ends(part, ".scope")) {
			cgroup_copy(cgroup->unit, sizeof(cgroup->unit), part);
		}
		at = end + 1;
	}
}

static enum line_rank cgroup_rank(struct text hierarchy, struct text controllers,
				  const struct cgroup *parsed)
{
	if (parsed->container_id[0])
		return LINE_CONTAINER;
	if (strcmp(parsed->path, "/") == 0)
		return LINE_ROOT;
	if (hierarchy.n == 1 && hierarchy.p[0] == '0' && controllers.n == 0)
		return LINE_V2;
	if (controllers.n == 12 && memcmp(controllers.p, "name=systemd", 12) == 0)
		return LINE_V1_SYSTEMD;
	return LINE_OTHER;
}

/* "hierarchy:controllers:path" */
static enum line_rank cgroup_parse_line(struct cgroup *cgroup, struct text line)
{
	const char *first = memchr(line.p, ':', line.n), *second;
	size_t left;

	if (!first)
		return LINE_NONE;
	left = line.n - (size_t)(first + 1 - line.p);
	second = memchr(first + 1, ':', left);
	if (!second)
		return LINE_NONE;
	cgroup_parse_path(cgroup,
			  (struct text){second + 1, (size_t)(line.p + line.n - second - 1)});
	return cgroup_rank((struct text){line.p, (size_t)(first - line.p)},
			   (struct text){first + 1, (size_t)(second - first - 1)}, cgroup);
}

void cgroup_parse(struct cgroup *cgroup, const char *bytes, size_t n)
{
	enum line_rank best = LINE_NONE;

	memset(cgroup, 0, sizeof(*cgroup));
	while (n > 0) {
		const char *end = memchr(bytes, '\n', n);
		size_t len = end ? (size_t)(end - bytes) : n;
		enum line_rank rank;
		struct cgroup line;

		memset(&line, 0, sizeof(line));
		rank = cgroup_parse_line(&line, (struct text){bytes, strnlen(bytes, len)});
		if (rank > best) {
			*cgroup = line;
			best = rank;
		}
		if (!end)
			break;
		n -= len + 1;
		bytes += len + 1;
	}
}
