/* SPDX-License-Identifier: Apache-2.0 */
/* resize_check.c - may a running session have other parts of devices? */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "manager/core/scheduling/booking_sync.h"
#include "manager/core/session/resize.h"
#include "manager/core/session/resize_check.h"
#include "manager/core/state/account.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "model/booking.h"

static int resize_check_session(const struct core *core, const struct session_entry *l,
                                struct aq_error *err)
{
    bool runs = session_may_resize(l->s.status);

    if (!runs || l->commands.end_reason || l->commands.wants_restart)
        return aq_fail_field(err, EINVAL, "session",
                             "only a RUNNING session can be given other "
                             "parts of devices, '%s' is %s",
                             l->s.name, runs ? "about to end" : session_status_name(l->s.status));
    if (l->resize)
        return aq_fail_field(err, EINVAL, "session",
                             "'%s' is being given other parts already; "
                             "ask again",
                             l->s.name);
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (l->s.kernels[i].status != KERNEL_RUNNING && !kernel_is_terminal(l->s.kernels[i].status))
            return aq_fail_field(err, EINVAL, "session",
                                 "kernel %zu of '%s' is %s; ask again when all kernels run", i,
                                 l->s.name, kernel_status_name(l->s.kernels[i].status));
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (resize_takes_part(l, i) && !core_agent_is_connected(core, l->s.kernels[i].agent_id))
            return aq_fail_kind(err, ENOTCONN, "service-unavailable",
                                "agent '%s' of '%s' is not "
                                "connected; ask again when it is",
                                l->s.kernels[i].agent_id, l->s.name);
    return 0;
}

/* How much more the session would hold of the slot, on one agent or (NULL) on all. */
static int64_t resize_count_more(const struct session_entry *l, const struct slot *slot,
                                 const char *agent_id)
{
    int64_t more = 0;

    for (size_t i = 0; i < l->s.kernel_count; i++) {
        const struct kernel *k = &l->s.kernels[i];

        if (resize_takes_part(l, i) && (!agent_id || strcmp(agent_id, k->agent_id) == 0)
            && __builtin_add_overflow(more, slot->amount - slots_get(&k->requested, slot->name),
                                      &more))
            return INT64_MAX;
    }
    return more;
}

static int resize_check_amount(const struct session_entry *l, const struct slot *slot,
                               struct aq_error *err)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (resize_takes_part(l, i) && !slots_get(&l->s.kernels[i].requested, slot->name))
            return aq_fail_field(err, EINVAL, slot->name,
                                 "the session has no %s that could become "
                                 "more or less",
                                 slot->name);
    if (slot->amount <= 0 || slot->amount == AMOUNT_INFINITE)
        return aq_fail_field(err, EINVAL, slot->name,
                             "a part of a device has to be more than "
                             "nothing, and no more than there is; end the session to free it");
    return 0;
}

static int resize_check_agents(struct core *core, struct session_entry *l, const struct slot *slot,
                               struct aq_error *err)
{
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        struct agent_entry *a = resize_takes_part(l, i)
                                    ? agent_entry_find(core, l->s.kernels[i].agent_id)
                                    : NULL;
        int64_t more = a ? resize_count_more(l, slot, a->a.id) : 0;
        char wants[AMOUNT_TEXT_MAX], has[AMOUNT_TEXT_MAX], iso[CLOCK_ISO_MAX];
        const struct booking *b;
        const struct slots *left;

        if (more <= 0)
            continue;
        if ((b = booking_sync_find_beside(core, l, i)))
            return aq_fail_field(
                err, EBUSY, slot->name,
                "a reservation keeps part of a device that '%s' holds, until %.19sZ; "
                "ask again when it is over",
                l->s.name, clock_format_iso(b->ends_usec, iso));
        if (agent_entry_free_slots(a, &left) < 0)
            return aq_fail(err, EOVERFLOW, "agent '%s' offers more than can be counted", a->a.id);
        if (more > slots_get(left, slot->name)) {
            enum slot_type type = slot_types_get(core->types, slot->name);

            return aq_fail_field(
                err, EINVAL, slot->name,
                "agent '%s' would have to give %s more, "
                "and has %s free",
                a->a.id, slot_amount_format(more, type, wants),
                slot_amount_format(AQ_MAX(slots_get(left, slot->name), 0), type, has));
        }
    }
    return 0;
}

/* Nobody's limits are passed by: who may resize may also raise them. */
static int resize_check_account(struct core *core, const struct session_entry *l,
                                struct account *account, const struct slot *slot,
                                struct aq_error *err)
{
    static const char *const names[] = { [SCHED_KEYPAIR] = "keypair",
                                         [SCHED_USER] = "user",
                                         [SCHED_PROJECT] = "project",
                                         [SCHED_DOMAIN] = "domain" };
    AQ_CLEANUP(slots_donep) struct slots limits = { .items = NULL };
    enum slot_type type = slot_types_get(core->types, slot->name);
    int64_t more = resize_count_more(l, slot, NULL), limit;
    char wants[AMOUNT_TEXT_MAX], holds[AMOUNT_TEXT_MAX], may[AMOUNT_TEXT_MAX];
    static const struct slots none;
    struct sched_account sa;
    const struct slots *used;

    if (!account || more <= 0 || !account_limits(core, account, &sa))
        return 0;
    if (account_usage(account, &used) < 0)
        return aq_fail(err, EOVERFLOW, "its %s holds more than can be counted",
                       names[account->kind]);
    slots_from_policy(&limits, sa.limits ? sa.limits : &none, !sa.missing_is_zero, core->types);
    limit = slots_get(&limits, slot->name);
    if (limit == AMOUNT_INFINITE || more <= limit - slots_get(used, slot->name))
        return 0;
    return aq_fail_as(err, EDQUOT, "quota-exceeded", slot->name,
                      "its %s may hold %s %s and holds "
                      "%s; %s more would be too much",
                      names[account->kind], slot_amount_format(limit, type, may), slot->name,
                      slot_amount_format(slots_get(used, slot->name), type, holds),
                      slot_amount_format(more, type, wants));
}

int resize_check(struct core *core, struct session_entry *l, const struct slots *changes,
                 struct aq_error *err)
{
    int r = resize_check_session(core, l, err);

    for (size_t i = 0; r == 0 && i < changes->count; i++) {
        r = resize_check_amount(l, &changes->items[i], err);
        for (int kind = 0; r == 0 && kind < SCHED_ACCOUNT_KINDS; kind++)
            r = resize_check_account(core, l, l->accounts[kind], &changes->items[i], err);
        if (r == 0)
            r = resize_check_agents(core, l, &changes->items[i], err);
    }
    return r;
}
