/* SPDX-License-Identifier: Apache-2.0 */
#include "viewer/admit.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <string.h>
#include <strings.h>

/* The name in "name", "name:port", "[v6]:port"; brackets are kept off. False when it is not one. */
static bool admit_host_name(const char *host, char *name, size_t name_bytes)
{
	bool v6 = host[0] == '[';
	size_t len = v6 ? strcspn(++host, "]") : strcspn(host, ":");
	const char *rest = host + len;

	if (v6 && *rest++ != ']')
		return false;
	if (*rest == ':')
		rest += 1 + strspn(rest + 1, "0123456789");
	if (*rest || !len || len >= name_bytes)
		return false;
	memcpy(name, host, len);
	name[len] = '\0';
	return true;
}

static bool admit_is_address(const char *name)
{
	struct in6_addr address;

	return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

bool admit_host(const struct http_options *options, const char *host)
{
	char name[256], own[256] = "";

	if (!options->listen)
		return true;
	if (!host || !admit_host_name(host, name, sizeof(name)))
		return false;
	if (!strcasecmp(name, "localhost") || !strcmp(name, "127.0.0.1") || !strcmp(name, "::1"))
		return true;
	admit_host_name(options->listen, own, sizeof(own));
	if (!strcasecmp(name, own))
		return true;
	/* On every address: no name but the machine's; an address cannot be rebound. */
	if (strcmp(own, "0.0.0.0") && strcmp(own, "::"))
		return false;
	return admit_is_address(name) ||
	       (options->host_name && !strcasecmp(name, options->host_name));
}

/* Takes as long for a token that is nearly right as for any other of its length. */
static bool admit_same_secret(const char *a, const char *b)
{
	size_t len = strlen(a);
	unsigned char differ = 0;

	if (len != strlen(b))
		return false;
	for (size_t i = 0; i < len; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return !differ;
}

/* A bearer token; or, as browsers can ask for that by themselves, Basic with it as the password. */
bool admit_token(const struct http_options *options, const struct http_request *request)
{
	const char *header = http_header(request, "Authorization");
	char *user, *password = NULL;
	bool same;

	if (!options->listen || !options->token[0])
		return true;
	if (header && !strncasecmp(header, "Bearer ", 7))
		return admit_same_secret(header + 7, options->token);
	user = MHD_basic_auth_get_username_password((struct MHD_Connection *)request->connection,
						    &password);
	same = password && admit_same_secret(password, options->token);
	MHD_free(user);
	MHD_free(password);
	return same;
}

/* A page of another origin makes browsers say so in Origin, or in Sec-Fetch-Site. */
bool admit_foreign_page(const struct http_request *request)
{
	const char *origin = http_header(request, "Origin");
	const char *host = http_header(request, "Host");
	const char *site = http_header(request, "Sec-Fetch-Site");
	const char *authority;

	if (origin) {
		authority = strstr(origin, "://");
		return !authority || !host || strcasecmp(authority + 3, host) != 0;
	}
	return site && strcmp(site, "same-origin") && strcmp(site, "none");
}

bool admit_followed_link(const struct http_request *request)
{
	const char *destination = http_header(request, "Sec-Fetch-Dest");

	return destination && !strcmp(destination, "document");
}
