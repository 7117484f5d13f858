/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/lang/perl_names.h"

#include <string.h>

#include "bpf/lang/perl.h"

#define GP_EGV	       0x38
#define HEK_KEY	       8
#define HEK_UTF8       1    /* of the byte behind the text's NUL */
#define HV_MAX	       0x18 /* the last index of the array */
#define HV_MAX_LIMIT   (1u << 24)
#define HV_AUX	       0x20
#define HV_AUX_FLAG    0x02000000u
#define FILE_GV_PREFIX "_<"
/* Longer names are cut; Perl itself ends identifiers at 251 characters. */
#define TEXT_BYTES LANG_NAME_BYTES

struct sv {
	uint64_t body;
	uint32_t references, flags;
	uint64_t value;
};

_Static_assert(sizeof(struct sv) == PERL_SV_BYTES, "SV");

/* What a sub has its name from. */
struct name {
	uint64_t hek, stash;
	bool lexical; /* it is in no package */
};

static bool read_sv(struct remote *remote, uint64_t at, struct sv *sv)
{
	return at && remote_read(remote, at, sv, sizeof(*sv));
}

/* UTF-8 of text that is that, or Latin-1. Control characters are names of variables only. */
static void put_text(const char *from, size_t bytes, bool utf8, char *to, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < bytes; i++) {
		uint8_t c = (uint8_t)from[i];

		if (n + 2 >= size)
			break;
		if (c >= 0x80 && !utf8) {
			to[n++] = (char)(0xc0 | c >> 6);
			c = 0x80 | (c & 0x3f);
		}
		to[n++] = c < ' ' ? '?' : (char)c;
	}
	/* Not in the middle of a character. */
	if (n + 2 >= size)
		while (n && ((uint8_t)to[n - 1] & 0xc0) == 0x80)
			n--;
	to[n] = 0;
}

/* A shared string: {hash, length, text, NUL, flags}. False: none, or empty. */
static bool read_hek(struct remote *remote, uint64_t hek, char *to, size_t size)
{
	char text[TEXT_BYTES + 2];
	uint32_t length;
	bool whole;

	if (!hek || !remote_u32(remote, hek + 4, &length) || !length || length > INT32_MAX)
		return false;
	whole = length <= TEXT_BYTES;
	if (!whole)
		length = TEXT_BYTES;
	if (!remote_read(remote, hek + HEK_KEY, text, length + 2))
		return false;
	/* What is cut has no flags here; what is no UTF-8 is replaced further on. */
	put_text(text, length, !whole || (text[length + 1] & HEK_UTF8), to, size);
	return true;
}

/* The name of a package; of a symbol table that was taken out of its place, its first effective
 * name. */
static bool read_package(struct remote *remote, const struct lang_runtime *runtime, uint64_t stash,
			 char *to, size_t size)
{
	struct {
		uint64_t name, backreferences, iterator;
		int32_t riter, names;
	} aux;
	struct sv sv;
	uint64_t at, max;

	if (!read_sv(remote, stash, &sv) || (sv.flags & PERL_SV_TYPE) != PERL_SV_HV ||
	    !(sv.flags & HV_AUX_FLAG))
		return false;
	at = sv.body + HV_AUX;
	if (!runtime->layout[PERL_NAMES_STASH_AUX]) {
		if (!remote_u64(remote, sv.body + HV_MAX, &max) || max > HV_MAX_LIMIT)
			return false;
		at = sv.value + 8 * (max + 1);
	}
	if (!remote_read(remote, at, &aux, sizeof(aux)))
		return false;
	if (aux.names && !remote_u64(remote, aux.name + (aux.names < 0 ? 8 : 0), &aux.name))
		return false;
	return read_hek(remote, aux.name, to, size);
}

static bool read_gv(struct remote *remote, uint64_t gv, struct sv *sv, struct name *name)
{
	uint64_t pair[2];

	if (!read_sv(remote, gv, sv) || (sv->flags & PERL_SV_TYPE) != PERL_SV_GV ||
	    !remote_read(remote, sv->body + PERL_GV_NAME, pair, sizeof(pair)))
		return false;
	*name = (struct name){pair[0], pair[1], false};
	return true;
}

/* What BPF saw of the object; a GV's other one, by which it is called, comes later. */
static bool read_object(struct remote *remote, const struct lang_frame *frame, struct sv *sv,
			struct name *name)
{
	uint64_t at = PERL_AT(frame->object), body[(PERL_CV_END - PERL_CV_STASH) / 8];

	if (PERL_KIND(frame->object) == PERL_GLOB)
		return read_gv(remote, at, sv, name);
	if (!read_sv(remote, at, sv) || (sv->flags & PERL_SV_TYPE) != PERL_SV_CV ||
	    !remote_read(remote, sv->body + PERL_CV_STASH, body, sizeof(body)))
		return false;
	name->stash = body[0];
	name->hek = body[(PERL_CV_NAME - PERL_CV_STASH) / 8];
	name->lexical = body[(PERL_CV_FLAGS - PERL_CV_STASH) / 8] >> 32 & PERL_CV_LEXICAL;
	return body[(PERL_CV_FLAGS - PERL_CV_STASH) / 8] >> 32 & PERL_CV_NAMED;
}

static bool is_same(struct remote *remote, const struct lang_frame *frame, struct sv *sv,
		    struct name *name)
{
	uint64_t word;

	return read_object(remote, frame, sv, name) && remote_u64(remote, name->hek, &word) &&
	       perl_mix(name->hek, word, name->stash) == PERL_MIX(frame->cookie);
}

static bool read_name(struct remote *remote, const struct lang_runtime *runtime,
		      const struct lang_frame *frame, char *to, size_t size)
{
	struct name name, effective;
	size_t n = 0;
	uint64_t egv;
	struct sv sv;

	if (!is_same(remote, frame, &sv, &name))
		return false;
	if (PERL_KIND(frame->object) == PERL_GLOB && remote_u64(remote, sv.value + GP_EGV, &egv) &&
	    egv != PERL_AT(frame->object) && read_gv(remote, egv, &sv, &effective))
		name = effective;
	if (!name.lexical) {
		if (!read_package(remote, runtime, name.stash, to, size / 2))
			memcpy(to, "__ANON__", sizeof("__ANON__"));
		n = strlen(to);
		memcpy(to + n, "::", 2);
		n += 2;
	}
	return read_hek(remote, name.hek, to + n, size - n) && is_same(remote, frame, &sv, &name);
}

/* The statement, if it still is the one that was sampled. */
static bool read_statement(struct remote *remote, const struct lang_frame *frame, uint64_t *file)
{
	uint64_t words[(PERL_COP_END - PERL_COP_TYPE) / 8];
	uint32_t line, seq;

	if (!PERL_COP(frame->cookie) ||
	    !remote_read(remote, PERL_COP(frame->cookie) + PERL_COP_TYPE, words, sizeof(words)))
		return false;
	line = (uint32_t)(words[(PERL_COP_LINE - PERL_COP_TYPE) / 8] >> 32);
	seq = (uint32_t)(words[(PERL_COP_SEQ - PERL_COP_TYPE) / 8] >> 32);
	*file = words[(PERL_COP_FILE - PERL_COP_TYPE) / 8];
	return line == PERL_LINE(frame->where) &&
	       (seq & PERL_SEQ_MASK) == PERL_SEQ(frame->object, frame->where) && *file;
}

static bool read_file(struct remote *remote, const struct lang_runtime *runtime,
		      const struct lang_frame *frame, char *to, size_t size)
{
	struct name name;
	uint64_t file, again;
	struct sv sv;

	if (!read_statement(remote, frame, &file))
		return false;
	if (!runtime->layout[PERL_NAMES_FILE_GV]) {
		if (!remote_text(remote, file, to, size))
			return false;
	} else {
		if (!read_gv(remote, file, &sv, &name) || !read_hek(remote, name.hek, to, size) ||
		    strncmp(to, FILE_GV_PREFIX, strlen(FILE_GV_PREFIX)) != 0)
			return false;
		memmove(to, to + strlen(FILE_GV_PREFIX), strlen(to + strlen(FILE_GV_PREFIX)) + 1);
	}
	return read_statement(remote, frame, &again) && again == file;
}

bool perl_names_frame(struct remote *remote, const struct lang_runtime *runtime,
		      const struct lang_frame *frame, struct lang_function *function)
{
	static const char *const fixed[] = {
	    [PERL_NO_NAME] = "(unknown)",
	    [PERL_EVAL] = "(eval)",
	    [PERL_TOP] = "<top-level>",
	};
	uint32_t kind = PERL_KIND(frame->object);

	if (kind == PERL_NAMED || kind == PERL_GLOB) {
		if (!read_name(remote, runtime, frame, function->name, sizeof(function->name)))
			return false;
	} else if (kind >= PERL_NO_NAME && kind <= PERL_TOP) {
		strcpy(function->name, fixed[kind]);
	} else {
		return false;
	}
	if (read_file(remote, runtime, frame, function->file, sizeof(function->file)))
		function->line = PERL_LINE(frame->where);
	else
		function->file[0] = 0;
	return true;
}
