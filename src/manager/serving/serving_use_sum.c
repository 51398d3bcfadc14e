/* SPDX-License-Identifier: Apache-2.0 */
/* serving_use_sum.c - figures of model services, for those who ask */
#include <string.h>

#include "base/clock.h"
#include "base/sum.h"
#include "manager/core/services.h"
#include "manager/serving/serving_use_internal.h"

/* ---- finding ---- */

struct service_use *use_find(const struct serving_use *use, const struct uuid *id)
{
    return map_get(&use->services, id->bytes, sizeof(id->bytes));
}

struct use_proxy *use_find_proxy(const struct service_use *s, const char *proxy)
{
    for (size_t i = 0; s && i < s->proxy_count; i++)
        if (strcmp(s->proxies[i].id, proxy) == 0)
            return &s->proxies[i];
    return NULL;
}

static const struct use_load *use_find_load(const struct use_proxy *p, const struct uuid *id)
{
    for (size_t i = 0; p && i < p->load_count; i++)
        if (uuid_equals(&p->loads[i].id, id))
            return &p->loads[i];
    return NULL;
}

struct use_replica *use_find_replica(const struct service_use *s, const struct uuid *id)
{
    for (size_t i = 0; s && i < s->replica_count; i++)
        if (uuid_equals(&s->replicas[i].id, id))
            return &s->replicas[i];
    return NULL;
}

struct use_revision *use_find_revision(const struct service_use *s, int64_t number)
{
    for (size_t i = 0; s && i < s->revision_count; i++)
        if (s->revisions[i].number == number)
            return &s->revisions[i];
    return NULL;
}

struct use_token *use_find_token(const struct service_use *s, const struct uuid *id)
{
    for (size_t i = 0; s && i < s->token_count; i++)
        if (uuid_equals(&s->tokens[i].id, id))
            return &s->tokens[i];
    return NULL;
}

void use_sums_get(const struct use_sums *sums, struct serving_summary *ret)
{
    int64_t now = clock_monotonic_usec();
    struct serving_figures latest = { .in_flight = 0 };
    double seconds;

    *ret = (struct serving_summary){ .all = sums->all, .total = sums->before };
    for (size_t i = 0; i < FIGURES_PLAIN; i++)
        figures_counts(&ret->total)[i] += figures_counts(&ret->all)[i];
    if (!sums->window)
        return;
    (void)use_window_sum(sums->window, USE_WINDOW_SLOTS, now, figures_counts(&ret->recent));
    seconds = use_window_sum(sums->window, USE_WINDOW_NOW, now, figures_counts(&latest));
    ret->per_second = (double)AQ_MAX(latest.arrived, latest.requests) / seconds;
    ret->tokens_per_second = (double)(latest.prompt_tokens + latest.completion_tokens) / seconds;
}

/* ---- asking ---- */

struct serving_figures serving_use_get(const struct serving_use *use, const struct uuid *service_id)
{
    const struct service_use *s = use_find(use, service_id);
    struct serving_figures sum = s ? s->sums.all : (struct serving_figures){ .in_flight = 0 };

    for (size_t i = 0; s && i < s->proxy_count; i++) {
        sum.in_flight += s->proxies[i].in_flight;
        sum.queued += s->proxies[i].queued;
    }
    return sum;
}

void serving_use_sum(const struct serving_use *use, const struct uuid *service_id,
                     struct serving_summary *ret)
{
    const struct service_use *s = use_find(use, service_id);

    *ret = (struct serving_summary){ .per_second = 0 };
    if (!s)
        return;
    use_sums_get(&s->sums, ret);
    ret->all = serving_use_get(use, service_id);
}

void serving_use_sum_replica(const struct serving_use *use, const struct uuid *service_id,
                             const struct uuid *session_id, struct serving_summary *ret)
{
    const struct service_use *s = use_find(use, service_id);
    const struct use_replica *replica = use_find_replica(s, session_id);

    *ret = (struct serving_summary){ .per_second = 0 };
    if (replica)
        use_sums_get(&replica->sums, ret);
    for (size_t i = 0; s && i < s->proxy_count; i++) {
        const struct use_load *load = use_find_load(&s->proxies[i], session_id);

        ret->all.in_flight += load ? load->in_flight : 0;
        ret->is_ejected = ret->is_ejected || (load && load->is_ejected);
    }
}

void serving_use_sum_revision(const struct serving_use *use, const struct uuid *service_id,
                              int64_t revision, struct serving_summary *ret)
{
    const struct service_use *s = use_find(use, service_id);
    const struct use_revision *found = use_find_revision(s, revision);

    *ret = (struct serving_summary){ .per_second = 0 };
    if (!found)
        return;
    use_sums_get(&found->sums, ret);
    for (size_t i = 0; i < s->proxy_count; i++)
        for (size_t k = 0; k < s->proxies[i].load_count; k++) {
            const struct use_load *load = &s->proxies[i].loads[k];
            const struct session *session = core_find_session(use->core, &load->id);
            struct core_replica replica;

            if (session && core_find_replica(use->core, session, &replica)
                && replica.revision == revision)
                ret->all.in_flight = sum_add(ret->all.in_flight, load->in_flight);
        }
}

struct serving_token_figures serving_use_get_token(const struct serving_use *use,
                                                   const struct uuid *service_id,
                                                   const struct uuid *token_id)
{
    const struct use_token *token = use_find_token(use_find(use, service_id), token_id);

    return token ? token->figures : (struct serving_token_figures){ .requests = 0 };
}

struct serving_cold_starts serving_use_get_cold_starts(const struct serving_use *use,
                                                       const struct uuid *service_id)
{
    const struct service_use *s = use_find(use, service_id);

    return s ? s->cold_starts : (struct serving_cold_starts){ .count = 0 };
}

struct serving_cold_starts serving_use_sum_cold_starts(const struct serving_use *use,
                                                       const struct uuid *service_id)
{
    const struct service_use *s = use_find(use, service_id);

    return s ? (struct serving_cold_starts){ s->cold_starts.count + s->cold_starts_before.count,
                                             s->cold_starts.usec + s->cold_starts_before.usec }
             : (struct serving_cold_starts){ .count = 0 };
}

int64_t serving_use_in_flight(const struct serving_use *use, const char *proxy,
                              const struct uuid *service_id, const struct uuid *session_id)
{
    const struct use_load *load = use_find_load(use_find_proxy(use_find(use, service_id), proxy),
                                                session_id);

    return load ? load->in_flight : 0;
}

int64_t serving_use_demand(const struct serving_use *use, const char *proxy,
                           const struct uuid *service_id)
{
    const struct use_proxy *p = use_find_proxy(use_find(use, service_id), proxy);

    return p ? p->in_flight + p->queued : 0;
}
