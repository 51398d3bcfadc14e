/* SPDX-License-Identifier: Apache-2.0 */
/* A request that creates or changes a booking. */
#include "manager/booking/booking_params.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/vec.h"

#define AT(member) offsetof(struct booking_params, member)
#define LATE_USEC (5 * 60 * USEC_PER_SEC) /* a start may be past, for clocks that differ */
#define SECONDS_MAX (BOOKING_DURATION_MAX_USEC / USEC_PER_SEC)
/* clang-format off */
#define CHANGES                                                                                    \
    { "start", FIELD_STR, FIELD_NULLABLE, AT(start), 1, 64,                                        \
      .doc = "a date, or a duration from now; default now" },                                      \
    { "end", FIELD_STR, FIELD_NULLABLE, AT(end), 1, 64, .doc = "a date, instead of duration" },    \
    { "duration", FIELD_DURATION, FIELD_NULLABLE, AT(duration_usec), 60, SECONDS_MAX,              \
      .doc = "seconds, or a text such as 3h" },                                                    \
    { "nodes", FIELD_INT, FIELD_NULLABLE, AT(nodes), 1, BOOKING_NODES_MAX,                         \
      .doc = "the amounts are kept on each of so many agents; default 1" },                        \
    { "agents", FIELD_STR_LIST, FIELD_NULLABLE, AT(agents), 0, BOOKING_NODES_MAX,                  \
      .doc = "ids: keep them on these agents only; none = on any" },                               \
    { "release_unused|releaseUnused", FIELD_DURATION, FIELD_NULLABLE, AT(release_unused_usec), 0,  \
      SECONDS_MAX, .doc = "end it when no session of it has run for so long; 0 = never" },         \
    { "ignore_sessions|ignoreSessions", FIELD_BOOL, 0, AT(ignore_sessions),                        \
      .doc = "keep the amounts even if sessions may still hold them at the start" }
/* clang-format on */
#define NAME(flags) "name", FIELD_STR, flags, AT(name), SESSION_NAME_MIN, SESSION_NAME_MAX
#define RESOURCES(flags) "resources", FIELD_OBJECT, flags, AT(resources)
#define MEMBERS(flags) "for", FIELD_STR_LIST, flags, AT(members), 0, BOOKING_MEMBERS_MAX

const struct field booking_create_fields[] = {
    { NAME(FIELD_REQUIRED) },
    { RESOURCES(FIELD_REQUIRED), .doc = "amounts on each agent, as {\"cuda.device\": \"4\"}" },
    { MEMBERS(FIELD_REQUIRED), .doc = "project:NAME or user:EMAIL, 1 to 64" },
    { "resource_group|resourceGroup|scaling_group", FIELD_STR, FIELD_NULLABLE, AT(resource_group),
      1, 64, .doc = "whose agents; default \"default\"" },
    CHANGES,
    FIELD_END,
};
const struct field booking_change_fields[] = {
    { NAME(0) },
    { RESOURCES(0), .doc = "amounts on each agent" },
    { MEMBERS(0), .doc = "project:NAME or user:EMAIL, 1 to 64: instead of those before" },
    CHANGES,
    FIELD_END,
};

/* ---- times ---- */

static int booking_read_start(const char *text, int64_t now, int64_t *ret, struct aq_error *err)
{
    int64_t delay;

    if (clock_parse_date(text, ret) == 0)
        return 0;
    if (clock_parse_duration(text, &delay) < 0 || delay > BOOKING_AHEAD_MAX_USEC)
        return api_fail_param(err, "start",
                              "'%.40s' is neither a date such as 2026-12-01T09:00 nor a duration "
                              "from now such as 10m",
                              text);
    *ret = now + delay;
    return 0;
}

/* Without end and duration a booking that is moved stays as long as it was. */
static int booking_params_set_times(const struct booking_params *params, struct booking *b,
                                    struct aq_error *err)
{
    int64_t now = clock_realtime_usec(), was_usec = b->starts_usec;
    int64_t duration = b->ends_usec - was_usec;
    bool is_new = was_usec == 0;
    int r = 0;

    if (params->end && params->duration_usec)
        return api_fail_param(err, "end", "give end or duration, not both");
    if (is_new && !params->end && !params->duration_usec)
        return api_fail_param(err, "duration", "is missing: give duration or end");
    if (params->start)
        r = booking_read_start(params->start, now, &b->starts_usec, err);
    else if (is_new)
        b->starts_usec = now;
    if (r < 0)
        return r;
    duration = params->duration_usec ? params->duration_usec : duration;
    b->ends_usec = b->starts_usec + duration;
    if (params->end && clock_parse_date(params->end, &b->ends_usec) < 0)
        return api_fail_param(err, "end", "'%.40s' is not a date such as 2026-12-01T12:00",
                              params->end);
    if (params->start && b->starts_usec != was_usec && b->starts_usec < now - LATE_USEC)
        return api_fail_param(err, "start", "'%.40s' is past; choose a later start", params->start);
    return 0;
}

/* ---- for whom ---- */

static void booking_add_id(struct uuid_list *list, const struct uuid *id)
{
    for (size_t i = 0; i < list->count; i++)
        if (uuid_equals(&list->items[i], id))
            return;
    vec_grow(&list->items, &list->cap, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = *id;
}

static const struct user *booking_find_user(const struct core *core, const char *text)
{
    const struct user *u = core_find_user_by_email(core, text);
    struct uuid id;

    if (!u && uuid_parse(text, &id) == 0)
        u = core_find_user(core, &id);
    return u && u->status != USER_DELETED ? u : NULL;
}

static int booking_add_member(const struct api *api, const struct request *req, const char *text,
                              struct booking *b, struct aq_error *err)
{
    const struct project *project;
    const struct user *user;

    if (strncmp(text, "project:", 8) == 0) {
        if (api_find_project(api, req, text + 8, &project, err) < 0)
            return api_fail_param(err, "for", "there is no project '%.64s'", text + 8);
        booking_add_id(&b->projects, &project->id);
    } else if (strncmp(text, "user:", 5) == 0) {
        user = booking_find_user(api->core, text + 5);
        if (!user || !principal_sees_domain(api_principal(req), user->domain))
            return api_fail_param(err, "for", "there is no user '%.64s'", text + 5);
        booking_add_id(&b->users, &user->id);
    } else {
        return api_fail_param(err, "for", "'%.64s' is neither project:NAME nor user:EMAIL", text);
    }
    return 0;
}

/* ---- all ---- */

static bool booking_has(const json_t *given, const char *name)
{
    const json_t *value = json_object_get(given, name);

    return value && !json_is_null(value);
}

static int booking_params_set_lists(const struct api *api, const struct request *req,
                                    const struct booking_params *params, const json_t *given,
                                    struct booking *b, struct aq_error *err)
{
    int r = 0;

    if (params->resources) {
        struct slots amounts = { .count = 0 };

        r = slots_from_json(params->resources, core_slot_types(api->core), &amounts, err);
        if (r < 0) {
            char slot[sizeof(err->field)];

            memcpy(slot, err->field, sizeof(slot));
            (void)snprintf(err->field, sizeof(err->field), "resources.%.64s", slot);
            return r;
        }
        slots_done(&b->amounts);
        b->amounts = amounts;
    }
    if (booking_has(given, "agents")) {
        booking_set_agents_of_places(b, NULL);
        for (size_t i = 0; i < params->agents.count; i++)
            booking_add_agent(b, params->agents.items[i]);
    }
    if (booking_has(given, "for"))
        b->projects.count = b->users.count = 0;
    for (size_t i = 0; r == 0 && i < params->members.count; i++)
        r = booking_add_member(api, req, params->members.items[i], b, err);
    return r;
}

int booking_params_apply(const struct api *api, const struct request *req,
                         const struct booking_params *params, const json_t *given,
                         struct booking *b, struct aq_error *err)
{
    if (params->name)
        (void)snprintf(b->name, sizeof(b->name), "%s", params->name);
    if (!b->resource_group)
        b->resource_group = aq_strdup(params->resource_group ? params->resource_group : "default");
    if (params->nodes)
        b->nodes = params->nodes;
    else if (!b->nodes)
        b->nodes = 1;
    if (booking_has(given, "release_unused") || booking_has(given, "releaseUnused"))
        b->release_unused_usec = params->release_unused_usec;
    if (booking_has(given, "ignore_sessions") || booking_has(given, "ignoreSessions"))
        b->ignores_sessions = params->ignore_sessions;
    if (booking_params_set_times(params, b, err) < 0)
        return -err->code;
    return booking_params_set_lists(api, req, params, given, b, err);
}
