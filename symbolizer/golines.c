/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/golines.h"

#include <errno.h>
#include <stdlib.h>

#include "symbolizer/goinline.h"
#include "symbolizer/pclntab.h"
#include "symbolizer/window.h"

struct golines {
	struct window window;
	struct pclntab tab;
	struct goinline inl;
};

struct golines *golines_open(struct elffile *file, size_t bytes_max)
{
	struct golines *go = calloc(1, sizeof(*go));
	int err = -ENOMEM;

	if (!go)
		return NULL;
	err = window_open(&go->window, file->reader, file->slot, file->size_bytes, bytes_max);
	if (err == 0)
		err = pclntab_open_in(&go->tab, file, &go->window);
	if (err == 0 && go->tab.functions == 0)
		err = -ENOENT;
	if (err) {
		golines_close(go);
		errno = -err;
		return NULL;
	}
	goinline_open(&go->inl, &go->tab, file);
	window_forget(&go->window);
	return go;
}

void golines_close(struct golines *go)
{
	if (go)
		window_close(&go->window);
	free(go);
}

static void golines_look(struct golines *go, uint64_t vaddr, struct lines *lines)
{
	struct pclntab_function function;

	go->window.refused = false;
	lines->n = 0;
	if (pclntab_find(&go->tab, vaddr, &function) && function.name[0])
		goinline_lines(&go->inl, &function, vaddr, lines);
}

void golines_find(struct golines *go, int slot, uint64_t vaddr, struct lines *lines)
{
	go->window.slot = slot;
	golines_look(go, vaddr, lines);
	if (!go->window.refused)
		return;
	window_forget(&go->window);
	golines_look(go, vaddr, lines);
}

size_t golines_bytes(const struct golines *go)
{
	return sizeof(*go) + window_index_bytes(&go->window) + go->window.bytes;
}

void golines_forget(struct golines *go)
{
	window_forget(&go->window);
}
