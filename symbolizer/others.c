/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/others.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "supervisor/child.h"

#define NS_PER_MS    1000000ull
#define ASK_FIRST_MS 1000 /* for an answer; then twice as long */
#define ASK_TRIES    4
#define ASK_PER_SECOND                                                                             \
	50 /* a quarter of what the sampler tolerates, for perf maps are asked for too */
#define CRC_PIECE   (1u << 20)
#define CRC_TURN_NS (50 * NS_PER_MS)

static const struct others_file none = {.slot = -1};

/* --- What is open. --- */

static void others_blame(const struct others_all *all, const struct others_file *file)
{
	blame_begin(all->blame, file->key.device, file->key.inode, file->path);
}

static void others_close(struct others_all *all, struct others_file *file)
{
	if (file->slot < 0)
		return;
	others_blame(all, file);
	reader_remove(all->reader, file->slot);
	blame_end(all->blame);
	all->open--;
	*file = none;
}

static int others_elf(struct others_all *all, const struct others_file *file, struct elffile *elf)
{
	return elffile_open(elf, all->reader, file->slot, file->key.size_bytes);
}

/* --- What to ask for. --- */

static void others_leave(struct others_all *all, struct others *o)
{
	struct others **link = &all->busy;

	while (*link && *link != o)
		link = &(*link)->next;
	if (*link)
		*link = o->next;
	o->next = NULL;
}

static bool others_name(struct others *o, enum other_kind kind, const void *name, size_t bytes)
{
	if (bytes > sizeof(o->need.name))
		return false;
	o->need = (struct message_need_other){
	    .file_id = o->file_id, .kind = kind, .bytes = (uint32_t)bytes};
	memcpy(o->need.name, name, bytes);
	return true;
}

/* The question of this step; false: it does not arise. */
static bool others_question(struct others *o)
{
	const struct companions *says = &o->says;
	bool has_debug = o->debug.slot >= 0, misses = o->split && o->split->wants_n;

	switch (o->step) {
	case OTHERS_STEP_ID:
		return says->id.bytes && !(says->lines && says->symbols) &&
		       others_name(o, OTHER_BUILD_ID, says->id.data, says->id.bytes);
	case OTHERS_STEP_LINK:
		return says->link[0] && !has_debug &&
		       others_name(o, OTHER_LINK, says->link, strlen(says->link));
	case OTHERS_STEP_ALT_ID:
		return says->alt_id.bytes &&
		       others_name(o, OTHER_BUILD_ID, says->alt_id.data, says->alt_id.bytes);
	case OTHERS_STEP_ALT:
		return says->alt_id.bytes && o->alt.slot < 0 && says->alt[0] &&
		       others_name(o, OTHER_ALT, says->alt, strlen(says->alt));
	case OTHERS_STEP_DWP:
		return misses && o->dwp.slot < 0 && others_name(o, OTHER_DWP, "", 0);
	case OTHERS_STEP_DWP_LINK:
		return misses && o->dwp.slot < 0 && has_debug && says->link[0] &&
		       others_name(o, OTHER_DWP, says->link, strlen(says->link));
	case OTHERS_STEP_DWO:
		return misses && others_name(o, OTHER_DWO, o->split->wants[0].name,
					     strlen(o->split->wants[0].name));
	case OTHERS_STEPS:
		break;
	}
	return false;
}

static void others_ask_at(struct others *o, uint32_t place)
{
	o->need.place = place;
	o->tries = 0;
	o->ask_ns = 0;
	o->asked = false;
}

static void others_join(struct others_all *all, struct others *o)
{
	o->next = all->busy;
	all->busy = o;
}

/* For now. */
static void others_rest(struct others_all *all, struct others *o)
{
	others_leave(all, o);
	o->rested_ns = all->now_ns;
	if (o->gave || o->gave_part)
		all->calls.changed(all->calls.arg, o->file_id, !o->gave);
	o->gave = o->gave_part = false;
}

/* From o->step on, the first that there is something to ask for. */
static void others_find_step(struct others_all *all, struct others *o)
{
	others_leave(all, o);
	while (o->step < OTHERS_STEPS && !others_question(o))
		o->step++;
	others_ask_at(o, 0);
	if (o->step < OTHERS_STEPS)
		others_join(all, o);
	else
		others_rest(all, o);
}

static void others_next_step(struct others_all *all, struct others *o)
{
	if (o->step == OTHERS_STEP_DWO) {
		o->split->wants_n--;
		memmove(o->split->wants, o->split->wants + 1,
			o->split->wants_n * sizeof(o->split->wants[0]));
	} else if (o->step < OTHERS_STEPS) {
		o->step++;
	}
	others_find_step(all, o);
}

/* It is nowhere, as far as anybody can say. */
static void others_absent(struct others_all *all, struct others *o)
{
	struct others_file part = none;

	if (o->step == OTHERS_STEP_DWO) {
		part.dwo_id = o->split->wants[0].dwo_id;
		all->calls.part(all->calls.arg, o->file_id, &part);
	}
	others_next_step(all, o);
}

/* NULL: no memory, or no room for it. */
static void *others_new(struct others_all *all, size_t bytes)
{
	void *p = bytes <= all->bytes_max - all->bytes ? calloc(1, bytes) : NULL;

	if (p)
		all->bytes += bytes;
	return p;
}

static void others_delete(struct others_all *all, void *p, size_t bytes)
{
	if (p)
		all->bytes -= bytes;
	free(p);
}

struct others *others_begin(struct others_all *all, uint32_t file_id, struct elffile *elf)
{
	struct others *o = others_new(all, sizeof(*o));

	if (!o)
		return NULL;
	o->file_id = file_id;
	o->debug = o->alt = o->dwp = o->check = none;
	companions_read(elf, &o->says);
	others_find_step(all, o);
	/* Parts may be missed later. */
	if (o->step < OTHERS_STEPS || o->says.lines)
		return o;
	others_delete(all, o, sizeof(*o));
	return NULL;
}

void others_again(struct others_all *all, struct others *o)
{
	if (o->step == OTHERS_STEPS && o->debug.slot < 0 &&
	    all->now_ns - o->rested_ns >= OTHERS_AGAIN_NS) {
		o->step = OTHERS_STEP_ID;
		others_find_step(all, o);
	}
	if (!o->silent)
		return;
	o->silent = false;
	others_ask_at(o, o->need.place);
	o->tries = ASK_TRIES - 1;
	others_join(all, o);
}

void others_free(struct others_all *all, struct others *o)
{
	if (!o)
		return;
	others_leave(all, o);
	others_close(all, &o->debug);
	others_close(all, &o->alt);
	others_close(all, &o->dwp);
	others_close(all, &o->check);
	for (uint32_t i = 0; o->split && i < o->split->parts_n; i++)
		others_close(all, &o->split->parts[i]);
	others_delete(all, o->split, sizeof(*o->split));
	others_delete(all, o, sizeof(*o));
}

void others_want(struct others_all *all, struct others *o, const char *name, uint64_t dwo_id)
{
	struct others_split *split = o->split ? o->split : others_new(all, sizeof(*split));

	o->split = split;
	if (!split || split->wants_n == OTHERS_WANTS_MAX || !name[0] ||
	    strlen(name) >= sizeof(split->wants[0].name))
		return; /* whoever misses it then says so again */
	for (uint32_t i = 0; i < split->wants_n; i++)
		if (split->wants[i].dwo_id == dwo_id)
			return;
	split->wants[split->wants_n].dwo_id = dwo_id;
	strcpy(split->wants[split->wants_n++].name, name);
	if (o->step < OTHERS_STEPS)
		return;
	o->step = o->package_sought ? OTHERS_STEP_DWO : OTHERS_STEP_DWP;
	o->package_sought = true;
	others_find_step(all, o);
}

bool others_pending(const struct others *o)
{
	return o->step <= OTHERS_STEP_ALT && !o->silent;
}

/* --- What came. --- */

enum verdict { FITS, WRONG, NOT_KNOWN };

/* All that can be said without reading all of it. */
static enum verdict others_judge(struct others_all *all, const struct others *o,
				 const struct others_file *file, struct companions *says)
{
	bool package;
	struct elffile elf;

	if (others_elf(all, file, &elf))
		return WRONG;
	companions_read(&elf, says);
	package = companions_is_package(&elf);
	elffile_close(&elf);
	if (o->step >= OTHERS_STEP_DWP)
		return package ? FITS : WRONG;
	if (o->step >= OTHERS_STEP_ALT_ID)
		return companions_same(&o->says.alt_id, &says->id) ? FITS : WRONG;
	if (o->step == OTHERS_STEP_ID || (o->says.id.bytes && says->id.bytes))
		return companions_same(&o->says.id, &says->id) ? FITS : WRONG;
	return NOT_KNOWN;
}

static void others_refuse(struct others_all *all, struct others *o, struct others_file *file)
{
	others_close(all, file);
	all->wrong++;
	others_ask_at(o, o->need.place + 1);
}

/* says: of the file; NULL for a part. */
static void others_accept(struct others_all *all, struct others *o, struct others_file *file,
			  const struct companions *says)
{
	all->found++;
	o->gave |= o->step != OTHERS_STEP_DWO;
	o->gave_part = true;
	if (o->step == OTHERS_STEP_DWO) {
		o->split->parts[o->split->parts_n++] = *file;
	} else if (o->step >= OTHERS_STEP_DWP) {
		o->dwp = *file;
		o->split->wants_n = 0; /* they may be in there */
	} else if (o->step >= OTHERS_STEP_ALT_ID) {
		o->alt = *file;
	} else {
		o->debug = *file;
		if (!o->says.lines) {
			memcpy(o->says.alt, says->alt, sizeof(o->says.alt));
			o->says.alt_id = says->alt_id;
		}
	}
	*file = none;
	others_next_step(all, o);
}

static void others_part(struct others_all *all, struct others *o, struct others_file *file)
{
	file->dwo_id = o->split->wants[0].dwo_id;
	if (all->calls.part(all->calls.arg, o->file_id, file))
		others_refuse(all, o, file);
	else
		others_accept(all, o, file, NULL);
}

static void others_take(struct others_all *all, struct others *o, struct others_file *file)
{
	struct companions says;
	enum verdict verdict = WRONG;

	if (o->step == OTHERS_STEP_DWO) {
		others_part(all, o, file);
		return;
	}
	others_blame(all, file);
	verdict = others_judge(all, o, file, &says);
	blame_end(all->blame);
	if (verdict == FITS) {
		others_accept(all, o, file, &says);
	} else if (verdict == WRONG || file->key.size_bytes > OTHERS_CRC_MAX - o->crc_read) {
		others_refuse(all, o, file);
	} else {
		o->check = *file;
		o->crc = 0;
		o->crc_at = 0;
	}
}

/* Errors that another try, perhaps through another process, may not meet. */
static bool others_may_retry(int32_t error)
{
	return error == ESRCH || error == ESTALE || error == EAGAIN || error == ENOMEM ||
	       error == ENFILE || error == EMFILE;
}

static void others_keep_path(struct others_file *file, const char *path)
{
	size_t n = strnlen(path, MESSAGE_PATH_BYTES), room = sizeof(file->path) - 1;

	memcpy(file->path, path + (n > room ? n - room : 0), n > room ? room : n);
}

void others_message(struct others_all *all, struct others *o, const struct message_other *message,
		    int fd)
{
	struct others_file file = {.key = message->file.key};
	const struct message_need_other *need = &message->need;

	if (!o || !o->asked || o->check.slot >= 0 || need->kind != o->need.kind ||
	    need->bytes != o->need.bytes || memcmp(need->name, o->need.name, sizeof(need->name))) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (fd < 0 && others_may_retry(message->file.error))
		return;
	o->asked = false;
	if (fd >= 0 && ((o->split && o->split->parts_n == OTHERS_PARTS_MAX) ||
			!all->calls.room(all->calls.arg, o->file_id))) {
		close(fd);
		fd = -1;
	}
	others_keep_path(&file, message->file.path);
	file.slot = fd < 0 ? -1 : reader_add(all->reader, fd);
	if (file.slot < 0) {
		others_absent(all, o);
		return;
	}
	all->open++;
	o->need.place = need->place;
	others_take(all, o, &file);
}

/* --- The turn. --- */

static void others_ask(struct others_all *all, struct others *o)
{
	if (all->now_ns < o->ask_ns)
		return;
	if (o->tries == ASK_TRIES) {
		o->silent = true;
		o->asked = false;
		others_rest(all, o);
		return;
	}
	if (all->now_ns - all->window_ns >= 1000 * NS_PER_MS) {
		all->window_ns = all->now_ns;
		all->sent = 0;
	}
	if (all->sent >= ASK_PER_SECOND ||
	    channel_send(all->sampler, MESSAGE_NEED_OTHER, &o->need, NULL, 0))
		return;
	all->sent++;
	o->asked = true;
	o->ask_ns = all->now_ns + ((uint64_t)ASK_FIRST_MS << o->tries++) * NS_PER_MS;
}

static bool others_check_piece(struct others_all *all, struct others *o)
{
	static uint8_t piece[CRC_PIECE];
	uint64_t left = o->check.key.size_bytes - o->crc_at;
	struct reader_part part = {piece, left < CRC_PIECE ? left : CRC_PIECE, o->crc_at, 0};

	reader_read(all->reader, o->check.slot, &part, 1);
	if (part.result != (long)part.len_bytes)
		return false;
	o->crc = (uint32_t)crc32(o->crc, piece, (uInt)part.len_bytes);
	o->crc_at += part.len_bytes;
	o->crc_read += part.len_bytes;
	return true;
}

static void others_check(struct others_all *all, struct others *o, uint64_t end_ns)
{
	struct others_file file = o->check;
	struct companions says;
	bool whole = true;

	others_blame(all, &file);
	while (o->crc_at < file.key.size_bytes && child_now_ns() < end_ns &&
	       (whole = others_check_piece(all, o)))
		;
	blame_end(all->blame);
	if (whole && o->crc_at < file.key.size_bytes)
		return;
	o->check = none;
	if (!whole || o->crc != o->says.link_crc || others_judge(all, o, &file, &says) == WRONG)
		others_refuse(all, o, &file);
	else
		others_accept(all, o, &file, &says);
}

void others_turn(struct others_all *all, uint64_t now_ns)
{
	uint64_t end_ns = now_ns + CRC_TURN_NS;
	struct others *next;

	all->now_ns = now_ns;
	for (struct others *o = all->busy; o; o = next) {
		next = o->next;
		if (o->check.slot >= 0)
			others_check(all, o, end_ns);
		else
			others_ask(all, o);
	}
}
