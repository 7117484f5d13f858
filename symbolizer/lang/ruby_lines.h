/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of Ruby's compiled code. */
#ifndef SCONCE_SYMBOLIZER_LANG_RUBY_LINES_H
#define SCONCE_SYMBOLIZER_LANG_RUBY_LINES_H

#include <stdint.h>

#include "symbolizer/lang/ruby_values.h"

/* body: its rb_iseq_constant_body; position: how many words of the code are behind. 0 = not known.
 */
uint32_t ruby_line(const struct ruby *ruby, uint64_t body, uint32_t position);

#endif
