/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What debug information costs: how long the first question to a file takes, random ones to units
 * that were not read yet, and the same ones again; then each unit read by itself, and how much
 * memory a piece of code and a row of the line table take. Run it twice: first the pages come from
 * the disk.
 *
 *   find-lines FILE [ADDRESSES]
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "symbolizer/dwarfloaded.h"
#include "tests/symbolizer/dwarf_program.h"

#define ADDRESSES 2000
#define BYTES_MAX (256u << 20)

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint64_t ask_all(struct dwarf_program *p, const uint64_t *at, size_t n, uint64_t *ns)
{
	static struct lines lines;
	uint64_t frames = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t from = now_ns();

		dwarf_find(p->dwarf, at[i], NULL, &lines);
		ns[i] = now_ns() - from;
		frames += lines.n;
	}
	return frames;
}

static void print_times(const char *what, uint64_t *ns, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += ns[i];
	qsort(ns, n, sizeof(*ns), compare);
	printf("  %-22s mean %.1f us, median %.1f, 99 %% below %.1f, longest %.1f\n", what,
	       (double)sum / (double)n / 1000, (double)ns[n / 2] / 1000,
	       (double)ns[n * 99 / 100] / 1000, (double)ns[n - 1] / 1000);
}

/* Every unit that has code, by itself. */
static void read_units(struct elffile *file)
{
	struct dwarflimit limit = {.bytes_max = BYTES_MAX, .until_ns = UINT64_MAX};
	uint64_t ns = 0, bytes = 0, entries = 0, pieces = 0, rows = 0, longest = 0;
	struct dwarffile df;
	unsigned n = 0;

	if (dwarffile_open(&df, file, NULL, false, BYTES_MAX))
		return;
	dwarffile_walk(&df);
	for (uint32_t i = 0; i < df.units_n; i++) {
		struct dwarfloaded *loaded;
		struct dwarfunit unit;
		struct dwarfdie root;
		uint64_t from = now_ns(), took;

		if (dwarfunit_open(&unit, &df, df.units[i]) || !dwarfunit_root(&unit, &root))
			continue;
		loaded = dwarfloaded_open(&unit, &root, NULL, &limit);
		took = now_ns() - from;
		if (loaded && loaded->index.pieces_n) {
			n++;
			ns += took;
			longest = took > longest ? took : longest;
			entries += unit.end - unit.offset;
			bytes += loaded->bytes;
			pieces += loaded->index.pieces_n;
			rows += loaded->lines.rows_n;
		}
		if (loaded)
			dwarfloaded_free(loaded);
	}
	dwarffile_close(&df);
	if (n)
		printf(
		    "  %u units of %.0f KiB entries: %.3f ms each, longest %.1f; %.0f pieces and "
		    "%.0f rows in %.0f KiB each, %.1f bytes for one of them\n",
		    n, (double)entries / n / 1024, (double)ns / n / 1e6, (double)longest / 1e6,
		    (double)pieces / n, (double)rows / n, (double)bytes / n / 1024,
		    (double)bytes / (double)(pieces + rows));
}

int main(int argc, char **argv)
{
	size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : ADDRESSES;
	uint64_t *at = calloc(n, sizeof(*at)), *ns = calloc(n, sizeof(*ns));
	uint64_t start, bytes, from, frames;
	static struct dwarf_program program;
	static struct lines lines;

	if (argc < 2 || n == 0 || !dwarf_program_open(&program, argv[1], NULL, NULL, BYTES_MAX) ||
	    !program.dwarf) {
		fprintf(stderr, "usage: find-lines FILE [ADDRESSES], with debug information\n");
		return 2;
	}
	start = dwarf_program_code(&program, &bytes);
	srandom(1);
	for (size_t i = 0; i < n; i++)
		at[i] = start + (uint64_t)random() % bytes;
	from = now_ns();
	dwarf_find(program.dwarf, start, NULL, &lines);
	printf("%s\n  first question         %.1f ms, then %zu KiB held\n", argv[1],
	       (double)(now_ns() - from) / 1e6, dwarf_bytes(program.dwarf) >> 10);
	frames = ask_all(&program, at, n, ns);
	printf("  %zu random addresses, %.1f frames each\n", n, (double)frames / (double)n);
	print_times("in a unit not yet read", ns, n);
	ask_all(&program, at, n, ns);
	print_times("again", ns, n);
	printf("  then %zu KiB held\n", dwarf_bytes(program.dwarf) >> 10);
	read_units(&program.file);
	dwarf_program_close(&program);
	free(at);
	free(ns);
	return 0;
}
