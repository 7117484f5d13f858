/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Split units: the skeleton is in the program, the entries are in a .dwo, or with those of others
 * in a .dwp, whose index says where. GNU's of DWARF 4 and those of DWARF 5.
 */
#ifndef SCONCE_SYMBOLIZER_DWARFSPLIT_H
#define SCONCE_SYMBOLIZER_DWARFSPLIT_H

#include <stdbool.h>

#include "symbolizer/dwarfunit.h"

/* Is this unit one, and the entries are elsewhere? root: its own. */
bool dwarfsplit_skeleton(const struct dwarfunit *unit, const struct dwarfdie *root);
/* The unit that belongs to a skeleton, from a .dwo or a .dwp; false: it is not there. */
bool dwarfsplit_open(struct dwarfunit *unit, struct dwarffile *file,
		     const struct dwarfunit *skeleton);

#endif
