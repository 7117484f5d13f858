/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP profiles that arrive: counted for every workload, kept for those with a slot.
 *
 * A profile that comes again (the sender had no answer) is known by its profile_id and skipped, as
 * long as its id is among the last INTAKE_IDS_MAX.
 */
#ifndef SCONCE_VIEWER_INTAKE_H
#define SCONCE_VIEWER_INTAKE_H

#include <stdint.h>

#include "profile/otlp.h"
#include "viewer/http.h"

#define INTAKE_IDS_MAX	      16384
#define INTAKE_UNPACKED_BYTES (32u << 20) /* of a request, after gunzip */
#define INTAKE_DECODE_BYTES   (96u << 20) /* that decoding may take */
#define INTAKE_STAGING_BYTES  (16u << 20) /* what a request holds for open slots */

struct intake_ids;

struct intake {
	struct intake_ids *ids;
	struct profile *staging; /* samples of one request that are on their way into slots */
};

/* 0 or -errno. */
int intake_init(struct intake *intake);
void intake_fini(struct intake *intake);

/* POST OTLP_PATH; the context is struct viewer. */
http_handler intake_post;

#endif
