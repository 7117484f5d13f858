/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may ask. A page of some other site in our user's browser reaches a loopback port as easily as
 * the user does: by a name that it rebinds to 127.0.0.1 (hence admit_host), or by requests across
 * origins (hence admit_foreign_page).
 */
#ifndef SCONCE_VIEWER_ADMIT_H
#define SCONCE_VIEWER_ADMIT_H

#include <stdbool.h>

#include "viewer/http.h"

/* Whether a Host header names us; any does on a unix socket. */
bool admit_host(const struct http_options *options, const char *host);
/* Whether the token was shown, where one is asked for. */
bool admit_token(const struct http_options *options, const struct http_request *request);
/* A page of another origin asks. */
bool admit_foreign_page(const struct http_request *request);
/* Somebody clicked on a link, as opposed to an image or a script that a page loads. */
bool admit_followed_link(const struct http_request *request);

#endif
