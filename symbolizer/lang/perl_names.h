/* SPDX-License-Identifier: Apache-2.0 */
/* Perl's frames (bpf/lang/perl.h) to names, as caller() writes them; files and lines. */
#ifndef SCONCE_SYMBOLIZER_LANG_PERL_NAMES_H
#define SCONCE_SYMBOLIZER_LANG_PERL_NAMES_H

#include "symbolizer/lang/lang.h"

/* Of struct lang_runtime's layout. */
enum perl_names_layout {
	PERL_NAMES_STASH_AUX, /* a stash has its name in its body, else behind its array */
	PERL_NAMES_FILE_GV,   /* a statement has a GV for its file, else text */
};

bool perl_names_frame(struct remote *remote, const struct lang_runtime *runtime,
		      const struct lang_frame *frame, struct lang_function *function);

#endif
