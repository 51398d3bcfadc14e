/* SPDX-License-Identifier: Apache-2.0 */
/* serving_metrics.c - see serving_metrics.h */
#include "manager/serving/serving_metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/log_budget.h"
#include "base/map.h"
#include "base/memory.h"
#include "http/exposition_scan.h"

#define PAGE_TEXT_MAX 500 /* bytes of a reason that are kept */

struct page_metric {
    char *name;
    double value;
    int64_t at_usec;     /* monotonic; 0 = none has come */
    uint64_t generation; /* in which it was wanted last */
};

struct metrics_page {
    char *agent_id;
    struct uuid kernel_id;
    int64_t port;
    char *path;
    struct page_metric metrics[EXPOSITION_SELECTORS_MAX];
    size_t count;
    char *text; /* why some have no value; NULL = all had one */
};

struct metrics_agent {
    bool is_stale; /* it has to hear what is wanted */
};

struct serving_metrics {
    struct core *core;
    struct map pages;    /* metrics_page_key() -> struct metrics_page */
    struct map agents;   /* id -> struct metrics_agent, of those with pages */
    uint64_t generation; /* counts calls of flush */
    struct log_budget log;
};

/* ---- pages ---- */

static char *metrics_page_key(const struct uuid *kernel_id, int64_t port, const char *path)
{
    char id[UUID_TEXT_MAX];

    return aq_format("%s:%lld%s", uuid_format(kernel_id, id), (long long)port, path);
}

static struct metrics_page *metrics_find_page(const struct serving_metrics *metrics,
                                              const struct uuid *kernel_id, int64_t port,
                                              const char *path)
{
    AQ_CLEANUP(aq_freep) char *key = metrics_page_key(kernel_id, port, path);

    return map_gets(&metrics->pages, key);
}

static struct page_metric *metrics_page_find_metric(struct metrics_page *page, const char *name)
{
    for (size_t i = 0; i < page->count; i++)
        if (strcmp(page->metrics[i].name, name) == 0)
            return &page->metrics[i];
    return NULL;
}

static void metrics_mark(struct serving_metrics *metrics, const char *agent_id)
{
    struct metrics_agent *agent = map_gets(&metrics->agents, agent_id);

    if (!agent) {
        agent = aq_alloc(sizeof(*agent));
        (void)map_sets(&metrics->agents, agent_id, agent);
    }
    agent->is_stale = true;
}

static void metrics_page_free(struct metrics_page *page)
{
    for (size_t i = 0; i < page->count; i++)
        free(page->metrics[i].name);
    free(page->agent_id);
    free(page->path);
    free(page->text);
    free(page);
}

/* ---- what is wanted ---- */

static struct metrics_page *metrics_take_page(struct serving_metrics *metrics,
                                              const struct serving_metric *metric)
{
    const struct kernel *k = &metric->replica->kernels[0];
    AQ_CLEANUP(aq_freep) char *key = metrics_page_key(&k->id, metric->port, metric->path);
    struct metrics_page *page = map_gets(&metrics->pages, key);

    if (page && strcmp(page->agent_id, k->agent_id) != 0) {
        metrics_mark(metrics, page->agent_id); /* it was restarted elsewhere */
        metrics_page_free(map_removes(&metrics->pages, key));
        page = NULL;
    }
    if (!page) {
        page = aq_alloc(sizeof(*page));
        page->agent_id = aq_strdup(k->agent_id);
        page->kernel_id = k->id;
        page->port = metric->port;
        page->path = aq_strdup(metric->path);
        (void)map_sets(&metrics->pages, key, page);
    }
    return page;
}

void serving_metrics_want(struct serving_metrics *metrics, const struct serving_metric *metric)
{
    struct metrics_page *page;
    struct page_metric *found;

    if (!metric->replica->kernel_count || !metric->replica->kernels[0].agent_id)
        return;
    page = metrics_take_page(metrics, metric);
    found = metrics_page_find_metric(page, metric->name);
    if (!found && page->count < EXPOSITION_SELECTORS_MAX) {
        found = &page->metrics[page->count++];
        *found = (struct page_metric){ .name = aq_strdup(metric->name) };
        metrics_mark(metrics, page->agent_id);
    }
    if (found)
        found->generation = metrics->generation;
}

/* True if nothing of it is wanted any more. */
static bool metrics_page_drop_unwanted(struct serving_metrics *metrics, struct metrics_page *page)
{
    for (size_t i = page->count; i-- > 0;)
        if (page->metrics[i].generation != metrics->generation) {
            free(page->metrics[i].name);
            page->metrics[i] = page->metrics[--page->count];
            metrics_mark(metrics, page->agent_id);
        }
    return page->count == 0;
}

/* False if the agent could not be reached; *ret_count is how many pages it has. */
static bool metrics_tell(struct serving_metrics *metrics, const char *agent_id, size_t *ret_count)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct msg_metrics_watch watch = { .pages = arena_array(&arena, MSG_METRICS_PAGES_MAX,
                                                            sizeof(*watch.pages)) };

    for (size_t i = 0; i < metrics->pages.count; i++) {
        const struct metrics_page *page = metrics->pages.entries[i].value;
        struct msg_metrics_page *to = &watch.pages[watch.page_count];

        if (strcmp(page->agent_id, agent_id) != 0)
            continue;
        if (watch.page_count == MSG_METRICS_PAGES_MAX) {
            log_limited(&metrics->log, LOG_LEVEL_WARNING,
                        "agent '%s' reads metrics of its first %d replicas only", agent_id,
                        MSG_METRICS_PAGES_MAX);
            break;
        }
        *to = (struct msg_metrics_page){ .kernel_id = page->kernel_id,
                                         .port = page->port,
                                         .path = page->path };
        to->names.items = arena_array(&arena, page->count, sizeof(char *));
        for (; to->names.count < page->count; to->names.count++)
            to->names.items[to->names.count] = page->metrics[to->names.count].name;
        watch.page_count++;
    }
    *ret_count = watch.page_count;
    AQ_FAULT("serving.metrics.told");
    return core_watch_metrics(metrics->core, agent_id, &watch);
}

void serving_metrics_flush(struct serving_metrics *metrics)
{
    for (size_t i = metrics->pages.count; i-- > 0;) {
        const struct map_entry *entry = &metrics->pages.entries[i];

        if (metrics_page_drop_unwanted(metrics, entry->value))
            metrics_page_free(map_remove(&metrics->pages, entry->key, entry->key_len));
    }
    for (size_t i = metrics->agents.count; i-- > 0;) {
        const struct map_entry *entry = &metrics->agents.entries[i];
        struct metrics_agent *agent = entry->value;
        size_t count = 1;

        if (agent->is_stale)
            agent->is_stale = !metrics_tell(metrics, entry->key, &count);
        if (!count) /* one that was not reached reads nothing after it has connected */
            free(map_remove(&metrics->agents, entry->key, entry->key_len));
    }
    metrics->generation++;
}

/* ---- what agents report ---- */

static void metrics_on_values(void *data, const struct msg_metrics_values *values)
{
    struct serving_metrics *metrics = data;
    struct metrics_page *page = metrics_find_page(metrics, &values->kernel_id, values->port,
                                                  values->path);

    if (!page)
        return;
    AQ_FAULT("serving.metrics.taken");
    for (size_t i = 0; i < values->value_count; i++) {
        size_t at = (size_t)values->values[i].metric;
        struct page_metric *metric = at < values->names.count
                                         ? metrics_page_find_metric(page, values->names.items[at])
                                         : NULL;

        if (metric) {
            metric->value = values->values[i].value;
            metric->at_usec = clock_monotonic_usec();
        }
    }
    free(page->text);
    page->text = values->text ? aq_strndup(values->text, strnlen(values->text, PAGE_TEXT_MAX))
                              : NULL;
}

static void metrics_on_agent(void *data, const char *agent_id)
{
    metrics_mark(data, agent_id);
}

double serving_metrics_get(const struct serving_metrics *metrics,
                           const struct serving_metric *metric, const char **ret_text)
{
    struct metrics_page *page = metric->replica->kernel_count
                                    ? metrics_find_page(metrics, &metric->replica->kernels[0].id,
                                                        metric->port, metric->path)
                                    : NULL;
    const struct page_metric *found = page ? metrics_page_find_metric(page, metric->name) : NULL;

    if (ret_text)
        *ret_text = page ? page->text : NULL;
    return found && found->at_usec
                   && clock_monotonic_usec() - found->at_usec <= SERVING_METRICS_AGE_USEC
               ? found->value
               : (double)NAN;
}

/* ---- begin and end ---- */

struct serving_metrics *serving_metrics_new(struct core *core)
{
    static const struct core_metrics_ops ops = { .on_values = metrics_on_values,
                                                 .on_agent = metrics_on_agent };
    struct serving_metrics *metrics = aq_alloc(sizeof(*metrics));

    metrics->core = core;
    core_set_metrics_ops(core, &ops, metrics);
    return metrics;
}

void serving_metrics_stop(struct serving_metrics *metrics)
{
    core_set_metrics_ops(metrics->core, NULL, NULL);
}

void serving_metrics_free(struct serving_metrics *metrics)
{
    if (!metrics)
        return;
    for (size_t i = 0; i < metrics->pages.count; i++)
        metrics_page_free(metrics->pages.entries[i].value);
    for (size_t i = 0; i < metrics->agents.count; i++)
        free(metrics->agents.entries[i].value);
    map_done(&metrics->pages);
    map_done(&metrics->agents);
    free(metrics);
}
