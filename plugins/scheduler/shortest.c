/* SPDX-License-Identifier: Apache-2.0 */
/* shortest.c - a plug-in of the scheduler to begin one's own from
 *
 * Order: sessions with a time limit first, the least work first (time limit
 * times CPU cores); but one that found no start in PATIENCE passes comes
 * before all that have not waited as long, so that nobody waits forever.
 *
 * Agents: the one that is fullest by the slot that the session takes most of,
 * so that large sessions still find empty agents.
 *
 *     cc -shared -fPIC -o shortest.so shortest.c
 *     aliquot admin resource-group set default --scheduler plugin:shortest \
 *         --selection plugin:shortest
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "aliquot/scheduler.h"

#define PATIENCE 100

struct shortest_place {
    uint32_t index;
    int is_patient;
    double work; /* less goes first; without a limit: more than any */
    int64_t row;
};

static uint32_t shortest_find_slot(const struct aq_scheduler_slots *slots, const char *name)
{
    uint32_t i = 0;

    while (i < slots->count && strcmp(slots->names[i], name) != 0)
        i++;
    return i;
}

static struct shortest_place shortest_judge(const struct aq_scheduler_session *s, uint32_t index,
                                            uint32_t cpu, uint32_t slot_count)
{
    double cores = cpu < slot_count && s->amounts[cpu] > 0 ? (double)s->amounts[cpu] / 1e6 : 1;
    double seconds = s->lifetime_usec ? (double)s->lifetime_usec / 1e6 : 1e12;

    return (struct shortest_place){ index, s->retries >= PATIENCE, seconds * cores, s->row };
}

static int shortest_compare(const void *a, const void *b)
{
    const struct shortest_place *x = a, *y = b;

    if (x->is_patient != y->is_patient)
        return y->is_patient - x->is_patient;
    if (!x->is_patient && x->work != y->work)
        return x->work < y->work ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static int32_t shortest_order(const struct aq_scheduler_slots *slots,
                              const struct aq_scheduler_session *sessions, uint32_t count,
                              uint32_t *ret)
{
    struct shortest_place *places = calloc(count ? count : 1, sizeof(*places));
    uint32_t cpu = shortest_find_slot(slots, "cpu");

    if (!places)
        return -1;
    for (uint32_t i = 0; i < count; i++)
        places[i] = shortest_judge(&sessions[i], i, cpu, slots->count);
    qsort(places, count, sizeof(*places), shortest_compare);
    for (uint32_t i = 0; i < count; i++)
        ret[i] = places[i].index;
    free(places);
    return 0;
}

/* The part of the agent that is in use once this is on it too. */
static double shortest_fullness(const struct aq_scheduler_slots *slots, const int64_t *amounts,
                                const struct aq_scheduler_agent *agent)
{
    double most = 0;

    for (uint32_t i = 0; i < slots->count; i++)
        if (amounts[i] > 0 && agent->free[i] != AQ_SCHEDULER_ABSENT && agent->capacity[i] > 0) {
            double full = 1 - (double)(agent->free[i] - amounts[i]) / (double)agent->capacity[i];

            most = full > most ? full : most;
        }
    return most;
}

static int32_t shortest_choose(const struct aq_scheduler_slots *slots, const int64_t *amounts,
                               const struct aq_scheduler_agent *agents, uint32_t count)
{
    int32_t best = -1;
    double most = -1;

    for (uint32_t i = 0; i < count; i++) {
        double full = shortest_fullness(slots, amounts, &agents[i]);

        if (full > most) {
            most = full;
            best = (int32_t)i;
        }
    }
    return best;
}

AQ_SCHEDULER_EXPORT const struct aq_scheduler aq_scheduler = {
    .abi = AQ_SCHEDULER_ABI,
    .size = sizeof(aq_scheduler),
    .name = "shortest",
    .order = shortest_order,
    .choose = shortest_choose,
};
