/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "cli/floor.h"

static void test_kernels(void **state)
{
	static const struct {
		const char *release, *version, *mended;
	} kernels[] = {
		{"5.17.0", "#1 SMP", NULL},
		{"5.18.19", "#1 SMP", NULL},
		{"5.19.0-50-generic", "#50-Ubuntu SMP PREEMPT_DYNAMIC", "6.1.36"},
		{"5.19.17", "#1 SMP", "6.1.36"},
		{"6.0.0", "#1 SMP", "6.1.36"},
		{"6.0.19", "#1 SMP", "6.1.36"},
		{"6.1.35", "#1 SMP", "6.1.36"},
		{"6.1.36", "#1 SMP", NULL},
		{"6.1.100-custom", "#1 SMP", NULL},
		{"6.1.0-9-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.27-1 (2023-05-08)", "6.1.36"},
		{"6.1.0-18-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)", NULL},
		{"6.1.0-18-amd64", "#1 SMP PREEMPT_DYNAMIC", "6.1.36"},
		/* Not the kernel that runs. */
		{"6.1.20", "#1 SMP built on Debian 12.2.0-14", "6.1.36"},
		{"6.2.16", "#1 SMP", "6.3.10"},
		{"6.2.0-39-generic", "#40-Ubuntu SMP", "6.3.10"},
		{"6.3.9", "#1 SMP", "6.3.10"},
		{"6.3.10", "#1 SMP", NULL},
		{"6.4.0", "#1 SMP", NULL},
		{"6.12.107+deb13-cloud-amd64", "#1 SMP Debian 6.12.107-1", NULL},
		{"6.19-rc1", "#1 SMP", NULL},
		{"7.2.13+deb14-cloud-amd64", "#1 SMP Debian 7.2.13-1", NULL},
		{"16.1.3", "#1 SMP", NULL},
		{"", "", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		const char *mended = floor_hangs(kernels[i].release, kernels[i].version);

		if (!mended != !kernels[i].mended || (mended && strcmp(mended, kernels[i].mended)))
			fail_msg("%s %s: %s", kernels[i].release, kernels[i].version,
				 mended ? mended : "good");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
