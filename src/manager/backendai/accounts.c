/* SPDX-License-Identifier: Apache-2.0 */
/* accounts.c - Backend.AI's domains, policies, resource groups and projects */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "manager/backendai/rows.h"

/* ---- what is here, or comes ---- */

bool backendai_has_domain(const struct backendai_import *import, const char *name)
{
    return core_find_domain(import->api->core, name) || map_gets(&import->domains, name);
}

bool backendai_has_policy(const struct backendai_import *import, const char *name)
{
    return core_find_policy(import->api->core, name) || map_gets(&import->policies, name);
}

bool backendai_has_resource_group(const struct backendai_import *import, const char *name)
{
    return core_find_resource_group(import->api->core, name)
           || map_gets(&import->resource_groups, name);
}

/* A new row of a kind that names no other; takes 'given'. */
static int backendai_add_row(struct backendai_import *import, const struct account_kind *kind,
                             json_t *given, struct aq_error *err)
{
    int r;

    import->change->kind = kind;
    r = account_change_row(import->change, NULL, given, err);
    json_decref(given);
    return r;
}

/* ---- domains, policies ---- */

int backendai_take_domain(struct backendai_import *import, struct backendai_row *row,
                          struct aq_error *err)
{
    const struct domain *existing;
    json_t *given;
    int r;

    row->label = row->name;
    r = backendai_claim(&import->domains, row->name, strlen(row->name), "name", row, err);
    if (r < 0)
        return r;
    if ((existing = core_find_domain(import->api->core, row->name)))
        return backendai_exists(import, row, &account_domain, existing);
    given = json_pack("{s:s}", "name", row->name);
    backendai_copy_columns(import, row, &backendai_kinds[BACKENDAI_DOMAINS], given);
    r = backendai_add_row(import, &account_domain, given, err);
    return r < 0 ? r : backendai_attach_dotfiles(import, row, DOTFILE_DOMAIN, row->name, err);
}

int backendai_take_policy(struct backendai_import *import, struct backendai_row *row,
                          struct aq_error *err)
{
    bool is_unlimited = row->unspecified && strcasecmp(row->unspecified, "unlimited") == 0;
    const struct keypair_policy *existing;
    json_t *given;
    int r;

    row->label = row->name;
    r = backendai_claim(&import->policies, row->name, strlen(row->name), "name", row, err);
    if (r < 0)
        return r;
    if ((existing = core_find_policy(import->api->core, row->name)))
        return backendai_exists(import, row, &account_policy, existing);
    given = json_pack("{s:s, s:b, s:o}", "name", row->name, "unlimited_unspecified", is_unlimited,
                      "total_slots", backendai_slots(import, row, row->slots, is_unlimited));
    backendai_copy_columns(import, row, &backendai_kinds[BACKENDAI_POLICIES], given);
    return backendai_add_row(import, &account_policy, given, err);
}

/* ---- resource groups ---- */

static bool backendai_is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static const char *backendai_scheduler(struct backendai_import *import, struct backendai_row *row)
{
    static const char *const known[] = { "fifo", "lifo", "drf", "fair-share", NULL };

    if (!row->scheduler || backendai_is_one_of(row->scheduler, known))
        return row->scheduler ? row->scheduler : "fifo";
    backendai_note(import, row, "scheduler '%.64s' is not known here, and is fifo", row->scheduler);
    return "fifo";
}

/* By which agents are chosen; NULL = as it is by default. */
static const char *backendai_selection(struct backendai_import *import, struct backendai_row *row)
{
    static const char *const known[] = { "concentrated", "dispersed", "legacy", NULL };
    const char *name = json_string_value(json_object_get(row->options, "agent_selection_strategy"));

    if (!name || backendai_is_one_of(name, known))
        return name;
    if (strcmp(name, "roundrobin") == 0)
        return "round-robin";
    backendai_note(import, row, "agent selection '%.64s' is not known here, and is concentrated",
                   name);
    return NULL;
}

static json_t *backendai_session_types(struct backendai_import *import, struct backendai_row *row)
{
    const json_t *list = json_object_get(row->options, "allowed_session_types"), *item;
    json_t *types = json_array();
    enum session_type type;
    size_t i;

    json_array_foreach(list, i, item)
        if (json_is_string(item) && session_type_parse(json_string_value(item), &type) == 0)
            json_array_append(types, (json_t *)(uintptr_t)item);
        else
            backendai_note(import, row, "an allowed session type is not known here");
    if (json_array_size(types))
        return types;
    json_decref(types);
    return NULL;
}

/* A count that is a number, or text as etcd has it. */
static int64_t backendai_read_count(const json_t *value)
{
    const char *text = json_string_value(value);

    if (json_is_number(value))
        return (int64_t)json_number_value(value);
    return text && *text && !text[strspn(text, "0123456789")] && strlen(text) < 10
               ? strtoll(text, NULL, 10)
               : BACKENDAI_UNSET;
}

static void backendai_note_options(struct backendai_import *import, struct backendai_row *row)
{
    static const char *const known[] = { "agent_selection_strategy", "allowed_session_types",
                                         "pending_timeout", "config", NULL };
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)row->options, key, value)
        if (!backendai_is_one_of(key, known))
            backendai_note(import, row, "option '%.64s' is left out", key);
    json_object_foreach(json_object_get(row->options, "config"), key, value)
        if (strcmp(key, "num_retries_to_skip") != 0)
            backendai_note(import, row, "option 'config.%.64s' is left out", key);
}

int backendai_take_resource_group(struct backendai_import *import, struct backendai_row *row,
                                  struct aq_error *err)
{
    const json_t *config = json_object_get(row->options, "config");
    int64_t retries = backendai_read_count(json_object_get(config, "num_retries_to_skip"));
    int64_t wait = backendai_read_count(json_object_get(row->options, "pending_timeout"));
    const struct resource_group *existing;
    const char *scheduler, *selection;
    json_t *given;
    int r;

    row->label = row->name;
    r = backendai_claim(&import->resource_groups, row->name, strlen(row->name), "name", row, err);
    if (r < 0)
        return r;
    if ((existing = core_find_resource_group(import->api->core, row->name)))
        return backendai_exists(import, row, &account_resource_group, existing);
    scheduler = backendai_scheduler(import, row);
    selection = backendai_selection(import, row);
    backendai_note_options(import, row);
    given = json_pack(
        "{s:s, s:s, s:s*, s:o*, s:o*, s:o*}", "name", row->name, "scheduler", scheduler,
        "selection", selection, "allowed_session_types", backendai_session_types(import, row),
        "retries", backendai_number(import, row, "num_retries_to_skip", retries, 1000000),
        "pending_timeout_sec", backendai_number(import, row, "pending_timeout", wait, 365 * 86400));
    backendai_copy_columns(import, row, &backendai_kinds[BACKENDAI_RESOURCE_GROUPS], given);
    return backendai_add_row(import, &account_resource_group, given, err);
}

/* ---- projects ---- */

static const struct project *backendai_find_same_project(const struct backendai_import *import,
                                                         const struct backendai_row *row,
                                                         const struct uuid *id)
{
    const struct core *core = import->api->core;
    const struct project *project = core_find_project(core, id);

    return project ? project : core_find_project_named(core, row->domain, row->name);
}

/* The domain may be new, too, so the row is made here. */
static int backendai_fill_project(struct backendai_import *import, struct backendai_row *row,
                                  const struct uuid *id, struct aq_error *err)
{
    struct event *event = event_batch_add(import->change->batch, EVENT_PROJECT_SAVED,
                                          clock_realtime_usec());
    json_auto_t *given = json_pack("{s:s, s:s}", "name", row->name, "domain", row->domain);
    struct project decoded = { 0 };
    int r;

    backendai_copy_columns(import, row, &backendai_kinds[BACKENDAI_PROJECTS], given);
    entity_init(&project_entity, &event->project);
    event->project.id = *id;
    r = decode_object(project_create, given, &import->arena, &decoded, err);
    return r < 0 ? r
                 : entity_merge(&project_entity, &event->project, &decoded, given,
                                core_slot_types(import->api->core), err);
}

int backendai_take_project(struct backendai_import *import, struct backendai_row *row,
                           struct aq_error *err)
{
    char id_text[UUID_TEXT_MAX];
    const char *path = backendai_format(import, "%s/%s", row->domain, row->name);
    const struct project *existing;
    struct uuid id;
    int r;

    row->label = path;
    if (uuid_parse(row->id, &id) < 0)
        return api_fail_param(err, "id", "is no UUID");
    r = backendai_claim(&import->projects, id.bytes, sizeof(id.bytes), "id", row, err);
    if (r == 0)
        r = backendai_claim(&import->project_names, path, strlen(path), "name", row, err);
    if (r < 0)
        return r;
    if ((existing = backendai_find_same_project(import, row, &id)))
        return backendai_exists(import, row, &account_project, existing);
    if (!backendai_has_domain(import, row->domain))
        return api_fail_param(err, "domain_name", "there is no domain '%.64s'", row->domain);
    r = backendai_fill_project(import, row, &id, err);
    return r < 0 ? r
                 : backendai_attach_dotfiles(import, row, DOTFILE_PROJECT,
                                             uuid_format(&id, id_text), err);
}

bool backendai_find_project(const struct backendai_import *import, const char *id,
                            struct backendai_project *ret)
{
    const struct project *project;
    const struct backendai_row *row;
    struct uuid wanted;

    if (uuid_parse(id, &wanted) < 0)
        return false;
    row = map_get(&import->projects, wanted.bytes, sizeof(wanted.bytes));
    project = row ? backendai_find_same_project(import, row, &wanted)
                  : core_find_project(import->api->core, &wanted);
    if (project)
        *ret = (struct backendai_project){ project->id, project->name, project->domain };
    else if (row)
        *ret = (struct backendai_project){ wanted, row->name, row->domain };
    return project || row;
}
