/* SPDX-License-Identifier: Apache-2.0 */
/* spec_fields.c - specs as JSON, by the tables of their members */
#include "model/spec_fields.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"

bool spec_field_is_said(const struct spec_field *field, const void *spec)
{
    union spec_place at = spec_place(spec, field);

    switch (field->kind) {
    case SPEC_TEXT:
    case SPEC_AMOUNT:
    case SPEC_JSON:
        return *at.text;
    case SPEC_FLAG:
        return *at.flag;
    case SPEC_CHOICE:
        return *at.choice;
    case SPEC_NUMBER:
        return *at.number;
    case SPEC_TEXTS:
        return at.texts->count;
    case SPEC_PORTS:
        return at.ports->count;
    case SPEC_PAIRS:
        return at.pairs->count;
    case SPEC_MOUNTS:
        return at.mounts->count;
    }
    return false;
}

static bool spec_is_meant(const struct spec_field *field, enum session_spec_part part)
{
    return part == SESSION_SPEC_ALL || field->is_for_agent;
}

/* ---- writing ---- */

void spec_field_write(const struct spec_field *field, const void *spec, struct jsonw *w)
{
    union spec_place at = spec_place(spec, field);

    jsonw_key(w, field->key);
    switch (field->kind) {
    case SPEC_TEXT:
    case SPEC_AMOUNT:
        jsonw_str(w, *at.text);
        return;
    case SPEC_JSON:
        jsonw_raw(w, *at.text, strlen(*at.text));
        return;
    case SPEC_FLAG:
        jsonw_bool(w, *at.flag);
        return;
    case SPEC_CHOICE:
        jsonw_bool(w, *at.choice == SPLITTING_ALLOWED);
        return;
    case SPEC_NUMBER:
        jsonw_int(w, *at.number);
        return;
    case SPEC_TEXTS:
        jsonw_array_begin(w);
        for (size_t i = 0; i < at.texts->count; i++)
            jsonw_str(w, at.texts->items[i]);
        jsonw_array_end(w);
        return;
    case SPEC_PORTS:
        jsonw_array_begin(w);
        for (size_t i = 0; i < at.ports->count; i++)
            jsonw_int(w, at.ports->items[i]);
        jsonw_array_end(w);
        return;
    case SPEC_PAIRS:
        jsonw_object_begin(w);
        for (size_t i = 0; i < at.pairs->count; i++)
            jsonw_member_str(w, at.pairs->items[i].key, at.pairs->items[i].value);
        jsonw_object_end(w);
        return;
    case SPEC_MOUNTS:
        folder_mounts_write(at.mounts, w);
        return;
    }
}

void spec_fields_write(const struct spec_field *fields, const void *spec,
                       enum session_spec_part part, struct jsonw *w)
{
    const char *group = NULL; /* that is open */

    for (const struct spec_field *field = fields; field->key; field++) {
        if (!spec_is_meant(field, part) || !spec_field_is_said(field, spec))
            continue;
        if (group && group != field->group)
            jsonw_object_end(w);
        if (field->group && group != field->group) {
            jsonw_key(w, field->group);
            jsonw_object_begin(w);
        }
        group = field->group;
        spec_field_write(field, spec, w);
    }
    if (group)
        jsonw_object_end(w);
}

/* ---- reading ---- */

static int spec_refuse(const struct spec_field *field, const char *what, struct aq_error *err)
{
    return aq_fail_field(err, EINVAL, field->key, "'%s' must be %s", field->key, what);
}

static int spec_read_text(const struct spec_field *field, const json_t *value, struct arena *arena,
                          const char **ret, struct aq_error *err)
{
    char number[24];

    if (json_is_string(value)) {
        *ret = arena_strndup(arena, json_string_value(value), json_string_length(value));
    } else if (json_is_integer(value) && field->kind == SPEC_AMOUNT) {
        (void)snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        *ret = arena_strdup(arena, number);
    } else {
        return spec_refuse(field, "text", err);
    }
    return *ret ? 0 : aq_fail_oom(err);
}

static int spec_read_json(const struct spec_field *field, const json_t *value, struct arena *arena,
                          const char **ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = NULL;

    if (!json_is_object(value) && !json_is_array(value))
        return spec_refuse(field, "an object or a list", err);
    text = json_dump_text(value, JSON_COMPACT | JSON_PRESERVE_ORDER);
    *ret = text ? arena_strdup(arena, text) : NULL;
    return *ret ? 0 : aq_fail_oom(err);
}

static int spec_read_texts(const struct spec_field *field, const json_t *value, struct arena *arena,
                           struct str_list *ret, struct aq_error *err)
{
    size_t count = json_array_size(value);
    const char **items = arena_array(arena, count + 1, sizeof(*items));
    int r = items ? 0 : aq_fail_oom(err);

    if (!json_is_array(value))
        return spec_refuse(field, "a list of texts", err);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = spec_read_text(field, json_array_get(value, i), arena, &items[i], err);
    *ret = (struct str_list){ .items = items, .count = count };
    return r;
}

static int spec_read_ports(const struct spec_field *field, const json_t *value, struct arena *arena,
                           struct int_list *ret, struct aq_error *err)
{
    size_t count = json_array_size(value);
    int64_t *items = arena_array(arena, count + 1, sizeof(*items));

    if (!json_is_array(value))
        return spec_refuse(field, "a list of numbers", err);
    if (!items)
        return aq_fail_oom(err);
    for (size_t i = 0; i < count; i++) {
        if (!json_is_integer(json_array_get(value, i)))
            return spec_refuse(field, "a list of numbers", err);
        items[i] = json_integer_value(json_array_get(value, i));
    }
    *ret = (struct int_list){ .items = items, .count = count };
    return 0;
}

static int spec_read_pairs(const struct spec_field *field, const json_t *value, struct arena *arena,
                           struct pair_list *ret, struct aq_error *err)
{
    size_t count = 0;
    struct text_pair *items = arena_array(arena, json_object_size(value) + 1, sizeof(*items));
    const char *name;
    json_t *text;
    int r = items ? 0 : aq_fail_oom(err);

    if (!json_is_object(value))
        return spec_refuse(field, "an object of texts", err);
    json_object_foreach((json_t *)(uintptr_t)value, name, text) {
        if (r == 0 && (!name[0] || strchr(name, '=')))
            r = spec_refuse(field, "an object with names without '='", err);
        if (r == 0 && !(items[count].key = arena_strdup(arena, name)))
            r = aq_fail_oom(err);
        if (r == 0)
            r = spec_read_text(field, text, arena, &items[count++].value, err);
    }
    *ret = (struct pair_list){ .items = items, .count = count };
    return r;
}

/* Of resource_opts, which were once kept as they came, what is no choice or amount is unsaid. */
static int spec_read_value(const struct spec_field *field, const json_t *value, struct arena *arena,
                           union spec_place at, struct aq_error *err)
{
    switch (field->kind) {
    case SPEC_TEXT:
        return spec_read_text(field, value, arena, at.text, err);
    case SPEC_AMOUNT:
        return json_is_string(value) || json_is_integer(value)
                   ? spec_read_text(field, value, arena, at.text, err)
                   : 0;
    case SPEC_JSON:
        return spec_read_json(field, value, arena, at.text, err);
    case SPEC_FLAG:
        *at.flag = json_is_true(value);
        return json_is_boolean(value) ? 0 : spec_refuse(field, "true or false", err);
    case SPEC_CHOICE:
        if (json_is_boolean(value))
            *at.choice = json_is_true(value) ? SPLITTING_ALLOWED : SPLITTING_FORBIDDEN;
        return 0;
    case SPEC_NUMBER:
        *at.number = json_integer_value(value);
        return json_is_integer(value) && *at.number >= 0
                   ? 0
                   : spec_refuse(field, "a whole number, not negative", err);
    case SPEC_TEXTS:
        return spec_read_texts(field, value, arena, at.texts, err);
    case SPEC_PORTS:
        return spec_read_ports(field, value, arena, at.ports, err);
    case SPEC_PAIRS:
        return spec_read_pairs(field, value, arena, at.pairs, err);
    case SPEC_MOUNTS:
        return folder_mounts_read(value, arena, at.mounts, err);
    }
    return 0;
}

int spec_fields_read(const struct spec_field *fields, const json_t *object,
                     enum session_spec_part part, struct arena *arena, void *ret,
                     struct aq_error *err)
{
    int r = 0;

    for (const struct spec_field *field = fields; r == 0 && field->key; field++) {
        const json_t *from = field->group ? json_object_get(object, field->group) : object;
        const json_t *value = json_object_get(from, field->key);

        if (spec_is_meant(field, part) && value && !json_is_null(value))
            r = spec_read_value(field, value, arena, spec_place(ret, field), err);
    }
    return r;
}
