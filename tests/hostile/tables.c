/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lies in unwind tables: what is none, and what is one but tells nonsense, to the sampler and to
 * other workers.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolizer/filetable.h"
#include "tests/hostile/lies.h"

#define PAGES	     64u
#define ROWS_OF_PAGE 64u
#define RULES	     256u
#define HUGE	     (8ull << 30)

struct nonsense {
	struct table_header header;
	struct table_page pages[PAGES];
	__u32 rows[PAGES * ROWS_OF_PAGE];
	struct table_rule rules[RULES];
};

/* In shape it is a table. What it says may lead anywhere. */
static struct nonsense *nonsense(struct liar *liar)
{
	static struct nonsense t;
	unsigned char *bytes = (unsigned char *)t.rules;

	t.header = (struct table_header){.magic = TABLE_MAGIC,
					 .version = TABLE_VERSION,
					 .pages = PAGES,
					 .rows = PAGES * ROWS_OF_PAGE,
					 .rules = RULES};
	for (uint32_t i = 0; i < PAGES; i++)
		t.pages[i] = (struct table_page){i * ROWS_OF_PAGE, ROWS_OF_PAGE};
	for (uint32_t i = 0; i < PAGES * ROWS_OF_PAGE; i++)
		t.rows[i] = (uint32_t)(1 + lies_random(liar) % (RULES - 1)) << 16 |
			    (i % ROWS_OF_PAGE) * (65536 / ROWS_OF_PAGE);
	for (size_t i = sizeof(t.rules[0]); i < sizeof(t.rules); i++)
		bytes[i] = (unsigned char)lies_random(liar);
	for (uint32_t i = 1; i < RULES; i++) {
		struct table_rule *rule = &t.rules[i];

		rule->cfa = (__u8)(RULE_REGISTER + rule->cfa % (RULE_NOTED - RULE_REGISTER + 1));
		rule->cfa_register %= RULE_REGISTER_COUNT;
		rule->cfa_offset = (__s32)(lies_random(liar) % 4096) & ~7;
		rule->fp %= RULE_FP_UNDEFINED + 1;
		rule->ra = i % 4 == 0;
		rule->ra_register %= RULE_REGISTER_COUNT;
	}
	return &t;
}

static int sealed(const void *bytes, size_t n, int seals)
{
	int fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (write(fd, bytes, n) < 0 || fcntl(fd, F_ADD_SEALS, seals))
		log_warn("cannot make a table: %m");
	return fd;
}

#define SHAPE (F_SEAL_SHRINK | F_SEAL_GROW)

/* The files that this worker was told of. */
static uint32_t files_told(struct liar *liar, uint32_t *ids, uint32_t max)
{
	struct lru *lru = &liar->worker.files.table;
	uint32_t n = 0;

	for (struct file *file = lru_oldest(lru); file && n < max;
	     file = lru_newer(lru, &file->node))
		if (file->announced)
			ids[n++] = file->node.key;
	return n;
}

/*
 * Of one file after the other, beginning with libc or another of all: of some it may not speak,
 * because the broker could not hand them over, and then nobody listens.
 */
static void hand_over(struct liar *liar, int fd, uint32_t bytes)
{
	uint32_t ids[16], n = files_told(liar, ids, 16);
	struct message_table table = {.bytes = 1};

	if (n == 0)
		return;
	table.file_id = ids[liar->told % n];
	channel_send(&liar->worker.sampler, MESSAGE_NO_TABLE, &table, NULL, 0);
	table.bytes = bytes;
	channel_send(&liar->worker.sampler, MESSAGE_TABLE, &table, &fd, 1);
}

static void hand_over_bytes(struct liar *liar, const struct nonsense *t, size_t bytes, int seals)
{
	int fd = sealed(t, sizeof(*t), seals);

	hand_over(liar, fd, (uint32_t)bytes);
	close(fd);
}

static void no_memory(struct liar *liar)
{
	hand_over(liar, STDERR_FILENO, sizeof(struct nonsense));
}

static void unsealed(struct liar *liar)
{
	hand_over_bytes(liar, nonsense(liar), sizeof(struct nonsense), F_SEAL_GROW);
}

static void longer(struct liar *liar)
{
	hand_over_bytes(liar, nonsense(liar), sizeof(struct nonsense) + 4, SHAPE);
}

static int huge_memory(void)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (ftruncate(fd, HUGE) || fcntl(fd, F_ADD_SEALS, SHAPE))
		log_warn("cannot make a large table: %m");
	return fd;
}

static void huge(struct liar *liar)
{
	int fd = huge_memory();

	hand_over(liar, fd, UINT32_MAX - 3);
	close(fd);
}

static void random_bytes(struct liar *liar)
{
	struct nonsense *t = nonsense(liar);

	for (uint32_t i = 0; i < PAGES * ROWS_OF_PAGE; i++)
		t->rows[i] = (uint32_t)lies_random(liar);
	hand_over_bytes(liar, t, sizeof(*t), SHAPE);
}

static void rule_out_of_range(struct liar *liar)
{
	struct nonsense *t = nonsense(liar);

	t->rows[77] |= RULES << 16;
	hand_over_bytes(liar, t, sizeof(*t), SHAPE);
}

static void unsorted(struct liar *liar)
{
	struct nonsense *t = nonsense(liar);

	t->rows[77] = t->rows[76];
	hand_over_bytes(liar, t, sizeof(*t), SHAPE);
}

static void *change(void *memory)
{
	volatile __u32 *rows = ((struct nonsense *)memory)->rows;

	for (uint32_t i = 0;; i++)
		rows[i % (PAGES * ROWS_OF_PAGE)] ^= 0xffff0000u;
	return NULL;
}

/* Sound at one moment and not at the next; it goes on being written to when it has been handed
 * over. */
static void changing(struct liar *liar)
{
	static int fd = -1;
	pthread_t thread;

	if (fd < 0) {
		fd = sealed(nonsense(liar), sizeof(struct nonsense), SHAPE);
		pthread_create(
		    &thread, NULL, change,
		    mmap(NULL, sizeof(struct nonsense), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	}
	hand_over(liar, fd, sizeof(struct nonsense));
}

/* Nobody can tell that these are lies. Of every file that it was told of, in place of what is
 * known. */
static void well_formed(struct liar *liar)
{
	struct message_table table;
	uint32_t ids[512], n = files_told(liar, ids, 512);

	for (uint32_t i = 0; i < 5 && n; i++) {
		int fd = sealed(nonsense(liar), sizeof(struct nonsense), SHAPE);

		table = (struct message_table){ids[(liar->told * 5 + i) % n], 1};
		channel_send(&liar->worker.sampler, MESSAGE_NO_TABLE, &table, NULL, 0);
		table.bytes = sizeof(struct nonsense);
		channel_send(&liar->worker.sampler, MESSAGE_TABLE, &table, &fd, 1);
		close(fd);
	}
}

/* So many that the one who comes next has no room in the socket, and cannot say that it is new. */
static void fill(struct liar *liar)
{
	struct message_table table = {.bytes = sizeof(struct nonsense)};
	int fd = sealed(nonsense(liar), sizeof(struct nonsense), SHAPE);

	files_told(liar, &table.file_id, 1);
	for (int i = 0; i < 390; i++)
		channel_send(&liar->worker.sampler, MESSAGE_TABLE, &table, &fd, 1);
	_exit(1);
}

/* --- To other workers, who asked for it. --- */

static void lend(struct liar *liar, int fd, uint32_t bytes)
{
	struct peers *peers = &liar->worker.peers;
	struct message message;

	for (uint32_t k = 0; k < peers->n; k++)
		while (k != peers->self &&
		       channel_recv(&peers->peer[k].channel, &message, NULL, NULL) == 0) {
			struct message_table table = {message.need_file.file_id, bytes};

			if (message.type == MESSAGE_WANT_TABLE)
				channel_send(&peers->peer[k].channel, MESSAGE_LEND_TABLE, &table,
					     &fd, 1);
		}
}

static void lend_well_formed(struct liar *liar)
{
	int fd = sealed(nonsense(liar), sizeof(struct nonsense), SHAPE);

	lend(liar, fd, sizeof(struct nonsense));
	close(fd);
}

static void lend_huge(struct liar *liar)
{
	int fd = huge_memory();

	lend(liar, fd, UINT32_MAX - 3);
	close(fd);
}

const struct lie lies_tables[] = {{"no-memory", no_memory, false},
				  {"unsealed", unsealed, false},
				  {"longer", longer, false},
				  {"huge", huge, true},
				  {"random", random_bytes, false},
				  {"rule-out-of-range", rule_out_of_range, false},
				  {"unsorted", unsorted, false},
				  {"changing", changing, true},
				  {"well-formed", well_formed, false},
				  {"fill", fill, false},
				  {"lend", lend_well_formed, false},
				  {"lend-huge", lend_huge, true},
				  {NULL, NULL, false}};
