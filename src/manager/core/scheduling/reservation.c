/* SPDX-License-Identifier: Apache-2.0 */
/* reservation.c - agents where a place is set aside for a session that does not start there yet
 *
 * For one that is migrated, from the decision until it has started there; for one
 * that others are preempted for, until these have ended. What is written is the
 * agent of each kernel, in the status_data of the migrated session ("moved_to")
 * and in the explanation of the waiting one ("places"): the next manager tells
 * its scheduler (sched_sync.c), so neither has to queue for what it was promised.
 */
#include <assert.h>
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/jsonw.h"
#include "base/memory.h"
#include "manager/core/scheduling/preemption.h"
#include "manager/core/scheduling/reservation.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/clock_adjustment.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

void reservation_set(struct session_entry *l, const char *const *agents)
{
    assert(!l->reservation.agents || l->resource_group->reserved > 0);
    l->resource_group->reserved -= l->reservation.agents != NULL;
    for (size_t k = 0; l->reservation.agents && k < l->s.kernel_count; k++)
        free(l->reservation.agents[k]);
    free(AQ_TAKE(l->reservation.agents));
    l->reservation.is_unsaved = false;
    if (!agents)
        return;
    l->reservation.agents = aq_alloc_array(l->s.kernel_count, sizeof(char *));
    l->resource_group->reserved++;
    for (size_t k = 0; k < session_least_kernels(&l->s); k++)
        l->reservation.agents[k] = aq_strdup(agents[k]);
}

/* An agent for each kernel, or one for all of them, as earlier versions wrote. */
static void reservation_read_places(struct session_entry *l, const json_t *from)
{
    const char **agents = aq_alloc_array(l->s.kernel_count + 1, sizeof(*agents));
    size_t found = 0;

    for (size_t k = 0; k < session_least_kernels(&l->s); k++) {
        const json_t *one = json_is_array(from) ? json_array_get(from, k) : from;

        if ((agents[k] = json_string_value(one)))
            found++;
    }
    if (found == session_least_kernels(&l->s))
        reservation_set(l, agents);
    free(agents);
}

void reservation_load(struct session_entry *l)
{
    const char *key = preemption_is_leaving(&l->s) || l->s.status == SESSION_PENDING
                          ? RESERVATION_MIGRATED
                          : NULL;
    json_t *data;

    if (!key || !l->s.status_data)
        return;
    data = json_load_string(l->s.status_data, 0);
    if (l->s.status == SESSION_PENDING && json_object_get(data, RESERVATION_PREEMPTING))
        key = RESERVATION_PREEMPTING;
    reservation_read_places(l, json_object_get(data, key));
    json_decref(data);
}

void reservation_write(const struct session_entry *l, const char *key, struct jsonw *w)
{
    if (!l->reservation.agents)
        return;
    jsonw_key(w, key);
    jsonw_array_begin(w);
    for (size_t k = 0; k < session_least_kernels(&l->s); k++)
        jsonw_str(w, l->reservation.agents[k]);
    jsonw_array_end(w);
}

/* 0 = there is nothing to wait for. */
static int64_t reservation_due_of(const struct core *core, const struct session_entry *l,
                                  const char *agent_id)
{
    const struct agent_entry *a = agent_entry_find(core, agent_id);

    if (!a || !a->is_known || a->a.status != AGENT_ALIVE || !a->a.schedulable
        || agent_entry_is_ready(a))
        return 0;
    return clock_adjustment_due(core, l, core->conf.agent_timeout_usec);
}

int64_t reservation_due(const struct core *core, const struct session_entry *l)
{
    int64_t due = 0;

    for (size_t k = 0;
         l->reservation.agents && !l->preemption.is_preempting && k < session_least_kernels(&l->s);
         k++)
        due = AQ_MAX(due, reservation_due_of(core, l, l->reservation.agents[k]));
    return due;
}
