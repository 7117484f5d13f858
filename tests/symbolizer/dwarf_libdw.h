/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, files, lines and inlined frames as libdw reads them: scopes, sources and rows are its
 * own. */
#ifndef SCONCE_TESTS_SYMBOLIZER_DWARF_LIBDW_H
#define SCONCE_TESTS_SYMBOLIZER_DWARF_LIBDW_H

#include <stdint.h>

struct dwarf_libdw;

/* A frame, innermost first. name, file: NULL = not known. */
typedef void dwarf_libdw_frame_fn(void *arg, const char *name, const char *file, unsigned line);

/* alt: dwz's common file, or NULL. NULL: it has no DWARF. */
struct dwarf_libdw *dwarf_libdw_open(const char *path, const char *alt);
void dwarf_libdw_close(struct dwarf_libdw *libdw);
/* Code that is in no function has one frame without a name; code in no unit none. */
void dwarf_libdw_find(struct dwarf_libdw *libdw, uint64_t vaddr, dwarf_libdw_frame_fn *fn,
		      void *arg);

#endif
