/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of page/, embedded in the binary.
 */
#ifndef SCONCE_VIEWER_ASSETS_H
#define SCONCE_VIEWER_ASSETS_H

#include "viewer/http.h"

/* The frame of a page, with {places} to fill in. */
extern const char assets_page_html[], assets_page_html_end[];

http_handler assets_css, assets_js;

#endif
