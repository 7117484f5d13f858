/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hangfs BACKING MOUNTPOINT: a FUSE server that stops answering. It shows the files of a folder,
 * flat, and forgets what is written. Every attribute expires at once, so that whoever asks the
 * filesystem asks this server.
 *
 * Prints "ready". Lines of stdin:
 *   hang OP   from now on requests of this kind are never answered (OP: see ops below); an answer
 *             "hung OP" is printed for the first that comes
 *   stop OP   they are answered again; those that came meanwhile never are
 * At the end of stdin it exits, the kernel aborts the connection, and everybody who waited gets an
 * error: nothing stays in uninterruptible sleep.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define BUFFER_BYTES (256 * 1024) /* at least FUSE_MIN_READ_BUFFER and a write */
#define FILES_MAX    64
#define OPCODES	     64

static const struct {
	const char *name;
	uint32_t opcode;
} ops[] = {{"LOOKUP", FUSE_LOOKUP}, {"GETATTR", FUSE_GETATTR}, {"STATFS", FUSE_STATFS},
	   {"OPEN", FUSE_OPEN},	    {"READ", FUSE_READ},       {"WRITE", FUSE_WRITE}};

static int device;
static struct {
	int fd;
	char name[64];
} files[FILES_MAX]; /* node FUSE_ROOT_ID + 1 + i */
static uint32_t files_n;
static bool hangs[OPCODES], told[OPCODES];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void reply(const struct fuse_in_header *in, int error, const void *data, size_t n)
{
	struct fuse_out_header out = {
	    .len = (uint32_t)(sizeof(out) + n), .error = error, .unique = in->unique};
	struct iovec parts[2] = {{&out, sizeof(out)}, {(void *)(uintptr_t)data, n}};

	/* ENOENT: who asked has given up. */
	if (writev(device, parts, n ? 2 : 1) < 0 && errno != ENOENT)
		die("reply");
}

static int node_fd(uint64_t node)
{
	return node > FUSE_ROOT_ID && node - FUSE_ROOT_ID - 1 < files_n
		   ? files[node - FUSE_ROOT_ID - 1].fd
		   : -1;
}

static void attributes(uint64_t node, struct fuse_attr *attr)
{
	struct stat st = {.st_mode = S_IFDIR | 0755, .st_nlink = 2};

	if (node_fd(node) >= 0)
		fstat(node_fd(node), &st);
	*attr = (struct fuse_attr){.ino = node,
				   .size = (uint64_t)st.st_size,
				   .blocks = (uint64_t)st.st_blocks,
				   .mtime = (uint64_t)st.st_mtim.tv_sec,
				   .mtimensec = (uint32_t)st.st_mtim.tv_nsec,
				   .mode = st.st_mode,
				   .nlink = (uint32_t)st.st_nlink,
				   .blksize = 4096};
}

/* The folder is read when a name is not known, so that files may be added. */
static uint64_t find(const char *backing, const char *name)
{
	char path[4096];
	int fd;

	for (uint32_t i = 0; i < files_n; i++)
		if (strcmp(files[i].name, name) == 0)
			return FUSE_ROOT_ID + 1 + i;
	snprintf(path, sizeof(path), "%s/%s", backing, name);
	fd = strlen(name) < sizeof(files[0].name) && files_n < FILES_MAX
		 ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
		 : -1;
	if (fd < 0)
		return 0;
	files[files_n].fd = fd;
	strcpy(files[files_n].name, name);
	return FUSE_ROOT_ID + 1 + files_n++;
}

static void on_lookup(const struct fuse_in_header *in, const char *backing, const char *name)
{
	struct fuse_entry_out out = {.nodeid = find(backing, name)};

	attributes(out.nodeid, &out.attr);
	reply(in, out.nodeid ? 0 : -ENOENT, &out, out.nodeid ? sizeof(out) : 0);
}

static void on_read(const struct fuse_in_header *in, const struct fuse_read_in *what)
{
	static char data[BUFFER_BYTES];
	size_t size = what->size < sizeof(data) ? what->size : sizeof(data);
	ssize_t n = pread(node_fd(in->nodeid), data, size, (off_t)what->offset);

	reply(in, n < 0 ? -errno : 0, data, n > 0 ? (size_t)n : 0);
}

static void answer(const struct fuse_in_header *in, const char *backing)
{
	const void *argument = in + 1;
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
				     .minor = FUSE_KERNEL_MINOR_VERSION,
				     .max_readahead = 65536,
				     .max_write = 65536};
	struct fuse_attr_out attr = {0};
	struct fuse_statfs_out statfs = {.st = {.bsize = 4096, .namelen = 63}};
	/* What is in the page cache stays there over a later open. */
	struct fuse_write_out written = {.size = ((const struct fuse_write_in *)argument)->size};
	struct fuse_open_out opened = {.open_flags = FOPEN_KEEP_CACHE};

	switch (in->opcode) {
	case FUSE_INIT:
		reply(in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		on_lookup(in, backing, argument);
		break;
	case FUSE_WRITE:
		reply(in, 0, &written, sizeof(written));
		break;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		attributes(in->nodeid, &attr.attr);
		reply(in, 0, &attr, sizeof(attr));
		break;
	case FUSE_STATFS:
		reply(in, 0, &statfs, sizeof(statfs));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		reply(in, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		on_read(in, argument);
		break;
	case FUSE_READDIR:
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		reply(in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: /* a hung request stays hung */
		break;
	default:
		reply(in, -ENOSYS, NULL, 0);
	}
}

static const char *op_name(uint32_t opcode)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
		if (ops[i].opcode == opcode)
			return ops[i].name;
	return "?";
}

static bool on_request(const char *backing)
{
	static char buffer[BUFFER_BYTES] __attribute__((aligned(8)));
	const struct fuse_in_header *in = (const void *)buffer;
	ssize_t n = read(device, buffer, sizeof(buffer));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN || errno == ENOENT;
	if (in->opcode < OPCODES && hangs[in->opcode]) {
		if (!told[in->opcode])
			printf("hung %s\n", op_name(in->opcode));
		told[in->opcode] = true;
		return true;
	}
	answer(in, backing);
	return true;
}

static bool on_command(void)
{
	char line[64], verb[16], name[16];

	if (!fgets(line, sizeof(line), stdin))
		return false;
	if (sscanf(line, "%15s %15s", verb, name) != 2)
		return true;
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
		if (strcmp(ops[i].name, name) == 0)
			hangs[ops[i].opcode] = strcmp(verb, "hang") == 0;
	memset(told, 0, sizeof(told));
	printf("%s %s\n", verb, name);
	return true;
}

int main(int argc, char **argv)
{
	struct pollfd wait[2] = {{.fd = 0, .events = POLLIN}, {.events = POLLIN}};
	char options[128];

	if (argc != 3)
		return 2;
	setvbuf(stdin, NULL, _IONBF, 0); /* poll() sees all that is there */
	setvbuf(stdout, NULL, _IOLBF, 0);
	device = wait[1].fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (device < 0)
		die("/dev/fuse");
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions",
		 device);
	if (mount("hangfs", argv[2], "fuse", MS_NOSUID | MS_NODEV, options))
		die("mount");
	puts("ready");
	while (poll(wait, 2, -1) >= 0 || errno == EINTR) {
		if (wait[0].revents && !on_command())
			break;
		if (wait[1].revents && !on_request(argv[1]))
			break;
	}
	return 0;
}
