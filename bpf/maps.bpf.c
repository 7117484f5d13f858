/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The one definition of what bpf/maps.h declares. */
#include "bpf/maps.h"

struct map_procs procs SEC(".maps");
struct map_ranges ranges SEC(".maps");
struct map_cpus cpus SEC(".maps");
struct map_files files SEC(".maps");
struct map_chunks chunks SEC(".maps");
struct map_targets targets SEC(".maps");
struct map_events events SEC(".maps");

const volatile __u32 setting_all = 0;
const volatile __u64 setting_wakeup_bytes = 0;
