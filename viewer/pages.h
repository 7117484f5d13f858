/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages, as HTML. Each consists of the frame (page/page.html) and a middle; the script fetches
 * the middle alone. Visiting a workload opens its slot; fetching the middle opens nothing.
 * The context of every handler is struct viewer.
 */
#ifndef SCONCE_VIEWER_PAGES_H
#define SCONCE_VIEWER_PAGES_H

#include "viewer/http.h"

http_handler pages_workloads;	     /* GET / */
http_handler pages_workload;	     /* GET /workload?key=&sort= */
http_handler pages_workloads_middle; /* GET /middle/workloads */
http_handler pages_workload_middle;  /* GET /middle/workload?key=&sort= */

#endif
