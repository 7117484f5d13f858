/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that may go into a protobuf string. Names of processes, files and functions are bytes of
 * anyone; a receiver refuses a whole request for one string that is not UTF-8.
 */
#ifndef SCONCE_PROFILE_UTF8_H
#define SCONCE_PROFILE_UTF8_H

#include <stddef.h>

/*
 * Copy text up to a NUL, len_bytes or size - 1, the end not within a character; bytes that are not
 * UTF-8 become '?'. Ends in NUL. The length written.
 */
size_t utf8_clean(char *to, size_t size, const char *text, size_t len_bytes);

#endif
