// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "bpf/lang.bpf.h"
#include "bpf/lang/ruby.h"

LANG_STEP int ruby_step(struct unwind *w)
{
	return lang_lost(w);
}
