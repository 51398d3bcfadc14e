/* SPDX-License-Identifier: Apache-2.0 */
/* /fair-share: shares of domains, projects and users, shown and weighed as Backend.AI's
 * administrators do it from 26 on. A share is computed when it is asked for.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/vec.h"
#include "manager/scheduling/scheduling.h"
#include "manager/scheduling/scheduling_feature.h"
#include "manager/scheduling/share_spec.h"

struct share {
    const char *resource_group;
    const struct share_spec *spec;
    struct core_fair_row row;
};

/* ---- written ---- */

static struct uuid shares_id(const struct share *share)
{
    const struct core_fair_row *row = &share->row;
    char project[UUID_TEXT_MAX], user[UUID_TEXT_MAX], text[320];

    (void)snprintf(text, sizeof(text), "%s/%d/%s/%s/%s", share->resource_group, (int)row->level,
                   uuid_format(&row->project, project), uuid_format(&row->user, user), row->domain);
    return uuid_of_text(text);
}

static void shares_write_calculation(const struct api *api, const struct share *share,
                                     int64_t now_usec, struct jsonw *w)
{
    double lookback_usec = share->spec->settings.lookback_days * 86400 * USEC_PER_SEC;

    jsonw_key(w, "calculation_snapshot");
    jsonw_object_begin(w);
    jsonw_key(w, "fair_share_factor");
    jsonw_double(w, share->row.factor);
    fair_search_begin_slots(w, "total_decayed_usage");
    for (size_t i = 0; i < share->row.slot_count; i++)
        fair_search_write_amount(api, w, share->row.slots[i].name, share->row.slots[i].used);
    fair_search_end_slots(w);
    jsonw_key(w, "normalized_usage");
    jsonw_double(w, share->row.usage);
    fair_search_write_date(w, "lookback_start", now_usec - (int64_t)lookback_usec);
    fair_search_write_date(w, "lookback_end", now_usec);
    api_write_time(w, "last_calculated_at", now_usec);
    jsonw_object_end(w);
}

static void shares_write(const struct api *api, const struct share *share, struct jsonw *w)
{
    int64_t now_usec = clock_realtime_usec();
    struct uuid id = shares_id(share);

    jsonw_object_begin(w);
    api_write_uuid(w, "id", &id);
    jsonw_member_str(w, "resource_group", share->resource_group);
    jsonw_member_str(w, "domain_name", share->row.domain);
    if (share->row.level >= CORE_FAIR_PROJECT)
        api_write_uuid(w, "project_id", &share->row.project);
    if (share->row.level == CORE_FAIR_USER)
        api_write_uuid(w, "user_uuid", &share->row.user);
    jsonw_key(w, "spec");
    jsonw_object_begin(w);
    jsonw_key(w, "weight");
    jsonw_double(w, share->row.weight);
    share_spec_write(share->spec, w);
    jsonw_object_end(w);
    shares_write_calculation(api, share, now_usec, w);
    api_write_time(w, "created_at", now_usec);
    api_write_time(w, "updated_at", now_usec);
    jsonw_object_end(w);
}

/* ---- searched ---- */

static const struct export_field shares_orders[] = {
    { "fair_share_factor", .field = "fair_share_factor" },
    { "domain_name", .field = "domain_name" },
};

static const struct export_report shares_report = {
    .fields = shares_orders,
    .field_count = AQ_COUNT(shares_orders),
};

struct shares_search {
    const struct fair_search *asked;
    struct arena *arena; /* of the page */
    struct share of;     /* what all shares of the group have in common */
    struct share *items;
    size_t count, cap;
};

/* core_fair_fn */
static void shares_keep(void *data, const struct core_fair_row *row)
{
    struct shares_search *search = data;
    const struct store_query *query = &search->asked->list.query;
    struct share share = search->of;
    struct core_fair_slot *slots;
    char *domain;

    if (row->level != search->asked->level || (query->domain && strcmp(query->domain, row->domain))
        || (query->project_id && !uuid_equals(query->project_id, &row->project))
        || (query->user_id && !uuid_equals(query->user_id, &row->user)))
        return;
    domain = arena_strdup(search->arena, row->domain);
    slots = arena_array(search->arena, row->slot_count + 1, sizeof(*slots));
    (void)vec_grow(&search->items, &search->cap, search->count + 1, sizeof(*search->items));
    memcpy(slots, row->slots, row->slot_count * sizeof(*slots));
    share.row = *row;
    share.row.domain = domain;
    share.row.slots = slots;
    search->items[search->count++] = share;
}

static int shares_collect(struct shares_search *search, const char *name, struct aq_error *err)
{
    const struct api *api = search->asked->list.api;
    struct share_spec *spec = arena_alloc(search->arena, sizeof(*spec));

    search->of = (struct share){ .resource_group = arena_strdup(search->arena, name),
                                 .spec = spec };
    if (share_spec_read(api, name, search->arena, spec, err) < 0
        || core_list_fair_share(api->core, name, shares_keep, search, err) < 0)
        return -err->code;
    return 0;
}

/* Of one group, or of all that schedule by fair share. */
static int shares_collect_all(struct shares_search *search, struct aq_error *err)
{
    const char *name = search->asked->list.query.resource_group;
    struct core *core = search->asked->list.api->core;
    const struct resource_group *group;
    struct aq_error other = { 0 };
    int r = 0;

    if (name)
        return shares_collect(search, name, err);
    for (size_t i = 0; r == 0 && (group = core_get_resource_group(core, i)); i++)
        if (group->is_active && core_check_fair_share(core, group->name, &other) == 0)
            r = shares_collect(search, group->name, err);
    return r;
}

static int shares_compare_holders(const struct share *a, const struct share *b)
{
    int r = strcmp(a->resource_group, b->resource_group);

    if (r == 0)
        r = strcmp(a->row.domain, b->row.domain);
    if (r == 0)
        r = uuid_compare(&a->row.project, &b->row.project);
    return r ? r : uuid_compare(&a->row.user, &b->row.user);
}

/* 'data' is an order: "-fair_share_factor,domain_name". */
static int shares_compare(const void *left, const void *right, void *data)
{
    const struct share *a = left, *b = right;

    for (const char *at = data; *at; at += strcspn(at, ","), at += *at == ',') {
        bool is_down = *at == '-';
        int r = strncmp(at + is_down, "domain_name", 11) == 0
                    ? strcmp(a->row.domain, b->row.domain)
                    : (a->row.factor > b->row.factor) - (a->row.factor < b->row.factor);

        if (r)
            return is_down ? -r : r;
    }
    return shares_compare_holders(a, b);
}

/* Of 'make' of a list. */
static int shares_make(const struct api_list *list, struct store_page **ret, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = aq_alloc(sizeof(*page));
    struct shares_search search = { .asked = (const struct fair_search *)list };
    char *order = (char *)(uintptr_t)(list->query.order ? list->query.order : "-fair_share_factor");
    size_t offset;

    search.arena = &page->arena;
    if (shares_collect_all(&search, err) < 0) {
        free(search.items);
        return -err->code;
    }
    if (search.count)
        qsort_r(search.items, search.count, sizeof(*search.items), shares_compare, order);
    offset = AQ_MIN((size_t)list->query.offset, search.count);
    page->total = (int64_t)search.count;
    page->count = AQ_MIN(search.count - offset, (size_t)list->query.limit);
    page->rows = arena_array(&page->arena, page->count + 1, sizeof(*search.items));
    if (page->count)
        memcpy(page->rows, search.items + offset, page->count * sizeof(*search.items));
    free(search.items);
    *ret = AQ_TAKE(page);
    return 0;
}

static void shares_write_row(const struct api_list *list, const struct store_page *page, size_t i,
                             struct jsonw *w)
{
    shares_write(list->api, (const struct share *)page->rows + i, w);
}

static void shares_search(struct request *req, const struct api *api, enum core_fair_level level)
{
    struct fair_search *s = fair_search_new(api, req, level, &shares_report);

    if (!s)
        return;
    s->list.make = shares_make;
    s->list.write = shares_write_row;
    api_list_start(&s->list);
}

static void shares_on_domains(struct request *req, void *data)
{
    shares_search(req, data, CORE_FAIR_DOMAIN);
}

static void shares_on_projects(struct request *req, void *data)
{
    shares_search(req, data, CORE_FAIR_PROJECT);
}

static void shares_on_users(struct request *req, void *data)
{
    shares_search(req, data, CORE_FAIR_USER);
}

/* ---- of one domain, project or user ---- */

struct shares_one {
    struct api *api;
    struct request *req;
    struct share share;
    struct share_spec spec;
};

/* Whom the path and the domain of a body (or NULL) name. */
static int shares_find(struct shares_one *one, const char *domain, struct aq_error *err)
{
    const char *in_path = request_get_param(one->req, "domain");
    struct core_fair_row *row = &one->share.row;
    const struct project *project;

    if (fair_search_path_id(one->req, "project", &row->project, err) < 0
        || fair_search_path_id(one->req, "user", &row->user, err) < 0)
        return -err->code;
    row->level = request_get_param(one->req, "user")      ? CORE_FAIR_USER
                 : request_get_param(one->req, "project") ? CORE_FAIR_PROJECT
                                                          : CORE_FAIR_DOMAIN;
    domain = in_path ? in_path : domain;
    if (row->level != CORE_FAIR_DOMAIN) {
        project = core_find_project(one->api->core, &row->project);
        if (!project || (domain && strcmp(domain, project->domain) != 0))
            return problem_no_such(err, "user group (or project)",
                                   "there is no project '%.64s'%s%.64s",
                                   request_get_param(one->req, "project"),
                                   domain ? " in domain " : "", domain ? domain : "");
        domain = project->domain;
    }
    if (!core_find_domain(one->api->core, domain))
        return problem_no_such(err, "domain", "there is no domain '%.64s'", domain);
    if (row->level == CORE_FAIR_USER && !core_find_user(one->api->core, &row->user))
        return problem_no_such(err, "user", "there is no user '%.64s'",
                               request_get_param(one->req, "user"));
    row->domain = arena_strdup(request_get_arena(one->req), domain);
    return 0;
}

static struct shares_one *shares_one_new(struct api *api, struct request *req)
{
    struct shares_one *one = arena_alloc(request_get_arena(req), sizeof(*one));

    one->api = api;
    one->req = req;
    one->share.resource_group = request_get_param(req, "resource_group");
    one->share.spec = &one->spec;
    return one;
}

/* core_fair_fn: within core_show_fair_share(), as its slots live no longer. */
static void shares_reply_row(void *data, const struct core_fair_row *row)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct shares_one *one = data;

    one->share.row = *row;
    jsonw_object_begin(&w);
    jsonw_key(&w, "item");
    shares_write(one->api, &one->share, &w);
    jsonw_object_end(&w);
    request_reply_json(one->req, 200, &out);
}

static void shares_reply(struct shares_one *one)
{
    const struct core_fair_row whom = one->share.row;
    const char *group = one->share.resource_group;
    struct aq_error err = { 0 };

    if (share_spec_read(one->api, group, request_get_arena(one->req), &one->spec, &err) < 0
        || core_show_fair_share(one->api->core, group, &whom, shares_reply_row, one, &err) < 0)
        request_fail(one->req, &err);
}

static void shares_on_show(struct request *req, void *data)
{
    struct shares_one *one;
    struct aq_error err = { 0 };

    if (!api_has_no_params(req))
        return;
    one = shares_one_new(data, req);
    if (shares_find(one, NULL, &err) < 0)
        request_fail(req, &err);
    else
        shares_reply(one);
}

/* ---- weighed ---- */

struct shares_weight {
    const char *domain;
    const json_t *weight;
};

#define WEIGHT                                                                        \
    {                                                                                 \
        "weight", FIELD_JSON, FIELD_NULLABLE, offsetof(struct shares_weight, weight), \
            .doc = "a number, its text, or null for the default"                      \
    }

static const struct field shares_domain_weight_fields[] = { WEIGHT, FIELD_END };

static const struct field shares_weight_fields[] = {
    WEIGHT,
    { "domain_name", FIELD_STR, FIELD_REQUIRED, offsetof(struct shares_weight, domain), 1, 64 },
    FIELD_END,
};

static bool shares_is_member(const struct core *core, const struct core_fair_row *row)
{
    const struct user *user = core_find_user(core, &row->user);

    for (size_t i = 0; user && i < user->project_count; i++)
        if (uuid_equals(&user->project_ids[i], &row->project))
            return true;
    return false;
}

/* The member of the group's "fair_share" that has the weight. */
static void shares_write_key(const struct core_fair_row *row, char key[128])
{
    char project[UUID_TEXT_MAX], user[UUID_TEXT_MAX];

    uuid_format(&row->project, project);
    if (row->level == CORE_FAIR_DOMAIN)
        (void)snprintf(key, 128, "domain:%s", row->domain);
    else if (row->level == CORE_FAIR_PROJECT)
        (void)snprintf(key, 128, "project:%s", project);
    else
        (void)snprintf(key, 128, "user:%s/%s", uuid_format(&row->user, user), project);
}

/* core_done_fn */
static void shares_on_weighed(void *data, int r, const struct aq_error *err)
{
    struct shares_one *one = data;

    if (r < 0)
        request_fail(one->req, err);
    else
        shares_reply(one);
}

/* What is to be changed; NULL with why it cannot be. */
static json_t *shares_read_weight(struct shares_one *one, struct aq_error *err)
{
    struct shares_weight params = { 0 };
    json_auto_t *tree = NULL, *settings = json_object();
    char key[128];
    json_t *weight;

    if (api_decode(one->req, &params, &tree, err) < 0 || shares_find(one, params.domain, err) < 0
        || core_check_fair_share(one->api->core, one->share.resource_group, err) < 0
        || !(weight = share_spec_read_weight(params.weight, "weight", err)))
        return NULL;
    shares_write_key(&one->share.row, key);
    (void)json_object_set_new(settings, key, weight);
    if (one->share.row.level == CORE_FAIR_USER
        && !shares_is_member(one->api->core, &one->share.row)) {
        api_fail_param(err, "user", "is no member of the project");
        return NULL;
    }
    return AQ_TAKE(settings);
}

static void shares_on_weigh(struct request *req, void *data)
{
    struct shares_one *one = shares_one_new(data, req);
    struct aq_error err = { 0 };
    json_t *settings;

    if ((settings = shares_read_weight(one, &err)))
        share_spec_save(data, req, one->share.resource_group, settings, shares_on_weighed, one);
    else
        request_fail(req, &err);
}

#define OF_GROUP "/fair-share/rg/{resource_group}/domains"
#define OF_DOMAIN OF_GROUP "/{domain}/projects"
#define OF_PROJECT OF_DOMAIN "/{project}/users"
#define DOMAIN "/fair-share/domains/{resource_group}/{domain}"
#define PROJECT "/fair-share/projects/{resource_group}/{project}"
#define USER "/fair-share/users/{resource_group}/{project}/{user}"

static const struct route shares_routes[] = {
    { METHOD_GET, DOMAIN, API_SUPERADMIN, shares_on_show, NULL, "The share of a domain" },
    { METHOD_GET, PROJECT, API_SUPERADMIN, shares_on_show, NULL, "The share of a project" },
    { METHOD_GET, USER, API_SUPERADMIN, shares_on_show, NULL, "The share of a user in a project" },
    { METHOD_GET, OF_GROUP "/{domain}", API_SUPERADMIN, shares_on_show, NULL,
      "The share of a domain in a resource group" },
    { METHOD_GET, OF_DOMAIN "/{project}", API_SUPERADMIN, shares_on_show, NULL,
      "The share of a project of the domain in a resource group" },
    { METHOD_GET, OF_PROJECT "/{user}", API_SUPERADMIN, shares_on_show, NULL,
      "The share of a user of the project in a resource group" },
    { METHOD_POST, "/fair-share/domains/search", API_SUPERADMIN, shares_on_domains,
      fair_search_domain_fields, "Shares of domains" },
    { METHOD_POST, "/fair-share/projects/search", API_SUPERADMIN, shares_on_projects,
      fair_search_project_fields, "Shares of projects" },
    { METHOD_POST, "/fair-share/users/search", API_SUPERADMIN, shares_on_users,
      fair_search_user_fields, "Shares of users" },
    { METHOD_POST, OF_GROUP "/search", API_SUPERADMIN, shares_on_domains, fair_search_domain_fields,
      "Shares of domains in a resource group" },
    { METHOD_POST, OF_DOMAIN "/search", API_SUPERADMIN, shares_on_projects,
      fair_search_project_fields, "Shares of a domain's projects in a resource group" },
    { METHOD_POST, OF_PROJECT "/search", API_SUPERADMIN, shares_on_users, fair_search_user_fields,
      "Shares of a project's users in a resource group" },
    { METHOD_PUT, DOMAIN "/weight", API_SUPERADMIN, shares_on_weigh, shares_domain_weight_fields,
      "Set the weight of a domain" },
    { METHOD_PUT, PROJECT "/weight", API_SUPERADMIN, shares_on_weigh, shares_weight_fields,
      "Set the weight of a project" },
    { METHOD_PUT, USER "/weight", API_SUPERADMIN, shares_on_weigh, shares_weight_fields,
      "Set the weight of a user in a project" },
};
API_ROUTES_END(shares);
