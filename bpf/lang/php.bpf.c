// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "bpf/lang.bpf.h"
#include "bpf/lang/php.h"

LANG_STEP int php_step(struct unwind *w)
{
	return lang_lost(w);
}
