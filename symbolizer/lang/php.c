/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of PHP: as its own backtraces have them, Class::method, {closure} in the namespace that
 * it is in. Code outside of functions is {main}, include(file.php) or eval().
 */
#include "symbolizer/lang/lang.h"

#include <stdio.h>
#include <string.h>

#include "bpf/lang/php.h"
#include "symbolizer/lang/phpfile.h"

#define PHP_STRING_MAX (1u << 20) /* a longer one is no name */
#define PHP_CLASS_NAME 8	  /* zend_class_entry */

/* As BPF read it. */
struct php_read {
	union {
		struct php_function function;
		uint64_t words[PHP_OP_ARRAY_WORDS];
		uint32_t halves[2 * PHP_OP_ARRAY_WORDS];
	};
	uint64_t filename;
};

static uint64_t php_word(const struct lang_runtime *runtime, const struct php_read *read, int field)
{
	return read->words[runtime->walk.fields[field] % PHP_OP_ARRAY_WORDS];
}

static uint32_t php_half(const struct lang_runtime *runtime, const struct php_read *read, int field)
{
	return read->halves[runtime->walk.fields[field] % (2 * PHP_OP_ARRAY_WORDS)];
}

/* Mix in what the text's hash is. */
static bool php_mix_text(struct remote *remote, uint64_t string, uint64_t *cookie)
{
	uint64_t text[2];

	if (!remote_read(remote, string + PHP_STRING_HASH, text, sizeof(text)))
		return false;
	*cookie = php_mix(php_mix(*cookie, text[0]), text[1]);
	return true;
}

/* Read the function, and compare: is it what the walker saw? See php_push() of bpf/lang/php.bpf.c.
 */
static bool php_same(struct remote *remote, const struct lang_runtime *runtime,
		     const struct lang_frame *frame, struct php_read *read)
{
	uint32_t bits = (uint32_t)frame->cookie & PHP_COOKIE_BITS;
	size_t bytes = bits & PHP_WHOLE ? 8 * PHP_OP_ARRAY_WORDS : sizeof(read->function);
	uint64_t cookie;

	memset(read, 0, sizeof(*read));
	if (!remote_read(remote, frame->object, read->words, bytes))
		return false;
	cookie = php_cookie_head(&read->function);
	if (bits & PHP_WHOLE) {
		read->filename = php_word(runtime, read, PHP_FILENAME);
		cookie = php_mix(cookie, php_word(runtime, read, PHP_OPCODES));
		cookie = php_mix(cookie, read->filename);
		cookie = php_mix(cookie, (uint64_t)php_half(runtime, read, PHP_LAST) << 32 |
					     php_half(runtime, read, PHP_LINE_START));
	}
	if (((bits & PHP_NAME_HASH) && !php_mix_text(remote, read->function.name, &cookie)) ||
	    ((bits & PHP_FILE_HASH) && !php_mix_text(remote, read->filename, &cookie)))
		return false;
	return ((cookie ^ frame->cookie) & ~(uint64_t)PHP_COOKIE_BITS) == 0;
}

/*
 * A zend_string, cut at size - 1 and at the NUL behind which classes without a name have what tells
 * them apart. False when it cannot be read or is empty.
 */
static bool php_text(struct remote *remote, uint64_t from, char *to, size_t size)
{
	struct php_string string;
	size_t n;

	if (!remote_read(remote, from, &string, sizeof(string)) || string.length > PHP_STRING_MAX)
		return false;
	n = string.length < size - 1 ? string.length : size - 1;
	if (!remote_read(remote, from + sizeof(string), to, n))
		return false;
	to[n] = 0;
	return to[0];
}

/* "Class::" if it has one, then its own name. */
static bool php_qualified(struct remote *remote, const struct php_function *function,
			  char name[LANG_NAME_BYTES])
{
	uint64_t class_name;
	size_t n = 0;

	if (function->scope) {
		if (!remote_u64(remote, function->scope + PHP_CLASS_NAME, &class_name) ||
		    !php_text(remote, class_name, name, LANG_NAME_BYTES))
			return false;
		n = strlen(name);
		n += (size_t)snprintf(name + n, LANG_NAME_BYTES - n, "::");
		/* A name that fills all of it stands alone. */
		if (n + 1 >= LANG_NAME_BYTES)
			return true;
	}
	return php_text(remote, function->name, name + n, LANG_NAME_BYTES - n);
}

/* Code outside of functions. */
static void php_unnamed(const struct php_read *read, uint32_t where, struct lang_function *function)
{
	const char *slash = strrchr(function->file, '/');

	if (read->function.type == PHP_EVAL)
		snprintf(function->name, sizeof(function->name), "eval()");
	else if (where & PHP_INCLUDED)
		snprintf(function->name, sizeof(function->name), "include(%.*s)",
			 (int)sizeof(function->name) - 16, slash ? slash + 1 : function->file);
	else
		snprintf(function->name, sizeof(function->name), "{main}");
}

static bool php_name_frame(struct remote *remote, const struct lang_runtime *runtime,
			   const struct lang_frame *frame, struct lang_function *function)
{
	struct php_read read;

	if (!php_same(remote, runtime, frame, &read))
		return false;
	if (read.filename) {
		if (!php_text(remote, read.filename, function->file, sizeof(function->file)))
			return false;
		function->start_line = php_half(runtime, &read, PHP_LINE_START);
	}
	function->line = frame->where & ~PHP_INCLUDED;
	if (read.function.name) {
		if (!php_qualified(remote, &read.function, function->name))
			return false;
	} else if (read.function.type == PHP_INTERNAL) {
		return false;
	} else {
		php_unnamed(&read, frame->where, function);
	}
	return php_same(remote, runtime, frame, &read);
}

const struct lang php_lang = {"php", "php", phpfile_recognize, php_name_frame};
