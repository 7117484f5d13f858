/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of where we are: files that have to be there, namespaces that we are in, limits.
 */
#ifndef SCONCE_CLI_PLACES_H
#define SCONCE_CLI_PLACES_H

#include "cli/checks.h"

check_fn places_user_namespace, places_pid_namespace, places_kallsyms, places_modules, places_proc,
    places_sys, places_mountinfo, places_cgroup, places_memory_cgroup, places_machine_id,
    places_open_files, places_locked_memory, places_file_size, places_run_directory,
    places_programs;

/* Data pages of a side-band ring that fit into what may be locked, at most those of the
 * configuration; 0: not even one. */
uint32_t places_sideband_pages(const struct checks_world *world);

#endif
