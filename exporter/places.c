/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/places.h"

#include <libgen.h>
#include <nss.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define PLACES_OWN 4 /* files of the user's choosing */

const char *const *places_readable(const struct config *config)
{
	/* /etc/resolv.conf is a link into /run where something manages it; the others hold
	 * certificates. */
	static const char *list[16 + PLACES_OWN] = {"/etc",
						    "/run/systemd/resolve",
						    "/run/resolvconf",
						    "/run/NetworkManager",
						    "/usr/lib/ssl",
						    "/usr/share/ca-certificates",
						    "/usr/share/zoneinfo",
						    "/usr/local/share/ca-certificates"};
	static char own[PLACES_OWN][CONFIG_PATH_BYTES];
	const char *files[PLACES_OWN] = {config->remote.certificate,
					 config->remote.client_certificate,
					 config->remote.client_key, getenv("SSL_CERT_FILE")};
	const char *directory = getenv("SSL_CERT_DIR");
	size_t n = 8;

	for (int i = 0; i < PLACES_OWN; i++)
		if (files[i] && *files[i]) {
			snprintf(own[i], sizeof(own[i]), "%s", files[i]);
			list[n++] = dirname(own[i]);
		}
	if (directory && *directory)
		list[n++] = directory;
	list[n] = NULL;
	__nss_configure_lookup("hosts", "files dns");
	return list;
}
