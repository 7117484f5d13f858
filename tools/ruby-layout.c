/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the row of symbolizer/lang/ruby_layout.c for a version of Ruby, out of that version's
 * headers:
 *
 *   cc -w -DHAVE_CONFIG_H -I SOURCE -I SOURCE/include -I INCLUDE/ruby-X.Y.0 tools/ruby-layout.c &&
 * ./a.out
 *
 * SOURCE is the source of Ruby (a release has id.h in it, which the build of a snapshot makes),
 * INCLUDE the folder in which the package of its headers (ruby3.1-dev) has ruby/config.h, for the
 * offsets depend on how it was configured. Built and run by hand: nothing that is built here
 * includes it.
 */
#include "ruby/config.h"
#include "ruby.h"
#include "ruby/encoding.h"
#include "ruby/version.h"
#include "vm_core.h"
#include "iseq.h"
#include "method.h"
#include "id.h"
#include "symbol.h"
#if __has_include("internal/class.h")
#include "internal/class.h"
#include "internal/string.h"
#else
#include "internal.h"
#endif
#include <stdio.h>

#define VERSION (RUBY_API_VERSION_MAJOR * 100 + RUBY_API_VERSION_MINOR)
#if VERSION < 301
#define EMBEDDED ary
#else
#define EMBEDDED embed.ary
#endif
#define BODY(field) (unsigned)offsetof(struct rb_iseq_constant_body, field)

/* In one place for all versions: what BPF takes for granted (bpf/lang/ruby.h). */
_Static_assert(offsetof(rb_execution_context_t, vm_stack) == 0, "ec.vm_stack");
_Static_assert(offsetof(rb_execution_context_t, vm_stack_size) == 8, "ec.vm_stack_size");
_Static_assert(offsetof(rb_execution_context_t, cfp) == 16, "ec.cfp");
_Static_assert(offsetof(rb_control_frame_t, pc) == 0, "cfp.pc");
_Static_assert(offsetof(rb_control_frame_t, iseq) == 16, "cfp.iseq");
_Static_assert(offsetof(rb_control_frame_t, ep) == 32, "cfp.ep");
_Static_assert(offsetof(rb_iseq_t, body) == 16, "iseq.body");
_Static_assert(BODY(iseq_size) == 4, "body.iseq_size");
_Static_assert(BODY(iseq_encoded) == 8, "body.iseq_encoded");
_Static_assert(BODY(location.pathobj) == 0x40, "body.location.pathobj");
_Static_assert(BODY(location.base_label) == 0x48, "body.location.base_label");
_Static_assert(BODY(location.label) == 0x50, "body.location.label");
_Static_assert(BODY(location.first_lineno) == 0x58, "body.location.first_lineno");
_Static_assert(offsetof(rb_callable_method_entry_t, def) == 16, "me.def");
_Static_assert(offsetof(rb_callable_method_entry_t, owner) == 32, "me.owner");
_Static_assert(offsetof(struct rb_method_definition_struct, body) == 8, "def.body");
_Static_assert(offsetof(struct rb_method_definition_struct, original_id) == 0x20,
	       "def.original_id");
_Static_assert(VM_ENV_DATA_INDEX_ME_CREF == -2, "ep[-2]");
_Static_assert(VM_METHOD_TYPE_ISEQ == 0 && VM_METHOD_TYPE_BMETHOD == 4, "def.type");

#if VERSION == 302
/* What symbolizer/lang/ruby_values.c takes for granted. */
_Static_assert(RCLASS_EXT_EMBEDDED, "RClass");
_Static_assert(sizeof(rb_shape_t) == 32 && offsetof(rb_shape_t, edge_name) == 8 &&
		   offsetof(rb_shape_t, next_iv_index) == 16 && offsetof(rb_shape_t, type) == 24 &&
		   offsetof(rb_shape_t, parent_id) == 28,
	       "rb_shape_t");
#endif

int main(void)
{
#if VERSION < 300
	printf("\t    .thread_id = %#zx,\n", offsetof(rb_thread_t, thread_id));
#endif
	printf("\t    .ec_thread = %#zx,\n", offsetof(rb_execution_context_t, thread_ptr));
	printf("\t    .control_bytes = %#zx,\n", sizeof(rb_control_frame_t));
	printf("\t    .insns_info = %#x,\n", BODY(insns_info.body));
	printf("\t    .insns_size = %#x,\n", BODY(insns_info.size));
	printf("\t    .insns_index = %#x,\n", BODY(insns_info.succ_index_table));
	printf("\t    .insn_bytes = %zu,\n", sizeof(struct iseq_insn_info_entry));
	printf("\t    .line_is_value = %d,\n",
	       (int)(sizeof(((rb_iseq_location_t *)0)->first_lineno) == 8));
	printf("\t    .last_op_id = %d,\n", tLAST_OP_ID);
	printf("\t    .string_embedded = %#zx,\n", offsetof(struct RString, as.EMBEDDED));
	printf("\t    .singleton = %#zx,\n", (size_t)FL_SINGLETON);
#if VERSION == 302
	printf("\t    .variables = %#zx,\n",
	       sizeof(struct RClass) + offsetof(struct rb_classext_struct, iv_ptr));
#endif
#if VERSION >= 303
	printf("\t    .class_path = %#zx,\n",
	       sizeof(struct RClass) + offsetof(struct rb_classext_struct, classpath));
	printf("\t    .attached = %#zx,\n",
	       sizeof(struct RClass) +
		   offsetof(struct rb_classext_struct, as.singleton_class.attached_object));
#endif
#if VERSION >= 304
	printf("\t    .parent = %#x,\n", BODY(parent_iseq));
#endif
	return 0;
}
