/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of the kernel: what it was built with, what sysctls and profiles around us leave of it.
 */
#ifndef SCONCE_CLI_FEATURES_H
#define SCONCE_CLI_FEATURES_H

#include "cli/checks.h"

check_fn features_kernel, features_lockdown, features_paranoid, features_perf_event, features_btf,
    features_ring_buffer, features_bpf_loop, features_jit, features_procmap_query,
    features_map_files, features_ptrace_scope, features_io_uring, features_seccomp,
    features_landlock, features_mdwe, features_namespaces, features_user_namespaces;

#endif
