/* SPDX-License-Identifier: Apache-2.0 */
/* /notifications: rows of channels and rules, and the types of rules. */
#include "manager/notification/notification_rest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/uuid.h"
#include "manager/call/export.h"
#include "manager/notification/notification_feature.h"

static const struct {
    const char *one, *many, *type; /* members of answers, and of the row */
} notification_words[] = {
    [NOTIFICATION_CHANNEL] = { "channel", "channels", "channel_type" },
    [NOTIFICATION_RULE] = { "rule", "rules", "rule_type" },
};

/* ---- a row ---- */

static void notification_write(const char *id, const json_t *row, struct jsonw *w)
{
    json_auto_t *shown = notification_show(row);
    const char *key;
    json_t *value;

    jsonw_object_begin(w);
    jsonw_member_str(w, "id", id);
    json_object_foreach(shown, key, value) {
        AQ_CLEANUP(aq_freep) char *text = json_dump_text(value, JSON_COMPACT | JSON_ENCODE_ANY);

        if (strcmp(key, "created_at") == 0 || strcmp(key, "updated_at") == 0)
            api_write_time(w, key, json_integer_value(value));
        else
            api_write_raw(w, key, text);
    }
    jsonw_object_end(w);
}

static void notification_reply(const struct api *api, struct request *req,
                               enum notification_kind kind, const char *id, int status)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };
    const json_t *row;

    if (notifications_find(api->notification->notifications, kind, id, &row, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_key(&w, notification_words[kind].one);
    notification_write(id, row, &w);
    jsonw_object_end(&w);
    request_reply_json(req, status, &out);
}

void notification_get(struct api *api, struct request *req, enum notification_kind kind)
{
    if (api_has_no_params(req))
        notification_reply(api, req, kind, request_get_param(req, "id"), 200);
}

/* ---- changes ---- */

struct notification_change {
    const struct api *api;
    struct request *req;
    enum notification_kind kind;
    bool is_new, is_removed;
    char id[UUID_TEXT_MAX];
};

static void notification_on_changed(void *data, int r, const struct aq_error *err)
{
    static const char deleted[] = "{\"deleted\":true}";
    const struct notification_change *change = data;

    if (r < 0)
        request_fail(change->req, err);
    else if (change->is_removed)
        request_reply(change->req, 200, "application/json", deleted, sizeof(deleted) - 1);
    else
        notification_reply(change->api, change->req, change->kind, change->id,
                           change->is_new ? 201 : 200);
}

static void notification_set_shared(const struct request *req, bool is_new,
                                    const struct notification_params *params, json_t *value)
{
    json_int_t now = clock_realtime_usec();
    char user[UUID_TEXT_MAX];

    json_object_set_new(value, "updated_at", json_integer(now));
    if (params->name)
        json_object_set_new(value, "name", json_string(params->name));
    if (params->description || is_new)
        json_object_set_new(value, "description",
                            params->description ? json_string(params->description) : json_null());
    if (params->enabled != MAYBE_UNSET || is_new)
        json_object_set_new(value, "enabled", json_boolean(params->enabled != MAYBE_FALSE));
    if (is_new) {
        json_object_set_new(value, "created_at", json_integer(now));
        json_object_set_new(value, "created_by",
                            json_string(uuid_format(&api_principal(req)->user_id, user)));
    }
}

static struct notification_change *notification_change_new(const struct api *api,
                                                           struct request *req,
                                                           enum notification_kind kind,
                                                           struct aq_error *err)
{
    struct notification_change *change = arena_alloc(request_get_arena(req), sizeof(*change));
    const char *id = request_get_param(req, "id");
    struct uuid fresh = uuid_random();
    const json_t *row;

    *change = (struct notification_change){ .api = api, .req = req, .kind = kind, .is_new = !id };
    if (id && notifications_find(api->notification->notifications, kind, id, &row, err) < 0)
        return NULL;
    if (id)
        (void)snprintf(change->id, sizeof(change->id), "%s", id);
    else
        (void)uuid_format(&fresh, change->id);
    return change;
}

void notification_save(struct api *api, struct request *req, enum notification_kind kind,
                       bool is_new, const struct notification_params *params, json_t *value,
                       struct aq_error *err)
{
    struct notification_change *change = err->code ? NULL
                                                   : notification_change_new(api, req, kind, err);

    if (change) {
        notification_set_shared(req, is_new, params, value);
        notifications_change(api->notification->notifications, kind,
                             is_new ? OBJECT_SETTING_CREATE : OBJECT_SETTING_MODIFY, change->id,
                             json_incref(value), api_who(api, req), notification_on_changed,
                             change);
    } else {
        request_fail(req, err);
    }
    json_decref(value);
}

void notification_remove(struct api *api, struct request *req, enum notification_kind kind)
{
    struct notification_change *change;
    struct aq_error err = { 0 };

    if (!api_has_no_params(req))
        return;
    if (!(change = notification_change_new(api, req, kind, &err))) {
        request_fail(req, &err);
        return;
    }
    change->is_removed = true;
    notifications_change(api->notification->notifications, kind, OBJECT_SETTING_REMOVE, change->id,
                         NULL, api_who(api, req), notification_on_changed, change);
}

void notification_fail_test(struct request *req, const struct aq_error *err)
{
    struct aq_error why = { 0 };

    aq_fail_kind(&why, EREMOTEIO, "notification-failed", "%s", err->text);
    request_fail(req, &why);
}

/* ---- search ---- */

struct notification_search {
    const json_t *name, *order;
    struct str_list types;
    enum maybe enabled;
    int64_t limit, offset;
    bool has_extensions; /* rules of types that Backend.AI does not have, too */
};

#define AT(member) offsetof(struct notification_search, member)
#define SEARCH_FIELDS(kind, types_name)                                                         \
    static const struct field notification_##kind##_filter_fields[] = {                         \
        { "name", FIELD_OBJECT, FIELD_NULLABLE, AT(name),                                       \
          .doc = "{\"equals\": name}; contains, starts_with, ends_with; not_ and i_ before "    \
                 "them" },                                                                      \
        { types_name, FIELD_STR_LIST, FIELD_NULLABLE, AT(types), .max = 10 },                   \
        { "enabled", FIELD_MAYBE, FIELD_NULLABLE, AT(enabled) },                                \
        FIELD_END,                                                                              \
    };                                                                                          \
    const struct field notification_##kind##_search_fields[] = {                                \
        { "filter", FIELD_STRUCT, FIELD_NULLABLE, .sub = notification_##kind##_filter_fields }, \
        { "order", FIELD_JSON, FIELD_NULLABLE, AT(order),                                       \
          .doc = "[{\"field\": \"name\", \"created_at\" or \"updated_at\", \"direction\": "     \
                 "\"asc\" or \"desc\"}]" },                                                     \
        { "limit", FIELD_INT, 0, AT(limit), 1, API_LIST_MAX },                                  \
        { "offset", FIELD_INT, 0, AT(offset), 0, INT64_C(1000000000) },                         \
        FIELD_END,                                                                              \
    }

SEARCH_FIELDS(channel, "channel_types");
SEARCH_FIELDS(rule, "rule_types");

struct notification_row {
    const char *id;
    const json_t *row;
};

struct notification_rows {
    struct notification_row of[NOTIFICATIONS_MAX];
    size_t count;
};

/* The test's word behind "i_" and "not_". */
static bool notification_name_passes(const char *test, const char *name, const char *wanted,
                                     bool any_case)
{
    int (*const compare)(const char *, const char *, size_t) = any_case ? strncasecmp : strncmp;
    size_t len = strlen(name), want = strlen(wanted);

    if (strcmp(test, "equals") == 0)
        return len == want && compare(name, wanted, len) == 0;
    if (strcmp(test, "starts_with") == 0)
        return compare(name, wanted, want) == 0;
    if (strcmp(test, "ends_with") == 0)
        return len >= want && compare(name + len - want, wanted, want) == 0;
    return (any_case ? strcasestr(name, wanted) : strstr(name, wanted)) != NULL;
}

/* Does the name pass all tests? Those that are null are none. */
static int notification_match_name(const json_t *tests, const char *name, bool *ret,
                                   struct aq_error *err)
{
    static const char *const words[] = { "equals", "contains", "starts_with", "ends_with" };
    const char *key;
    json_t *value;

    *ret = true;
    json_object_foreach((json_t *)(uintptr_t)tests, key, value) {
        bool any_case = strncmp(key, "i_", 2) == 0;
        const char *word = key + (any_case ? 2 : 0);
        bool is_not = strncmp(word, "not_", 4) == 0, is_known = false;

        word += is_not ? 4 : 0;
        for (size_t i = 0; i < AQ_COUNT(words); i++)
            is_known |= strcmp(words[i], word) == 0;
        if (json_is_null(value))
            continue;
        if (!is_known || !json_is_string(value))
            return api_fail_param(err, "filter",
                                  "'name' has texts for equals, contains, starts_with and "
                                  "ends_with, with not_ and i_ before them");
        *ret &= notification_name_passes(word, name, json_string_value(value), any_case) != is_not;
    }
    return 0;
}

/* Backend.AI's clients reject a list with a rule of a type that is ours, so only a search that names
 * the type finds it.
 */
static bool notification_is_listed(enum notification_kind kind, const char *type)
{
    const struct notification_type *found;

    return kind != NOTIFICATION_RULE || notification_type_find(type, "rule_types", &found, NULL) < 0
           || !found->is_extension;
}

static int notification_match(const struct notification_search *s, enum notification_kind kind,
                              const json_t *row, bool *ret, struct aq_error *err)
{
    const char *type = json_string_value(json_object_get(row, notification_words[kind].type));
    bool is_of_type = !s->types.count && (s->has_extensions || notification_is_listed(kind, type));

    for (size_t i = 0; i < s->types.count; i++)
        is_of_type |= strcasecmp(s->types.items[i], type) == 0;
    if (notification_match_name(s->name, json_string_value(json_object_get(row, "name")), ret, err)
        < 0)
        return -err->code;
    *ret &= is_of_type
            && (s->enabled == MAYBE_UNSET
                || json_is_true(json_object_get(row, "enabled")) == (s->enabled == MAYBE_TRUE));
    return 0;
}

static int notification_check_order(const json_t *order, struct aq_error *err)
{
    static const char *const fields[] = { "name", "created_at", "updated_at" };
    size_t i;
    json_t *one;

    if (order && !json_is_array(order))
        return api_fail_param(err, "order", "is a list");
    json_array_foreach((json_t *)(uintptr_t)order, i, one) {
        const char *field = json_string_value(json_object_get(one, "field"));
        const char *direction = json_string_value(json_object_get(one, "direction"));
        bool is_known = false;

        for (size_t f = 0; field && f < AQ_COUNT(fields); f++)
            is_known |= strcmp(fields[f], field) == 0;
        if (!is_known
            || (direction && strcmp(direction, "asc") != 0 && strcmp(direction, "desc") != 0))
            return api_fail_param(err, "order",
                                  "has fields name, created_at and updated_at, and directions asc "
                                  "and desc");
    }
    return 0;
}

static int notification_compare_by(const json_t *a, const json_t *b, const char *field)
{
    const json_t *left = json_object_get(a, field), *right = json_object_get(b, field);
    json_int_t x = json_integer_value(left), y = json_integer_value(right);

    return json_is_string(left) ? strcmp(json_string_value(left), json_string_value(right))
                                : (x > y) - (x < y);
}

/* By what is asked for, then by age. */
static int notification_compare(const void *left, const void *right, void *order)
{
    const struct notification_row *a = left, *b = right;
    size_t i;
    json_t *one;
    int r = 0;

    json_array_foreach((json_t *)order, i, one) {
        const char *direction = json_string_value(json_object_get(one, "direction"));

        if (r == 0)
            r = notification_compare_by(a->row, b->row,
                                        json_string_value(json_object_get(one, "field")));
        if (r != 0)
            return direction && strcmp(direction, "desc") == 0 ? -r : r;
    }
    r = notification_compare_by(a->row, b->row, "created_at");
    return r ? r : strcmp(a->id, b->id);
}

static int notification_find_all(const struct api *api, enum notification_kind kind,
                                 const struct notification_search *s, struct notification_rows *ret,
                                 struct aq_error *err)
{
    json_t *all = (json_t *)(uintptr_t)notifications_all(api->notification->notifications), *row;
    const char *id;
    int r = notification_check_order(s->order, err);

    json_object_foreach(all, id, row) {
        bool matches = false;

        if (r < 0 || !notification_is(row, kind))
            continue;
        r = notification_match(s, kind, row, &matches, err);
        if (r == 0 && matches)
            ret->of[ret->count++] = (struct notification_row){ id, row };
    }
    if (r == 0)
        qsort_r(ret->of, ret->count, sizeof(*ret->of), notification_compare,
                (void *)(uintptr_t)s->order);
    return r;
}

static void notification_write_all(enum notification_kind kind, const struct notification_rows *all,
                                   const struct notification_search *s, struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_key(w, notification_words[kind].many);
    jsonw_array_begin(w);
    for (int64_t i = s->offset; i < (int64_t)all->count && i < s->offset + s->limit; i++)
        notification_write(all->of[i].id, all->of[i].row, w);
    jsonw_array_end(w);
    jsonw_key(w, "pagination");
    jsonw_object_begin(w);
    jsonw_member_int(w, "total", (int64_t)all->count);
    jsonw_member_int(w, "offset", s->offset);
    jsonw_member_int(w, "limit", s->limit);
    jsonw_object_end(w);
    jsonw_object_end(w);
}

void notification_search(struct api *api, struct request *req, enum notification_kind kind)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct notification_search search = { .limit = API_SEARCH_DEFAULT };
    struct notification_rows rows = { .count = 0 };
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };
    json_auto_t *tree = NULL;

    if (api_decode(req, &search, &tree, &err) < 0
        || notification_find_all(api, kind, &search, &rows, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    notification_write_all(kind, &rows, &search, &w);
    request_reply_json(req, 200, &out);
}

void notification_list(struct api *api, struct request *req, enum notification_kind kind)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct notification_rows rows = { .count = 0 };
    struct jsonw w = jsonw_make(&out);

    if (!api_has_no_params(req))
        return;
    (void)notification_find_all(api, kind, &(struct notification_search){ .has_extensions = true },
                                &rows, NULL);
    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < rows.count; i++)
        notification_write(rows.of[i].id, rows.of[i].row, &w);
    jsonw_array_end(&w);
    jsonw_member_int(&w, "total", (int64_t)rows.count);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

/* ---- types ---- */

static void notification_write_types(const char *member, bool are_extensions, struct jsonw *w)
{
    jsonw_key(w, member);
    jsonw_array_begin(w);
    for (size_t i = 0; i < NOTIFICATION_TYPES; i++)
        if (notification_types[i].is_extension == are_extensions)
            jsonw_str(w, notification_types[i].name);
    jsonw_array_end(w);
}

static void notification_on_types(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    (void)data;
    if (!api_has_no_params(req))
        return;
    jsonw_object_begin(&w);
    notification_write_types("rule_types", false, &w);
    notification_write_types("extension_types", true, &w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static void notification_on_schema(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct notification_type *type;
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };

    (void)data;
    if (!api_has_no_params(req))
        return;
    if (notification_type_find(request_get_param(req, "type"), "type", &type, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "rule_type", type->name);
    jsonw_key(&w, "json_schema");
    notification_type_write_schema(type, &w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static const struct route notification_routes[] = {
    { METHOD_GET, "/notifications/rule-types", API_SUPERADMIN, notification_on_types, NULL,
      "What rules of notifications can be about" },
    { METHOD_GET, "/notifications/rule-types/{type}/schema", API_SUPERADMIN, notification_on_schema,
      NULL, "The fields of a type of rules, as JSON Schema" },
};
API_ROUTES_END(notification);
