/* SPDX-License-Identifier: Apache-2.0 */
/* session_retry.c - the request for a new session that repeats one that has ended */
#include "manager/session/session_retry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "manager/image/image.h"
#include "manager/notification/notification.h"
#include "manager/rules/folder_mount.h"
#include "manager/session/session.h"
#include "manager/session/session_attempts.h"
#include "model/session_array.h"

/* ---- refusals ---- */

static int session_retry_check(const struct session *s, const struct principal *who,
                               const struct session_retry_params *params, struct aq_error *err)
{
    if (!session_is_terminal(s->status))
        return aq_fail_kind(err, EBUSY, "session-not-ended",
                            "session '%s' has not ended (it is %s); wait for its end, or end it "
                            "with 'aliquot session rm'",
                            s->name, session_status_name(s->status));
    if (s->type != SESSION_BATCH)
        return aq_fail_kind(err, EPERM, "session-type-lacks-feature",
                            "session '%s' is of type %s, and only batch sessions are repeated; "
                            "create a new one with 'aliquot session create'",
                            s->name, session_type_name(s->type));
    if (s->spec->input && !params->with_empty_input)
        return aq_fail_kind(err, ESTALE, "session-not-repeatable",
                            "session '%s' read its input from the client that started it, and the "
                            "input is not kept; set no_input (--no-input) to run it with an empty "
                            "input",
                            s->name);
    if (s->spec->agents.count && !principal_is_superadmin(who))
        return aq_fail_kind(err, EPERM, "insufficient-privilege",
                            "session '%s' was placed on chosen agents; only superadmins may "
                            "choose agents",
                            s->name);
    return 0;
}

/* ---- names ---- */

/* Elements of arrays have "[INDEX]" behind their names, which no other session may have. */
static const char *session_retry_name(const struct session *s, struct arena *arena)
{
    size_t base = strcspn(s->name, "[");
    char name[SESSION_NAME_MAX + 1];

    if (!s->name[base])
        return s->name;
    (void)snprintf(name, sizeof(name), "%.*s-%" PRId64, (int)base, s->name, s->array_index);
    return arena_strdup(arena, name);
}

/* ---- folders, environment ---- */

/* The same folders by their ids, and none besides, whatever was mounted automatically then. */
static void session_retry_set_mounts(const struct api *api, const struct session_spec *spec,
                                     struct arena *arena, struct session_mounts *ret)
{
    struct named_mount *named = arena_array(arena, spec->mounts.count + 1, sizeof(*named));

    for (size_t i = 0; i < spec->mounts.count; i++) {
        const struct folder_mount *mount = &spec->mounts.items[i];
        char id[UUID_TEXT_MAX];

        named[i] = (struct named_mount){
            .folder = arena_strdup(arena, uuid_format(&mount->folder, id)),
            .path = mount->path,
            .target = mount->target,
            .permission = mount->is_read_only ? FOLDER_READ_ONLY : FOLDER_READ_WRITE,
        };
    }
    *ret = (struct session_mounts){ .named = named,
                                    .count = spec->mounts.count,
                                    .may_mount = session_may_mount,
                                    .data = (void *)(uintptr_t)api };
}

/* The variables of an element, which its array gave it when it started. */
static int session_retry_add_array(const struct session *s, const struct array_row *row,
                                   struct arena *arena, struct pair_list *inout,
                                   struct aq_error *err)
{
    struct session_array array = row->array;
    struct pair_list all = { .count = inout->count };
    int r = array_set_parse(row->indices, INT64_MAX, &array.indices, NULL, err);

    if (r < 0)
        return r;
    all.items = arena_array(arena, inout->count + SESSION_ARRAY_VARIABLES, sizeof(*all.items));
    if (inout->count)
        memcpy(all.items, inout->items, inout->count * sizeof(*all.items));
    session_array_add_variables(&array, s->array_index, arena, &all);
    array_set_done(&array.indices);
    *inout = all;
    return 0;
}

/* ---- amounts ---- */

static const struct slots *session_retry_find_slots(const struct session_row *row, const char *role)
{
    for (size_t i = 0; i < row->kernel_count; i++)
        if (strcmp(row->kernels[i].kernel.role, role) == 0)
            return &row->kernels[i].kernel.requested;
    return NULL;
}

/* main1 and its copies are asked for as one, the kernels of roles by themselves. */
static int session_retry_set_roles(const struct session_row *row, struct arena *arena,
                                   struct session_request *ret, struct aq_error *err)
{
    struct cluster_role *roles;
    struct session_request_role *of;
    size_t count;
    int r = cluster_roles_parse(row->session.spec->roles, arena, &roles, &count, err);

    if (r < 0)
        return r;
    ret->roles = of = arena_array(arena, count + 1, sizeof(*of));
    ret->role_count = count;
    for (size_t i = 0; i < count; i++) {
        const struct slots *slots = session_retry_find_slots(row, roles[i].name);

        of[i].role = roles[i];
        if (slots)
            slots_copy(&of[i].resources, slots);
    }
    return 0;
}

static int session_retry_suggest(const struct api *api, const struct session_row *row,
                                 struct slots *inout, struct aq_error *err)
{
    struct session_suggestion suggestion = session_attempts_suggest(api->core, row);

    if (row->session.spec->roles)
        return aq_fail_field(err, EINVAL, "with_suggested",
                             "the kernels of session '%s' have roles, and its summary suggests no "
                             "amounts for each; name resources instead",
                             row->session.name);
    if (!suggestion.cpu && !suggestion.mem_bytes)
        return aq_fail_field(err, EINVAL, "with_suggested",
                             "no amounts are suggested for session '%s': its program ended before "
                             "it was measured; leave with_suggested out, or name resources",
                             row->session.name);
    if (suggestion.cpu)
        slots_put(inout, slot_name_intern("cpu", 3), suggestion.cpu * AMOUNT_ONE);
    if (suggestion.mem_bytes)
        slots_put(inout, slot_name_intern("mem", 3), suggestion.mem_bytes);
    return 0;
}

/* As it had, as its summary suggests, as the request says: the later one counts. */
static int session_retry_set_slots(const struct api *api, const struct session_row *row,
                                   const struct session_retry_params *params, struct slots *ret,
                                   struct aq_error *err)
{
    int r = 0;

    if (row->kernel_count)
        slots_copy(ret, &row->kernels[0].kernel.requested);
    if (params->with_suggested)
        r = session_retry_suggest(api, row, ret, err);
    for (size_t i = 0; i < params->change_count; i++)
        slots_put(ret, params->changes[i].name, params->changes[i].amount);
    return r;
}

/* ---- all of it ---- */

static void session_retry_leave_out(struct str_list *left_out, const char *what)
{
    left_out->items[left_out->count++] = what;
}

static int session_retry_set_spec(const struct api *api, const struct session_retry_source *source,
                                  const struct session_retry_params *params, struct arena *arena,
                                  struct session_spec *ret, struct str_list *left_out,
                                  struct aq_error *err)
{
    const struct session *s = &source->row->session;
    char id[UUID_TEXT_MAX];
    int r = 0;

    *ret = *s->spec;
    ret->mounts = (struct folder_mounts){ 0 };
    ret->roles = NULL;
    ret->retry_of = arena_strdup(arena, uuid_format(&s->id, id));
    if (params->image)
        ret->image = image_aliases_resolve(api, params->image);
    if (AQ_TAKE(ret->input))
        session_retry_leave_out(left_out, "input");
    if (!uuid_is_nil(&s->array_id))
        session_retry_leave_out(left_out, "array");
    if (source->array)
        r = session_retry_add_array(s, source->array, arena, &ret->environ, err);
    if (r == 0 && ret->callback_url)
        r = notification_check_url(api, "callback_url", ret->callback_url, err);
    return r;
}

int session_retry_build(const struct api *api, const struct principal *who, struct arena *arena,
                        const struct session_retry_source *source,
                        const struct session_retry_params *params, struct session_request *ret,
                        struct str_list *left_out, struct aq_error *err)
{
    const struct session *s = &source->row->session;
    const struct project *project = core_find_project(api->core, &s->project_id);
    struct session_request request = { .type = s->type, .priority = s->priority };
    int r = session_retry_check(s, who, params, err);

    *left_out = (struct str_list){
        arena_array(arena, SESSION_RETRY_LEFT_OUT_MAX, sizeof(*left_out->items)), 0
    };
    if (r < 0
        || (r = session_retry_set_spec(api, source, params, arena, &request.spec, left_out, err))
               < 0)
        return r;
    if (!project)
        return aq_fail_field(err, EINVAL, "group", "the project of session '%s' was removed",
                             s->name);
    request.name = params->name ? params->name : session_retry_name(s, arena);
    request.access_key = s->access_key;
    request.domain = s->domain;
    request.group = project->name;
    request.resource_group = s->resource_group;
    request.cluster_size = (uint32_t)source->row->kernel_count;
    request.multi_node = s->is_multi_node;
    request.starts_usec = s->starts_usec > clock_realtime_usec() ? s->starts_usec : 0;
    request.dependencies = source->waits->items;
    request.dependency_count = source->waits->count;
    if (source->ended_dependencies)
        session_retry_leave_out(left_out, "dependencies");
    session_retry_set_mounts(api, s->spec, arena, &request.mounts);
    if ((s->spec->roles && (r = session_retry_set_roles(source->row, arena, &request, err)) < 0)
        || (r = session_retry_set_slots(api, source->row, params, &request.resources, err)) < 0) {
        session_retry_done(&request);
        return r;
    }
    *ret = request;
    return 0;
}

void session_retry_done(struct session_request *request)
{
    slots_done(&request->resources);
    for (size_t i = 0; i < request->role_count; i++)
        slots_done((struct slots *)(uintptr_t)&request->roles[i].resources);
}
