// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Perl keeps a stack of contexts for each C function that called it with one of its own
 * (stackinfo): loops and blocks, and subs and evals, which are linked. A sub that C called has
 * nothing to return to, and is the last one of its activation of the loop; likewise a block that
 * sort calls, which has no sub, by the end of its stackinfo.
 *
 * The surprise: an eval in a sub that C called runs in another activation (docatch() in pp_ctl.c),
 * which then goes on with the sub. It is known by where its jump buffer stands: between the two
 * loops on the C stack. The sub is shown above the inner one, and nothing above the outer.
 */
#include "bpf/lang.bpf.h"
#include "bpf/lang/perl.h"

#define PERL_HOPS_MAX 512 /* contexts and stackinfos that push nothing, in a stack */
#define PERL_CONTEXTS (1 << 24)
#define PERL_ENVS     16

struct perl_state {
	__u64 interpreter;
	__u64 contexts, outer; /* of the stackinfo */
	__u64 cop;	       /* whose line the next frame has */
	__u64 env;	       /* 0: not read yet; else the jump buffer that is looked at next */
	__u64 sp;	       /* of this activation of the loop */
	__s32 index;	       /* the sub or eval that is next; -1 = none in this stackinfo */
	__s32 below;	       /* so many contexts in it are below the last end of an activation */
	__s32 type;
	__u32 hops;
	__u32 top;    /* nothing was found yet: the context may be half made */
	__u32 closed; /* the activation has ended */
	__u32 plain;  /* and C did not catch what dies in it: an eval there needs docatch() */
	__u32 mix;    /* of the sub that was named last, for one that calls itself */
	__u64 cv, object;
	__u64 read[PERL_CX_READ / 8];  /* a context */
	__u64 head[PERL_SV_BYTES / 8]; /* an SV */
	__u64 body[(PERL_CV_END - PERL_CV_STASH) / 8];
	__u64 statement[(PERL_COP_END - PERL_COP_TYPE) / 8];
};

_Static_assert(sizeof(struct perl_state) <= sizeof(((struct unwind_script *)0)->words), "fits");

#define PERL_WORD(from, at, base) ((from)[((at) - (base)) / 8])
#define PERL_HIGH(from, at, base) ((__u32)(PERL_WORD(from, at, base) >> 32))

UNWIND_INLINE struct perl_state *perl_state(struct unwind *w)
{
	return (struct perl_state *)w->script.words;
}

UNWIND_INLINE int perl_global(struct unwind *w, enum perl_global which, __u64 *value)
{
	__u64 from = perl_state(w)->interpreter + w->runtime.fields[which];

	if (w->runtime.thread == TABLE_THREAD_NONE)
		from = lang_address(w, w->runtime.symbols[which]);
	return lang_read(value, sizeof(*value), from);
}

/*
 * A sub whose context is there, but is linked no longer, is just being left, and the current
 * statement still its own. (Or it is being entered and not linked yet: the same statement then.)
 */
UNWIND_INLINE void perl_leaving(struct perl_state *s)
{
	__u64 at = s->contexts + PERL_CX_BYTES * (__u64)(s->below - 1);
	__u32 type;

	if (s->below - 1 <= s->index || lang_read(s->head, sizeof(s->head), at))
		return;
	type = s->head[0] & PERL_CX_TYPE;
	if (type >= PERL_CX_SUB && type <= PERL_CX_EVAL)
		s->cop = s->head[PERL_CX_COP / 8];
}

/* Go on with a stackinfo. 0, or it makes no sense. */
UNWIND_INLINE int perl_enter(struct perl_state *s, __u64 stackinfo)
{
	__s32 top[4]; /* si_cxix, si_cxmax, si_cxsubix, si_type */
	__u64 at[2];

	if (lang_read(at, sizeof(at), stackinfo + PERL_SI_CONTEXTS) ||
	    lang_read(top, sizeof(top), stackinfo + PERL_SI_TOP))
		return -1;
	s->contexts = at[0];
	s->outer = at[1];
	s->below = (__s32)((__u32)top[0] + 1);
	s->index = top[2];
	s->type = top[3];
	return top[0] < -1 || top[0] > PERL_CONTEXTS || s->index < -1 || s->index > PERL_CONTEXTS;
}

UNWIND_INLINE int perl_begin(struct unwind *w)
{
	struct perl_state *s = perl_state(w);
	__u64 stackinfo;

	s->interpreter = s->env = s->cv = s->object = 0;
	s->hops = s->closed = s->plain = 0;
	s->top = 1;
	s->sp = w->sp;
	w->script.begun = 1;
	if (w->runtime.thread != TABLE_THREAD_NONE &&
	    (lang_thread(w, &s->interpreter) || !s->interpreter))
		return -1;
	if (perl_global(w, PERL_CURCOP, &s->cop) || perl_global(w, PERL_CURSTACKINFO, &stackinfo))
		return -1;
	if (perl_enter(s, stackinfo))
		return -1;
	perl_leaving(s);
	return 0;
}

/* The context at s->index, into s->read. */
UNWIND_INLINE int perl_context(struct perl_state *s)
{
	return lang_read(s->read, sizeof(s->read), s->contexts + PERL_CX_BYTES * (__u64)s->index);
}

/* What C puts there to catch what dies in the sub that it calls. */
UNWIND_INLINE int perl_catches(const struct perl_state *s)
{
	__u64 type = s->read[0];

	return (type & PERL_CX_TYPE) == PERL_CX_EVAL && (type & PERL_CX_EVAL_BLOCK) &&
	       !s->read[PERL_CX_RETURN / 8];
}

/* Is there a jump buffer on the C stack between the activation that ended and this one? */
UNWIND_INLINE int perl_jumps(struct unwind *w, __u64 before)
{
	struct perl_state *s = perl_state(w);

	if (!s->env && perl_global(w, PERL_TOP_ENV, &s->env))
		return 0;
	for (int i = 0; i < PERL_ENVS && s->env && s->env < w->sp; i++) {
		__u64 env = s->env;

		if (lang_read(&s->env, sizeof(s->env), env))
			return 0;
		if (env > before)
			return 1;
	}
	return 0;
}

/* An activation after the first. 1: what it was running is shown already. */
UNWIND_INLINE int perl_next(struct unwind *w)
{
	struct perl_state *s = perl_state(w);
	__u64 before = s->sp;

	s->closed = 0;
	s->sp = w->sp;
	if (!s->plain)
		return 0;
	s->plain = 0;
	if (s->index >= 0 && s->index == s->below - 1 && !perl_context(s) && perl_catches(s))
		return 0;
	s->closed = perl_jumps(w, before);
	return s->closed;
}

/* All frames of this activation are pushed. */
UNWIND_INLINE int perl_close(struct unwind *w, __s32 below, __u32 plain)
{
	struct perl_state *s = perl_state(w);

	s->below = below;
	s->plain = plain;
	s->closed = 1;
	return lang_done(w);
}

UNWIND_INLINE int perl_statement(struct perl_state *s, __u64 cop)
{
	return !cop || cop >= PERL_ADDRESSES ||
	       lang_read(s->statement, sizeof(s->statement), cop + PERL_COP_TYPE);
}

/* Push a frame that stands at s->cop; the next one stands at `next`. */
UNWIND_INLINE int perl_push(struct unwind *w, __u64 object, __u32 mix, __u64 next)
{
	struct perl_state *s = perl_state(w);
	__u64 cookie = mix;
	__u32 where = 0;

	if (!perl_statement(s, s->cop)) {
		__u32 line = (__u32)(s->statement[0] >> 32);
		__u32 seq = PERL_HIGH(s->statement, PERL_COP_SEQ, PERL_COP_TYPE);

		where = (line < PERL_LINES ? line : PERL_LINES) | seq << 24;
		object |= (__u64)(seq >> 8) << 48;
		cookie |= s->cop >> 3 << 20;
	}
	s->cop = next;
	s->top = 0;
	return unwind_push_script(w, object, where, cookie);
}

/* What a CV is called: its object and s->mix. 0: it is no sub. The name of a freed GV is NULL. */
UNWIND_INLINE __u64 perl_name(struct perl_state *s, __u64 cv)
{
	__u64 hek, stash, hek_word, gv, pair[2];
	__u32 type;

	s->mix = 0;
	if (lang_read(s->head, sizeof(s->head), cv))
		return 0;
	type = PERL_HIGH(s->head, PERL_SV_FLAGS, 0) & PERL_SV_TYPE;
	if ((type != PERL_SV_CV && type != PERL_SV_FM) ||
	    lang_read(s->body, sizeof(s->body), s->head[0] + PERL_CV_STASH))
		return 0;
	hek = gv = PERL_WORD(s->body, PERL_CV_NAME, PERL_CV_STASH);
	if (PERL_HIGH(s->body, PERL_CV_FLAGS, PERL_CV_STASH) & PERL_CV_NAMED) {
		stash = s->body[0];
		cv = PERL_AT(cv) | PERL_NAMED;
	} else {
		if (!gv || lang_read(s->head, sizeof(s->head), gv) ||
		    (PERL_HIGH(s->head, PERL_SV_FLAGS, 0) & PERL_SV_TYPE) != PERL_SV_GV ||
		    lang_read(pair, sizeof(pair), s->head[0] + PERL_GV_NAME))
			return PERL_NO_NAME;
		hek = pair[0];
		stash = pair[1];
		cv = PERL_AT(gv) | PERL_GLOB;
	}
	if (lang_read(&hek_word, sizeof(hek_word), hek))
		return PERL_NO_NAME;
	s->mix = perl_mix(hek, hek_word, stash);
	return cv;
}

/*
 * A sub that was just called has reached no statement yet: the current one still is its caller's.
 * One that calls itself looks the same when it has, which `depth` tells. Then it stands at its
 * first statement.
 */
UNWIND_INLINE void perl_entering(struct perl_state *s)
{
	__u64 start = PERL_WORD(s->body, PERL_CV_START, PERL_CV_STASH), type;

	if (s->cop != s->read[PERL_CX_COP / 8] || (__u32)s->read[PERL_CX_DEPTH / 8] ||
	    perl_statement(s, s->cop))
		return;
	type = s->statement[0] & 0x1ff;
	if (!perl_statement(s, start) && (s->statement[0] & 0x1ff) == type)
		s->cop = start;
}

/*
 * Does the sub in s->read have C to return to? Code in sort's block or in a regular expression ends
 * in nothing too, and so does a sub that it calls last.
 */
UNWIND_INLINE int perl_ends(const struct perl_state *s, __s32 here)
{
	__u64 type;

	if (s->read[PERL_CX_RETURN / 8])
		return 0;
	if (here == 0 ||
	    lang_read(&type, sizeof(type), s->contexts + PERL_CX_BYTES * (__u64)(here - 1)))
		return 1;
	return (type & PERL_CX_TYPE) != PERL_CX_NULL &&
	       !((type & PERL_CX_TYPE) == PERL_CX_SUB && (type & PERL_CX_REGEXP));
}

UNWIND_INLINE int perl_sub(struct unwind *w, __s32 here)
{
	struct perl_state *s = perl_state(w);
	__u64 next = s->read[PERL_CX_COP / 8], cv = s->read[PERL_CX_CV / 8];
	__u32 top = s->top;
	int stop;

	if ((s->read[0] & PERL_CX_TYPE) == PERL_CX_SUB && (s->read[0] & PERL_CX_HIDDEN))
		return s->read[PERL_CX_RETURN / 8] ? UNWIND_GO : perl_close(w, here, 1);
	if (cv != s->cv)
		s->object = perl_name(s, cv);
	s->cv = cv;
	if (!s->object) {
		/* It is being made or left. */
		s->top = 0;
		s->cop = next;
		return top ? UNWIND_GO : lang_lost(w);
	}
	if (top)
		perl_entering(s);
	stop = perl_push(w, s->object, s->mix, next);
	if (stop == UNWIND_GO && perl_ends(s, here))
		return perl_close(w, here, 1);
	return stop;
}

UNWIND_INLINE int perl_eval(struct unwind *w, __s32 here)
{
	struct perl_state *s = perl_state(w);
	int stop;

	if (s->read[0] & PERL_CX_HIDDEN)
		return UNWIND_GO;
	stop = perl_push(w, PERL_EVAL, 0, s->read[PERL_CX_COP / 8]);
	if (stop != UNWIND_GO || s->read[PERL_CX_RETURN / 8])
		return stop;
	/* C evaluates a string, or calls a sub above it, which was the end of the activation. */
	if (!perl_catches(s))
		return perl_close(w, here, 0);
	if (here == s->below - 1)
		s->below = here;
	return UNWIND_GO;
}

/* The contexts of this stackinfo are through. */
UNWIND_INLINE int perl_leave(struct unwind *w)
{
	struct perl_state *s = perl_state(w);
	int ends = s->below > 0;

	if (s->type == PERL_SI_MAIN || !s->outer) {
		w->script.ended = 1;
		lang_done(w);
		return perl_push(w, PERL_TOP, 0, 0);
	}
	if (perl_enter(s, s->outer))
		return lang_lost(w);
	return ends ? perl_close(w, s->below, 1) : UNWIND_GO;
}

UNWIND_INLINE int perl_hop(struct unwind *w)
{
	struct perl_state *s = perl_state(w);
	__s32 here = s->index, next;
	__u32 type;

	if (here < 0)
		return perl_leave(w);
	if (perl_context(s))
		return lang_lost(w);
	next = (__s32)s->read[PERL_CX_OUTER / 8];
	type = s->read[0] & PERL_CX_TYPE;
	if (next >= here || next < -1)
		return lang_lost(w);
	s->index = next;
	if (type == PERL_CX_EVAL)
		return perl_eval(w, here);
	if (type == PERL_CX_SUB || type == PERL_CX_FORMAT)
		return perl_sub(w, here);
	return lang_lost(w);
}

LANG_STEP int perl_step(struct unwind *w)
{
	struct perl_state *s = perl_state(w);
	__u32 slots = w->slots;
	int stop;

	if (w->script.made)
		return lang_done(w);
	if (!w->script.begun) {
		if (perl_begin(w))
			return lang_lost(w);
	} else if (s->closed && perl_next(w)) {
		return lang_done(w);
	}
	stop = perl_hop(w);
	if (stop != UNWIND_GO || w->slots != slots || w->unwinder == UNWIND_NATIVE)
		return stop;
	return ++s->hops > PERL_HOPS_MAX ? lang_lost(w) : UNWIND_GO;
}
