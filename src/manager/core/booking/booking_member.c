/* SPDX-License-Identifier: Apache-2.0 */
/* booking_member.c - sessions that are to run in a booking */
#include "manager/core/booking/booking_member.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "manager/core/bookings.h"
#include "manager/core/state/booking_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "model/end_signal.h"

static const struct booking_entry *booking_find_for(const struct core *core,
                                                    const struct session *s)
{
    if (!uuid_is_nil(&s->booking_id))
        return booking_entry_find(core, &s->booking_id);
    return s->spec && s->spec->reservation ? booking_entry_find_named(core, s->spec->reservation)
                                           : NULL;
}

const char *booking_resource_group(const struct core *core, const struct session *s)
{
    const struct booking_entry *entry = booking_find_for(core, s);

    if (!entry
        || (uuid_is_nil(&s->booking_id) && !booking_is_for(&entry->b, &s->user_id, &s->project_id)))
        return NULL;
    return entry->b.resource_group;
}

/* Does the owner see it? Others get the same answer as if there were none of its name. */
static bool booking_is_shown_to(const struct core *core, const struct booking *b,
                                const struct session *s)
{
    const struct user *u = core_find_user(core, &s->user_id);
    const char *domain = core_booking_domain(core, b);
    bool is_shown = booking_is_for(b, &s->user_id, &s->project_id);

    for (size_t i = 0; u && i < u->project_count && !is_shown; i++)
        is_shown = booking_is_for(b, &u->id, &u->project_ids[i]);
    return is_shown || (u && u->role == ROLE_SUPERADMIN)
           || (u && u->role == ROLE_ADMIN && domain && u->domain && strcmp(domain, u->domain) == 0);
}

/* Each kernel has to fit on one place; together they may use all places, one kernel after another. */
static int booking_check_room(const struct booking *b, const struct session *s,
                              struct aq_error *err)
{
    char needed[AMOUNT_TEXT_MAX], kept[AMOUNT_TEXT_MAX];

    for (size_t k = 0; k < s->kernel_count; k++)
        for (size_t i = 0; i < s->kernels[k].requested.count; i++) {
            const struct slot *slot = &s->kernels[k].requested.items[i];
            int64_t amount = slots_get(&b->amounts, slot->name);
            enum slot_type type = slot_type_guess(slot->name);

            if (slot->amount > amount && slots_has(&b->amounts, slot->name))
                return aq_fail_field(err, EINVAL, "reservation",
                                     "the reservation '%s' has %s %s on each node, and the session "
                                     "asks for %s; ask for less",
                                     b->name, slot_amount_humanize(amount, type, kept), slot->name,
                                     slot_amount_humanize(slot->amount, type, needed));
        }
    return 0;
}

int booking_admit(const struct core *core, struct session *s, struct aq_error *err)
{
    const struct booking_entry *entry = booking_find_for(core, s);
    const char *name = s->spec->reservation;

    if (!name)
        return 0;
    if (!entry || clock_realtime_usec() >= entry->b.ends_usec
        || !booking_is_shown_to(core, &entry->b, s))
        return aq_fail_field(err, ENOENT, "reservation",
                             "there is no reservation '%s', or it has ended; 'aliquot reservation "
                             "ls' lists yours",
                             name);
    if (!booking_is_for(&entry->b, &s->user_id, &s->project_id))
        return aq_fail_field(err, EACCES, "reservation",
                             "the reservation '%s' is not for you or this project; name a project "
                             "that it is for, or leave the reservation out",
                             name);
    if (s->resource_group && strcmp(s->resource_group, entry->b.resource_group) != 0)
        return aq_fail_field(err, EINVAL, "reservation",
                             "the reservation '%s' is in the resource group '%s', not in '%s'",
                             name, entry->b.resource_group, s->resource_group);
    if (s->spec->batch_timeout_usec > entry->b.ends_usec - entry->b.starts_usec && !s->spec->signal
        && !s->spec->checkpoint_signal)
        return aq_fail_field(err, EINVAL, "reservation",
                             "the time limit is longer than the reservation '%s', so the session "
                             "would never start in it; give a shorter time limit, or a signal that "
                             "the session gets before the end",
                             name);
    s->booking_id = entry->b.id;
    return booking_check_room(&entry->b, s, err);
}

int64_t booking_notice_usec(const struct session_entry *l)
{
    int64_t before = 0;
    int number = 0;

    return end_signal_parse(l->s.spec->signal, &number, &before, NULL) == 0 && number ? before : 0;
}

bool booking_is_orphan(const struct session_entry *l)
{
    return !l->booking && !uuid_is_nil(&l->s.booking_id);
}
