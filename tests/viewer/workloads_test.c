/* SPDX-License-Identifier: Apache-2.0 */
/* Keys from resource attributes; CPU time over the last minute; the bound of the table. */
#include "viewer/workloads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define S 1000000000ull

static void test_keys(void **state)
{
	static const struct {
		struct otlp_attribute attributes[4];
		const char *key;
	} rows[] = {
	    {{{"k8s.namespace.name", "shop"},
	      {"k8s.deployment.name", "web"},
	      {"container.id", "abc"}},
	     "shop/Deployment/web"},
	    {{{"k8s.namespace.name", "shop"}, {"k8s.job.name", "j"}, {"k8s.cronjob.name", "c"}},
	     "shop/CronJob/c"},
	    {{{"k8s.namespace.name", "shop"}, {"k8s.pod.name", "p"}}, "shop/Pod/p"},
	    {{{"k8s.namespace.name", "shop"},
	      {"odigos.workload.kind", "deployment"},
	      {"odigos.workload.name", "web"},
	      {"k8s.job.name", "j"}},
	     "shop/Deployment/web"},
	    {{{"k8s.namespace.name", "shop"},
	      {"odigos.workload.kind", "StaticPod"},
	      {"odigos.workload.name", "web"}},
	     "shop/StaticPod/web"},
	    {{{"k8s.deployment.name", "no-namespace"}, {"process.executable.name", "x"}},
	     "-/process/x"},
	    {{{"container.id", "0123456789abcdef0123"}, {"systemd.unit", "docker.service"}},
	     "-/container/0123456789ab"},
	    {{{"systemd.unit", "nginx.service"}, {"process.executable.name", "nginx"}},
	     "-/systemd/nginx.service"},
	    {{{"process.executable.name", "/usr/bin/python3"}}, "-/process/python3"},
	    {{{"process.executable.path", "/opt/x/y"}}, "-/process/y"},
	    {{{"service.name", "legacy"}, {"container.id", ""}}, "-/process/legacy"},
	    {{{"host.name", "h"}}, "-/process/[unknown]"},
	};
	char key[WORKLOAD_KEY_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = 0;

		while (n < 4 && rows[i].attributes[n].key)
			n++;
		workload_key(rows[i].attributes, n, key);
		assert_string_equal(key, rows[i].key);
	}
}

static void test_long_key_is_cut(void **state)
{
	char name[2 * WORKLOAD_KEY_BYTES], key[WORKLOAD_KEY_BYTES];
	struct otlp_attribute attribute = {"systemd.unit", name};

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	workload_key(&attribute, 1, key);
	assert_int_equal(strlen(key), WORKLOAD_KEY_BYTES - 1);
}

static void test_kinds_are_normalized(void **state)
{
	char known[] = "default/dEPLOYMENT/Web", unknown[] = "default/widget/Web",
	     odd[] = "deployment";

	(void)state;
	workload_key_normalize(known);
	assert_string_equal(known, "default/Deployment/Web");
	workload_key_normalize(unknown);
	assert_string_equal(unknown, "default/widget/Web");
	workload_key_normalize(odd);
	assert_string_equal(odd, "deployment");
}

static struct workload_use only(const struct workloads *w, uint64_t now_ns)
{
	struct workload_use use;

	assert_int_equal(workloads_list(w, now_ns, &use, 1), 1);
	return use;
}

/* One CPU, all the time: a batch of 5 s every 5 s, and the first after 0.5 s. */
static void test_cpu_share(void **state)
{
	struct workloads *w = workloads_new(100 * S);
	uint64_t now_ns = 100 * S + S / 2;

	(void)state;
	workloads_seen(w, "-/process/a", 10, S / 2, now_ns);
	assert_float_equal(only(w, now_ns).cpus, 1.0, 0.01);
	for (int i = 0; i < 30; i++) {
		now_ns += 5 * S;
		workloads_seen(w, "-/process/a", 100, 5 * S, now_ns);
		/* at once, and between two batches */
		assert_float_equal(only(w, now_ns).cpus, 1.0, 0.01);
		assert_float_equal(only(w, now_ns + 4 * S).cpus, 1.0, 0.01);
	}
	assert_int_equal(only(w, now_ns).samples, 1200);
	assert_float_equal(workloads_cpus(w, now_ns), 1.0, 0.01);
	/* Silence: half a minute on, half of it is left; after a minute nothing. */
	assert_in_range(only(w, now_ns + 30 * S).samples, 500, 700);
	assert_int_equal(only(w, now_ns + 61 * S).samples, 0);
	assert_int_equal(workloads_n(w), 1);
	workloads_free(w);
}

/* A viewer that waited for its first sender does not count the waiting. */
static void test_late_sender(void **state)
{
	struct workloads *w = workloads_new(100 * S);

	(void)state;
	workloads_seen(w, "-/process/a", 100, 5 * S, 150 * S);
	assert_float_equal(only(w, 150 * S).cpus, 1.0, 0.01);
	workloads_free(w);
}

static void test_busiest_first(void **state)
{
	struct workloads *w = workloads_new(100 * S);
	struct workload_use uses[3];

	(void)state;
	workloads_seen(w, "-/process/b", 1, S, 105 * S);
	workloads_seen(w, "-/process/c", 3, 3 * S, 105 * S);
	workloads_seen(w, "-/process/a", 1, S, 105 * S);
	assert_int_equal(workloads_list(w, 105 * S, uses, 3), 3);
	assert_string_equal(uses[0].key, "-/process/c");
	assert_string_equal(uses[1].key, "-/process/a");
	assert_string_equal(uses[2].key, "-/process/b");
	assert_float_equal(uses[0].cpus / workloads_cpus(w, 105 * S), 0.6, 0.001);
	assert_int_equal(workloads_list(w, 105 * S, uses, 1), 1);
	workloads_free(w);
}

/* Four times as many as fit; one is heard of all the time and stays. */
static void test_bounded(void **state)
{
	struct workloads *w = workloads_new(0);
	static struct workload_use uses[WORKLOADS_MAX];
	char key[WORKLOAD_KEY_BYTES];
	int loyal = 0, last = 0;
	size_t n;

	(void)state;
	for (int i = 1; i <= 4 * WORKLOADS_MAX; i++) {
		snprintf(key, sizeof(key), "-/process/%d", i);
		workloads_seen(w, key, 1, 1, (uint64_t)i * 1000);
		workloads_seen(w, "-/process/loyal", 1, 2 * S, (uint64_t)i * 1000);
	}
	assert_int_equal(workloads_n(w), WORKLOADS_MAX);
	n = workloads_list(w, 5 * S, uses, WORKLOADS_MAX);
	assert_int_equal(n, WORKLOADS_MAX);
	for (size_t i = 0; i < n; i++) {
		loyal += !strcmp(uses[i].key, "-/process/loyal");
		last += !strcmp(uses[i].key, key);
	}
	assert_int_equal(loyal, 1);
	assert_int_equal(last, 1);
	assert_int_equal(uses[0].samples, 4 * WORKLOADS_MAX);
	workloads_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_keys),
	    cmocka_unit_test(test_long_key_is_cut),
	    cmocka_unit_test(test_kinds_are_normalized),
	    cmocka_unit_test(test_cpu_share),
	    cmocka_unit_test(test_late_sender),
	    cmocka_unit_test(test_busiest_first),
	    cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
