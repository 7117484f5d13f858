/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "supervisor/emptyroot.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int emptyroot_mount(void)
{
	const unsigned long flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

	/* /proc is a directory that is there everywhere; by its name nobody will look again. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/proc", "tmpfs", flags, "size=4k,nr_inodes=2,mode=555") ||
	    chdir("/proc") || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) ||
	    chdir("/"))
		return -errno;
	return 0;
}

/* A new user namespace comes with every capability over it. */
static void emptyroot_drop(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {0};

	for (int cap = 0; cap < 64; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	prctl(PR_SET_SECUREBITS, SECURE_ALL_BITS | SECURE_ALL_LOCKS, 0, 0, 0);
	syscall(SYS_capset, &header, none);
}

int emptyroot_enter(void)
{
	int err;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -errno;
	err = emptyroot_mount();
	emptyroot_drop();
	return err;
}
