/* SPDX-License-Identifier: Apache-2.0 */
/* booking_limits.c - how much administrators of a domain may keep */
#include "manager/core/booking/booking_limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manager/core/bookings.h"
#include "manager/core/state/booking_entry.h"
#include "manager/core/state/state.h"
#include "model/audit.h"

/* The other bookings of the domain; the caller frees the array. */
static const struct booking **booking_find_others(const struct core *core, const char *domain,
                                                  const struct booking *b, size_t *ret_count)
{
    const struct booking **others = aq_alloc_array(core->booking_count + 1, sizeof(*others));

    *ret_count = 0;
    LIST_FOREACH(link, &core->bookings) {
        const struct booking *other = &LIST_ENTRY(link, struct booking_entry, all_link)->b;
        const char *of = core_booking_domain(core, other);

        if (of && strcmp(of, domain) == 0 && !uuid_equals(&other->id, &b->id))
            others[(*ret_count)++] = other;
    }
    return others;
}

/* On all of its nodes. Saturates. */
static int64_t booking_amount(const struct booking *b, const char *slot_name)
{
    int64_t amount;

    return __builtin_mul_overflow(slots_get(&b->amounts, slot_name), b->nodes, &amount) ? INT64_MAX
                                                                                        : amount;
}

/* What 'b' and the others keep together at a time within the window of 'b'. Saturates. */
static int64_t booking_kept_at(const struct booking *b, const struct booking *const *others,
                               size_t count, const char *slot_name, int64_t at_usec)
{
    int64_t kept = booking_amount(b, slot_name);

    for (size_t i = 0; i < count; i++)
        if (others[i]->starts_usec <= at_usec && at_usec < others[i]->ends_usec
            && __builtin_add_overflow(kept, booking_amount(others[i], slot_name), &kept))
            return INT64_MAX;
    return kept;
}

/* The most is kept at the start of 'b', or where another one begins within it. */
static int64_t booking_most_kept(const struct booking *b, const struct booking *const *others,
                                 size_t count, const char *slot_name)
{
    int64_t most = booking_kept_at(b, others, count, slot_name, b->starts_usec);

    for (size_t i = 0; i < count; i++)
        if (others[i]->starts_usec > b->starts_usec && others[i]->starts_usec < b->ends_usec)
            most = AQ_MAX(most,
                          booking_kept_at(b, others, count, slot_name, others[i]->starts_usec));
    return most;
}

static int booking_check_quota(const struct core *core, const struct domain *d,
                               const struct booking *b, const struct booking *const *others,
                               size_t count, struct aq_error *err)
{
    char kept[AMOUNT_TEXT_MAX], allowed[AMOUNT_TEXT_MAX];

    for (size_t i = 0; i < d->total_slots.count; i++) {
        const struct slot *limit = &d->total_slots.items[i];
        enum slot_type type = slot_types_get(core->types, limit->name);
        int64_t most = booking_amount(b, limit->name) > 0
                           ? booking_most_kept(b, others, count, limit->name)
                           : 0;

        if (most > limit->amount)
            return aq_fail_as(err, EDQUOT, "quota-exceeded", "resources",
                              "reservations of the domain '%s' would keep %s %s at once, and its "
                              "quota is %s; ask for less, or ask a superadmin",
                              d->name, slot_amount_humanize(most, type, kept), limit->name,
                              slot_amount_humanize(limit->amount, type, allowed));
    }
    return 0;
}

int booking_check_limits(const struct core *core, const struct booking *b,
                         const struct audit_who *by, struct aq_error *err)
{
    const struct user *u = by ? core_find_user(core, &by->user_id) : NULL;
    const char *domain = core_booking_domain(core, b);
    const struct domain *d = domain ? core_find_domain(core, domain) : NULL;
    AQ_CLEANUP(aq_freep) const struct booking **others = NULL;
    size_t count;

    if (!u || u->role == ROLE_SUPERADMIN || !d)
        return 0;
    others = booking_find_others(core, domain, b, &count);
    if (count >= BOOKING_DOMAIN_MAX && !booking_entry_find(core, &b->id))
        return aq_fail_kind(err, EDQUOT, "quota-exceeded",
                            "there are %zu reservations of the domain '%s' already, and its "
                            "administrators may make %d; cancel some that are not needed",
                            count, domain, BOOKING_DOMAIN_MAX);
    return booking_check_quota(core, d, b, others, count, err);
}
