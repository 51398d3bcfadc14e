/* SPDX-License-Identifier: Apache-2.0 */
/* election.c - see election.h */
#include "manager/election.h"

#include <string.h>

/* True if the former leader yielded to another manager by name. */
static bool election_is_anothers(const struct election *e, const struct leader_view *view)
{
    return view->holder.name[0] && !view->holder.incarnation[0]
           && strcmp(view->holder.name, e->self->name) != 0;
}

bool election_see(struct election *e, const struct leader_view *view, bool is_new, int64_t now_usec)
{
    bool is_first = !e->is_seen;
    int64_t silent;

    if (is_first || e->epoch != view->epoch || e->beat != view->beat) {
        e->is_seen = true;
        e->epoch = view->epoch;
        e->beat = view->beat;
        e->beat_usec = now_usec;
    }
    if (now_usec < e->retries_at)
        return false;
    e->had_sessions = view->has_sessions || (e->had_sessions && !is_new);
    silent = now_usec - e->beat_usec;
    if (!view->is_held && election_is_anothers(e, view) && silent < ELECTION_ABSTAIN_USEC)
        return false;
    if (!view->is_held)
        return now_usec >= e->abstains_until;
    /* This process took the row, and the answer was lost: to take it again completes that. */
    if (strcmp(view->holder.incarnation, e->self->incarnation) == 0)
        return true;
    /* A former process of this manager led. It has ended, as this one holds the state folder's
     * lock.
     */
    if (is_first && !view->has_sessions && strcmp(view->holder.name, e->self->name) == 0)
        return true;
    if (e->had_sessions && !view->has_sessions)
        return silent >= ELECTION_GONE_USEC;
    /* leadership_take() would refuse it. */
    return silent >= ELECTION_SILENT_USEC && !view->is_working;
}

bool election_note_held_up(struct election *e, const struct leader_view *view, int64_t now_usec)
{
    bool was_held_up = e->is_held_up;

    e->is_held_up = view->is_held && view->is_working
                    && now_usec - e->beat_usec >= ELECTION_SILENT_USEC;
    return e->is_held_up && !was_held_up;
}

void election_abstain(struct election *e, int64_t now_usec)
{
    e->abstains_until = now_usec + ELECTION_ABSTAIN_USEC;
}

bool election_refuse(struct election *e, int code, int64_t now_usec)
{
    bool is_new = e->refused_code != code || e->refused_epoch != e->epoch;

    e->refused_code = code;
    e->refused_epoch = e->epoch;
    e->retries_at = now_usec + ELECTION_RETRY_USEC;
    return is_new;
}
