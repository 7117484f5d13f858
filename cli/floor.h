/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels on which BPF must not read user memory: copy_from_user_nofault() can hang there. Nothing
 * can be probed without hanging, so this one rule goes by versions; everything else that a kernel
 * has to have is tried.
 */
#ifndef SCONCE_CLI_FLOOR_H
#define SCONCE_CLI_FLOOR_H

/*
 * By what uname() says as release and as version. NULL, or in which version of its series it is
 * mended. A Debian release (6.1.0-18-amd64) does not say the patch level, the version behind it does
 * (... Debian 6.1.76-1 ...). Where neither says, patch level 0 is taken for what it looks like.
 */
const char *floor_hangs(const char *release, const char *version);

#endif
