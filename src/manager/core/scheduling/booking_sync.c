/* SPDX-License-Identifier: Apache-2.0 */
/* booking_sync.c - telling schedulers of bookings, and choosing places for a booking */
#include "manager/core/scheduling/booking_sync.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/core/bookings.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/state/agent_devices.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/booking_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define HOLDERS_SHOWN 4

/* ---- bookings of the scheduler ---- */

int booking_sync_describe(struct core *core, const struct booking *b, struct arena *arena,
                          struct sched_booking *ret)
{
    struct sched_place *places = arena_array(arena, b->place_count + 1, sizeof(*places));

    *ret = (struct sched_booking){ .id = b->id,
                                   .name = b->name,
                                   .starts_usec = b->starts_usec,
                                   .ends_usec = b->ends_usec,
                                   .amounts = &b->amounts,
                                   .places = places,
                                   .place_count = b->place_count };
    for (size_t i = 0; i < b->place_count; i++) {
        struct agent_entry *a = agent_entry_find(core, b->places[i].agent_id);
        int r;

        places[i].agent_id = b->places[i].agent_id;
        if (a && b->places[i].devices
            && (r = agent_devices_read_parts(core, a, b->places[i].devices, arena, &places[i].parts,
                                             &places[i].part_count))
                   < 0)
            return r;
    }
    return 0;
}

static void booking_sync_push(struct core *core, struct booking_entry *entry)
{
    struct arena arena = ARENA_INIT;
    struct sched_booking booking;
    struct aq_error err = { 0 };
    int r = booking_sync_describe(core, &entry->b, &arena, &booking);

    if (r == 0)
        r = sched_booking_set(entry->resource_group->sched, &booking, clock_realtime_usec(), &err);
    else
        (void)aq_fail(&err, -r, "cannot read the devices of its places");
    if (r < 0)
        log_error("reservation '%s' is not kept: %s", entry->b.name, err.text);
    arena_done(&arena);
}

void booking_sync_push_all(struct core *core, const struct resource_group_entry *g,
                           const char *agent_id)
{
    struct list *const lists[] = { &core->bookings, &core->booking_drafts }; /* the newer last */

    for (size_t i = 0; i < AQ_COUNT(lists); i++)
        LIST_FOREACH(link, lists[i]) {
            struct booking_entry *entry = LIST_ENTRY(link, struct booking_entry, all_link);

            if (entry->resource_group == g
                && (!agent_id || booking_find_place(&entry->b, agent_id) >= 0))
                booking_sync_push(core, entry);
        }
}

/* Its sessions see it otherwise now, also those that run on without it. */
static void booking_sync_mark_sessions(struct core *core, const struct uuid *id)
{
    LIST_FOREACH(link, &core->sessions) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, all_link);

        if (!uuid_equals(&l->s.booking_id, id))
            continue;
        sched_sync_mark_session(l);
        durable_touch(core, &l->durable);
    }
}

void booking_sync_set(struct core *core, struct booking_entry *entry)
{
    struct resource_group_entry *g = entry->resource_group;

    if (g->sched && !g->is_stale) /* else a new scheduler gets all bookings */
        booking_sync_push(core, entry);
    booking_sync_mark_sessions(core, &entry->b.id);
    queue_agent_changed(core, g);
}

void booking_sync_remove(struct core *core, struct booking_entry *entry)
{
    struct resource_group_entry *g = entry->resource_group;

    if (g->sched)
        sched_booking_remove(g->sched, &entry->b.id);
    booking_sync_mark_sessions(core, &entry->b.id);
    queue_agent_changed(core, g);
}

/* ---- drafts ---- */

struct booking_entry *booking_sync_open_draft(struct core *core, const struct booking *b)
{
    struct booking_entry *draft = aq_alloc(sizeof(*draft));

    booking_copy(&draft->b, b);
    list_init(&draft->sessions);
    list_init(&draft->all_link);
    draft->resource_group = resource_group_entry_get(core, b->resource_group);
    list_add(&core->booking_drafts, &draft->all_link);
    booking_sync_set(core, draft);
    return draft;
}

void booking_sync_close_draft(struct core *core, struct booking_entry *draft, bool is_durable)
{
    struct booking_entry *now = booking_entry_find(core, &draft->b.id);

    list_remove(&draft->all_link);
    if (!now)
        booking_sync_remove(core, draft);
    else if (!is_durable)
        booking_sync_set(core, now);
    booking_entry_free(draft);
}

/* ---- sessions beside ---- */

/* Has the place part of a device that the kernel holds? */
static bool booking_sync_shares_device(struct core *core, const struct booking_place *place,
                                       struct agent_entry *a, const struct kernel_entry *f)
{
    struct arena arena = ARENA_INIT;
    const struct sched_part *booked, *held;
    size_t booked_count, held_count;
    bool is_shared = false;

    if (place->devices
        && agent_devices_read_parts(core, a, place->devices, &arena, &booked, &booked_count) == 0
        && agent_devices_find_parts(core, a, f, &arena, &held, &held_count) == 0)
        for (size_t i = 0; i < booked_count; i++)
            for (size_t k = 0; k < held_count; k++)
                is_shared |= booked[i].device == held[k].device;
    arena_done(&arena);
    return is_shared;
}

const struct booking *booking_sync_find_beside(struct core *core, struct session_entry *l,
                                               size_t rank)
{
    struct agent_entry *a = agent_entry_find(core, l->s.kernels[rank].agent_id);
    int64_t limit = l->s.spec->batch_timeout_usec, end = INT64_MAX;

    if (limit && l->s.running_usec)
        end = l->s.running_usec + limit;
    LIST_FOREACH(link, &core->bookings) {
        const struct booking *b = &LIST_ENTRY(link, struct booking_entry, all_link)->b;
        long place = a && b->starts_usec < end ? booking_find_place(b, a->a.id) : -1;

        if (place >= 0 && booking_sync_shares_device(core, &b->places[place], a, &l->kernels[rank]))
            return b;
    }
    return NULL;
}

/* ---- places ---- */

static void booking_say_amount(const struct core *core, const char *slot_name, int64_t amount,
                               struct strbuf *text)
{
    char buf[AMOUNT_TEXT_MAX];

    strbuf_addf(text, "%s %s",
                slot_amount_humanize(amount, slot_types_get(core->types, slot_name), buf),
                slot_name);
}

/* "sessions a, b and 3 more"; "3 sessions" if none may be named. */
static void booking_say_names(const char *noun, const char *const *names, size_t named,
                              size_t count, struct strbuf *text)
{
    if (!named)
        strbuf_addf(text, "%zu ", count);
    strbuf_addf(text, "%s%s", noun, count == 1 ? "" : "s");
    for (size_t i = 0; i < named; i++)
        strbuf_addf(text, "%s%s", i ? ", " : " ", names[i]);
    if (named && count > named)
        strbuf_addf(text, " and %zu more", count - named);
}

static void booking_say_holders(const struct resource_group_entry *g, const char *domain,
                                const struct sched_booking_obstacle *o, struct strbuf *text)
{
    const char *names[HOLDERS_SHOWN];
    size_t endless = 0, named = 0;

    for (size_t i = 0; i < o->holder_count; i++) {
        const struct session *s = &g->members[o->holders[i]]->s;

        endless += s->spec->batch_timeout_usec == 0;
        if (named < HOLDERS_SHOWN && (!domain || strcmp(s->domain, domain) == 0))
            names[named++] = s->name;
    }
    if (!o->holder_count)
        return;
    booking_say_names("session", names, named, o->holder_count, text);
    strbuf_adds(text, endless == 0 ? " may still run then"
                      : endless == o->holder_count
                          ? " may still run then without a time limit"
                          : " may still run then, some without a time limit");
}

static void booking_say_bookings(const struct core *core, const char *domain,
                                 const struct sched_booking_obstacle *o, struct strbuf *text)
{
    const char *names[HOLDERS_SHOWN];
    size_t named = 0;

    for (size_t i = 0; i < o->booking_count && named < HOLDERS_SHOWN; i++) {
        const struct booking_entry *other = booking_entry_find(core, &o->bookings[i]);
        const char *of = other ? core_booking_domain(core, &other->b) : NULL;

        if (other && (!domain || (of && strcmp(of, domain) == 0)))
            names[named++] = other->b.name;
    }
    if (!o->booking_count)
        return;
    booking_say_names("reservation", names, named, o->booking_count, text);
    strbuf_adds(text, o->booking_count > 1 ? " keep some of it" : " keeps some of it");
}

static int booking_fail_place(const struct core *core, const struct resource_group_entry *g,
                              const struct booking *b, const char *domain,
                              const struct sched_booking_obstacle *o, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char from[CLOCK_ISO_MAX], until[CLOCK_ISO_MAX];

    strbuf_addf(&text, "does not fit from %.19sZ until %.19sZ: %zu of %" PRId64 " agent%s of '%s' ",
                clock_format_iso(b->starts_usec, from), clock_format_iso(b->ends_usec, until),
                AQ_MIN(o->fitting, (size_t)b->nodes), b->nodes, b->nodes == 1 ? "" : "s",
                g->g.name);
    strbuf_adds(&text, o->fitting == 1 ? "has room" : "have room");
    if (!o->agent_id) {
        strbuf_adds(&text, o->fitting ? "; ask for fewer nodes"
                                      : ", as none is ready; wait for agents, or undrain some");
    } else if (o->slot_name) {
        strbuf_addf(&text, "; '%s' has ", o->agent_id);
        booking_say_amount(core, o->slot_name, o->free, &text);
        strbuf_adds(&text, " of ");
        booking_say_amount(core, o->slot_name, o->needed, &text);
        if (o->is_beyond)
            strbuf_adds(&text, " even if nothing runs there; ask for less");
        if (!o->is_beyond && (o->holder_count || o->booking_count)) {
            strbuf_adds(&text, " free then: ");
            booking_say_holders(g, domain, o, &text);
            if (o->holder_count && o->booking_count)
                strbuf_adds(&text, ", ");
            booking_say_bookings(core, domain, o, &text);
        }
        if (!o->is_beyond && o->holder_count && !b->ignores_sessions)
            strbuf_adds(&text, "; --ignore-sessions books all the same");
    }
    return aq_fail_as(err, EBUSY, "reservation-does-not-fit", "resources", "%s", text.data);
}

static void booking_take_places(struct core *core, struct booking *b,
                                const struct sched_place *chosen)
{
    size_t count = (size_t)b->nodes;
    struct booking_place *places = aq_alloc_array(count, sizeof(*places));

    for (size_t i = 0; i < count; i++) {
        const struct agent_entry *a = agent_entry_find(core, chosen[i].agent_id);

        places[i].agent_id = (char *)(uintptr_t)chosen[i].agent_id;
        places[i].devices = agent_devices_write_parts(core, a, chosen[i].parts,
                                                      chosen[i].part_count);
    }
    booking_set_places(b, places, count);
    for (size_t i = 0; i < count; i++)
        free(places[i].devices);
    free(places);
}

int booking_sync_place(struct core *core, struct booking *b, const char *domain,
                       struct aq_error *err)
{
    struct resource_group_entry *g = resource_group_entry_get(core, b->resource_group);
    const struct sched_booking_wish wish = { .id = &b->id,
                                             .starts_usec = b->starts_usec,
                                             .ends_usec = b->ends_usec,
                                             .amounts = &b->amounts,
                                             .place_count = (size_t)b->nodes,
                                             .agents = b->agents.items,
                                             .agent_count = b->agents.count,
                                             .ignores_sessions = b->ignores_sessions };
    struct sched_booking_obstacle obstacle;
    struct arena arena = ARENA_INIT;
    struct sched_place *places;
    int r = sched_sync_push(core, g);

    arena_clear(&core->scratch, 1 << 16);
    if (r < 0)
        return aq_fail_kind(err, EAGAIN, "not-ready",
                            "the scheduler of resource group '%s' takes up changes; repeat the "
                            "request in a moment",
                            b->resource_group);
    r = sched_booking_place(g->sched, &wish, clock_realtime_usec(), &arena, &places, &obstacle);
    if (r == 0)
        booking_take_places(core, b, places);
    else
        r = booking_fail_place(core, g, b, domain, &obstacle, err);
    arena_done(&arena);
    return r;
}
