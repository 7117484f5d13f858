/* SPDX-License-Identifier: Apache-2.0 */
/* The walkers of all languages (bpf/lang/) as an ordinary program: they are plain C but for what
 * they read by. */
#include "bpf/langs.h"

struct unwind;
#define LANGUAGE(NAME, name) int name##_step(struct unwind *w);
LANGUAGES(LANGUAGE)
#undef LANGUAGE

#include "bpf/lang/perl.bpf.c"
#include "bpf/lang/php.bpf.c"
#include "bpf/lang/python.bpf.c"
#include "bpf/lang/ruby.bpf.c"
