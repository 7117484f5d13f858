/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/remote.h"

#include <string.h>
#include <unistd.h>

#define REMOTE_PAGE 4096u

void remote_begin(struct remote *remote)
{
	remote->reads = remote->bytes = 0;
}

bool remote_read(struct remote *remote, uint64_t from, void *to, size_t bytes)
{
	if (remote->reads >= REMOTE_READS_MAX || bytes > REMOTE_BYTES_MAX - remote->bytes ||
	    from > INT64_MAX - bytes)
		return false;
	remote->reads++;
	remote->bytes += (uint32_t)bytes;
	return pread(remote->fd, to, bytes, (off_t)from) == (ssize_t)bytes;
}

bool remote_u64(struct remote *remote, uint64_t from, uint64_t *value)
{
	return remote_read(remote, from, value, sizeof(*value));
}

bool remote_u32(struct remote *remote, uint64_t from, uint32_t *value)
{
	return remote_read(remote, from, value, sizeof(*value));
}

/* Page by page, because the next one may not be there. */
bool remote_text(struct remote *remote, uint64_t from, char *to, size_t size)
{
	size_t done = 0;

	while (done + 1 < size) {
		size_t n = REMOTE_PAGE - (from + done) % REMOTE_PAGE;
		void *end;

		if (n > size - 1 - done)
			n = size - 1 - done;
		if (!remote_read(remote, from + done, to + done, n))
			return false;
		end = memchr(to + done, 0, n);
		if (end)
			return true;
		done += n;
	}
	to[done] = 0;
	return true;
}
