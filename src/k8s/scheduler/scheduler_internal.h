/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler_internal.h - inside the scheduler: scheduler.c, service.c, bind.c, scheduler_metrics.c
 */
#ifndef AQ_K8S_SCHEDULER_SCHEDULER_INTERNAL_H
#define AQ_K8S_SCHEDULER_SCHEDULER_INTERNAL_H

#include "base/list.h"
#include "http/exposition.h"
#include "http/server.h"
#include "k8s/scheduler/extender.h"
#include "k8s/settings.h"
#include "kube/watch.h"

#define FILTER_BUCKETS 6

struct webhook;

struct scheduler_daemon {
    uv_loop_t *loop;
    const struct settings *settings;
    struct extender extender;
    struct kube_api *api;
    struct kube_watch *nodes, *pods;
    struct webhook *webhook;  /* NULL = none is wanted */
    bool has_nodes, has_pods; /* a first list is whole */
    struct router *router;
    struct server *server;
    struct metrics_server *metrics;
    struct list binds;  /* under way */
    uv_timer_t expiry;  /* of assumptions */
    bool is_timer_open; /* its closing frees all this, as the end of the server does */
    uint64_t bound, bind_failures;
    uint64_t filters, filter_buckets[FILTER_BUCKETS];
    int64_t filter_usec;
};

/* ---- service.c ---- */

/* Serve kube-scheduler. Errors of server_listen() with the setting as field. */
int scheduler_listen(struct scheduler_daemon *scheduler, struct aq_error *err);

/* ---- bind.c ---- */

/* Answer a bind, once the API server has answered ours. */
void scheduler_bind(struct scheduler_daemon *scheduler, struct request *req);
/* Those under way are answered that it comes to nothing. */
void scheduler_end_binds(struct scheduler_daemon *scheduler);

/* ---- scheduler_metrics.c ---- */

void scheduler_count_filter(struct scheduler_daemon *scheduler, int64_t usec);
void scheduler_write_metrics(void *data, struct strbuf *out);

#endif
