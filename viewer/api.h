/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON API. Names follow the profiling queries that other viewers of this kind know (sourceKey,
 * maxSlots, slotTtlSeconds, ...). The context of every handler is struct viewer.
 */
#ifndef SCONCE_VIEWER_API_H
#define SCONCE_VIEWER_API_H

#include "viewer/functions.h"
#include "viewer/http.h"
#include "viewer/viewer.h"

http_handler api_workloads;	 /* GET    /api/v1/workloads */
http_handler api_slots;		 /* GET    /api/v1/slots */
http_handler api_slot_open;	 /* PUT    /api/v1/slots/{key} */
http_handler api_slot_close;	 /* DELETE /api/v1/slots/{key} */
http_handler api_slot_clear;	 /* POST   /api/v1/slots/{key}/clear */
http_handler api_slot_functions; /* GET    /api/v1/slots/{key}/functions?sort=&limit= */
http_handler api_health;	 /* GET    /healthz */

/* ?sort=self|total|name; self without. */
enum functions_order api_order(const struct http_request *request);
/* Whether this can be the key of a workload: three parts. */
bool api_key_valid(const char *key);
/* Seconds since the epoch, of a CLOCK_BOOTTIME. */
double api_unix_s(uint64_t boot_ns);

#endif
