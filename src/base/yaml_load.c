/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_load.c - YAML of strangers as the same values that JSON has */
#include "base/yaml_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/memory.h"

#define YAML_INTEGER_DIGITS 18 /* all of so many fit */

struct yaml_frame {
    json_t *value; /* object or array; owned by the one around it */
    char *key;     /* of the object: its next value belongs there */
};

struct yaml_reader {
    const struct yaml_rules *rules;
    struct yaml_frame frames[YAML_DEPTH_MAX];
    size_t depth, values;
    json_t *root;
    const char *why; /* NULL = all is well */
};

/* Takes 'value' over. */
static void yaml_put(struct yaml_reader *in, json_t *value)
{
    struct yaml_frame *frame = in->depth ? &in->frames[in->depth - 1] : NULL;

    if (++in->values > in->rules->values_max) {
        in->why = "it has too many values";
        json_decref(value);
        return;
    }
    if (!frame) {
        in->root = value;
        return;
    }
    if (json_is_array(frame->value))
        (void)json_array_append_new(frame->value, value);
    else
        (void)json_object_set_new(frame->value, frame->key, value);
    free(frame->key);
    frame->key = NULL;
}

static void yaml_begin(struct yaml_reader *in, json_t *value)
{
    if (in->depth == in->rules->depth_max) {
        json_decref(value);
        in->why = "it is nested too deeply";
        return;
    }
    yaml_put(in, value);
    if (!in->why)
        in->frames[in->depth++] = (struct yaml_frame){ .value = value };
}

/* "0", "-12": as they are written when they are shown again. */
static bool yaml_is_integer(const char *text)
{
    const char *digits = text + (*text == '-');
    size_t len = strlen(digits);

    return len > 0 && len <= YAML_INTEGER_DIGITS && strspn(digits, "0123456789") == len
           && (digits[0] != '0' || strcmp(text, "0") == 0);
}

static json_t *yaml_scalar(const struct yaml_reader *in, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;

    if (!in->rules->has_types || event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return json_string(text);
    if (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0)
        return json_null();
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return json_boolean(*text == 't');
    return yaml_is_integer(text) ? json_integer(strtoll(text, NULL, 10)) : json_string(text);
}

static void yaml_take_scalar(struct yaml_reader *in, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    struct yaml_frame *frame = in->depth ? &in->frames[in->depth - 1] : NULL;

    if (strlen(text) != event->data.scalar.length)
        in->why = "a text has a zero byte";
    else if (event->data.scalar.tag || event->data.scalar.anchor)
        in->why = "it has an anchor, alias or tag";
    else if (!frame || json_is_array(frame->value) || frame->key)
        yaml_put(in, yaml_scalar(in, event));
    else if (json_object_get(frame->value, text))
        in->why = "a key is there twice";
    else
        frame->key = aq_strdup(text);
}

static void yaml_take_start(struct yaml_reader *in, const yaml_event_t *event)
{
    const struct yaml_frame *frame = in->depth ? &in->frames[in->depth - 1] : NULL;
    bool is_mapping = event->type == YAML_MAPPING_START_EVENT;
    bool is_marked = is_mapping
                         ? event->data.mapping_start.tag || event->data.mapping_start.anchor
                         : event->data.sequence_start.tag || event->data.sequence_start.anchor;

    if (is_marked)
        in->why = "it has an anchor, alias or tag";
    else if (frame && json_is_object(frame->value) && !frame->key)
        in->why = "a key is no text";
    else
        yaml_begin(in, is_mapping ? json_object() : json_array());
}

static void yaml_take(struct yaml_reader *in, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (in->root)
            in->why = "it has a second document";
        break;
    case YAML_SCALAR_EVENT:
        yaml_take_scalar(in, event);
        break;
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        yaml_take_start(in, event);
        break;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        in->depth--;
        break;
    case YAML_ALIAS_EVENT:
        in->why = "it has an anchor, alias or tag";
        break;
    default:
        break;
    }
}

static void yaml_fail(const struct yaml_reader *in, yaml_mark_t at, struct aq_error *err)
{
    (void)aq_fail(err, EINVAL, "line %zu, column %zu: %s", at.line + 1, at.column + 1, in->why);
}

json_t *yaml_load_text(const char *text, size_t len, const struct yaml_rules *rules,
                       struct aq_error *err)
{
    struct yaml_reader in = { .rules = rules };
    yaml_parser_t parser;
    yaml_event_t event;
    bool is_end = false;

    if (!yaml_parser_initialize(&parser)) {
        (void)aq_fail_oom(err);
        return NULL;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    while (!in.why && !is_end) {
        if (!yaml_parser_parse(&parser, &event)) {
            in.why = parser.problem ? parser.problem : "it is no YAML";
            yaml_fail(&in, parser.problem_mark, err);
            break;
        }
        yaml_take(&in, &event);
        is_end = event.type == YAML_STREAM_END_EVENT;
        if (in.why)
            yaml_fail(&in, event.start_mark, err);
        yaml_event_delete(&event);
    }
    if (!in.why && !in.root) {
        in.why = "it is empty";
        (void)aq_fail(err, EINVAL, "%s", in.why);
    }
    for (size_t i = 0; i < in.depth; i++)
        free(in.frames[i].key);
    yaml_parser_delete(&parser);
    if (!in.why)
        return in.root;
    json_decref(in.root);
    return NULL;
}

/* ---- where a member is ---- */

/* What is entered on the way; 'rest' is the path from there, NULL = it does not lead here. */
struct yaml_step {
    const char *rest, *member_rest; /* the latter of the value that follows a key */
    bool is_mapping, has_key;
    size_t index; /* of a sequence */
};

struct yaml_search {
    struct yaml_step steps[YAML_DEPTH_MAX];
    size_t depth;
    struct yaml_place found;
};

/* The path behind 'key'; NULL = it goes elsewhere. Keys may have dots themselves. */
static const char *yaml_behind(const char *path, const char *key)
{
    size_t len = strlen(key);

    if (!path || !len || strncmp(path, key, len) != 0 || (path[len] && path[len] != '.'))
        return NULL;
    return path + len + (path[len] == '.');
}

static void yaml_note(struct yaml_search *search, const yaml_event_t *event)
{
    search->found = (struct yaml_place){ event->start_mark.line + 1, event->start_mark.column + 1 };
}

/* A key, or a value that begins: the path from there. */
static const char *yaml_step(struct yaml_search *search, const yaml_event_t *event)
{
    struct yaml_step *step = &search->steps[search->depth - 1];
    char number[24];

    if (step->is_mapping && !step->has_key) {
        step->member_rest = event->type == YAML_SCALAR_EVENT
                                ? yaml_behind(step->rest, (const char *)event->data.scalar.value)
                                : NULL;
        step->has_key = true;
        if (step->member_rest)
            yaml_note(search, event);
        return NULL;
    }
    step->has_key = false;
    if (step->is_mapping)
        return step->member_rest;
    (void)snprintf(number, sizeof(number), "%zu", step->index++);
    step->member_rest = yaml_behind(step->rest, number);
    if (step->member_rest)
        yaml_note(search, event);
    return step->member_rest;
}

/* False if it goes too deep. */
static bool yaml_follow(struct yaml_search *search, const yaml_event_t *event, const char *path)
{
    bool is_start = event->type == YAML_MAPPING_START_EVENT
                    || event->type == YAML_SEQUENCE_START_EVENT;
    const char *rest = path;

    if (event->type == YAML_MAPPING_END_EVENT || event->type == YAML_SEQUENCE_END_EVENT)
        search->depth--;
    if (!is_start && event->type != YAML_SCALAR_EVENT)
        return true;
    if (search->depth > 0)
        rest = yaml_step(search, event);
    if (!is_start)
        return true;
    if (search->depth == YAML_DEPTH_MAX)
        return false;
    search->steps[search->depth++] = (struct yaml_step){
        .rest = rest, .is_mapping = event->type == YAML_MAPPING_START_EVENT
    };
    return true;
}

/* Escapes of JSON that YAML has not, halves of a character, without a change of any place. */
static void yaml_hide_escapes(char *text, size_t len)
{
    for (size_t i = 0; i + 1 < len; i++)
        if (text[i] == '\\') {
            if (text[i + 1] == 'u')
                text[i] = '_';
            i++;
        }
}

struct yaml_place yaml_find(const char *text, size_t len, const char *path)
{
    struct yaml_search search = { .depth = 0 };
    char *copy = aq_alloc(len + 1);
    yaml_parser_t parser;
    yaml_event_t event;
    bool goes_on = true;

    if (!yaml_parser_initialize(&parser)) {
        free(copy);
        return search.found;
    }
    memcpy(copy, text, len);
    yaml_hide_escapes(copy, len);
    yaml_parser_set_input_string(&parser, (const unsigned char *)copy, len);
    while (goes_on && yaml_parser_parse(&parser, &event)) {
        goes_on = yaml_follow(&search, &event, path) && event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    free(copy);
    return search.found;
}
