/* SPDX-License-Identifier: Apache-2.0 */
/* Files that belong to a mapped one: what is asked for, in which order, and what is believed. */
#define _GNU_SOURCE
#include "symbolizer/others.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "supervisor/child.h"
#include "tests/symbolizer/packed.h"

#define S	1000000000ull
#define FILE_ID 5

static struct reader reader;
static struct blame blame;
static struct others_all all;
static struct others *o;
static struct channel sampler, worker;
static struct message message;
static uint64_t now;
static int changed, changed_parts, parts_given, parts_absent;
static int part_verdict;
static bool no_room;

/* --- Files. --- */

struct says {
	const char *id, *link, *alt, *alt_id; /* NULL = none; ids of eight letters */
	uint32_t crc;
	bool symbols, lines, package, without_bytes;
	char mark; /* makes another checksum */
};

static size_t note_of(const char *id, uint8_t *out)
{
	Elf64_Nhdr note = {4, 8, NT_GNU_BUILD_ID};

	memcpy(out, &note, sizeof(note));
	memcpy(out + sizeof(note), "GNU", 4);
	memcpy(out + sizeof(note) + 4, id, 8);
	return sizeof(note) + 12;
}

static size_t elf_of(const struct says *says, uint8_t *out, size_t room)
{
	static uint8_t note[64], link[300], alt[300];
	struct packed_section s[8];
	size_t n = 0, at;
	uint32_t nobits = says->without_bytes ? SHT_NOBITS : 0;

	memset(s, 0, sizeof(s));
	memset(link, 0, sizeof(link));
	if (says->id)
		s[n++] = (struct packed_section){
		    .name = ".note.gnu.build-id", .data = note, .bytes = note_of(says->id, note)};
	if (says->link) {
		strcpy((char *)link, says->link);
		at = (strlen(says->link) + 4) & ~3ul;
		memcpy(link + at, &says->crc, 4);
		s[n++] = (struct packed_section){
		    .name = ".gnu_debuglink", .data = link, .bytes = at + 4};
	}
	if (says->alt) {
		strcpy((char *)alt, says->alt);
		memcpy(alt + strlen(says->alt) + 1, says->alt_id, 8);
		s[n++] = (struct packed_section){
		    .name = ".gnu_debugaltlink", .data = alt, .bytes = strlen(says->alt) + 9};
	}
	if (says->symbols)
		s[n++] = (struct packed_section){.name = ".symtab",
						 .type = nobits ? nobits : SHT_SYMTAB,
						 .data = "0123456789abcdef01234567",
						 .bytes = 24};
	if (says->lines)
		s[n++] = (struct packed_section){
		    .name = ".debug_info", .type = nobits, .data = "info", .bytes = 4};
	if (says->package)
		s[n++] =
		    (struct packed_section){.name = ".debug_cu_index", .data = "i", .bytes = 1};
	s[n++] = (struct packed_section){.name = ".mark", .data = &says->mark, .bytes = 1};
	at = packed_elf(s, n, out, room);
	assert_true(at > 0);
	return at;
}

/* As the broker hands it over. */
static int fd_of(const struct says *says, struct file_key *key, uint32_t *crc)
{
	uint8_t bytes[16384] = {0};
	size_t n = elf_of(says, bytes, sizeof(bytes));
	int fd = memfd_create("elf", MFD_CLOEXEC);

	assert_int_equal(write(fd, bytes, n), n);
	if (key)
		*key = (struct file_key){.device = 1, .inode = 77, .size_bytes = n};
	if (crc)
		*crc = (uint32_t)crc32(0, bytes, (uInt)n);
	return fd;
}

static void begin(const struct says *says)
{
	struct file_key key;
	struct elffile elf;
	int slot = reader_add(&reader, fd_of(says, &key, NULL));

	assert_int_equal(elffile_open(&elf, &reader, slot, key.size_bytes), 0);
	o = others_begin(&all, FILE_ID, &elf);
	elffile_close(&elf);
	reader_remove(&reader, slot);
}

/* --- Around it. --- */

static void on_changed(void *arg, uint32_t file_id, bool parts_only)
{
	assert_ptr_equal(arg, &all);
	assert_int_equal(file_id, FILE_ID);
	changed++;
	changed_parts += parts_only;
}

static int on_part(void *arg, uint32_t file_id, const struct others_file *part)
{
	(void)arg;
	assert_int_equal(file_id, FILE_ID);
	parts_given += part->slot >= 0;
	parts_absent += part->slot < 0;
	return part->slot < 0 ? 0 : part_verdict;
}

static bool on_room(void *arg, uint32_t file_id)
{
	(void)arg;
	(void)file_id;
	return !no_room;
}

static int setup(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(channel_pair(fds), 0);
	channel_init(&worker, fds[0], ROLE_SYMBOLIZER, ROLE_SAMPLER, true);
	channel_init(&sampler, fds[1], ROLE_SAMPLER, ROLE_SYMBOLIZER, true);
	reader_open(&reader, false);
	all = (struct others_all){.calls = {on_changed, on_part, on_room, &all},
				  .reader = &reader,
				  .sampler = &worker,
				  .blame = &blame,
				  .bytes_max = 1 << 20};
	changed = changed_parts = parts_given = parts_absent = part_verdict = 0;
	no_room = false;
	now = child_now_ns();
	o = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	others_free(&all, o);
	assert_null(all.busy);
	assert_int_equal(all.open, 0);
	assert_int_equal(all.bytes, 0);
	assert_int_equal(reader.files, 0);
	reader_close(&reader);
	close(worker.fd);
	close(sampler.fd);
	return 0;
}

/* What is asked now; OTHER_KINDS: nothing. */
static enum other_kind question(void)
{
	others_turn(&all, now);
	if (channel_recv(&sampler, &message, NULL, NULL))
		return OTHER_KINDS;
	assert_int_equal(message.type, MESSAGE_NEED_OTHER);
	assert_int_equal(message.need_other.file_id, FILE_ID);
	return (enum other_kind)message.need_other.kind;
}

static void assert_asked(enum other_kind kind, const char *name, uint32_t place)
{
	assert_int_equal(question(), kind);
	assert_int_equal(message.need_other.bytes, strlen(name));
	assert_memory_equal(message.need_other.name, name, strlen(name));
	assert_int_equal(message.need_other.place, place);
}

/* The answer to the last question. says NULL: error. */
static void answer(const struct says *says, int error, uint32_t place)
{
	struct message_other reply = {.need = message.need_other, .file.error = error};
	int fd = says ? fd_of(says, &reply.file.key, NULL) : -1;

	reply.need.place = place;
	others_message(&all, o, &reply, fd);
}

static void test_says(void **state)
{
	static const struct {
		const char *link, *name;
	} links[] = {{"a.debug", "a.debug"},
		     {"/usr/lib/debug/a.debug", "a.debug"},
		     {"../../x/..", ""},
		     {".", ""},
		     {"/", ""},
		     {"", ""},
		     {"../../etc/shadow", "shadow"}};
	char longest[MESSAGE_OTHER_BYTES + 1];
	uint32_t crc;

	(void)state;
	begin(&(struct says){.symbols = true});
	assert_null(o); /* it lacks lines, but says of nothing where they are */
	begin(&(struct says){.symbols = true, .lines = true, .id = "12345678"});
	assert_non_null(o);
	assert_int_equal(question(), OTHER_KINDS); /* all is there */
	assert_true(o->says.symbols && o->says.lines);
	others_free(&all, o);
	begin(&(struct says){
	    .symbols = true, .lines = true, .without_bytes = true, .id = "12345678"});
	assert_false(o->says.symbols || o->says.lines);
	others_free(&all, o);
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
		begin(&(struct says){.link = links[i].link, .crc = 7, .id = "12345678"});
		assert_non_null(o);
		assert_string_equal(o->says.link, links[i].name);
		assert_int_equal(o->says.id.bytes, 8);
		others_free(&all, o);
	}
	memset(longest, 'a', MESSAGE_OTHER_BYTES);
	longest[MESSAGE_OTHER_BYTES] = 0;
	begin(&(struct says){.link = longest, .crc = 7});
	assert_null(o);
	longest[MESSAGE_OTHER_BYTES - 1] = 0;
	begin(&(struct says){.link = longest, .crc = 7});
	assert_asked(OTHER_LINK, longest, 0);
	assert_int_equal(o->says.link_crc, 7);
	close(fd_of(&(struct says){.mark = 1}, NULL, &crc));
}

/* By build id; what lies there and has another one is not believed. */
static void test_build_id(void **state)
{
	(void)state;
	begin(&(struct says){.id = "12345678", .link = "x.debug"});
	assert_true(others_pending(o));
	assert_asked(OTHER_BUILD_ID, "12345678", 0);
	assert_int_equal(question(), OTHER_KINDS); /* once */
	answer(&(struct says){.id = "87654321", .symbols = true}, 0, 0);
	assert_int_equal(all.wrong, 1);
	assert_asked(OTHER_BUILD_ID, "12345678", 1);
	answer(&(struct says){.symbols = true}, 0, 3); /* none at all */
	assert_int_equal(all.wrong, 2);
	assert_asked(OTHER_BUILD_ID, "12345678", 4);
	assert_int_equal(changed, 0);
	answer(&(struct says){.id = "12345678", .symbols = true, .lines = true}, 0, 4);
	assert_int_equal(all.found, 1);
	assert_int_equal(changed, 1);
	assert_true(o->debug.slot >= 0 && o->debug.key.inode == 77);
	assert_false(others_pending(o));
	now += 100 * S;
	assert_int_equal(question(), OTHER_KINDS);
}

static void test_link_by_checksum(void **state)
{
	const struct says right = {.symbols = true, .mark = 1},
			  wrong = {.symbols = true, .mark = 2};
	uint32_t crc;

	(void)state;
	close(fd_of(&right, NULL, &crc));
	begin(&(struct says){.link = "x.debug", .crc = crc});
	assert_asked(OTHER_LINK, "x.debug", 0);
	answer(&wrong, 0, 0);
	assert_int_equal(all.wrong, 0); /* not known yet */
	assert_int_equal(question(), OTHER_KINDS);
	assert_asked(OTHER_LINK, "x.debug", 1);
	assert_int_equal(all.wrong, 1);
	answer(&right, 0, 2);
	assert_int_equal(changed, 0);
	assert_int_equal(question(), OTHER_KINDS);
	assert_int_equal(all.found, 1);
	assert_int_equal(changed, 1);
	assert_true(o->debug.slot >= 0);
}

/* Where both have an id, that counts: a checksum is made of nothing. */
static void test_link_by_id(void **state)
{
	(void)state;
	begin(&(struct says){.id = "12345678", .link = "x.debug", .crc = 1});
	assert_asked(OTHER_BUILD_ID, "12345678", 0);
	answer(NULL, ENOENT, 5);
	assert_asked(OTHER_LINK, "x.debug", 0);
	answer(&(struct says){.id = "another1", .symbols = true}, 0, 0);
	assert_int_equal(all.wrong, 1);
	assert_asked(OTHER_LINK, "x.debug", 1);
	answer(&(struct says){.id = "12345678", .symbols = true}, 0, 1);
	assert_int_equal(changed, 1);
	assert_int_equal(question(), OTHER_KINDS);
}

/* What dwz took out is asked for when the debug file names it, and the names change once. */
static void test_alt(void **state)
{
	(void)state;
	begin(&(struct says){.id = "12345678"});
	assert_asked(OTHER_BUILD_ID, "12345678", 0);
	answer(&(struct says){.id = "12345678",
			      .lines = true,
			      .alt = "/usr/lib/debug/.dwz/x/y.debug",
			      .alt_id = "commonid"},
	       0, 0);
	assert_int_equal(changed, 0);
	assert_asked(OTHER_BUILD_ID, "commonid", 0);
	answer(NULL, ENOENT, 0);
	assert_asked(OTHER_ALT, "y.debug", 0);
	answer(&(struct says){.id = "12345678", .lines = true}, 0, 1);
	assert_int_equal(all.wrong, 1);
	assert_asked(OTHER_ALT, "y.debug", 2);
	answer(&(struct says){.id = "commonid", .lines = true}, 0, 2);
	assert_int_equal(changed, 1);
	assert_int_equal(changed_parts, 0);
	assert_true(o->alt.slot >= 0 && o->debug.slot >= 0);
}

/* The package first, then each part that is missed. */
static void test_split(void **state)
{
	(void)state;
	begin(&(struct says){.lines = true, .symbols = true});
	assert_int_equal(question(), OTHER_KINDS);
	others_want(&all, o, "a.dwo", 1);
	others_want(&all, o, "a.dwo", 1);
	others_want(&all, o, "b.dwo", 2);
	others_want(&all, o, "", 3);
	assert_false(others_pending(o)); /* no sample waits for these */
	assert_asked(OTHER_DWP, "", 0);
	answer(&(struct says){.lines = true}, 0, 0);
	assert_int_equal(all.wrong, 1); /* that is no package */
	assert_asked(OTHER_DWP, "", 1);
	answer(NULL, ENOENT, 5);
	assert_asked(OTHER_DWO, "a.dwo", 0);
	part_verdict = -ENOENT;
	answer(&(struct says){.lines = true}, 0, 0);
	assert_int_equal(all.wrong, 2);
	part_verdict = 0;
	assert_asked(OTHER_DWO, "a.dwo", 1);
	answer(&(struct says){.lines = true}, 0, 3);
	assert_int_equal(parts_given, 2);
	assert_int_equal(changed, 0);
	assert_asked(OTHER_DWO, "b.dwo", 0);
	answer(NULL, ENOENT, 0);
	assert_int_equal(parts_absent, 1);
	assert_int_equal(changed, 1);
	assert_int_equal(changed_parts, 1);
	others_want(&all, o, "c.dwo", 4); /* the package is not sought again */
	assert_asked(OTHER_DWO, "c.dwo", 0);
	for (uint64_t i = 0; i < 3 * OTHERS_WANTS_MAX; i++)
		others_want(&all, o, "d.dwo", 100 + i);
	assert_int_equal(o->split->wants_n, OTHERS_WANTS_MAX);
}

static void test_package(void **state)
{
	(void)state;
	begin(&(struct says){.lines = true, .symbols = true});
	others_want(&all, o, "a.dwo", 1);
	assert_asked(OTHER_DWP, "", 0);
	answer(&(struct says){.package = true}, 0, 0);
	assert_int_equal(changed, 1);
	assert_int_equal(changed_parts, 0);
	assert_true(o->dwp.slot >= 0);
	assert_int_equal(question(), OTHER_KINDS); /* it may be in there; or it is missed again */
	others_want(&all, o, "a.dwo", 1);
	assert_asked(OTHER_DWO, "a.dwo", 0);
}

/* Asked a few times, less and less often; then when somebody maps the file again. */
static void test_silence(void **state)
{
	int asked = 0;

	(void)state;
	begin(&(struct says){.id = "12345678"});
	for (int i = 0; i < 1000; i++, now += S / 10)
		asked += question() != OTHER_KINDS;
	assert_int_equal(asked, 4);
	assert_false(others_pending(o));
	others_again(&all, o);
	others_again(&all, o);
	for (int i = 0; i < 1000; i++, now += S / 10)
		asked += question() != OTHER_KINDS;
	assert_int_equal(asked, 5);
	others_again(&all, o);
	assert_asked(OTHER_BUILD_ID, "12345678", 0);
	answer(NULL, ESRCH, 0); /* another process may be better */
	now += 20 * S;
	assert_int_equal(question(), OTHER_KINDS);
	others_again(&all, o);
	assert_asked(OTHER_BUILD_ID, "12345678", 0);
	answer(NULL, EPERM, 0);
	others_again(&all, o);
	now += 100 * S;
	assert_int_equal(question(), OTHER_KINDS); /* a no is a no */
}

/* Who installs a debug package sees it in what is started ten minutes later. */
static void test_installed_later(void **state)
{
	const struct says says = {.id = "12345678", .symbols = true};
	struct says debug = says;

	(void)state;
	begin(&says);
	assert_asked(OTHER_BUILD_ID, "12345678", 0);
	answer(NULL, ENOENT, 0);
	now += OTHERS_AGAIN_NS;
	assert_int_equal(question(), OTHER_KINDS); /* nobody maps it */
	others_again(&all, o);
	assert_asked(OTHER_BUILD_ID, "12345678", 0);
	debug.lines = true;
	answer(&debug, 0, 0);
	assert_int_equal(changed, 1);
	assert_true(o->debug.slot >= 0);
	now += OTHERS_AGAIN_NS;
	others_again(&all, o);
	assert_int_equal(question(), OTHER_KINDS);
}

static void test_room(void **state)
{
	const struct says says = {.id = "12345678"};

	(void)state;
	all.bytes_max = sizeof(struct others) - 1;
	begin(&says);
	assert_null(o);
	all.bytes_max++;
	begin(&says);
	assert_non_null(o);
	assert_int_equal(all.bytes, sizeof(*o));
	/* Parts that are missed want a list of their own. */
	others_want(&all, o, "part.dwo", 1);
	assert_null(o->split);
}

/* What nobody asked for, or asked for before. */
static void test_unasked(void **state)
{
	struct message_other reply = {.need = {.file_id = FILE_ID, .kind = OTHER_LINK}};
	int fd;

	(void)state;
	fd = fd_of(&(struct says){.id = "12345678"}, &reply.file.key, NULL);
	others_message(&all, NULL, &reply, fd);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	begin(&(struct says){.id = "12345678"});
	answer(&(struct says){.id = "12345678"}, 0, 0); /* before the question */
	assert_asked(OTHER_BUILD_ID, "12345678", 0);
	fd = fd_of(&(struct says){.id = "12345678"}, &reply.file.key, NULL);
	others_message(&all, o, &reply, fd);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	message.need_other.name[0] = 'X';
	answer(&(struct says){.id = "12345678"}, 0, 0);
	assert_int_equal(all.open, 0);
	message.need_other.name[0] = '1';
	no_room = true;
	answer(&(struct says){.id = "12345678"}, 0, 0);
	assert_int_equal(all.open, 0);
	assert_int_equal(all.wrong, 0);
	assert_int_equal(changed, 0);
}

static void test_rate(void **state)
{
	static struct others *many[200];
	int asked = 0;

	(void)state;
	for (int i = 0; i < 200; i++) {
		begin(&(struct says){.id = "12345678"});
		many[i] = o;
	}
	now += 2 * S;
	for (int i = 0; i < 9; i++, now += S / 10)
		for (others_turn(&all, now); !channel_recv(&sampler, &message, NULL, NULL);)
			asked++;
	assert_in_range(asked, 40, 60);
	for (int i = 0; i < 199; i++)
		others_free(&all, many[i]);
}

/* Damaged in every byte: no crash, and never taken for what was asked for by another id. */
static void test_damaged(void **state)
{
	static uint8_t bytes[16384];
	size_t n =
	    elf_of(&(struct says){.id = "12345678", .link = "x", .alt = "y", .alt_id = "commonid"},
		   bytes, sizeof(bytes));
	struct companions says;
	struct elffile elf;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		int fd = memfd_create("elf", MFD_CLOEXEC), slot;

		bytes[i] ^= 0x80;
		assert_int_equal(write(fd, bytes, n), n);
		bytes[i] ^= 0x80;
		slot = reader_add(&reader, fd);
		if (elffile_open(&elf, &reader, slot, n) == 0) {
			companions_read(&elf, &says);
			assert_true(says.id.bytes <= COMPANIONS_ID_BYTES);
			assert_null(strchr(says.link, '/'));
			elffile_close(&elf);
		}
		reader_remove(&reader, slot);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_says),	   TEST(test_build_id), TEST(test_link_by_checksum),
	    TEST(test_link_by_id), TEST(test_alt),	TEST(test_split),
	    TEST(test_package),	   TEST(test_silence),	TEST(test_installed_later),
	    TEST(test_room),	   TEST(test_unasked),	TEST(test_rate),
	    TEST(test_damaged),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
