/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of a request into a struct, by a field table. */
#include "manager/call/decode.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "model/slot.h"

#define KNOWN_MAX 200 /* of the names of parameters in an error */

static const char bad_params[] = "invalid-api-params";

/* Where we are in the tree, for err->field. */
struct decode_path {
    const struct decode_path *outer;
    const char *name;
    int name_len; /* 0 = to its end */
};

static size_t decode_path_write(const struct decode_path *path, char *out, size_t cap)
{
    size_t len = path->outer ? decode_path_write(path->outer, out, cap) : 0;
    int n = snprintf(out + len, cap - len, "%s%.*s", len ? "." : "",
                     path->name_len ? path->name_len : INT_MAX, path->name);

    return AQ_MIN(len + (n < 0 ? 0 : (size_t)n), cap - 1);
}

static int decode_refuse(struct aq_error *err, const struct decode_path *path, const char *why)
{
    char field[sizeof(err->field)] = "";

    decode_path_write(path, field, sizeof(field));
    aq_fail_field(err, EINVAL, field, "%s", why);
    if (err)
        err->kind = bad_params;
    return -EINVAL;
}

static int decode_refuse_body(struct aq_error *err, const char *why)
{
    return decode_refuse(err, &(struct decode_path){ .name = "body" }, why);
}

json_t *decode_query(const struct url_query *query)
{
    json_t *object = json_object();

    for (size_t i = 0; i < query->count; i++) {
        const char *key = query->pairs[i].name;
        json_t *value = json_string(query->pairs[i].value), *old = json_object_get(object, key);

        if (!old) {
            json_object_set_new(object, key, value);
        } else if (json_is_array(old)) {
            json_array_append_new(old, value);
        } else {
            json_t *list = json_array();

            json_array_append(list, old);
            json_array_append_new(list, value);
            json_object_set_new(object, key, list);
        }
    }
    return object;
}

/* ---- one value ---- */

int decode_bool_text(const char *text, bool *ret)
{
    static const char *const yes[] = { "t", "true", "y", "yes", "on", "1" };
    static const char *const no[] = { "f", "false", "n", "no", "off", "0" };

    for (size_t i = 0; i < AQ_COUNT(yes); i++) {
        if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
            *ret = strcasecmp(text, yes[i]) == 0;
            return 0;
        }
    }
    return -EINVAL;
}

static int decode_read_bool(const json_t *value, bool *ret, const struct decode_path *path,
                            struct aq_error *err)
{
    if (json_is_boolean(value)) {
        *ret = json_is_true(value);
        return 0;
    }
    if (json_is_integer(value)
        && (json_integer_value(value) == 0 || json_integer_value(value) == 1)) {
        *ret = json_integer_value(value) == 1;
        return 0;
    }
    if (json_is_string(value) && decode_bool_text(json_string_value(value), ret) == 0)
        return 0;
    return decode_refuse(err, path, "not a truth value: true or false");
}

static int decode_read_int(const struct field *field, const json_t *value, int64_t *ret,
                           const struct decode_path *path, struct aq_error *err)
{
    char why[96];
    int64_t number;

    if (json_is_integer(value)) {
        number = json_integer_value(value);
    } else if (field->flags & FIELD_SECONDS && json_is_string(value)
               && strcmp(json_string_value(value), "none") == 0) {
        number = 0;
    } else if (json_is_string(value)) {
        const char *text = json_string_value(value);
        char *end;

        errno = 0;
        number = strtoll(text, &end, 10);
        if (errno || end == text || *end || !(isdigit((unsigned char)*text) || *text == '-'))
            return decode_refuse(err, path, "not an integer");
    } else {
        return decode_refuse(err, path, "not an integer");
    }
    if (number < field->min || number > field->max) {
        if (field->flags & FIELD_SECONDS)
            snprintf(why, sizeof(why), "%lld is not within %lld..%lld seconds; none = no limit",
                     (long long)number, (long long)field->min, (long long)field->max);
        else
            snprintf(why, sizeof(why), "%lld is not within %lld..%lld", (long long)number,
                     (long long)field->min, (long long)field->max);
        return decode_refuse(err, path, why);
    }
    *ret = number;
    return 0;
}

static int decode_read_duration(const struct field *field, const json_t *value, int64_t *ret,
                                const struct decode_path *path, struct aq_error *err)
{
    double seconds = json_number_value(value);
    bool is_possible = seconds >= (double)field->min && seconds <= (double)field->max;
    char why[96];
    int64_t usec = 0;

    if (json_is_string(value)) {
        if (clock_parse_duration(json_string_value(value), &usec) < 0)
            return decode_refuse(err, path,
                                 "not a duration: seconds, or a text such as 90s, 1h30m or 1.5h");
        is_possible = usec >= field->min * USEC_PER_SEC && usec <= field->max * USEC_PER_SEC;
    } else if (!json_is_number(value)) {
        return decode_refuse(err, path, "not a duration");
    } else if (is_possible) {
        usec = (int64_t)(seconds * (double)USEC_PER_SEC + 0.5);
        if (usec == 0 && seconds != 0)
            return decode_refuse(err, path, "shorter than a microsecond");
    }
    if (!is_possible) {
        snprintf(why, sizeof(why), "%.15g is not within %lld..%lld seconds",
                 json_is_string(value) ? (double)usec / USEC_PER_SEC : seconds,
                 (long long)field->min, (long long)field->max);
        return decode_refuse(err, path, why);
    }
    *ret = usec;
    return 0;
}

bool decode_is_plain(const char *text, size_t len, bool lines, uint32_t *ret_code)
{
    bool is_plain = true, is_shown;

    for (size_t at = 0; is_plain && at < len;) {
        char c = text[at];

        *ret_code = 0;
        at += utf8_next(text, len, at, ret_code, &is_shown);
        if (lines)
            is_plain = is_shown || c == '\n' || c == '\r' || c == '\t' || *ret_code >= 0xa0;
        else
            is_plain = is_shown;
    }
    return is_plain;
}

static int decode_read_str(const struct field *field, const json_t *value, struct arena *arena,
                           const char **ret, const struct decode_path *path, struct aq_error *err)
{
    size_t len, max = field->max ? (size_t)field->max : DECODE_TEXT_MAX;
    uint32_t code;
    char why[96];

    if (json_is_integer(value) && field->type == FIELD_SCALAR) {
        (void)snprintf(why, sizeof(why), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        *ret = arena_strdup(arena, why);
        return 0;
    }
    if (!json_is_string(value))
        return decode_refuse(err, path,
                             field->type == FIELD_SCALAR ? "neither a text nor an integer"
                                                         : "not a text");
    len = json_string_length(value);
    if (len < (size_t)field->min) {
        snprintf(why, sizeof(why), "shorter than %lld bytes", (long long)field->min);
        return decode_refuse(err, path, len == 0 ? "must not be empty" : why);
    }
    if (len > max) {
        snprintf(why, sizeof(why), "longer than %zu bytes", max);
        return decode_refuse(err, path, why);
    }
    if (field->flags & (FIELD_LINE | FIELD_LINES)
        && !decode_is_plain(json_string_value(value), len, field->flags & FIELD_LINES, &code)) {
        (void)snprintf(why, sizeof(why), "has %s (U+%04X); remove it",
                       code < 0xa0 ? "a control character" : "an invisible character",
                       (unsigned)code);
        return decode_refuse(err, path, why);
    }
    *ret = arena_strndup(arena, json_string_value(value), len);
    return 0;
}

static int decode_read_size(const struct field *field, const json_t *value, struct arena *arena,
                            const char **ret, const struct decode_path *path, struct aq_error *err)
{
    char why[96], size[AMOUNT_TEXT_MAX];
    const char *text;
    int64_t bytes;
    int r = decode_read_str(field, value, arena, &text, path, err);

    if (r < 0)
        return r;
    if (slot_amount_parse(text, strlen(text), SLOT_BYTES, false, "shmem", &bytes, NULL) < 0) {
        (void)snprintf(why, sizeof(why), "'%.32s' is no size such as 64m", text);
        return decode_refuse(err, path, why);
    }
    *ret = arena_strdup(arena, slot_amount_format(bytes, SLOT_BYTES, size));
    return 0;
}

static int decode_read_word(const struct field *field, const json_t *value, bool *ret,
                            const struct decode_path *path, struct aq_error *err)
{
    const char *word = json_is_string(value) ? json_string_value(value) : "";
    const char *second = strchr(field->words, '|') + 1;
    size_t len = (size_t)(second - field->words) - 1;
    char why[96];

    *ret = strcmp(word, second) == 0;
    if (*ret || (strncmp(word, field->words, len) == 0 && strlen(word) == len))
        return 0;
    (void)snprintf(why, sizeof(why), "must be %.*s or %s", (int)len, field->words, second);
    return decode_refuse(err, path, why);
}

/* ---- lists ---- */

/* A list's length and its i-th element; a lone value is a list of one. */
static size_t decode_list_count(const json_t *value)
{
    return json_is_array(value) ? json_array_size(value) : 1;
}

static const json_t *decode_list_item(const json_t *value, size_t i)
{
    return json_is_array(value) ? json_array_get(value, i) : value;
}

static int decode_check_list(const json_t *value, size_t max, const struct decode_path *path,
                             struct aq_error *err)
{
    char why[64];

    if (decode_list_count(value) <= max)
        return 0;
    snprintf(why, sizeof(why), "more than %zu elements", max);
    return decode_refuse(err, path, why);
}

static int decode_read_str_list(const struct field *field, const json_t *value, struct arena *arena,
                                struct str_list *ret, const struct decode_path *path,
                                struct aq_error *err)
{
    static const struct field element = { .type = FIELD_STR, .min = 1, .max = 4096 };
    /* of a query: clients that name nothing write "ids=" */
    bool is_nothing = json_is_string(value) && json_string_length(value) == 0;
    size_t count = is_nothing ? 0 : decode_list_count(value);
    const char **items;
    int r;

    if ((r = decode_check_list(value, field->max ? (size_t)field->max : DECODE_LIST_MAX, path, err))
        < 0)
        return r;
    items = arena_array(arena, AQ_MAX(count, 1u), sizeof(*items));
    for (size_t i = 0; i < count; i++)
        if ((r = decode_read_str(&element, decode_list_item(value, i), arena, &items[i], path, err))
            < 0)
            return r;
    *ret = (struct str_list){ .items = items, .count = count };
    return 0;
}

static int decode_read_int_list(const struct field *field, const json_t *value, struct arena *arena,
                                struct int_list *ret, const struct decode_path *path,
                                struct aq_error *err)
{
    size_t count = decode_list_count(value);
    int64_t *items;
    int r;

    if ((r = decode_check_list(value, DECODE_LIST_MAX, path, err)) < 0)
        return r;
    items = arena_array(arena, AQ_MAX(count, 1u), sizeof(*items));
    for (size_t i = 0; i < count; i++)
        if ((r = decode_read_int(field, decode_list_item(value, i), &items[i], path, err)) < 0)
            return r;
    *ret = (struct int_list){ .items = items, .count = count };
    return 0;
}

static int decode_read_pairs(const struct field *field, const json_t *value, struct arena *arena,
                             struct pair_list *ret, const struct decode_path *path,
                             struct aq_error *err)
{
    size_t count = json_object_size(value);
    struct text_pair *pair = arena_array(arena, count + 1, sizeof(*pair));
    const json_t *text;
    const char *name;
    char why[96];

    if (!json_is_object(value))
        return decode_refuse(err, path, "not an object");
    if (count > (size_t)field->max) {
        (void)snprintf(why, sizeof(why), "has more than %lld members", (long long)field->max);
        return decode_refuse(err, path, why);
    }
    *ret = (struct pair_list){ .items = pair, .count = count };
    json_object_foreach((json_t *)(uintptr_t)value, name, text) {
        if (!json_is_string(text)) {
            (void)snprintf(why, sizeof(why), "'%.60s' is not a text", name);
            return decode_refuse(err, path, why);
        }
        pair->key = arena_strdup(arena, name);
        pair->value = arena_strndup(arena, json_string_value(text), json_string_length(text));
        pair++;
    }
    return 0;
}

/* null is looked at before; here "", 0, false, [] and {} */
static bool decode_is_empty(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return json_object_size(value) == 0;
    case JSON_ARRAY:
        return json_array_size(value) == 0;
    case JSON_STRING:
        return json_string_length(value) == 0;
    case JSON_INTEGER:
        return json_integer_value(value) == 0;
    case JSON_REAL:
        return json_real_value(value) == 0;
    case JSON_TRUE:
        return false;
    default:
        return true;
    }
}

/* ---- objects ---- */

static int decode_read_members(const struct field *table, const json_t *object, struct arena *arena,
                               void *target, const struct decode_path *outer, struct aq_error *err);

static int decode_read_uuid(const json_t *value, struct uuid *ret, const struct decode_path *path,
                            struct aq_error *err)
{
    if (!json_is_string(value) || uuid_parse(json_string_value(value), ret) < 0)
        return decode_refuse(err, path, "not a UUID");
    return 0;
}

static int decode_read_value(const struct field *field, const json_t *value, struct arena *arena,
                             void *target, const struct decode_path *path, struct aq_error *err)
{
    void *place = (char *)target + field->offset;
    int64_t number;
    bool yes;
    int r;

    switch (field->type) {
    case FIELD_STR:
    case FIELD_SCALAR:
    case FIELD_TEXT:
        return decode_read_str(field, value, arena, place, path, err);
    case FIELD_SIZE:
        return decode_read_size(field, value, arena, place, path, err);
    case FIELD_WORD:
        return decode_read_word(field, value, place, path, err);
    case FIELD_BOOL:
        return decode_read_bool(value, place, path, err);
    case FIELD_MAYBE:
        if ((r = decode_read_bool(value, &yes, path, err)) == 0)
            *(enum maybe *)place = yes ? MAYBE_TRUE : MAYBE_FALSE;
        return r;
    case FIELD_INT:
        return decode_read_int(field, value, place, path, err);
    case FIELD_INT32:
        if ((r = decode_read_int(field, value, &number, path, err)) == 0)
            *(int *)place = (int)number;
        return r;
    case FIELD_DURATION:
        return decode_read_duration(field, value, place, path, err);
    case FIELD_USEC:
        if ((r = decode_read_int(field, value, &number, path, err)) == 0)
            *(int64_t *)place = number * USEC_PER_SEC;
        return r;
    case FIELD_UUID:
        return decode_read_uuid(value, place, path, err);
    case FIELD_STR_LIST:
        return decode_read_str_list(field, value, arena, place, path, err);
    case FIELD_PORT_LIST:
        return decode_read_int_list(field, value, arena, place, path, err);
    case FIELD_PAIRS:
        return decode_read_pairs(field, value, arena, place, path, err);
    case FIELD_OBJECT:
    case FIELD_JSON_TEXT:
    case FIELD_SLOTS:
        if (!json_is_object(value))
            return decode_refuse(err, path, "not an object");
        if (field->type != FIELD_SLOTS)
            *(const json_t **)place = value;
        return 0;
    case FIELD_JSON:
    case FIELD_OWN:
        *(const json_t **)place = value;
        return 0;
    case FIELD_STRUCT:
        if (!json_is_object(value))
            return decode_refuse(err, path, "not an object");
        return decode_read_members(field->sub, value, arena, target, path, err);
    case FIELD_IGNORED:
        return 0;
    case FIELD_CHARS:
    case FIELD_SEALED:
    case FIELD_ENUM:
    case FIELD_UUIDS:
    case FIELD_TIME:
        break;
    case FIELD_UNSUPPORTED:
        return decode_is_empty(value) ? 0
                                      : decode_refuse(err, path, "not supported by this server");
    }
    return decode_refuse(err, path, "unknown type");
}

const char *decode_find_near(const struct field *table, const char *key, size_t *ret_len)
{
    struct suggest suggest = suggest_for(key, strlen(key));
    const char *near = NULL;

    for (; table && table->names; table++)
        for (const char *name = table->names; *name;) {
            size_t len = strcspn(name, "|");
            unsigned before = suggest.distance;
            char word[64];

            (void)snprintf(word, sizeof(word), "%.*s", (int)len, name);
            suggest_offer(&suggest, word);
            if (suggest.distance < before) {
                near = name;
                *ret_len = len;
            }
            name += len + (name[len] == '|');
        }
    return near;
}

/* "unknown; this request has no such parameter; did you mean 'shmem'? It has shmem, ..." */
static int decode_refuse_unknown(struct aq_error *err, const struct decode_path *path,
                                 const struct field *table)
{
    char text[sizeof(err->text)], known[KNOWN_MAX] = "";
    size_t near_len = 0, len = 0;
    const char *near = decode_find_near(table, path->name, &near_len), *end;

    for (; table && table->names && len < sizeof(known); table++)
        if (table->type != FIELD_IGNORED && table->type != FIELD_UNSUPPORTED)
            len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%.*s", len ? ", " : "",
                                    (int)strcspn(table->names, "|"), table->names);
    len = len < sizeof(known) ? len : 0; /* too many to be of use */
    end = near ? "'?" : len ? "." : "";
    (void)snprintf(text, sizeof(text), "unknown; this request has no such parameter%s%.*s%s%s%s",
                   near ? "; did you mean '" : "", (int)near_len, near ? near : "", end,
                   len ? " It has " : "", len ? known : "");
    return decode_refuse(err, path, text);
}

/* Each member's value at its field's index. */
static int decode_sort_members(const struct field *table, const json_t *object,
                               const json_t **values, const struct decode_path *outer,
                               struct aq_error *err)
{
    const json_t *value;
    const char *key;

    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        const struct decode_path path = { .outer = outer, .name = *key ? key : "\"\"" };
        long i = field_index(table, key);

        if (i < 0)
            return decode_refuse_unknown(err, &path, table);
        if (values[i])
            return decode_refuse(err, &path, "given twice, under two of its names");
        values[i] = value;
    }
    return 0;
}

static int decode_read_members(const struct field *table, const json_t *object, struct arena *arena,
                               void *target, const struct decode_path *outer, struct aq_error *err)
{
    const json_t **values;
    size_t count = 0;
    int r;

    while (table && table[count].names)
        count++;
    values = arena_array(arena, count + 1, sizeof(*values));
    if ((r = decode_sort_members(table, object, values, outer, err)) < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        const struct field *field = &table[i];
        const struct decode_path path = { .outer = outer,
                                          .name = field->names,
                                          .name_len = (int)field_name_len(field) };

        if (!values[i] && (field->flags & FIELD_REQUIRED))
            return decode_refuse(err, &path, "is required");
        if (!values[i])
            continue;
        if (json_is_null(values[i])
            && (field->flags & FIELD_NULLABLE || field->type >= FIELD_IGNORED))
            continue;
        if (json_is_null(values[i]))
            return decode_refuse(err, &path, "must not be null");
        if ((r = decode_read_value(field, values[i], arena, target, &path, err)) < 0)
            return r;
    }
    return 0;
}

int decode_object(const struct field *table, const json_t *object, struct arena *arena,
                  void *target, struct aq_error *err)
{
    if (!json_is_object(object))
        return decode_refuse_body(err, "not an object");
    return decode_read_members(table, object, arena, target, NULL, err);
}

/* ---- documentation ---- */

static const char *const type_names[] = {
    [FIELD_STR] = "text",
    [FIELD_SCALAR] = "scalar",
    [FIELD_WORD] = "text",
    [FIELD_BOOL] = "boolean",
    [FIELD_MAYBE] = "boolean",
    [FIELD_INT] = "integer",
    [FIELD_DURATION] = "duration",
    [FIELD_UUID] = "uuid",
    [FIELD_STR_LIST] = "texts",
    [FIELD_PORT_LIST] = "integers",
    [FIELD_PAIRS] = "object",
    [FIELD_OBJECT] = "object",
    [FIELD_JSON] = "json",
    [FIELD_STRUCT] = "struct",
    [FIELD_TEXT] = "text",
    [FIELD_INT32] = "integer",
    [FIELD_SLOTS] = "object",
    [FIELD_OWN] = "json",
    [FIELD_JSON_TEXT] = "object",
    [FIELD_USEC] = "integer",
    [FIELD_SIZE] = "text",
    [FIELD_IGNORED] = "ignored",
    [FIELD_UNSUPPORTED] = "unsupported",
};

static void decode_describe_names(const char *names, struct jsonw *w)
{
    size_t len = strcspn(names, "|");

    jsonw_key(w, "name");
    jsonw_strn(w, names, len);
    jsonw_key(w, "aliases");
    jsonw_array_begin(w);
    for (names += len; *names == '|'; names += len) {
        names++;
        len = strcspn(names, "|");
        jsonw_strn(w, names, len);
    }
    jsonw_array_end(w);
}

void decode_describe(const struct field *table, struct jsonw *w)
{
    jsonw_array_begin(w);
    for (const struct field *field = table; field && field->names; field++) {
        jsonw_object_begin(w);
        decode_describe_names(field->names, w);
        jsonw_member_str(w, "type", type_names[field->type]);
        jsonw_member_bool(w, "required", field->flags & FIELD_REQUIRED);
        jsonw_member_bool(w, "nullable",
                          field->flags & FIELD_NULLABLE || field->type >= FIELD_IGNORED);
        if (field->min || field->max) {
            jsonw_member_int(w, "min", field->min);
            jsonw_member_int(w, "max", field->max);
        }
        if (field->flags & FIELD_SECRET)
            jsonw_member_bool(w, "secret", true);
        if (field->doc)
            jsonw_member_str(w, "doc", field->doc);
        if (field->sub) {
            jsonw_key(w, "fields");
            decode_describe(field->sub, w);
        }
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}
