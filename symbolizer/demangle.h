/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of C++, Rust and D for people, through libiberty; Swift's are left as they are. Names come
 * from hostile files: a few hundred bytes may unfold to gigabytes, so that what is longer than the
 * room given ends the attempt.
 */
#ifndef SCONCE_SYMBOLIZER_DEMANGLE_H
#define SCONCE_SYMBOLIZER_DEMANGLE_H

#include <stddef.h>

#define DEMANGLE_INPUT_BYTES_MAX 2048

/* Length of the text in buf (with a NUL behind it), or 0 when the name is not mangled or too much.
 */
size_t demangle(const char *name, char *buf, size_t size);

#endif
