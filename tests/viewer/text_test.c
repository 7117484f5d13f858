/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes of hostile names, percent-encoding, limits; and which Host names are ours. */
#include "viewer/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "viewer/admit.h"

static void check(void (*write)(struct text *, const char *), const char *from, const char *to)
{
	struct text text;

	text_init(&text, 4096);
	write(&text, from);
	text_add(&text, "", 1);
	assert_false(text.failed);
	assert_string_equal(text.data, to);
	text_fini(&text);
}

static void test_html(void **state)
{
	(void)state;
	check(text_html, "<script>alert('x')</script>",
	      "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
	check(text_html, "a\" onload=\"b", "a&quot; onload=&quot;b");
	check(text_html, "&lt;", "&amp;lt;");
	check(text_html, "std::vector<int>", "std::vector&lt;int&gt;");
	check(text_html, "tab\there\x7f", "tab\xef\xbf\xbdhere\xef\xbf\xbd");
	check(text_html, "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5",
	      "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5");
}

static void test_json(void **state)
{
	(void)state;
	check(text_json, "a\"b\\c", "\"a\\u0022b\\u005cc\"");
	check(text_json, "\n\x01", "\"\\u000a\\u0001\"");
	check(text_json, "</script>", "\"\\u003c/script\\u003e\"");
}

/* Overlong, surrogate, beyond U+10FFFF, cut: each bad byte becomes one U+FFFD and nothing is
 * skipped. */
static void test_not_utf8(void **state)
{
	(void)state;
	check(text_html, "\xc0\xbc<", "\xef\xbf\xbd\xef\xbf\xbd&lt;");
	check(text_html, "\xe0\x80\xbc", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	check(text_html, "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	check(text_html, "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	check(text_json, "\xe2\x82\"", "\"\xef\xbf\xbd\xef\xbf\xbd\\u0022\"");
	check(text_html, "\xff", "\xef\xbf\xbd");
}

static void test_others(void **state)
{
	(void)state;
	check(text_url, "a b/c&d=e<\xc3\xbc", "a%20b%2Fc%26d%3De%3C%C3%BC");
	check(text_label, "a\"b\\c\nd", "a\\\"b\\\\c\\nd");
}

static void test_bytes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} rows[] = {
	    {0, "0 KiB"}, {512, "0.5 KiB"}, {24 * 8ull << 20, "192 MiB"}, {1782579, "1.7 MiB"}};
	struct text text;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		text_init(&text, 64);
		text_bytes(&text, rows[i].bytes);
		text_add(&text, "", 1);
		assert_string_equal(text.data, rows[i].text);
		text_fini(&text);
	}
}

static void test_limit(void **state)
{
	struct text text;

	(void)state;
	text_init(&text, 10);
	text_str(&text, "12345678");
	assert_false(text.failed);
	text_html(&text, "<");
	assert_true(text.failed);
	text_str(&text, "x");
	assert_int_equal(text.len, 8);
	text_fini(&text);
}

static void test_url_decode(void **state)
{
	static const struct {
		const char *from, *to; /* NULL = refused */
	} rows[] = {
	    {"-%2Fsystemd%2Fnginx.service", "-/systemd/nginx.service"},
	    {"a%3cb", "a<b"},
	    {"", ""},
	    {"%", NULL},
	    {"%2", NULL},
	    {"%zz", NULL},
	    {"a%00b", NULL},
	    {"0123456789012345678901234567890", "0123456789012345678901234567890"},
	    {"01234567890123456789012345678901", NULL},
	};
	char to[32];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool ok = text_url_decode(rows[i].from, strlen(rows[i].from), to, sizeof(to));

		assert_int_equal(ok, rows[i].to != NULL);
		if (ok)
			assert_string_equal(to, rows[i].to);
	}
}

static void test_hosts(void **state)
{
	static const struct {
		const char *listen, *host;
		bool allowed;
	} rows[] = {
	    {"127.0.0.1:4041", "localhost:4041", true},
	    {"127.0.0.1:4041", "LOCALHOST", true},
	    {"127.0.0.1:4041", "127.0.0.1:9", true},
	    {"127.0.0.1:4041", "[::1]:4041", true},
	    {"127.0.0.1:4041", NULL, false},
	    {"127.0.0.1:4041", "", false},
	    {"127.0.0.1:4041", "evil.example", false},
	    {"127.0.0.1:4041", "localhost.evil.example", false},
	    {"127.0.0.1:4041", "127.0.0.1.evil.example:4041", false},
	    {"127.0.0.1:4041", "evil.example@localhost", false},
	    {"127.0.0.1:4041", "[::1", false},
	    {"127.0.0.1:4041", "[::1]x", false},
	    {"127.0.0.1:4041", "192.0.2.1", false},
	    {"127.0.0.1:4041", "thisbox", false},
	    {"192.0.2.1:80", "192.0.2.1", true},
	    {"[2001:db8::1]:80", "[2001:db8::1]:80", true},
	    {"0.0.0.0:80", "192.0.2.7:80", true},
	    {"[::]:80", "[2001:db8::1]", true},
	    {"0.0.0.0:80", "ThisBox", true},
	    {"0.0.0.0:80", "evil.example", false},
	    {NULL, "anything", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct http_options options = {.listen = rows[i].listen, .host_name = "thisbox"};

		if (admit_host(&options, rows[i].host) != rows[i].allowed)
			fail_msg("%s at %s", rows[i].host ? rows[i].host : "(none)",
				 rows[i].listen);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_html),       cmocka_unit_test(test_json),
	    cmocka_unit_test(test_not_utf8),   cmocka_unit_test(test_others),
	    cmocka_unit_test(test_bytes),      cmocka_unit_test(test_limit),
	    cmocka_unit_test(test_url_decode), cmocka_unit_test(test_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
