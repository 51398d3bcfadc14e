/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler_metrics.c - GET /metrics of the scheduler */
#include <math.h>
#include <stdio.h>

#include "k8s/scheduler/scheduler_internal.h"

#define PREFIX "aliquot_kube_"

static const double filter_bounds[FILTER_BUCKETS] = { 0.0005, 0.001, 0.002, 0.005, 0.02, 0.1 };

void scheduler_count_filter(struct scheduler_daemon *scheduler, int64_t usec)
{
    scheduler->filters++;
    scheduler->filter_usec += usec;
    for (size_t i = 0; i < FILTER_BUCKETS; i++)
        scheduler->filter_buckets[i] += (double)usec <= filter_bounds[i] * 1e6;
}

static void scheduler_write_bucket(struct strbuf *out, const char *bound, uint64_t count)
{
    exposition_begin(out, PREFIX "filter_seconds_bucket");
    exposition_label(out, "le", bound);
    exposition_value(out, (double)count);
}

static void scheduler_write_filter(const struct scheduler_daemon *scheduler, struct strbuf *out)
{
    char bound[32];

    exposition_family(out, PREFIX "filter_seconds", "histogram", "Time of a filter");
    for (size_t i = 0; i < FILTER_BUCKETS; i++) {
        (void)snprintf(bound, sizeof(bound), "%g", filter_bounds[i]);
        scheduler_write_bucket(out, bound, scheduler->filter_buckets[i]);
    }
    scheduler_write_bucket(out, "+Inf", scheduler->filters);
    exposition_begin(out, PREFIX "filter_seconds_sum");
    exposition_value(out, (double)scheduler->filter_usec / 1e6);
    exposition_begin(out, PREFIX "filter_seconds_count");
    exposition_value(out, (double)scheduler->filters);
}

static void scheduler_write_refused(const struct extender *extender, struct strbuf *out)
{
    static const char *const reasons[REFUSED_KINDS] = { [REASON_NO_CARD] = "no-card",
                                                        [REASON_UNHEALTHY] = "unhealthy",
                                                        [REASON_TOO_LARGE] = "too-large",
                                                        [REASON_NO_ROOM] = "no-room",
                                                        [REFUSED_UNKNOWN_NODE] = "unknown-node" };

    exposition_family(out, PREFIX "refused_total", "counter", "Nodes refused for pods, by reason");
    for (size_t i = 0; i < REFUSED_KINDS; i++) {
        exposition_begin(out, PREFIX "refused_total");
        exposition_label(out, "reason", reasons[i]);
        exposition_value(out, (double)extender->refused[i]);
    }
}

static void scheduler_write_books(const struct books *books, struct strbuf *out)
{
    struct books_sums sums;

    books_get_sums(books, &sums);
    exposition_single(out, PREFIX "nodes", "gauge", "Nodes with cards", (double)sums.nodes);
    exposition_single(out, PREFIX "cards", "gauge", "Cards", (double)sums.cards);
    exposition_single(out, PREFIX "cards_unhealthy", "gauge", "Cards that are unhealthy",
                      (double)sums.unhealthy);
    exposition_single(out, PREFIX "memory_units", "gauge", "Units of memory of all cards",
                      (double)sums.memory);
    exposition_single(out, PREFIX "memory_units_used", "gauge", "Units of memory that pods hold",
                      (double)sums.used_memory);
    exposition_single(out, PREFIX "compute_units", "gauge", "Units of compute of all cards",
                      (double)sums.compute);
    exposition_single(out, PREFIX "compute_units_used", "gauge", "Units of compute that pods hold",
                      (double)sums.used_compute);
    exposition_single(out, PREFIX "pods_placed", "gauge", "Pods that are bound and have not ended",
                      (double)sums.placed);
    exposition_single(out, PREFIX "pods_assumed", "gauge", "Pods about to be bound",
                      (double)sums.assumed);
    exposition_single(out, PREFIX "pods_waiting", "gauge", "Pods that have no node",
                      (double)sums.waiting);
}

void scheduler_write_metrics(void *data, struct strbuf *out)
{
    const struct scheduler_daemon *scheduler = data;

    exposition_single(out, PREFIX "complete", "gauge", "1 = all nodes and pods are known",
                      scheduler->extender.is_complete);
    exposition_single(out, PREFIX "pods_bound_total", "counter", "Pods bound",
                      (double)scheduler->bound);
    exposition_single(out, PREFIX "bind_failures_total", "counter", "Binds that came to nothing",
                      (double)scheduler->bind_failures);
    scheduler_write_filter(scheduler, out);
    scheduler_write_refused(&scheduler->extender, out);
    scheduler_write_books(scheduler->extender.books, out);
}
