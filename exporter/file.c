/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/folded.h"
#include "profile/otlp.h"
#include "profile/pprof.h"

#define FILE_PROFILE_BYTES_MIN (64ull << 20)

/* Merge all requests of the spool; *merged counts what is in the profile, *lost what is not. */
static int file_merge(struct spool *spool, struct ledger_writer *ledger, struct profile *profile,
		      uint64_t *merged, uint64_t *lost)
{
	struct otlp_sink sink = {.into = profile};
	struct otlp_result result;
	int err = 0;

	for (const struct spool_entry *entry = spool_first(spool); entry;
	     entry = spool_next(spool, entry)) {
		/* A long recording takes its time: show that we live. */
		ledger_turn(ledger);
		err = otlp_decode(entry->request, entry->len_bytes, &sink, &result);
		if (err) {
			*lost += entry->samples;
			continue;
		}
		*merged += entry->samples - result.samples_dropped;
		*lost += result.samples_dropped;
	}
	return *merged ? 0 : err;
}

static int file_encode(const struct profile *profile, const struct config *config, uint8_t **bytes,
		       size_t *len)
{
	struct otlp_encode_options options = {.with_process_ids = true};
	char *text;
	int err;

	switch (config->format) {
	case FORMAT_FOLDED:
		err = folded_write(profile, &text, len);
		*bytes = err ? NULL : (uint8_t *)text;
		return err;
	case FORMAT_PPROF:
		return pprof_write(profile, bytes, len);
	case FORMAT_OTLP:
		/* A batch number that no batch gets: the ids differ from those of what was shipped.
		 */
		options.batch = UINT64_MAX - 1;
		memcpy(options.instance, config->runtime.instance, sizeof(options.instance));
		err = otlp_encode(profile, &options, bytes, len);
		if (err != -ENODATA)
			return err;
		/* Nothing was sampled: an empty message is a valid file. */
		*bytes = calloc(1, 1);
		*len = 0;
		return *bytes ? 0 : -ENOMEM;
	case FORMAT_NONE:
		break;
	}
	return -EINVAL;
}

/* Pipes and devices cannot be taken back. */
static int file_empty(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	return S_ISREG(st.st_mode) && (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET)) ? -errno : 0;
}

static int file_put(int fd, const uint8_t *bytes, size_t len)
{
	int err = file_empty(fd); /* a writer before us may have been killed half-way */

	while (!err && len) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno != EINTR)
			err = -errno;
		bytes += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	/* Half a file of text would look like a whole one. */
	if (err)
		file_empty(fd);
	return err;
}

static int file_make(struct spool *spool, struct ledger_writer *ledger, const struct config *config,
		     int fd, uint64_t *merged, uint64_t *lost, const char **failed)
{
	uint64_t limit = config->spool_bytes * 2;
	struct profile *profile =
	    profile_new(limit > FILE_PROFILE_BYTES_MIN ? limit : FILE_PROFILE_BYTES_MIN);
	uint8_t *bytes = NULL;
	size_t len;
	int err;

	*failed = "merging what was recorded";
	err = profile ? file_merge(spool, ledger, profile, merged, lost) : -ENOMEM;
	if (!err) {
		*failed = "encoding the file";
		err = file_encode(profile, config, &bytes, &len);
	}
	if (!err) {
		*failed = "writing the file";
		err = file_put(fd, bytes, len);
	}
	free(bytes);
	profile_free(profile);
	return err;
}

int file_write(struct spool *spool, struct ledger_writer *ledger, const struct config *config,
	       int fd, const char **failed)
{
	uint64_t merged = 0, lost = 0;
	int err;

	if (ledger->now.position[POSITION_FILE_WRITTEN])
		return 0;
	err = file_make(spool, ledger, config, fd, &merged, &lost, failed);
	spool_end_all(spool, err ? 0 : merged, err ? ledger->now.counter[C_file_waiting] : lost);
	ledger->now.counter[C_file_error] = (uint64_t)-err;
	ledger->now.position[POSITION_FILE_WRITTEN] = 1;
	ledger_commit(ledger);
	return err;
}
