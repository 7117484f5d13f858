/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a language does outside of the kernel. symbolizer/lang/x.c defines `const struct lang x_lang`:
 * recognize its runtime in a file, and say what a frame that its walker pushed (bpf/lang/x.h) is called.
 *
 * Both look at what somebody else wrote. Recognition looks at a file and finds out by itself, never at
 * a process; names are read out of the memory of the process, which goes on running meanwhile, so that
 * what is read is compared with the frame's cookie before and after. A name that is not sure is none.
 */
#ifndef SCONCE_SYMBOLIZER_LANG_LANG_H
#define SCONCE_SYMBOLIZER_LANG_LANG_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/langs.h"
#include "shm/table.h"
#include "symbolizer/elffile.h"
#include "symbolizer/remote.h"

#define LANG_NAME_BYTES	   512
#define LANG_FILE_BYTES	   1024
#define LANG_LAYOUT_WORDS  64
#define LANG_VERSION_BYTES 24

/* The runtime in a file. */
struct lang_runtime {
	struct table_runtime walk;		/* what BPF has to know */
	uint32_t layout[LANG_LAYOUT_WORDS];	/* what names need: the language's own */
	char version[LANG_VERSION_BYTES];	/* "3.11.2", for show; "" = not known */
};

/* A frame as BPF pushed it (FRAME_SCRIPT and its cookie of shm/record.h). */
struct lang_frame {
	uint64_t object, cookie;
	uint32_t where;
};

struct lang_function {
	char name[LANG_NAME_BYTES]; /* qualified, as the language writes it; never "" */
	char file[LANG_FILE_BYTES]; /* "" = none (functions of C) */
	uint32_t line;		    /* 0 = not known */
	uint32_t start_line;	    /* of the function; 0 = not known */
};

struct lang {
	const char *name;	/* as users say: "python" */
	const char *frame_type; /* profile.frame.type of the semantic conventions: "cpython" */
	/*
	 * module: the last part of the file's path, for show and to look less often; may be anything.
	 * 0: it is, and *runtime (zeroed before, walk.language set) is filled in.
	 * -ENOENT: it is no runtime of this language, or not the file that has the loop.
	 * -ENOTSUP: it is, but this version or build is not understood; version is set where known.
	 */
	int (*recognize)(struct elffile *elf, const char *module, struct lang_runtime *runtime);
	/* False: nothing is sure. Reads what remote.h allows for one frame. */
	bool (*name_frame)(struct remote *remote, const struct lang_runtime *runtime,
			   const struct lang_frame *frame, struct lang_function *function);
};

/* All of them, by enum language; [LANG_NONE] is NULL. */
extern const struct lang *const langs[LANG_COUNT];

/* Ask all of them. 0; -ENOENT: it is no runtime; -ENOTSUP: runtime->walk.language says whose. */
int lang_recognize(struct elffile *elf, const char *module, struct lang_runtime *runtime);

#define LANGUAGE(NAME, name) extern const struct lang name##_lang;
LANGUAGES(LANGUAGE)
#undef LANGUAGE

#endif
