/* SPDX-License-Identifier: Apache-2.0 */
/* Where Ruby keeps what, by its version. What is the same in all of them is in bpf/lang/ruby.h. */
#ifndef SCONCE_SYMBOLIZER_LANG_RUBY_LAYOUT_H
#define SCONCE_SYMBOLIZER_LANG_RUBY_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

struct ruby_layout {
	uint32_t version;	/* RUBY_VERSION() */
	uint32_t thread_id;	/* in rb_thread_t; 0: not needed */
	uint32_t ec_thread;	/* in rb_execution_context_t */
	uint32_t control_bytes; /* of an rb_control_frame_t */
	uint32_t insns_info;	/* in rb_iseq_constant_body: lines of the code, */
	uint32_t insns_size;	/* how many, */
	uint32_t insns_index;	/* and which of them is for what (struct succ_index_table) */
	uint32_t insn_bytes;	/* of an iseq_insn_info_entry */
	uint32_t last_op_id;	/* up to here an ID is its own serial number */
	uint32_t
	    string_embedded; /* in RString; behind its length, or the length is among the flags */
	uint32_t singleton;  /* the flag of a singleton class */
	uint32_t class_path; /* in RClass; 0: its name is among the instance variables */
	uint32_t attached;   /* in RClass: whose singleton class it is; 0: likewise */
	uint32_t
	    variables;	 /* in RClass: their values, in the order that its shape says; 0: a table */
	uint32_t parent; /* in rb_iseq_constant_body: what evaluated code goes by; 0: by itself */
	bool line_is_value; /* first_lineno is an Integer of Ruby */
};

/* NULL: not known. */
const struct ruby_layout *ruby_layout_find(uint32_t version);

#endif
