/* SPDX-License-Identifier: Apache-2.0 */
/* Which file is PHP, and what its version has where. */
#ifndef SCONCE_SYMBOLIZER_LANG_PHPFILE_H
#define SCONCE_SYMBOLIZER_LANG_PHPFILE_H

#include "symbolizer/lang/lang.h"

/* The recognize() of symbolizer/lang/lang.h. */
int phpfile_recognize(struct elffile *elf, const char *module, struct lang_runtime *runtime);

#endif
