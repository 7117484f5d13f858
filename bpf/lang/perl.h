/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/*
 * Perl: what symbolizer/lang/perl.c finds in a file for perl_step(), and what a frame that
 *perl_step() pushes says to symbolizer/lang/perl_names.c.
 *
 * The runtime
 *   loops	 Perl_runops_standard and Perl_runops_debug
 *   thread	 of builds with threads: where the thread's interpreter is; PERL_* of fields are
 *offsets in it symbols	 of builds without (TABLE_THREAD_NONE): the addresses of PL_*, likewise by
 *PERL_*
 *
 * A frame
 *   object	 bits 0-2: enum perl_kind; 3-47: the address of the CV or GV, 0 of other kinds;
 *48-63: bits 8-23 of the number of the statement where	 bits 0-23: the line, read when the sample
 *was taken; 24-31: bits 0-7 of the number cookie	 bits 20-63: the address of the statement (a
 *COP) / 8, 0 = not known; 0-19: perl_mix() of the name
 *
 * Name and file are sure on their own. A sub may be freed before its name is read, a closure mostly
 *is. Therefore the object is what goes on living: the GV that a sub has its name from, which all
 *clones of a closure share; a sub that was only ever declared has none, but it stands in its
 *package as long as it can be called. Either is still what it was if the text of its name has the
 *hash that BPF read and its package is the same. The file is that of the statement, if there still
 *is one with the same line and number: the compiler counts (cop_seq), so that another one in its
 *place, from the next string that is evaluated, has another. Otherwise there is neither file nor
 *line.
 *
 * Structures are those of 5.32 to 5.42, where these offsets are the same with threads and without.
 */
#ifndef SCONCE_BPF_LANG_PERL_H
#define SCONCE_BPF_LANG_PERL_H

#include <linux/types.h>

enum perl_global { PERL_CURCOP, PERL_CURSTACKINFO, PERL_TOP_ENV };

enum perl_kind {
	PERL_NONE,    /* never pushed: object 0 says that nothing could be read */
	PERL_NAMED,   /* a sub that has its name itself: a CV */
	PERL_GLOB,    /* a sub that has its name from a GV */
	PERL_NO_NAME, /* a sub that has none any more */
	PERL_EVAL,    /* eval, of a block or a string; a file that is required */
	PERL_TOP,     /* the program */
};

#define PERL_KIND(object) ((__u32)(object)&7)
#define PERL_AT(object)	  ((object)&0x0000fffffffffff8ull)
#define PERL_LINES	  0xffffffu /* a line that is as large is not known */
#define PERL_LINE(where)  ((where)&PERL_LINES)
#define PERL_COP(cookie)  ((cookie) >> 20 << 3)
#define PERL_MIX(cookie)  ((__u32)(cookie)&0xfffffu)
#define PERL_ADDRESSES	  0x0000800000000000ull /* of user space end here */

/* The number of the statement as far as a frame has it, from both. */
#define PERL_SEQ(object, where) ((__u32)((object) >> 48 << 8 | (where) >> 24))
#define PERL_SEQ_MASK		0xffffffu

/* struct stackinfo: one for each C function that calls Perl with a stack of its own. */
#define PERL_SI_CONTEXTS 0x08
#define PERL_SI_OUTER	 0x10
#define PERL_SI_TOP	 0x20 /* s32 each: si_cxix, si_cxmax, si_cxsubix, si_type */
#define PERL_SI_MAIN	 1

/* struct context */
#define PERL_CX_BYTES	   0x68
#define PERL_CX_TYPE	   0x0f /* of the first byte */
#define PERL_CX_NULL	   0	/* a block that sort calls */
#define PERL_CX_SUB	   9
#define PERL_CX_FORMAT	   10
#define PERL_CX_EVAL	   11
#define PERL_CX_EVAL_BLOCK 0x40
#define PERL_CX_HIDDEN	   0x80 /* SUB: see REGEXP; EVAL: try. caller() skips both */
#define PERL_CX_REGEXP	   0xc0 /* SUB: code in a regular expression; of the sub around it: HIDDEN */
#define PERL_CX_COP	   0x10
#define PERL_CX_RETURN	   0x30 /* the op to go on with; 0: back to C */
#define PERL_CX_OUTER	   0x38 /* s32: the sub or eval before it */
#define PERL_CX_CV	   0x48
#define PERL_CX_DEPTH	   0x50 /* s32: how often the sub ran already */
#define PERL_CX_READ	   0x58

/* SVs, and the bodies that they point to */
#define PERL_SV_BYTES	0x18
#define PERL_SV_FLAGS	0x0c
#define PERL_SV_VALUE	0x10
#define PERL_SV_TYPE	0xff /* of the flags */
#define PERL_SV_GV	9
#define PERL_SV_HV	12
#define PERL_SV_CV	13
#define PERL_SV_FM	14
#define PERL_CV_STASH	0x20
#define PERL_CV_START	0x28
#define PERL_CV_NAME	0x38 /* HEK or GV */
#define PERL_CV_FLAGS	0x5c
#define PERL_CV_NAMED	0x8000
#define PERL_CV_LEXICAL 0x10000
#define PERL_CV_END	0x60
#define PERL_GV_NAME	0x20 /* HEK, and the stash behind it */

/* struct cop */
#define PERL_COP_TYPE 0x20 /* 9 bits */
#define PERL_COP_LINE 0x24
#define PERL_COP_FILE 0x30
#define PERL_COP_SEQ  0x3c
#define PERL_COP_END  0x40

/* Of a name: where its HEK is, the first word of it (hash and length), its package. 20 bits. */
static inline __u32 perl_mix(__u64 hek, __u64 hek_word, __u64 stash)
{
	__u64 mix = hek_word * 0x9e3779b97f4a7c15ull;

	mix = (mix ^ mix >> 29 ^ hek) * 0xbf58476d1ce4e5b9ull;
	mix = (mix ^ mix >> 32 ^ stash) * 0x94d049bb133111ebull;
	return (__u32)(mix >> 44);
}

#endif
