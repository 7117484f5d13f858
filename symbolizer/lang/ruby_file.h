/* SPDX-License-Identifier: Apache-2.0 */
/* What the file of a Ruby says: which version, where its loop is, where it keeps what. */
#ifndef SCONCE_SYMBOLIZER_LANG_RUBY_FILE_H
#define SCONCE_SYMBOLIZER_LANG_RUBY_FILE_H

#include "symbolizer/lang/lang.h"

/* Of lang_runtime.layout */
enum ruby_file_word {
	RUBY_FILE_VERSION, /* RUBY_VERSION(): walk.version has it, too */
	RUBY_FILE_TEXT,	   /* where the version stands as text: by it a process's copy is known */
	RUBY_FILE_SYMBOLS, /* global_symbols (rb_symbols_t of symbol.h) */
	RUBY_FILE_VM,	   /* of 3.2: ruby_current_vm_ptr, */
	RUBY_FILE_SHAPES,  /* and shape_list in what it points to */
};

/* lang.recognize */
int ruby_file_recognize(struct elffile *elf, const char *module, struct lang_runtime *runtime);

#endif
