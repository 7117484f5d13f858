/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/yaml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <yaml.h>

#define DEPTH_MAX 4
#define KEY_BYTES 128

struct yaml_walk {
	struct options *options;
	const char *path;
	char *error;
	char prefix[DEPTH_MAX][KEY_BYTES]; /* joined keys down to each mapping */
	int depth;			   /* mappings entered */
	char key[KEY_BYTES];		   /* waiting for its value, "" = the next scalar is a key */
};

static int yaml_fail(struct yaml_walk *walk, const yaml_mark_t *mark, const char *what)
{
	snprintf(walk->error, OPTIONS_ERROR_BYTES, "%s:%zu: %s", walk->path, mark->line + 1, what);
	return -1;
}

static int yaml_enter(struct yaml_walk *walk, const yaml_event_t *event)
{
	if (walk->depth == DEPTH_MAX || (walk->depth > 0 && !walk->key[0]))
		return yaml_fail(walk, &event->start_mark, "nested too deeply");
	snprintf(walk->prefix[walk->depth++], KEY_BYTES, "%s", walk->key);
	walk->key[0] = 0;
	return 0;
}

static int yaml_scalar(struct yaml_walk *walk, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	char origin[1200];

	if (walk->depth == 0)
		return yaml_fail(walk, &event->start_mark, "a mapping of options is expected");
	if (!walk->key[0]) {
		const char *prefix = walk->prefix[walk->depth - 1];
		int n = snprintf(walk->key, KEY_BYTES, "%s%s%s", prefix, prefix[0] ? "_" : "",
				 text);

		return text[0] && n < KEY_BYTES
			       ? 0
			       : yaml_fail(walk, &event->start_mark, "bad key");
	}
	snprintf(origin, sizeof(origin), "%s:%zu: %s", walk->path, event->start_mark.line + 1,
		 walk->key);
	if (strlen(text) != event->data.scalar.length)
		return yaml_fail(walk, &event->start_mark, "NUL in a value");
	if (options_set_key(walk->options, walk->key, text, origin, walk->error))
		return -1;
	walk->key[0] = 0;
	return 0;
}

static int yaml_event(struct yaml_walk *walk, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_MAPPING_START_EVENT:
		return yaml_enter(walk, event);
	case YAML_MAPPING_END_EVENT:
		walk->depth--;
		return 0;
	case YAML_SCALAR_EVENT:
		return yaml_scalar(walk, event);
	case YAML_SEQUENCE_START_EVENT:
		return yaml_fail(walk, &event->start_mark, "a list where a value is expected");
	case YAML_ALIAS_EVENT:
		return yaml_fail(walk, &event->start_mark, "aliases are not supported");
	default:
		return 0;
	}
}

int yaml_load(struct options *options, const char *path, char error[OPTIONS_ERROR_BYTES])
{
	struct yaml_walk walk = {.options = options, .path = path, .error = error};
	FILE *file = fopen(path, "re");
	yaml_parser_t parser;
	int err = 0, done = 0;

	if (!file || !yaml_parser_initialize(&parser)) {
		snprintf(error, OPTIONS_ERROR_BYTES, "cannot read %s: %s", path, strerror(errno));
		if (file)
			fclose(file);
		return -1;
	}
	yaml_parser_set_input_file(&parser, file);
	while (!err && !done) {
		yaml_event_t event;

		if (!yaml_parser_parse(&parser, &event)) {
			err = yaml_fail(&walk, &parser.problem_mark,
					parser.problem ? parser.problem : "cannot be read");
			break;
		}
		err = yaml_event(&walk, &event);
		done = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	fclose(file);
	return err;
}
