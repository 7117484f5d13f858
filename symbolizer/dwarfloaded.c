/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarfloaded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/dwarfname.h"

#define UNNAMED "[unknown]"

static char *dwarfloaded_text(const struct dwarfunit *unit, const struct dwarfvalue *value)
{
	struct dwarfbytes *section;
	const char *text;
	uint64_t at;
	size_t n;

	if (!dwarfunit_text(unit, value, &section, &at))
		return NULL;
	text = dwarfbytes_string(section, at, &n);
	return text ? strndup(text, n) : NULL;
}

static size_t dwarfloaded_held(const struct dwarfloaded *loaded)
{
	return sizeof(*loaded) + dwarfindex_held(&loaded->index) + dwarfline_held(&loaded->lines) +
	       loaded->lines.files_n * sizeof(*loaded->paths) +
	       (loaded->directory ? strlen(loaded->directory) + 1 : 0);
}

struct dwarfloaded *dwarfloaded_open(const struct dwarfunit *unit, const struct dwarfdie *root,
				     const struct dwarfunit *entries, struct dwarflimit *limit)
{
	const struct dwarfvalue *lines = &root->value[ATTRIBUTE_LINES];
	struct dwarfloaded *loaded = calloc(1, sizeof(*loaded));
	int err, lines_err = -ENOENT;

	if (!loaded)
		return NULL;
	loaded->entries = entries ? *entries : *unit;
	err = dwarfindex_build(&loaded->index, &loaded->entries, limit);
	if (err)
		dwarfindex_free(&loaded->index);
	if (lines->form)
		lines_err = dwarfline_read(&loaded->lines, unit, lines->number, limit);
	if (lines_err)
		dwarfline_free(&loaded->lines);
	if (lines_err == 0 && loaded->lines.files_n) {
		loaded->paths = calloc(loaded->lines.files_n, sizeof(*loaded->paths));
		lines_err = loaded->paths ? 0 : -ENOMEM;
	}
	if ((err && lines_err) || err == -ENOMEM || lines_err == -ENOMEM) {
		dwarfloaded_free(loaded);
		errno = err == -ENOMEM || lines_err == -ENOMEM ? ENOMEM : -err;
		return NULL;
	}
	loaded->directory = dwarfloaded_text(unit, &root->value[ATTRIBUTE_DIRECTORY]);
	loaded->bytes = dwarfloaded_held(loaded);
	return loaded;
}

void dwarfloaded_free(struct dwarfloaded *loaded)
{
	for (uint32_t i = 0; loaded->paths && i < loaded->lines.files_n; i++)
		free(loaded->paths[i]);
	dwarfindex_free(&loaded->index);
	dwarfline_free(&loaded->lines);
	free(loaded->paths);
	free(loaded->directory);
	free(loaded);
}

/* NULL: not known. */
static const char *dwarfloaded_path(struct dwarfloaded *loaded, uint32_t file)
{
	char path[SYMBOL_STRING_BYTES_MAX];

	if (file >= loaded->lines.files_n || !loaded->paths)
		return NULL;
	if (!loaded->paths[file] &&
	    dwarfline_path(&loaded->lines, file, loaded->directory, path, sizeof(path)) &&
	    (loaded->paths[file] = strdup(path)))
		loaded->bytes += strlen(path) + 1;
	return loaded->paths[file];
}

static void dwarfloaded_name(struct dwarfloaded *loaded, struct dwarfindex_function *function)
{
	char name[DWARFNAME_BYTES];

	if (function->known)
		return;
	function->known = true;
	if (dwarfname_find(&loaded->index, &loaded->entries, function, name,
			   &function->start_line) &&
	    (function->name = strdup(name)))
		loaded->bytes += strlen(name) + 1;
}

/* The function of a site, with the place in it that is given. */
static struct line dwarfloaded_line(struct dwarfloaded *loaded, const struct dwarfindex_site *site,
				    const char *file, uint32_t line)
{
	struct dwarfindex_function *function = &loaded->index.functions[site->function];

	dwarfloaded_name(loaded, function);
	return (struct line){function->name ? function->name : UNNAMED, file, line,
			     function->start_line};
}

void dwarfloaded_find(struct dwarfloaded *loaded, uint64_t vaddr, const char *symbol,
		      struct lines *lines)
{
	const struct dwarfline_row *row = dwarfline_find(&loaded->lines, vaddr);
	uint32_t i = dwarfindex_find(&loaded->index, vaddr), line = row ? row->line : 0;
	const char *file = row ? dwarfloaded_path(loaded, row->file) : NULL;

	/* Code without an entry, by hand for instance: a line is worth something all the same. */
	if (i == DWARFINDEX_NONE && symbol && row)
		lines->line[lines->n++] = (struct line){symbol, file, line, 0};
	while (i != DWARFINDEX_NONE) {
		const struct dwarfindex_site *site = &loaded->index.sites[i];

		/* Of too many the outermost one stays, in place of the last. */
		if (lines->n == SYMBOL_LINES_MAX)
			lines->n--;
		lines->line[lines->n++] = dwarfloaded_line(loaded, site, file, line);
		file = dwarfloaded_path(loaded, site->call_file);
		line = site->call_line;
		i = site->parent;
		if (i == DWARFINDEX_NONE && symbol)
			lines->line[lines->n - 1].name = symbol;
	}
}
