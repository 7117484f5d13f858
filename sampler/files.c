/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File ids: id % FILES_MAX is the slot, so that an id finds its file without a second table and the
 * newest id pushes the oldest out. Does not open anything and does not look at paths.
 */
#include "sampler/files.h"

#include <stdio.h>

void files_init(struct files *files, uint32_t last_id)
{
	/* Ids of a batch that was never committed may be in BPF's array: leave them all out. */
	files->last_id = last_id ? last_id + FILES_PER_COMMIT : 0;
	files_committed(files);
}

void files_committed(struct files *files)
{
	files->limit_id = files->last_id + FILES_PER_COMMIT;
}

static uint32_t *files_bucket(struct files *files, uint32_t major, uint32_t minor, uint64_t inode)
{
	uint64_t h = (inode ^ ((uint64_t)major << 52) ^ ((uint64_t)minor << 32));

	return &files->bucket[(h * 0x9e3779b97f4a7c15ull >> 32) % FILES_MAX];
}

void files_forget(struct files *files, struct file *file)
{
	uint32_t *link = files_bucket(files, file->dev_major, file->dev_minor, file->inode);

	while (*link && &files->file[*link - 1] != file)
		link = &files->file[*link - 1].next;
	if (*link)
		files->n--;
	*link = *link ? file->next : 0;
}

static struct file *files_give(struct files *files, uint32_t *bucket)
{
	struct file *file;

	if ((int32_t)(files->limit_id - files->last_id) <= 0)
		return NULL;
	/* Nor one that would share the vdso's slot. */
	do
		files->last_id++;
	while (!files->last_id || files->last_id % FILES_MAX == RECORD_VDSO_FILE_ID % FILES_MAX);
	file = &files->file[files->last_id % FILES_MAX];
	if (file->id)
		files_forget(files, file);
	*file = (struct file){.id = files->last_id, .next = *bucket};
	*bucket = (uint32_t)(file - files->file) + 1;
	files->n++;
	return file;
}

struct file *files_of(struct files *files, uint32_t major, uint32_t minor, uint64_t inode,
		      uint64_t generation, const char *path)
{
	uint32_t *bucket = files_bucket(files, major, minor, inode);
	struct file *file = NULL;

	for (uint32_t i = *bucket; i && !file; i = files->file[i - 1].next) {
		struct file *f = &files->file[i - 1];

		if (f->inode == inode && f->dev_major == major && f->dev_minor == minor &&
		    (!generation || !f->generation || f->generation == generation))
			file = f;
	}
	if (!file && !(file = files_give(files, bucket)))
		return NULL;
	file->dev_major = major;
	file->dev_minor = minor;
	file->inode = inode;
	/* The broker knows neither generation nor path, the side-band does. */
	if (generation)
		file->generation = generation;
	if (!file->path[0])
		snprintf(file->path, sizeof(file->path), "%s", path);
	return file;
}

struct file *files_by_id(struct files *files, uint32_t id)
{
	struct file *file = &files->file[id % FILES_MAX];

	return id && file->id == id ? file : NULL;
}
