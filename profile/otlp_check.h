/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every index of an OTLP request, checked once: whoever reads the message afterwards may follow any
 * index that is not 0 without a look at the size of the table. Index 0 means none, even where the
 * table is empty. Not checked: texts, numbers, duplicates.
 */
#ifndef SCONCE_PROFILE_OTLP_CHECK_H
#define SCONCE_PROFILE_OTLP_CHECK_H

#include <stdbool.h>

#include "profile/wire.h"

bool otlp_check(const WIRE_COLLECTOR(ExportProfilesServiceRequest) * request);

#endif
