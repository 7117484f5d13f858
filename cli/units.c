/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/units.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *name;
	double factor;
};

/* 2^53: beyond it a double skips whole numbers. */
#define EXACT_MAX 9007199254740992.0

static bool units_scaled(const char *text, const struct unit *units, double bare, uint64_t *value)
{
	char *end;
	double number;

	/* strtod() would also take signs, blanks, hexadecimal and "inf" */
	if (!isdigit((unsigned char)text[0]) || text[0] == 0 || strpbrk(text, "xXeEpP"))
		return false;
	number = strtod(text, &end);
	if (*end == 0) {
		number *= bare;
	} else {
		while (units->name && strcmp(units->name, end) != 0)
			units++;
		if (!units->name)
			return false;
		number *= units->factor;
	}
	if (!(number <= EXACT_MAX))
		return false;
	*value = (uint64_t)number;
	return true;
}

bool units_number(const char *text, uint64_t *value)
{
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || digits > 15 || text[digits])
		return false;
	*value = strtoull(text, NULL, 10);
	return true;
}

bool units_bytes(const char *text, uint64_t *bytes)
{
	static const struct unit units[] = {
		{"B", 1},	   {"K", 0x1p10},   {"KiB", 0x1p10}, {"M", 0x1p20}, {"MiB", 0x1p20},
		{"G", 0x1p30},	   {"GiB", 0x1p30}, {"kB", 1e3},     {"KB", 1e3},   {"MB", 1e6},
		{"GB", 1e9},	   {NULL, 0}};

	return units_scaled(text, units, 1, bytes);
}

bool units_duration_ms(const char *text, uint64_t bare_ms, uint64_t *ms)
{
	static const struct unit units[] = {
		{"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"min", 60e3}, {"h", 3600e3}, {NULL, 0}};

	return units_scaled(text, units, (double)bare_ms, ms);
}

bool units_bool(const char *text, bool *value)
{
	static const char *const yes[] = {"1", "true", "yes", "on"};
	static const char *const no[] = {"0", "false", "no", "off"};

	for (size_t i = 0; i < 4; i++) {
		if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
			*value = strcmp(text, yes[i]) == 0;
			return true;
		}
	}
	return false;
}
