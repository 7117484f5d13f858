/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where CPython's structures have their fields: up to 3.12 by version, from 3.13 on as the file
 * itself says
 * (_Py_DebugOffsets at the beginning of _PyRuntime).
 */
#ifndef SCONCE_SYMBOLIZER_LANG_PYTHON_LAYOUT_H
#define SCONCE_SYMBOLIZER_LANG_PYTHON_LAYOUT_H

#include <stdint.h>

#include "shm/table.h"
#include "symbolizer/lang/facts.h"

struct python_layout {
	uint8_t minor; /* of 3.minor */
	uint8_t form;  /* enum python_form of bpf/lang/python.h */
	uint8_t lines; /* enum python_lines of symbolizer/lang/python_lines.h */
	uint16_t state_id, state_frame;
	int16_t inner; /* of the frame in what state_frame points to; -1: that is the frame */
	uint16_t frame_code, frame_back, frame_lasti, frame_mark;
	uint16_t code_file, code_name, code_lines, code_first, bytecode;
	uint16_t ascii, compact; /* where the text of a string is */
	uint16_t header;	 /* of an object: 16, without a GIL 32 */
	uint16_t kind_shift;	 /* of a string's kind in its state */
};

/* version: as PY_VERSION_HEX. 0; -ENOTSUP: not known, or the file does not say what it should. */
int python_layout(struct facts *facts, uint32_t version, struct python_layout *layout);

/* What BPF is told. 0; -ENOTSUP: the fields do not lie as near to each other as it reads. */
int python_layout_fields(const struct python_layout *layout, uint32_t fields[TABLE_FIELDS]);

#endif
