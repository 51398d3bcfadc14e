/* SPDX-License-Identifier: Apache-2.0 */
/* Bookings as clients see them. */
#include "manager/booking/booking_view.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "manager/core/bookings.h"
#include "model/status.h"

bool booking_view_may_change(const struct api *api, const struct request *req,
                             const struct booking *b)
{
    const struct principal *who = api_principal(req);
    const char *domain = core_booking_domain(api->core, b);

    return principal_is_superadmin(who)
           || (principal_may(who->role, API_ADMIN) && domain && principal_sees_domain(who, domain));
}

bool booking_view_may_see(const struct api *api, const struct request *req, const struct booking *b)
{
    const struct principal *who = api_principal(req);
    const struct user *u = core_find_user(api->core, &who->user_id);

    for (size_t i = 0; u && i < u->project_count; i++)
        if (booking_is_for(b, &u->id, &u->project_ids[i]))
            return true;
    return booking_is_for(b, &who->user_id, &(struct uuid){ { 0 } })
           || booking_view_may_change(api, req, b);
}

static void booking_write_members(const struct core *core, const struct booking *b, struct jsonw *w)
{
    char text[340], id[UUID_TEXT_MAX];

    jsonw_key(w, "for");
    jsonw_array_begin(w);
    for (size_t i = 0; i < b->projects.count; i++) {
        const struct project *p = core_find_project(core, &b->projects.items[i]);

        (void)snprintf(text, sizeof(text), "project:%s",
                       p ? p->name : uuid_format(&b->projects.items[i], id));
        jsonw_str(w, text);
    }
    for (size_t i = 0; i < b->users.count; i++) {
        const struct user *u = core_find_user(core, &b->users.items[i]);

        (void)snprintf(text, sizeof(text), "user:%s",
                       u ? u->email : uuid_format(&b->users.items[i], id));
        jsonw_str(w, text);
    }
    jsonw_array_end(w);
}

static void booking_write_places(const struct core *core, const struct booking *b, struct jsonw *w)
{
    jsonw_key(w, "places");
    jsonw_array_begin(w);
    for (size_t i = 0; i < b->place_count; i++) {
        jsonw_object_begin(w);
        jsonw_member_str(w, "agent", b->places[i].agent_id);
        api_write_raw(w, "devices", b->places[i].devices);
        jsonw_member_str(w, "missing",
                         booking_is_finished(b) ? NULL : core_booking_place_lack(core, b, i));
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

/* The caller's own, or those that they may see as an administrator. */
static void booking_write_sessions(const struct api *api, const struct request *req,
                                   const struct booking *b, struct jsonw *w)
{
    const struct principal *who = api_principal(req);
    const struct session *s = NULL;
    char id[UUID_TEXT_MAX];
    bool is_live = core_find_booking(api->core, uuid_format(&b->id, id)) == b;

    jsonw_key(w, "sessions");
    jsonw_array_begin(w);
    while (is_live && (s = core_next_booking_session(api->core, b, s))) {
        const struct user *u = core_find_user(api->core, &s->user_id);

        if (!uuid_equals(&s->user_id, &who->user_id) && !principal_sees_domain(who, s->domain))
            continue;
        jsonw_object_begin(w);
        api_write_uuid(w, "id", &s->id);
        jsonw_member_str(w, "name", s->name);
        jsonw_member_str(w, "status", session_status_name(s->status));
        jsonw_member_str(w, "user", u ? u->email : NULL);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

void booking_view_write(const struct api *api, const struct request *req, const struct booking *b,
                        bool is_whole, struct jsonw *w)
{
    const struct core *core = api->core;
    enum booking_state state = booking_state_at(b, clock_realtime_usec());
    const struct user *creator = core_find_user(core, &b->creator_id);
    size_t missing = 0;

    for (size_t i = 0; i < b->place_count && !booking_is_finished(b); i++)
        missing += core_booking_place_lack(core, b, i) != NULL;
    jsonw_object_begin(w);
    api_write_uuid(w, "id", &b->id);
    jsonw_member_str(w, "name", b->name);
    jsonw_member_str(w, "state", booking_state_name(state));
    jsonw_member_str(w, "resource_group", b->resource_group);
    api_write_time(w, "start", b->starts_usec);
    api_write_time(w, "end", b->ends_usec);
    jsonw_member_int(w, "duration", (b->ends_usec - b->starts_usec) / USEC_PER_SEC);
    jsonw_key(w, "resources");
    slots_write_json(&b->amounts, core_slot_types(core), w);
    jsonw_member_int(w, "nodes", b->nodes);
    jsonw_member_int(w, "missing_nodes", (int64_t)missing);
    jsonw_key(w, "agents");
    jsonw_array_begin(w);
    for (size_t i = 0; i < b->place_count; i++)
        jsonw_str(w, b->places[i].agent_id);
    jsonw_array_end(w);
    booking_write_members(core, b, w);
    jsonw_member_int(w, "release_unused", b->release_unused_usec / USEC_PER_SEC);
    jsonw_member_bool(w, "ignore_sessions", b->ignores_sessions);
    jsonw_member_str(w, "created_by",
                     creator && booking_view_may_change(api, req, b) ? creator->email : NULL);
    api_write_time(w, "created_at", b->created_usec);
    api_write_time(w, "finished_at", b->finished_usec);
    jsonw_member_str(w, "reason", b->reason);
    if (is_whole) {
        booking_write_places(core, b, w);
        booking_write_sessions(api, req, b, w);
    }
    jsonw_object_end(w);
}
