/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a specification: JSON as it is, YAML as the same values. */
#include <errno.h>
#include <string.h>
#include <yaml.h>

#include "accelhost/cdi.h"

struct cdi_text_frame {
    json_t *value; /* object or array; owned by the one around it */
    char *key;     /* of the object: its next value belongs there */
};

struct cdi_text_reader {
    struct cdi_text_frame frames[CDI_DEPTH_MAX];
    size_t depth, values;
    json_t *root;
    const char *why; /* NULL = all is well */
};

/* Takes 'value' over. */
static void cdi_text_put(struct cdi_text_reader *in, json_t *value)
{
    struct cdi_text_frame *frame = in->depth ? &in->frames[in->depth - 1] : NULL;
    int r = 0;

    if (!value)
        in->why = "out of memory";
    else if (++in->values > CDI_VALUES_MAX)
        in->why = "it has too many values";
    if (in->why) {
        json_decref(value);
        return;
    }
    if (!frame && in->root)
        r = -1;
    else if (!frame)
        in->root = value;
    else if (json_is_array(frame->value))
        r = json_array_append_new(frame->value, value);
    else
        r = json_object_set_new(frame->value, frame->key, value);
    if (r < 0)
        in->why = "it cannot be";
    if (r < 0 && !frame)
        json_decref(value);
    if (frame) {
        free(frame->key);
        frame->key = NULL;
    }
}

static void cdi_text_begin(struct cdi_text_reader *in, json_t *value)
{
    if (in->depth == CDI_DEPTH_MAX) {
        json_decref(value);
        in->why = "it is nested too deeply";
        return;
    }
    cdi_text_put(in, value);
    if (!in->why)
        in->frames[in->depth++] = (struct cdi_text_frame){ .value = value };
}

static void cdi_text_take_scalar(struct cdi_text_reader *in, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    struct cdi_text_frame *frame = in->depth ? &in->frames[in->depth - 1] : NULL;

    if (strlen(text) != event->data.scalar.length)
        in->why = "a text has a zero byte";
    else if (!frame || json_is_array(frame->value) || frame->key)
        cdi_text_put(in, json_string(text));
    else if (json_object_get(frame->value, text))
        in->why = "a key is there twice";
    else if (!(frame->key = strdup(text)))
        in->why = "out of memory";
}

static void cdi_text_take(struct cdi_text_reader *in, const yaml_event_t *event)
{
    const struct cdi_text_frame *frame = in->depth ? &in->frames[in->depth - 1] : NULL;
    bool is_key = frame && json_is_object(frame->value) && !frame->key;

    switch (event->type) {
    case YAML_SCALAR_EVENT:
        cdi_text_take_scalar(in, event);
        break;
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        if (is_key)
            in->why = "a key is no text";
        else
            cdi_text_begin(in,
                           event->type == YAML_MAPPING_START_EVENT ? json_object() : json_array());
        break;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        in->depth--;
        break;
    case YAML_ALIAS_EVENT:
        in->why = "it has an alias";
        break;
    default:
        break;
    }
}

static json_t *cdi_text_parse_yaml(const char *text, size_t len, struct aq_error *err)
{
    struct cdi_text_reader in = { .depth = 0 };
    yaml_parser_t parser;
    yaml_event_t event;
    bool is_end = false;

    if (!yaml_parser_initialize(&parser)) {
        (void)aq_fail_oom(err);
        return NULL;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    while (!in.why && !is_end) {
        if (!yaml_parser_parse(&parser, &event)) {
            in.why = parser.problem ? parser.problem : "it is no YAML";
            break;
        }
        cdi_text_take(&in, &event);
        is_end = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    if (!in.why && !in.root)
        in.why = "it is empty";
    if (in.why)
        (void)aq_fail(err, EINVAL, "line %zu: %s", parser.mark.line + 1, in.why);
    for (size_t i = 0; i < in.depth; i++)
        free(in.frames[i].key);
    yaml_parser_delete(&parser);
    if (!in.why)
        return in.root;
    json_decref(in.root);
    return NULL;
}

json_t *cdi_parse(const char *text, size_t len, bool is_yaml, struct aq_error *err)
{
    json_error_t where;
    json_t *spec;

    if (is_yaml)
        return cdi_text_parse_yaml(text, len, err);
    spec = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    if (!spec)
        (void)aq_fail(err, EINVAL, "line %d: %.80s", where.line, where.text);
    return spec;
}
