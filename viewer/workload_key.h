/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a workload, made from resource attributes: `namespace/Kind/name` in Kubernetes,
 * `-/container/<id>`, `-/systemd/<unit>`, `-/process/<executable>` elsewhere. Every resource has
 * one.
 */
#ifndef SCONCE_VIEWER_WORKLOAD_KEY_H
#define SCONCE_VIEWER_WORKLOAD_KEY_H

#include <stddef.h>

#include "profile/otlp.h"

#define WORKLOAD_KEY_BYTES 384 /* longer names are cut */

void workload_key(const struct otlp_attribute *attributes, size_t n, char key[WORKLOAD_KEY_BYTES]);
/* `default/deployment/x` means `default/Deployment/x`: correct a known kind in place. */
void workload_key_normalize(char *key);

#endif
