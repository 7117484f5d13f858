/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Go program made by hand, as far as its table of functions goes, the way each release writes it:
 * five functions main.f0 to main.f4 of 64 bytes, and in the middle of each what was put into it.
 *
 *   from  0   a.go:10             main.fN
 *        16   b.go:20             main.deep, called at a.go:10
 *        32   a.go:30             main.deepest, called at b.go:20, in main.deep
 *        48   a.go:11             main.fN
 */
#ifndef SCONCE_TESTS_SYMBOLIZER_GOIMAGE_H
#define SCONCE_TESTS_SYMBOLIZER_GOIMAGE_H

#include <stddef.h>
#include <stdint.h>

#define GOIMAGE_BYTES	       0x1400u
#define GOIMAGE_VADDR	       0x400000u
#define GOIMAGE_TEXT	       0x200u
#define GOIMAGE_FUNCTIONS      5u
#define GOIMAGE_FUNCTION_BYTES 64u
/* Offsets in the file of what a test may want to damage. */
#define GOIMAGE_TABLE	    0x400u
#define GOIMAGE_NAMES	    0x480u /* of the functions */
#define GOIMAGE_STEPS	    0x521u /* of the numbers that say what was put in */
#define GOIMAGE_FUNCTION    0x600u /* the record of the first one */
#define GOIMAGE_CALLS	    0xc10u
#define GOIMAGE_MODULE	    0xe10u
#define GOIMAGE_TABLE_BYTES 0x800u

struct goimage_release {
	const char *name;
	uint32_t magic;
	uint8_t pcdata, funcdata, call_bytes;
	uint8_t word; /* of the module's description: where the calls are; 0 = that is not told */
	uint8_t start_lines, relocated;
};

#define GOIMAGE_RELEASES 9
extern const struct goimage_release goimage_releases[GOIMAGE_RELEASES];

void goimage_make(const struct goimage_release *release, uint8_t bytes[GOIMAGE_BYTES]);

#endif
