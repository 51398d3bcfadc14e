/* /aliquot/v1/groups: projects */
#include <errno.h>
#include <string.h>

#include "manager/api/people.h"

struct params {
    const char *name, *domain, *description;
    enum maybe is_active;
    const json_t *total_slots;
};

#define CHANGES                                                                                    \
    { "description", FIELD_STR, FIELD_NULLABLE, offsetof(struct params, description), 0, 512 },    \
    { "is_active", FIELD_MAYBE, 0, offsetof(struct params, is_active) },                           \
    { "total_slots|total_resource_slots", FIELD_OBJECT, 0, offsetof(struct params, total_slots),   \
      .doc = "missing slots are unlimited" }

static const struct field create_fields[] = {
    { "name", FIELD_STR, FIELD_REQUIRED, offsetof(struct params, name), 1, 64 },
    { "domain", FIELD_STR, FIELD_REQUIRED, offsetof(struct params, domain), 1, 64 },
    CHANGES,
    FIELD_END,
};

static const struct field change_fields[] = {
    { "name", FIELD_STR, 0, offsetof(struct params, name), 1, 64 },
    CHANGES,
    FIELD_END,
};

static void write_row(const struct api_list *list, const struct store_page *page, size_t i,
                      struct jsonw *w)
{
    const struct group *group = &page->groups[i];

    jsonw_object_begin(w);
    api_write_uuid(w, "id", &group->id);
    jsonw_member_str(w, "name", group->name);
    jsonw_member_str(w, "domain", group->domain);
    jsonw_member_str(w, "description", group->description);
    jsonw_member_bool(w, "is_active", group->is_active);
    jsonw_key(w, "total_slots");
    slots_write_json(&group->total_slots, core_slot_types(list->api->core), w);
    jsonw_object_end(w);
}

static void narrow(const struct principal *who, struct store_query *query)
{
    query->domain = who->domain;
}

static const void *find(const struct core *core, const char *key)
{
    struct uuid id;

    return uuid_parse(key, &id) == 0 ? core_find_group(core, &id) : NULL;
}

static const void *find_same(const struct core *core, const void *data)
{
    const struct params *params = data;

    return core_find_group_named(core, params->domain, params->name);
}

static void fill(struct people_row *row)
{
    const struct params *params = row->params;
    const struct group *old = row->old;
    struct group *group = &row->event->group;

    if (!old && !core_find_domain(row->api->core, params->domain)) {
        problem_no_such(&row->err, "domain", "'%.64s' does not exist", params->domain);
        return;
    }
    group->id = old ? old->id : uuid_random();
    group->name = people_text(row, params->name, old ? old->name : NULL);
    group->domain = people_text(row, params->domain, old ? old->domain : NULL);
    group->description = people_text(row, params->description, old ? old->description : NULL);
    group->is_active = people_bool(params->is_active, old ? old->is_active : true);
    people_slots(row, params->total_slots, old ? &old->total_slots : NULL, &group->total_slots);
}

static void select_row(struct people_row *row, struct store_query *query)
{
    struct uuid *id = arena_alloc(row->arena, sizeof(*id));

    if (!id) {
        aq_fail(&row->err, ENOMEM, "project");
        return;
    }
    *id = row->event->group.id;
    query->ids = id;
    query->id_count = 1;
}

static const struct people_kind kind = {
    .object = "user group (or project)",
    .event = EVENT_GROUP_SAVED,
    .params_size = sizeof(struct params),
    .list = store_list_groups,
    .write = write_row,
    .narrow = narrow,
    .find = find,
    .find_same = find_same,
    .fill = fill,
    .select = select_row,
};

PEOPLE_HANDLERS(kind)

const struct route group_routes[] = {
    { METHOD_GET, "/aliquot/v1/groups", API_ADMIN, on_list, people_page_fields, "List projects" },
    { METHOD_POST, "/aliquot/v1/groups", API_SUPERADMIN, on_create, create_fields,
      "Make a project" },
    { METHOD_PATCH, "/aliquot/v1/groups/{key}", API_SUPERADMIN, on_change, change_fields,
      "Change a project" },
};
API_ROUTES_END(group);
