/* SPDX-License-Identifier: Apache-2.0 */
/* Bookings: states, bounds, copies, and what the store keeps as JSON. */
#include "model/booking.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/memory.h"
#include "base/vec.h"

/* ---- states ---- */

static const char *const state_names[BOOKING_STATE_COUNT] = {
    [BOOKING_PLANNED] = "planned",   [BOOKING_ACTIVE] = "active",     [BOOKING_ENDED] = "ended",
    [BOOKING_RELEASED] = "released", [BOOKING_CANCELED] = "canceled",
};

const char *booking_state_name(enum booking_state state)
{
    return state_names[state];
}

int booking_state_parse(const char *text, enum booking_state *ret)
{
    for (int i = 0; i < BOOKING_STATE_COUNT; i++)
        if (strcmp(text, state_names[i]) == 0) {
            *ret = (enum booking_state)i;
            return 0;
        }
    return -EINVAL;
}

enum booking_state booking_state_at(const struct booking *b, int64_t now_usec)
{
    if (booking_is_finished(b))
        return b->outcome;
    if (now_usec < b->starts_usec)
        return BOOKING_PLANNED;
    return now_usec < b->ends_usec ? BOOKING_ACTIVE : BOOKING_ENDED;
}

static bool booking_has_id(const struct uuid_list *list, const struct uuid *id)
{
    for (size_t i = 0; i < list->count; i++)
        if (uuid_equals(&list->items[i], id))
            return true;
    return false;
}

bool booking_is_for(const struct booking *b, const struct uuid *user_id,
                    const struct uuid *project_id)
{
    return booking_has_id(&b->users, user_id) || booking_has_id(&b->projects, project_id);
}

long booking_find_place(const struct booking *b, const char *agent_id)
{
    for (size_t i = 0; i < b->place_count; i++)
        if (strcmp(b->places[i].agent_id, agent_id) == 0)
            return (long)i;
    return -1;
}

/* ---- bounds ---- */

static int booking_check_times(const struct booking *b, int64_t now_usec, struct aq_error *err)
{
    int64_t duration = b->ends_usec - b->starts_usec;

    if (b->starts_usec > now_usec + BOOKING_AHEAD_MAX_USEC)
        return aq_fail_field(err, EINVAL, "start",
                             "the start is more than 2 years ahead; choose an earlier one");
    if (duration < BOOKING_DURATION_MIN_USEC || duration > BOOKING_DURATION_MAX_USEC)
        return aq_fail_field(err, EINVAL, "duration",
                             "the duration is %" PRId64 " seconds; it must be 1 minute to 366 days",
                             duration / USEC_PER_SEC);
    if (b->ends_usec <= now_usec)
        return aq_fail_field(err, EINVAL, "start",
                             "the reservation would have ended already; choose a later start or a "
                             "longer duration");
    if (b->release_unused_usec < 0 || b->release_unused_usec > BOOKING_DURATION_MAX_USEC)
        return aq_fail_field(err, EINVAL, "release_unused",
                             "release_unused is %" PRId64 " seconds; it must be 0 (never) to 366 "
                             "days",
                             b->release_unused_usec / USEC_PER_SEC);
    return 0;
}

static int booking_check_amounts(const struct booking *b, struct aq_error *err)
{
    bool has_any = false;

    for (size_t i = 0; i < b->amounts.count; i++) {
        const struct slot *slot = &b->amounts.items[i];

        if (slot->amount < 0 || slot->amount == AMOUNT_INFINITE)
            return aq_fail_field(err, EINVAL, "resources",
                                 "the amount of %s must be a number from 0", slot->name);
        has_any |= slot->amount > 0;
    }
    if (!has_any)
        return aq_fail_field(err, EINVAL, "resources",
                             "no amounts are given; name one at least, as in cuda.device=4");
    return 0;
}

int booking_check(const struct booking *b, int64_t now_usec, struct aq_error *err)
{
    size_t members = b->projects.count + b->users.count;
    int r;

    if ((r = session_name_check_new(b->name, err)) < 0
        || (r = booking_check_times(b, now_usec, err)) < 0
        || (r = booking_check_amounts(b, err)) < 0)
        return r;
    if (b->nodes < 1 || b->nodes > BOOKING_NODES_MAX)
        return aq_fail_field(err, EINVAL, "nodes", "nodes is %" PRId64 "; it must be 1 to %d",
                             b->nodes, BOOKING_NODES_MAX);
    if (b->agents.count && (int64_t)b->agents.count < b->nodes)
        return aq_fail_field(err, EINVAL, "agents",
                             "%zu agents are named, fewer than the %" PRId64 " nodes wanted; name "
                             "more agents or set fewer nodes",
                             b->agents.count, b->nodes);
    if (b->agents.count > BOOKING_NODES_MAX)
        return aq_fail_field(err, EINVAL, "agents", "%zu agents are named; at most %d may be",
                             b->agents.count, BOOKING_NODES_MAX);
    if (members < 1 || members > BOOKING_MEMBERS_MAX)
        return aq_fail_field(err, EINVAL, "for",
                             "the reservation is for %zu projects and users; name 1 to %d", members,
                             BOOKING_MEMBERS_MAX);
    return 0;
}

/* ---- copies ---- */

static void booking_free_places(struct booking *b)
{
    for (size_t i = 0; i < b->place_count; i++) {
        free(b->places[i].agent_id);
        free(b->places[i].devices);
    }
    free(b->places);
    b->places = NULL;
    b->place_count = 0;
}

static void booking_free_agents(struct booking *b)
{
    for (size_t i = 0; i < b->agents.count; i++)
        free((char *)(uintptr_t)b->agents.items[i]);
    free(b->agents.items);
    b->agents = (struct str_list){ .count = 0 };
}

void booking_done(struct booking *b)
{
    free(b->resource_group);
    free(b->reason);
    slots_done(&b->amounts);
    free(b->projects.items);
    free(b->users.items);
    booking_free_agents(b);
    booking_free_places(b);
    *b = (struct booking){ .name = "" };
}

bool booking_names_agent(const struct booking *b, const char *agent_id)
{
    for (size_t i = 0; i < b->agents.count; i++)
        if (strcmp(b->agents.items[i], agent_id) == 0)
            return true;
    return false;
}

void booking_add_agent(struct booking *b, const char *agent_id)
{
    size_t count = b->agents.count++;

    b->agents.items = aq_realloc(b->agents.items, b->agents.count * sizeof(*b->agents.items));
    b->agents.items[count] = aq_strdup(agent_id);
}

void booking_set_agents_of_places(struct booking *b, const struct booking *of)
{
    booking_free_agents(b);
    for (size_t i = 0; of && i < of->place_count; i++)
        booking_add_agent(b, of->places[i].agent_id);
}

static struct uuid_list booking_copy_ids(const struct uuid_list *from)
{
    struct uuid_list to = { .count = from->count, .cap = from->count };

    if (from->count) {
        to.items = aq_alloc_array(from->count, sizeof(*to.items));
        memcpy(to.items, from->items, from->count * sizeof(*to.items));
    }
    return to;
}

static struct str_list booking_copy_texts(const struct str_list *from)
{
    struct str_list to = { .count = from->count };

    if (from->count)
        to.items = aq_alloc_array(from->count, sizeof(*to.items));
    for (size_t i = 0; i < from->count; i++)
        to.items[i] = aq_strdup(from->items[i]);
    return to;
}

void booking_set_places(struct booking *b, const struct booking_place *places, size_t count)
{
    struct booking_place *copy = count ? aq_alloc_array(count, sizeof(*copy)) : NULL;

    for (size_t i = 0; i < count; i++)
        copy[i] = (struct booking_place){ .agent_id = aq_strdup(places[i].agent_id),
                                          .devices = aq_strdup(places[i].devices) };
    booking_free_places(b);
    b->places = copy;
    b->place_count = count;
}

void booking_copy(struct booking *ret, const struct booking *b)
{
    *ret = *b;
    ret->resource_group = aq_strdup(b->resource_group);
    ret->reason = aq_strdup(b->reason);
    ret->amounts = (struct slots){ .count = 0 };
    slots_copy(&ret->amounts, &b->amounts);
    ret->agents = booking_copy_texts(&b->agents);
    ret->projects = booking_copy_ids(&b->projects);
    ret->users = booking_copy_ids(&b->users);
    ret->places = NULL;
    ret->place_count = 0;
    booking_set_places(ret, b->places, b->place_count);
}

static bool booking_has_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool booking_equals(const struct booking *a, const struct booking *b)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text_a = STRBUF_INIT, text_b = STRBUF_INIT;
    struct jsonw w_a = jsonw_make(&text_a), w_b = jsonw_make(&text_b);

    booking_write_details(a, &w_a);
    booking_write_details(b, &w_b);
    return uuid_equals(&a->id, &b->id) && strcmp(a->name, b->name) == 0 && a->version == b->version
           && booking_has_same_text(a->resource_group, b->resource_group)
           && a->starts_usec == b->starts_usec && a->ends_usec == b->ends_usec
           && slots_eq(&a->amounts, &b->amounts) && a->nodes == b->nodes
           && a->release_unused_usec == b->release_unused_usec
           && a->ignores_sessions == b->ignores_sessions
           && uuid_equals(&a->creator_id, &b->creator_id) && a->created_usec == b->created_usec
           && a->outcome == b->outcome && a->finished_usec == b->finished_usec
           && booking_has_same_text(a->reason, b->reason) && strcmp(text_a.data, text_b.data) == 0;
}

/* ---- JSON of the row ---- */

static void booking_write_ids(const char *key, const struct uuid_list *ids, struct jsonw *w)
{
    char id[UUID_TEXT_MAX];

    jsonw_key(w, key);
    jsonw_array_begin(w);
    for (size_t i = 0; i < ids->count; i++)
        jsonw_str(w, uuid_format(&ids->items[i], id));
    jsonw_array_end(w);
}

void booking_write_details(const struct booking *b, struct jsonw *w)
{
    jsonw_object_begin(w);
    booking_write_ids("projects", &b->projects, w);
    booking_write_ids("users", &b->users, w);
    jsonw_key(w, "agents");
    jsonw_array_begin(w);
    for (size_t i = 0; i < b->agents.count; i++)
        jsonw_str(w, b->agents.items[i]);
    jsonw_array_end(w);
    jsonw_key(w, "places");
    jsonw_array_begin(w);
    for (size_t i = 0; i < b->place_count; i++) {
        jsonw_object_begin(w);
        jsonw_member_str(w, "agent", b->places[i].agent_id);
        if (b->places[i].devices) {
            jsonw_key(w, "devices");
            jsonw_raw(w, b->places[i].devices, strlen(b->places[i].devices));
        }
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
    jsonw_object_end(w);
}

static int booking_parse_ids(const json_t *array, struct uuid_list *ret)
{
    const json_t *item;
    size_t i;

    ret->count = 0;
    json_array_foreach(array, i, item) {
        vec_grow(&ret->items, &ret->cap, ret->count + 1, sizeof(*ret->items));
        if (!json_is_string(item)
            || uuid_parse(json_string_value(item), &ret->items[ret->count]) < 0)
            return -EINVAL;
        ret->count++;
    }
    return 0;
}

static int booking_parse_agents(const json_t *array, struct booking *b)
{
    const json_t *item;
    size_t i;

    booking_free_agents(b);
    if (json_array_size(array))
        b->agents.items = aq_alloc_array(json_array_size(array), sizeof(*b->agents.items));
    json_array_foreach(array, i, item) {
        if (!json_is_string(item))
            return -EINVAL;
        b->agents.items[b->agents.count++] = aq_strdup(json_string_value(item));
    }
    return 0;
}

static int booking_parse_places(const json_t *array, struct booking *b)
{
    const json_t *item;
    size_t i;

    booking_free_places(b);
    if (json_array_size(array))
        b->places = aq_alloc_array(json_array_size(array), sizeof(*b->places));
    json_array_foreach(array, i, item) {
        const char *agent = json_string_value(json_object_get(item, "agent"));
        const json_t *devices = json_object_get(item, "devices");

        if (!agent)
            return -EINVAL;
        b->places[b->place_count++] = (struct booking_place){
            .agent_id = aq_strdup(agent),
            .devices = devices ? json_dumps(devices, JSON_COMPACT) : NULL,
        };
    }
    return 0;
}

int booking_parse_details(const char *text, struct booking *b, struct aq_error *err)
{
    json_auto_t *object = json_load_string(text, JSON_REJECT_DUPLICATES);

    if (!json_is_object(object)
        || booking_parse_ids(json_object_get(object, "projects"), &b->projects) < 0
        || booking_parse_ids(json_object_get(object, "users"), &b->users) < 0
        || booking_parse_agents(json_object_get(object, "agents"), b) < 0
        || booking_parse_places(json_object_get(object, "places"), b) < 0)
        return aq_fail_field(err, EINVAL, "details",
                             "the details of a reservation are not the expected JSON object");
    return 0;
}
