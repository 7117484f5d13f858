/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of Ruby in the memory of a process: strings, what IDs (symbols) are called, paths of
 * classes. Any of them may be freed, moved or changed meanwhile: what is read is text that ends in
 * NUL, or nothing, and whoever asks compares the frame afterwards.
 */
#ifndef SCONCE_SYMBOLIZER_LANG_RUBY_VALUES_H
#define SCONCE_SYMBOLIZER_LANG_RUBY_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/lang/ruby_layout.h"
#include "symbolizer/remote.h"

struct ruby {
	struct remote *remote;
	const struct ruby_layout *layout;
	uint64_t symbols; /* global_symbols, in the process */
	uint64_t shapes;  /* of 3.2, likewise: rb_vm_t.shape_list */
};

#define RUBY_CLASS_BYTES 256

/* A String, as its bytes; cut at size - 1. */
bool ruby_string(const struct ruby *ruby, uint64_t value, char *to, size_t size);
/* The nth value of an Array; false: it has no such, or is none. */
bool ruby_element(const struct ruby *ruby, uint64_t array, uint64_t nth, uint64_t *value);
bool ruby_id(const struct ruby *ruby, uint64_t id, char *to, size_t size);

/*
 * The owner of a method as it stands in front of its name: "Shop::Cart#", "Shop::Cart." for a
 * method of the class itself, "" for those of classes without a name and of single objects. False:
 * it could not be read.
 */
bool ruby_owner(const struct ruby *ruby, uint64_t class, char to[RUBY_CLASS_BYTES]);

#endif
