/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/*
 * PHP 7.4 to 8.4: what the walker (php.bpf.c) and the names (symbolizer/lang/php.c) agree on.
 *
 * A script frame is one zend_execute_data:
 *
 *   object   its zend_function, of a script (op array) or of C
 *   where    the line, 0 in functions of C; with PHP_INCLUDED in included code outside of functions
 *   cookie   what the walker read of the function, mixed; the low bits say what that was
 *
 * The line is the one that PHP itself would say, but for the leaf under JIT: code made from whole
 * functions does not keep it, so that it is the function's first; code made from traces does so now
 * and then, so that it is that of the loop's head.
 *
 * Op arrays that opcache does not keep end with the request, and the next script's may lie at the
 * same addresses with the same lines. So the texts' hashes belong to the cookie, which PHP has
 * computed before a function runs. They may stand in pages that this process has not touched yet,
 * and are left out then.
 */
#ifndef SCONCE_BPF_LANG_PHP_H
#define SCONCE_BPF_LANG_PHP_H

#include <linux/types.h>

/* Of struct table_runtime. */
enum php_symbol {
	PHP_GLOBALS, /* executor_globals; where each thread has its own: executor_globals_offset */
	PHP_BODY,    /* in execute_ex(), where its frame is made: what the JIT made runs in it */
};

enum php_field {
	PHP_ZTS,
	PHP_CURRENT,   /* current_execute_data, in the globals */
	PHP_GENERATOR, /* execute_data, in a zend_generator; 0 = not known */
	/* In an op array: the first two in words of 4 bytes, the others of 8. */
	PHP_LAST,
	PHP_LINE_START,
	PHP_OPCODES,
	PHP_FILENAME,
};

/* Zend/zend_compile.h and zend_types.h, alike in 7.4 to 8.4. */

/* zend_execute_data; type_info and args belong to the zval `This`. */
struct php_frame {
	__u64 opline, call, return_value, function, object;
	__u32 type_info, args;
	__u64 previous;
};
#define PHP_CALL_TOP (1u << 17) /* ZEND_CALL_TOP: entered from C */
#define PHP_OBJECT   8		/* IS_OBJECT, the type of `This` */

/* How every zend_function begins. */
struct php_function {
	__u8 type, unused[3];
	__u32 flags;
	__u64 name, scope; /* zend_string, zend_class_entry */
};
enum php_type { PHP_INTERNAL = 1, PHP_USER = 2, PHP_EVAL = 4 };

/* So much of an op array is read; `line_start` of 8.4 stands at 176. */
#define PHP_OP_ARRAY_WORDS 23

#define PHP_OP_BYTES 32 /* zend_op */
#define PHP_OP_LINE  24

/* zend_string, without its text. */
struct php_string {
	__u32 references, type;
	__u64 hash, length;
};
#define PHP_STRING_HASH 8 /* of hash and length */

#define PHP_INCLUDED (1u << 31)

/* What a cookie is made of, besides the head. */
#define PHP_WHOLE	1u /* the op array's fields */
#define PHP_NAME_HASH	2u
#define PHP_FILE_HASH	4u
#define PHP_COOKIE_BITS 7u

static inline __attribute__((always_inline)) __u64 php_mix(__u64 cookie, __u64 word)
{
	/* 2^64 divided by the golden ratio. */
	cookie = (cookie ^ word) * 0x9e3779b97f4a7c15ull;
	return cookie ^ cookie >> 32;
}

static inline __attribute__((always_inline)) __u64 php_cookie_head(const struct php_function *f)
{
	return php_mix(php_mix(f->type, f->name), f->scope);
}

#endif
