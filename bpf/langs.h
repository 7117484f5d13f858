/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
/*
 * The languages whose frames are walked. LANGUAGE(NAME, name): LANG_NAME is their number,
 *   name_step()    in bpf/lang/name.bpf.c walks (the contract: bpf/lang.bpf.h),
 *   name_runtime   in symbolizer/lang/name.c recognizes the runtime and names the frames
 *		    (the contract: symbolizer/lang/lang.h),
 * and bpf/lang/name.h says what the one tells the other. Append only.
 */
#ifndef SCONCE_BPF_LANGS_H
#define SCONCE_BPF_LANGS_H

#define LANGUAGES(LANGUAGE)                                                                        \
	LANGUAGE(PYTHON, python)                                                                   \
	LANGUAGE(PHP, php)                                                                         \
	LANGUAGE(RUBY, ruby)                                                                       \
	LANGUAGE(PERL, perl)

enum language {
	LANG_NONE,
#define LANGUAGE(NAME, name) LANG_##NAME,
	LANGUAGES(LANGUAGE)
#undef LANGUAGE
	    LANG_COUNT
};

/* One bit for each language whose runtimes may make code while they run (w->script.made). */
#define LANGS_WITH_MADE (1u << LANG_PYTHON | 1u << LANG_PHP | 1u << LANG_RUBY)

#endif
