/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table is copied before it is checked, so that its worker cannot change it behind the check. It
 * is told from any other fd by its seals: only memory has some, so that reading it never waits.
 */
#include "sampler/store.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/segment.h"
#include "shm/table.h"

#define STORE_UNIT 64u /* words; slices.c counts in blocks of 8 units */
#define ALIGN_WORDS 4u /* of rules */
#define HEADER_WORDS (uint32_t)(sizeof(struct table_header) / 4)

_Static_assert(SLICES_BLOCKS_MAX >= TABLES_CHUNKS_MAX * (TABLES_CHUNK_WORDS / STORE_UNIT /
							  SLICES_BLOCK),
	       "slices can number all of it");

int store_open(struct store *store, int files_fd, int chunk_fd, uint64_t unwind_bytes)
{
	size_t files_bytes = (TABLES_FILES_MAX + 1) * sizeof(struct bpf_file);
	int n = 0;

	store->chunks_max = (uint32_t)(unwind_bytes / TABLES_CHUNK_BYTES);
	store->files = segment_map(files_fd, files_bytes, 1);
	store->words = mmap(NULL, (size_t)store->chunks_max * TABLES_CHUNK_BYTES, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!store->files || store->words == MAP_FAILED)
		return -errno;
	for (uint32_t i = 0; i < TABLES_FILES_MAX; i++) {
		n += store->files[i].file_id != 0;
		store->files[i].file_id = 0;
	}
	/* Nothing is known of any file yet, so all are worth waiting for: asking for a table begins
	 * with a sample that is deferred. */
	store->files[TABLES_FILES_MAX].flags = BPF_FILE_DEFER;
	while (store_add_chunk(store, chunk_fd + (int)store->chunks) == 0)
		;
	return store->chunks ? n : -EBADF;
}

int store_add_chunk(struct store *store, int fd)
{
	uint32_t *at = store->words + (size_t)store->chunks * TABLES_CHUNK_WORDS;

	if (store->chunks == store->chunks_max)
		return -ENOSPC;
	if (mmap(at, TABLES_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
	    at)
		return -errno;
	store->chunks++;
	store->wants_chunk = false;
	slices_init(&store->room, NULL, store->chunks * (TABLES_CHUNK_WORDS / STORE_UNIT));
	return 0;
}

static uint64_t store_bytes(const struct bpf_file *file)
{
	return 4 * TABLE_WORDS(file->pages, file->rows, file->rules) +
	       (file->flags & BPF_FILE_RUNTIME ? sizeof(struct table_runtime) : 0);
}

static void store_drop(struct store *store, struct bpf_file *file, uint64_t now_ns)
{
	bool table = file->file_id && (file->flags & BPF_FILE_TABLE);

	file->file_id = 0;
	/* BPF looks at file_id before and after what is written next. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!table)
		return;
	store->tables--;
	store->bytes -= store_bytes(file);
	slices_drop(&store->room, file->first / STORE_UNIT, now_ns);
}

/* Room is free only after the grace period, so nothing is gained by going on before that is over. */
static void store_evict(struct store *store, uint64_t bytes, uint64_t now_ns)
{
	uint64_t freed = 0;

	if (now_ns < store->evict_after_ns)
		return;
	store->evict_after_ns = now_ns + TABLES_GRACE_NS;
	while (freed < bytes) {
		struct bpf_file *coldest = NULL;

		for (uint32_t i = 0; i < TABLES_FILES_MAX; i++) {
			struct bpf_file *file = &store->files[i];

			if (file->file_id && (file->flags & BPF_FILE_TABLE) &&
			    file->used_ns + STORE_COLD_NS < now_ns &&
			    (!coldest || file->used_ns < coldest->used_ns))
				coldest = file;
		}
		if (!coldest)
			return;
		freed += store_bytes(coldest);
		store_drop(store, coldest, now_ns);
		store->evicted++;
	}
}

static void store_publish(struct bpf_file *file, uint32_t file_id)
{
	atomic_thread_fence(memory_order_release);
	*(volatile uint32_t *)&file->file_id = file_id;
}

/* Copy, check, and move up so far that no rule lies in two chunks. */
static int store_copy(uint32_t *words, int fd, uint32_t bytes, uint32_t *shift)
{
	const struct table_header *header = (const struct table_header *)words;

	if (pread(fd, words, bytes, 0) != (ssize_t)bytes || table_check(header, bytes))
		return -EPROTO;
	*shift = -(2 * header->pages + header->rows) % ALIGN_WORDS;
	memmove(words + *shift, words, bytes);
	return 0;
}

static int store_place(struct store *store, struct bpf_file *file, int fd, uint32_t bytes,
		       uint64_t now_ns)
{
	uint32_t units = (bytes / 4 + ALIGN_WORDS) / STORE_UNIT + 1, first, shift;
	const struct table_header *header;
	int err;

	if (bytes > TABLE_BYTES_MAX || segment_size(fd) < (long)bytes)
		return -EPROTO;
	if (bytes >= (uint64_t)store->chunks_max * TABLES_CHUNK_BYTES)
		return -ENOSPC;
	first = slices_take(&store->room, units, now_ns);
	if (first == SLICES_NONE) {
		store->wants_chunk = store->chunks < store->chunks_max;
		if (!store->wants_chunk)
			store_evict(store, bytes, now_ns);
		return -ENOSPC;
	}
	err = store_copy(store->words + (size_t)first * STORE_UNIT, fd, bytes, &shift);
	if (err) {
		slices_drop(&store->room, first, now_ns);
		return err;
	}
	store_drop(store, file, now_ns);
	file->first = first * STORE_UNIT + shift + HEADER_WORDS;
	header = (const struct table_header *)(store->words + file->first - HEADER_WORDS);
	file->first_page = header->first_page;
	file->pages = header->pages;
	file->rows = header->rows;
	file->rules = header->rules;
	file->flags = BPF_FILE_TABLE | (header->runtimes ? BPF_FILE_RUNTIME : 0);
	return 0;
}

int store_install(struct store *store, uint32_t file_id, uint32_t worker, int fd, uint32_t bytes,
		  uint64_t now_ns)
{
	struct bpf_file *file = &store->files[file_id % TABLES_FILES_MAX];
	int err;

	err = file->file_id == file_id && (file->flags & BPF_FILE_TABLE)
		  ? -EEXIST
		  : store_place(store, file, fd, bytes, now_ns);
	store->refused += err != 0;
	if (err)
		return err;
	file->used_ns = now_ns;
	file->worker = worker;
	store_publish(file, file_id);
	store->tables++;
	store->bytes += store_bytes(file);
	if (store->bytes > (uint64_t)store->chunks * TABLES_CHUNK_BYTES / 4 * 3)
		store->wants_chunk = store->chunks < store->chunks_max;
	return 0;
}

void store_install_none(struct store *store, uint32_t file_id, uint32_t worker, bool withdraw,
			uint64_t now_ns)
{
	struct bpf_file *file = &store->files[file_id % TABLES_FILES_MAX];

	if ((file->file_id == file_id) != withdraw)
		return;
	store_drop(store, file, now_ns);
	file->flags = 0;
	file->worker = worker;
	store_publish(file, withdraw ? 0 : file_id);
}

void store_withdraw(struct store *store, uint32_t worker, uint64_t now_ns)
{
	for (uint32_t i = 0; i < TABLES_FILES_MAX; i++)
		if (store->files[i].file_id && store->files[i].worker == worker)
			store_drop(store, &store->files[i], now_ns);
}

void store_count(struct store *store, struct ledger_writer *ledger)
{
	ledger_set(ledger, C_tables, store->tables);
	ledger_set(ledger, C_table_bytes, store->bytes);
	ledger_set(ledger, C_chunks, store->chunks);
	ledger_set(ledger, C_table_room,
		   4ull * store->room.used * SLICES_BLOCK * STORE_UNIT);
	ledger_add(ledger, C_tables_refused, store->refused);
	ledger_add(ledger, C_tables_evicted, store->evicted);
	store->refused = store->evicted = 0;
}
