/* largest-first.c - a scheduler plug-in: of equal priorities, the session with most cores is next
 *
 *     cc -shared -fPIC -o largest-first.so largest-first.c
 *     aliquot admin resource-group set default --scheduler plugin:largest-first
 *
 * The managerloads it from the directory in scheduler-plugins. Agents are chosen by the
 * built-in selection, because this plug-in has no 'choose'.
 */
#include <string.h>

#include "aliquot/scheduler.h"

static int64_t largest_cores(const struct aq_scheduler_slots *slots,
                             const struct aq_scheduler_session *session)
{
    for (uint32_t i = 0; i < slots->count; i++)
        if (strcmp(slots->names[i], "cpu") == 0)
            return session->amounts[i];
    return 0;
}

/* Insertion sort: sessions of equal size stay in the order in which they came. */
static int32_t largest_order(const struct aq_scheduler_slots *slots,
                             const struct aq_scheduler_session *sessions, uint32_t count,
                             uint32_t *ret)
{
    for (uint32_t i = 0; i < count; i++) {
        int64_t cores = largest_cores(slots, &sessions[i]);
        uint32_t at = i;

        for (; at > 0 && largest_cores(slots, &sessions[ret[at - 1]]) < cores; at--)
            ret[at] = ret[at - 1];
        ret[at] = i;
    }
    return 0;
}

AQ_SCHEDULER_EXPORT const struct aq_scheduler aq_scheduler = {
    .abi = AQ_SCHEDULER_ABI,
    .size = sizeof(aq_scheduler),
    .name = "largest-first",
    .order = largest_order,
};
