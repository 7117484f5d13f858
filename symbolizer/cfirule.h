/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a row of call frame information to the rule of a table (shm/table.h). What a rule cannot say
 * exactly becomes RULE_INVALID (or, for the frame pointer alone, RULE_FP_UNDEFINED): a wrong caller
 * is worse than none.
 */
#ifndef SCONCE_SYMBOLIZER_CFIRULE_H
#define SCONCE_SYMBOLIZER_CFIRULE_H

#include <stdbool.h>

#include "shm/table.h"
#include "symbolizer/cfi.h"

/*
 * signal: the row belongs to a signal frame, in which no register is where it was. rbx: the rule
 * follows it (enum rule_rbx).
 */
struct table_rule cfirule_make(const struct cfi_row *row, bool signal, bool rbx);

#endif
