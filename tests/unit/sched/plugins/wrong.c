/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in of the scheduler that is wrong in the way WRONG says. */
#include "aliquot/scheduler.h"

enum { ABI, SIZE, NOTHING, REFUSES, GARBAGE, TWICE, FORGETS };

static int32_t order(const struct aq_scheduler_slots *slots,
                     const struct aq_scheduler_session *sessions, uint32_t count, uint32_t *ret)
{
    (void)slots;
    (void)sessions;
    for (uint32_t i = 0; i < count; i++)
        ret[i] = WRONG == GARBAGE ? count + 1000 + i : WRONG == TWICE ? 0 : count - 1 - i;
    if (WRONG == FORGETS && count)
        ret[count - 1] = UINT32_MAX;
    return WRONG == REFUSES ? -1 : 0;
}

static int32_t choose(const struct aq_scheduler_slots *slots, const int64_t *amounts,
                      const struct aq_scheduler_agent *agents, uint32_t count)
{
    (void)slots;
    (void)amounts;
    (void)agents;
    return WRONG == REFUSES ? -7 : (int32_t)count + 1000;
}

#ifdef NO_SYMBOL
#define EXPORTED aq_another
#else
#define EXPORTED aq_scheduler
#endif

AQ_SCHEDULER_EXPORT const struct aq_scheduler EXPORTED = {
    .abi = WRONG == ABI ? AQ_SCHEDULER_ABI + 1 : AQ_SCHEDULER_ABI,
    .size = WRONG == SIZE ? sizeof(EXPORTED) - 8 : sizeof(EXPORTED),
    .name = "wrong",
    .order = WRONG == NOTHING ? 0 : order,
    .choose = WRONG == NOTHING ? 0 : choose,
};
