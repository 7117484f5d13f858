/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of files that no walk of this worker comes to, but the walk in the kernel waits for. One
 * file per call, because to make a table takes milliseconds.
 */
#ifndef SCONCE_SYMBOLIZER_AHEAD_H
#define SCONCE_SYMBOLIZER_AHEAD_H

#include "symbolizer/filetable.h"
#include "symbolizer/process.h"

/*
 * The stack was deeper than the bytes of it that came along. BPF does not walk it as long as there
 * is a file in it that nobody has said anything of, and which one that is the walk did not come to
 * know.
 */
void ahead_stack(struct filetables *tables, const struct process *process);
/*
 * These are the frames of a sample. If there is code among them that lies in no file, and no frame
 * of a script: the runtime that may have made it is known to BPF by the table of its file, which no
 * frame is in where all of the time is spent in code that it made. deferred: BPF may know it, and
 * not get further.
 */
void ahead_frames(struct filetables *tables, const struct process *process,
		  const struct frame *frames, uint32_t n, bool deferred);

#endif
