/* SPDX-License-Identifier: Apache-2.0 */
/* fair_search.c - searches for shares and days of use */
#include "manager/scheduling/scheduling.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* ---- tables ---- */

/* clang-format off */
#define EQUALS(type, ...) { "equals", type, FIELD_NULLABLE, __VA_ARGS__ }, FIELD_END

static const struct field fair_search_group[] = {
    EQUALS(FIELD_STR, offsetof(struct fair_search, list.query.resource_group), 1, 64)
};
static const struct field fair_search_domain[] = {
    EQUALS(FIELD_STR, offsetof(struct fair_search, list.query.domain), 1, 64)
};
static const struct field fair_search_project[] = {
    EQUALS(FIELD_UUID, offsetof(struct fair_search, project))
};
static const struct field fair_search_user[] = {
    EQUALS(FIELD_UUID, offsetof(struct fair_search, user))
};
static const struct field fair_search_period[] = {
    { "after", FIELD_STR, FIELD_NULLABLE, offsetof(struct fair_search, after), 1, 16 },
    { "before", FIELD_STR, FIELD_NULLABLE, offsetof(struct fair_search, before), 1, 16 },
    FIELD_END,
};

#define FILTER(name, table) { name, FIELD_STRUCT, FIELD_NULLABLE, .sub = (table) }
#define OF_DOMAINS                                                                                 \
    FILTER("resource_group", fair_search_group), FILTER("domain_name", fair_search_domain)
#define OF_PROJECTS OF_DOMAINS, FILTER("project_id", fair_search_project)
#define OF_USERS OF_PROJECTS, FILTER("user_uuid", fair_search_user)
#define OF_DAYS FILTER("period_start", fair_search_period)

#define TABLES(name, doc_, order_doc, ...)                                                         \
    static const struct field fair_search_##name##_filter[] = { __VA_ARGS__, FIELD_END };          \
    const struct field fair_search_##name##_fields[] = {                                           \
        { "filter", FIELD_STRUCT, FIELD_NULLABLE, .sub = fair_search_##name##_filter, .doc = doc_ },\
        { "order", FIELD_JSON, FIELD_NULLABLE, offsetof(struct fair_search, order),                \
          .doc = order_doc },                                                                      \
        { "limit", FIELD_INT, 0, offsetof(struct fair_search, list.query.limit), 1, API_LIST_MAX },\
        { "offset", FIELD_INT, 0, offsetof(struct fair_search, list.query.offset), 0,              \
          INT64_C(1000000000) },                                                                   \
        FIELD_END,                                                                                 \
    }

#define NAMES "{NAME: {\"equals\": value}}"
#define ORDER_OF(field) "[{\"field\": " field ", \"direction\": \"asc\" or \"desc\"}]"
#define SHARE_ORDER ORDER_OF("\"fair_share_factor\"")
#define DAYS_FILTER NAMES ", and \"period_start\": {\"after\": day, \"before\": day}"
#define DAYS_ORDER ORDER_OF("\"period_start\"")

TABLES(domain, NAMES, ORDER_OF("\"fair_share_factor\" or \"domain_name\""), OF_DOMAINS);
TABLES(project, NAMES, SHARE_ORDER, OF_PROJECTS);
TABLES(user, NAMES, SHARE_ORDER, OF_USERS);
TABLES(domain_days, DAYS_FILTER, DAYS_ORDER, OF_DOMAINS, OF_DAYS);
TABLES(project_days, DAYS_FILTER, DAYS_ORDER, OF_PROJECTS, OF_DAYS);
TABLES(user_days, DAYS_FILTER, DAYS_ORDER, OF_USERS, OF_DAYS);
/* clang-format on */

/* ---- reading ---- */

int fair_search_path_id(struct request *req, const char *name, struct uuid *ret,
                        struct aq_error *err)
{
    const char *text = request_get_param(req, name);

    *ret = (struct uuid){ 0 };
    return text && uuid_parse(text, ret) < 0 ? api_fail_param(err, name, "'%.64s' is no id", text)
                                             : 0;
}

/* A name of the path narrows the search; one in the filter is the same. */
static int fair_search_narrow(struct request *req, const char *name, const char **text,
                              struct aq_error *err)
{
    const char *in_path = request_get_param(req, name);

    if (in_path && *text && strcmp(in_path, *text) != 0)
        return api_fail_param(err, "filter", "names another %s than the path", name);
    *text = in_path ? in_path : *text;
    return 0;
}

static int fair_search_narrow_project(struct fair_search *s, struct aq_error *err)
{
    struct uuid in_path;

    if (fair_search_path_id(s->list.req, "project", &in_path, err) < 0)
        return -err->code;
    if (uuid_is_nil(&in_path))
        return 0;
    if (!uuid_is_nil(&s->project) && !uuid_equals(&s->project, &in_path))
        return api_fail_param(err, "filter", "names another project than the path");
    s->project = in_path;
    return 0;
}

static int fair_search_read(struct fair_search *s, const struct export_report *orders,
                            struct aq_error *err)
{
    struct store_query *query = &s->list.query;
    json_auto_t *tree = NULL; /* of the order */

    query->limit = API_SEARCH_DEFAULT;
    if (api_decode(s->list.req, s, &tree, err) < 0
        || export_read_query(orders, NULL, s->order, request_get_arena(s->list.req), query, err) < 0
        || fair_search_narrow(s->list.req, "resource_group", &query->resource_group, err) < 0
        || fair_search_narrow(s->list.req, "domain", &query->domain, err) < 0
        || fair_search_narrow_project(s, err) < 0)
        return -err->code;
    s->order = NULL;
    query->project_id = uuid_is_nil(&s->project) ? NULL : &s->project;
    query->user_id = uuid_is_nil(&s->user) ? NULL : &s->user;
    return 0;
}

struct fair_search *fair_search_new(const struct api *api, struct request *req,
                                    enum core_fair_level level, const struct export_report *orders)
{
    struct fair_search *s = arena_alloc(request_get_arena(req), sizeof(*s));
    struct aq_error err = { 0 };

    *s = (struct fair_search){ .list = { .api = api, .req = req, .is_search = true },
                               .level = level };
    if (fair_search_read(s, orders, &err) == 0)
        return s;
    request_fail(req, &err);
    return NULL;
}

/* ---- writing ---- */

void fair_search_begin_slots(struct jsonw *w, const char *key)
{
    jsonw_key(w, key);
    jsonw_object_begin(w);
    jsonw_key(w, "entries");
    jsonw_array_begin(w);
}

void fair_search_write_slot(struct jsonw *w, const char *slot, const char *quantity)
{
    jsonw_object_begin(w);
    jsonw_member_str(w, "resource_type", slot);
    jsonw_member_str(w, "quantity", quantity);
    jsonw_object_end(w);
}

/* Of bytes it is whole. */
void fair_search_write_amount(const struct api *api, struct jsonw *w, const char *slot,
                              double amount)
{
    bool is_bytes = slot_types_get(core_slot_types(api->core), slot) == SLOT_BYTES;
    char text[64];

    (void)snprintf(text, sizeof(text), "%.*f", is_bytes ? 0 : 6,
                   is_bytes ? amount : amount / (double)AMOUNT_ONE);
    fair_search_write_slot(w, slot, text);
}

void fair_search_end_slots(struct jsonw *w)
{
    jsonw_array_end(w);
    jsonw_object_end(w);
}

void fair_search_write_date(struct jsonw *w, const char *key, int64_t usec)
{
    char iso[CLOCK_ISO_MAX];

    (void)clock_format_iso(usec, iso);
    iso[10] = '\0';
    jsonw_member_str(w, key, iso);
}
