/* SPDX-License-Identifier: Apache-2.0 */
/* booking.h - bookings: amounts of agents that are kept for projects and users during a time
 *
 * Users see "aliquot reservation". The scheduler's reservations are something else: resources held
 * for a session that has not started yet.
 *
 * Plain data. Only bookings that have not finished live in memory; finished ones are read by SQL.
 * 'version' counts changes of the row; the store refuses a change that was made from another
 * version. Times are wall-clock microseconds. Texts and arrays are the booking's own. Pure.
 */
#ifndef AQ_MODEL_BOOKING_H
#define AQ_MODEL_BOOKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/jsonw.h"
#include "base/lists.h"
#include "base/uuid.h"
#include "model/session.h"
#include "model/slot.h"

#define BOOKING_NODES_MAX 256
#define BOOKING_MEMBERS_MAX 64 /* projects and users together */
#define BOOKING_LIVE_MAX 1000  /* in the cluster, not finished */
#define BOOKING_DOMAIN_MAX 250 /* of these, that a domain's administrators make for it */
#define BOOKING_DURATION_MIN_USEC (INT64_C(60) * 1000000)
#define BOOKING_DURATION_MAX_USEC (INT64_C(366) * 86400 * 1000000)
#define BOOKING_AHEAD_MAX_USEC (INT64_C(2) * 366 * 86400 * 1000000) /* from now to the start */
#define BOOKING_DETAILS_MAX (4 << 20)                               /* bytes of JSON in the row */

/* Reasons of sessions that end, or stop waiting, with their booking. */
#define REASON_BOOKING_ENDED "reservation-ended"
#define REASON_BOOKING_RELEASED "reservation-released"
#define REASON_BOOKING_CANCELED "reservation-canceled"

enum booking_state {
    BOOKING_PLANNED,  /* its start is to come */
    BOOKING_ACTIVE,   /* in its window */
    BOOKING_ENDED,    /* its end has come */
    BOOKING_RELEASED, /* it was unused for too long */
    BOOKING_CANCELED, /* an administrator canceled it */
    BOOKING_STATE_COUNT
};

/* What is kept on one agent: booking.amounts, once. */
struct booking_place {
    char *agent_id;
    char *devices; /* JSON as kernel.alloc (alloc/grant.h): the parts of devices; NULL = none */
};

struct booking {
    struct uuid id;
    char name[SESSION_NAME_MAX + 1]; /* unique among bookings that have not finished */
    uint32_t version;
    char *resource_group;
    int64_t starts_usec, ends_usec;   /* [start, end) */
    struct slots amounts;             /* on each place */
    int64_t nodes;                    /* how many places, each on another agent; 1 or more */
    struct str_list agents;           /* ids: its places are on these only; empty = on any */
    struct uuid_list projects, users; /* for whom: one of them at least */
    int64_t release_unused_usec;      /* released if unused for so long in its window; 0 = never */
    bool ignores_sessions; /* sessions that may hold its amounts at its start did not count */
    struct uuid creator_id;
    int64_t created_usec;
    enum booking_state outcome; /* BOOKING_PLANNED: it has not finished */
    int64_t finished_usec;      /* 0 = it has not */
    char *reason;               /* for people: why it finished early; NULL = none */
    struct booking_place *places;
    size_t place_count; /* = nodes, once places were chosen */
};

/* Contents only. */
void booking_done(struct booking *b);

static inline void booking_donep(struct booking *b)
{
    booking_done(b);
}

/* *ret is overwritten. */
void booking_copy(struct booking *ret, const struct booking *b);

bool booking_equals(const struct booking *a, const struct booking *b);

/* "planned", "active", "ended", "released", "canceled". */
const char *booking_state_name(enum booking_state state);
/* 0 or -EINVAL. */
int booking_state_parse(const char *text, enum booking_state *ret);

/* What it is at this time: its outcome, or what follows from start and end. */
enum booking_state booking_state_at(const struct booking *b, int64_t now_usec);

static inline bool booking_is_finished(const struct booking *b)
{
    return b->outcome != BOOKING_PLANNED;
}

/* Is it for this user, in this project? */
bool booking_is_for(const struct booking *b, const struct uuid *user_id,
                    const struct uuid *project_id);

/* Bounds and forms of all members but places. 'now_usec': its end is to come. -EINVAL with the name
 * of the request's field: "name", "start", "duration", "resources", "nodes", "for",
 * "release_unused".
 */
int booking_check(const struct booking *b, int64_t now_usec, struct aq_error *err);

/* Take other places: 'b' owns a copy. */
void booking_set_places(struct booking *b, const struct booking_place *places, size_t count);

/* Is it to be on these agents, of which this is one? */
bool booking_names_agent(const struct booking *b, const char *agent_id);
/* Its places are to be on this agent, too, or on the agents of the places of 'of' alone; NULL = on
 * any.
 */
void booking_add_agent(struct booking *b, const char *agent_id);
void booking_set_agents_of_places(struct booking *b, const struct booking *of);

/* The index of the place on this agent, or -1. */
long booking_find_place(const struct booking *b, const char *agent_id);

/* As JSON what has no column of its own in the store: agents, members, places; and back, where
 * members of 'b' are replaced. -EINVAL.
 */
void booking_write_details(const struct booking *b, struct jsonw *w);
int booking_parse_details(const char *text, struct booking *b, struct aq_error *err);

#endif
