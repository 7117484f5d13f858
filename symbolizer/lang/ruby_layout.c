/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Made with tools/ruby-layout.c out of the headers of 2.7.4, 3.1.2, 3.3.8 and 3.4.5 as Debian
 * configures them, and of 3.0.2 and 3.2.3 as Ubuntu does. Nobody promises that a release of the
 * same minor version has the same: what the file itself says (ec_thread) is compared (ruby_file.c).
 */
#include "symbolizer/lang/ruby_layout.h"

#include <stddef.h>

#include "bpf/lang/ruby.h"

static const struct ruby_layout layouts[] = {
    {
	.version = RUBY_VERSION(2, 7),
	.thread_id = 0x48,
	.ec_thread = 0x38,
	.control_bytes = 0x38,
	.insns_info = 0x78,
	.insns_size = 0x88,
	.insns_index = 0x90,
	.insn_bytes = 8,
	.last_op_id = 168,
	.string_embedded = 0x10,
	.singleton = 0x1000,
	.line_is_value = true,
    },
    {
	.version = RUBY_VERSION(3, 0),
	.ec_thread = 0x38,
	.control_bytes = 0x38,
	.insns_info = 0x78,
	.insns_size = 0x88,
	.insns_index = 0x90,
	.insn_bytes = 8,
	.last_op_id = 168,
	.string_embedded = 0x10,
	.singleton = 0x1000,
	.line_is_value = true,
    },
    {
	.version = RUBY_VERSION(3, 1),
	.ec_thread = 0x30,
	.control_bytes = 0x40,
	.insns_info = 0x78,
	.insns_size = 0x88,
	.insns_index = 0x90,
	.insn_bytes = 12,
	.last_op_id = 169,
	.string_embedded = 0x10,
	.singleton = 0x1000,
	.line_is_value = true,
    },
    {
	.version = RUBY_VERSION(3, 2),
	.ec_thread = 0x30,
	.control_bytes = 0x40,
	.insns_info = 0x70,
	.insns_size = 0x80,
	.insns_index = 0x88,
	.insn_bytes = 12,
	.last_op_id = 169,
	.string_embedded = 0x18,
	.singleton = 0x1000,
	.variables = 0x20,
    },
    {
	.version = RUBY_VERSION(3, 3),
	.ec_thread = 0x30,
	.control_bytes = 0x38,
	.insns_info = 0x70,
	.insns_size = 0x80,
	.insns_index = 0x88,
	.insn_bytes = 12,
	.last_op_id = 169,
	.string_embedded = 0x18,
	.singleton = 0x1000,
	.class_path = 0x98,
	.attached = 0x80,
    },
    {
	.version = RUBY_VERSION(3, 4),
	.ec_thread = 0x30,
	.control_bytes = 0x38,
	.insns_info = 0x70,
	.insns_size = 0x80,
	.insns_index = 0x88,
	.insn_bytes = 12,
	.last_op_id = 170,
	.string_embedded = 0x18,
	.singleton = 0x2000,
	.class_path = 0x98,
	.attached = 0x80,
	.parent = 0xa0,
    },
};

const struct ruby_layout *ruby_layout_find(uint32_t version)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].version == version)
			return &layouts[i];
	return NULL;
}
