/* SPDX-License-Identifier: Apache-2.0 */
/* POST /resource/check-presets: what is used and what is left, for the caller in a project, and
 * which presets would fit now.
 *
 * The resource groups that the caller may use are read from the store; all else is in memory.
 */
#include <errno.h>
#include <string.h>

#include "manager/scheduling/scheduling_feature.h"
#include "manager/scheduling/presets.h"
#include "store/query.h"

/* Whose limits hold. */
enum check_account { CHECK_KEYPAIR, CHECK_USER, CHECK_PROJECT, CHECK_DOMAIN, CHECK_COUNT };

struct check_limit {
    const struct slots *total; /* NULL = none */
    bool is_unlimited;         /* in what 'total' does not mention */
    struct slots held;
};

struct preset_check {
    const struct api *api;
    struct request *req;
    const char *only; /* this resource group; NULL = all */
    struct uuid project_id;
    struct store_page *page; /* resource groups that may be used */
    struct check_limit limits[CHECK_COUNT];
    struct slot_types *types;
};

/* ---- limits ---- */

static int64_t check_limit_of(const struct check_limit *l, const char *slot)
{
    if (l->total && slots_has(l->total, slot))
        return slots_get(l->total, slot);
    return !l->total || l->is_unlimited ? AMOUNT_INFINITE : 0;
}

static int64_t check_left_of(const struct check_limit *l, const char *slot)
{
    int64_t limit = check_limit_of(l, slot);

    return limit == AMOUNT_INFINITE ? limit : AQ_MAX(limit - slots_get(&l->held, slot), 0);
}

/* What every limit leaves. */
static int64_t check_left(const struct preset_check *c, const char *slot)
{
    int64_t left = AMOUNT_INFINITE;

    for (size_t i = 0; i < CHECK_COUNT; i++)
        left = AQ_MIN(left, check_left_of(&c->limits[i], slot));
    return left;
}

/* The keypair's is known; of the others it is summed, in one pass. */
static int check_add_held(struct preset_check *c, const struct session *s,
                          const struct project *project)
{
    const bool is_of[CHECK_COUNT] = {
        [CHECK_USER] = uuid_equals(&s->user_id, &api_principal(c->req)->user_id),
        [CHECK_PROJECT] = uuid_equals(&s->project_id, &project->id),
        [CHECK_DOMAIN] = strcmp(s->domain, project->domain) == 0,
    };
    int r = 0;

    for (size_t i = CHECK_USER; i < CHECK_COUNT; i++)
        for (size_t k = 0; is_of[i] && k < s->kernel_count && r == 0; k++)
            if (kernel_is_holding(s->kernels[k].status))
                r = slots_add(&c->limits[i].held, &s->kernels[k].requested);
    return r;
}

static int check_read_limits(struct preset_check *c, const struct project *project)
{
    const struct core *core = c->api->core;
    const struct principal *who = api_principal(c->req);
    const struct keypair *key = core_find_keypair(core, who->access_key);
    const struct keypair_policy *policy = key ? core_find_policy(core, key->policy) : NULL;
    const struct user *user = core_find_user(core, &who->user_id);
    const struct domain *domain = core_find_domain(core, project->domain);
    size_t sessions;
    int r = core_get_usage(core, who->access_key, &c->limits[CHECK_KEYPAIR].held, &sessions);

    for (size_t i = 0; i < CHECK_COUNT; i++)
        c->limits[i].is_unlimited = true;
    if (policy) {
        c->limits[CHECK_KEYPAIR].total = &policy->total_slots;
        c->limits[CHECK_KEYPAIR].is_unlimited = policy->unlimited_unspecified;
    }
    c->limits[CHECK_USER].total = user ? &user->total_slots : NULL;
    c->limits[CHECK_PROJECT].total = &project->total_slots;
    c->limits[CHECK_DOMAIN].total = domain ? &domain->total_slots : NULL;
    for (const struct session *s = NULL; r == 0 && (s = core_next_session(core, s));)
        r = check_add_held(c, s, project);
    return r;
}

/* ---- amounts ---- */

enum check_amount { CHECK_LIMIT, CHECK_USING, CHECK_LEFT, CHECK_LEFT_OF_ALL };

/* One map over all known slots. */
static void check_write(const struct preset_check *c, const char *key, const struct check_limit *l,
                        enum check_amount what, struct jsonw *w)
{
    char text[AMOUNT_TEXT_MAX];
    enum slot_type type;

    jsonw_key(w, key);
    jsonw_object_begin(w);
    for (size_t i = 0; i < slot_types_count(c->types); i++) {
        const char *name = slot_types_name(c->types, i, &type);
        int64_t amount = what == CHECK_LIMIT   ? check_limit_of(l, name)
                         : what == CHECK_USING ? slots_get(&l->held, name)
                         : what == CHECK_LEFT  ? check_left_of(l, name)
                                               : check_left(c, name);

        jsonw_member_str(w, name, slot_amount_format(amount, type, text));
    }
    jsonw_object_end(w);
}

static void check_write_limits(const struct preset_check *c, struct jsonw *w)
{
    const struct check_limit *key = &c->limits[CHECK_KEYPAIR], *group = &c->limits[CHECK_PROJECT];

    check_write(c, "keypair_limits", key, CHECK_LIMIT, w);
    check_write(c, "keypair_using", key, CHECK_USING, w);
    check_write(c, "keypair_remaining", key, CHECK_LEFT_OF_ALL, w);
    check_write(c, "group_limits", group, CHECK_LIMIT, w);
    check_write(c, "group_using", group, CHECK_USING, w);
    check_write(c, "group_remaining", group, CHECK_LEFT, w);
}

/* ---- resource groups ---- */

static bool check_takes(const struct agent *agent, const char *resource_group)
{
    return agent->status == AGENT_ALIVE && agent->schedulable && agent->resource_group
           && strcmp(agent->resource_group, resource_group) == 0;
}

/* What the group's agents that take sessions offer, and what of it is held. */
static int check_sum_agents(const struct core *core, const char *resource_group,
                            struct slots *offered, struct slots *held)
{
    const struct agent *agent;
    int r = 0;

    for (size_t i = 0; r == 0 && (agent = core_get_agent(core, i)); i++) {
        AQ_CLEANUP(slots_donep) struct slots occupied = { 0 };

        if (!check_takes(agent, resource_group))
            continue;
        if ((r = core_get_occupied(core, agent->id, &occupied)) == 0
            && (r = slots_add(held, &occupied)) == 0)
            r = slots_add(offered, &agent->available);
    }
    return r;
}

/* The i-th that may be used and is asked for; NULL = it is not. */
static const char *check_group(const struct preset_check *c, size_t i)
{
    const char *name = c->page->resource_groups[i].resource_group.name;

    return c->only && strcmp(c->only, name) != 0 ? NULL : name;
}

static int check_write_group(const struct preset_check *c, const char *name,
                             struct slots *all_offered, struct slots *all_held, struct jsonw *w)
{
    AQ_CLEANUP(slots_donep) struct slots offered = { 0 };
    struct check_limit group = { .total = &offered };
    int r = check_sum_agents(c->api->core, name, &offered, &group.held);

    if (r == 0 && (r = slots_add(all_offered, &offered)) == 0
        && (r = slots_add(all_held, &group.held)) == 0) {
        jsonw_key(w, name);
        jsonw_object_begin(w);
        check_write(c, "using", &group, CHECK_USING, w);
        check_write(c, "remaining", &group, CHECK_LEFT, w);
        jsonw_object_end(w);
    }
    slots_done(&group.held);
    return r;
}

static int check_write_groups(const struct preset_check *c, struct jsonw *w)
{
    AQ_CLEANUP(slots_donep) struct slots offered = { 0 };
    struct check_limit all = { .total = &offered };
    int r = 0;

    jsonw_key(w, "scaling_groups");
    jsonw_object_begin(w);
    for (size_t i = 0; r == 0 && i < c->page->count; i++)
        if (check_group(c, i))
            r = check_write_group(c, check_group(c, i), &offered, &all.held, w);
    jsonw_object_end(w);
    check_write(c, "scaling_group_remaining", &all, CHECK_LEFT, w);
    slots_done(&all.held);
    return r;
}

/* ---- presets ---- */

struct check_preset {
    struct resource_preset preset;
    struct slots slots;
    bool fits_limits, fits_agent;
};

static void check_read_presets(const struct preset_check *c, struct check_preset *ret)
{
    json_t *presets = (json_t *)(uintptr_t)presets_all(c->api), *preset;
    const char *name;

    json_object_foreach(presets, name, preset) {
        struct aq_error ignored = { 0 }; /* a slot that nobody knows any more fits nowhere */

        object_setting_read_row(&resource_preset_entity, name, preset, request_get_arena(c->req),
                                &ret->preset);
        ret->fits_limits = slots_from_json(json_object_get(preset, "resource_slots"), c->types,
                                           &ret->slots, &ignored)
                           == 0;
        for (size_t i = 0; i < ret->slots.count; i++)
            ret->fits_limits &= ret->slots.items[i].amount
                                <= check_left(c, ret->slots.items[i].name);
        ret++;
    }
}

static bool check_may_use(const struct preset_check *c, const struct agent *agent)
{
    for (size_t i = 0; i < c->page->count; i++)
        if (check_group(c, i) && check_takes(agent, check_group(c, i)))
            return true;
    return false;
}

static bool check_has_room(const struct agent *agent, const struct slots *occupied,
                           const struct slots *wanted)
{
    for (size_t i = 0; i < wanted->count; i++) {
        const char *name = wanted->items[i].name;

        if (slots_get(&agent->available, name) - slots_get(occupied, name)
            < wanted->items[i].amount)
            return false;
    }
    return true;
}

/* Look at each agent once, for all presets that have found none yet. */
static int check_find_agents(const struct preset_check *c, struct check_preset *presets,
                             size_t count)
{
    const struct agent *agent;
    int r = 0;

    for (size_t a = 0; r == 0 && (agent = core_get_agent(c->api->core, a)); a++) {
        AQ_CLEANUP(slots_donep) struct slots occupied = { 0 };

        if (!check_may_use(c, agent))
            continue;
        r = core_get_occupied(c->api->core, agent->id, &occupied);
        for (size_t i = 0; r == 0 && i < count; i++)
            if (presets[i].fits_limits && !presets[i].fits_agent)
                presets[i].fits_agent = check_has_room(agent, &occupied, &presets[i].slots);
    }
    return r;
}

static int check_write_presets(const struct preset_check *c, struct jsonw *w)
{
    size_t count = json_object_size(presets_all(c->api));
    struct check_preset *presets = arena_array(request_get_arena(c->req), count + 1,
                                               sizeof(*presets));
    int r;

    check_read_presets(c, presets);
    r = check_find_agents(c, presets, count);
    jsonw_key(w, "presets");
    jsonw_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        jsonw_object_begin(w);
        presets_write(&presets[i].preset, true, w);
        jsonw_member_bool(w, "allocatable", presets[i].fits_limits && presets[i].fits_agent);
        jsonw_object_end(w);
        slots_done(&presets[i].slots);
    }
    jsonw_array_end(w);
    return r;
}

/* ---- the request ---- */

struct check_params {
    const char *group, *resource_group;
};

static const struct field check_fields[] = {
    { "group", FIELD_STR, FIELD_NULLABLE, offsetof(struct check_params, group), 1, 64,
      .doc = "a project; default: \"default\", or the caller's only one" },
    { "scaling_group|scalingGroup", FIELD_STR, FIELD_NULLABLE,
      offsetof(struct check_params, resource_group), 1, 64 },
    FIELD_END,
};

static void check_answer(struct preset_check *c, const struct project *project)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };
    int r = check_read_limits(c, project);

    jsonw_object_begin(&w);
    if (r == 0) {
        check_write_limits(c, &w);
        r = check_write_groups(c, &w);
    }
    if (r == 0)
        r = check_write_presets(c, &w);
    jsonw_object_end(&w);
    for (size_t i = 0; i < CHECK_COUNT; i++)
        slots_done(&c->limits[i].held);
    slot_types_unref(c->types);
    if (r == 0) {
        request_reply_json(c->req, 200, &out); /* 'c' goes by it */
        return;
    }
    (void)aq_fail(&err, -r, "failed to sum the amounts in use: %s", strerror(-r));
    request_fail(c->req, &err);
}

static bool check_knows_group(const struct preset_check *c)
{
    for (size_t i = 0; i < c->page->count; i++)
        if (check_group(c, i))
            return true;
    return !c->only;
}

/* store_done_fn */
static void check_on_groups(void *data, int r, const struct aq_error *read_err)
{
    struct preset_check *c = data;
    const struct project *project = core_find_project(c->api->core, &c->project_id);
    struct store_page *page = c->page;
    struct aq_error err = { 0 };

    if (r < 0) {
        request_fail(c->req, read_err);
        return;
    }
    if (!project)
        (void)problem_no_such(&err, "user group (or project)", "the project was removed just now");
    else if (!check_knows_group(c))
        (void)problem_no_such(&err, "scaling group", "there is no resource group '%s' for you",
                              c->only);
    if (err.code) {
        request_fail(c->req, &err);
    } else {
        c->types = slot_types_ref(core_slot_types(c->api->core));
        check_answer(c, project);
    }
    store_page_free(page);
}

/* store_tx_fn */
static int check_read_groups(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct preset_check *c = data;
    const struct principal *who = api_principal(c->req);

    return store_list_allowed_resource_groups(tx, who->domain, &c->project_id, who->access_key,
                                              &c->page, err);
}

/* The one that is named, "default", or the only one that the caller is in. */
static int check_find_project(const struct api *api, const struct request *req, const char *group,
                              const struct project **ret, struct aq_error *err)
{
    const struct user *user = core_find_user(api->core, &api_principal(req)->user_id);

    if (group || !user || user->project_count != 1)
        return api_find_project(api, req, group ? group : "default", ret, err);
    *ret = core_find_project(api->core, &user->project_ids[0]);
    return *ret ? 0 : problem_no_such(err, "user group (or project)", "you are in no project");
}

static void check_on_request(struct request *req, void *data)
{
    struct preset_check *c = arena_alloc(request_get_arena(req), sizeof(*c));
    struct check_params params = { 0 };
    const struct project *project;
    const struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0
        || check_find_project(api, req, params.group, &project, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    c->api = api;
    c->req = req;
    c->only = params.resource_group;
    c->project_id = project->id;
    store_read(core_store(api->core), check_read_groups, check_on_groups, c);
}

static const struct route check_presets_routes[] = {
    { METHOD_POST, "/resource/check-presets", API_USER, check_on_request, check_fields,
      "What is used and left of limits and resource groups, and which presets fit" },
};
API_ROUTES_END(check_presets);
