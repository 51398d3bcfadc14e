/* SPDX-License-Identifier: Apache-2.0 */
/* service.c - what kube-scheduler's extender entry calls: filter, prioritize, bind, preempt */
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "http/listener.h"
#include "k8s/scheduler/scheduler_internal.h"

static void service_on_filter(struct request *req, void *data)
{
    struct scheduler_daemon *scheduler = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    int64_t begin = clock_monotonic_usec();
    size_t len;
    const char *body = request_get_body(req, &len);

    extender_filter(&scheduler->extender, body, len, begin, &out);
    scheduler_count_filter(scheduler, clock_monotonic_usec() - begin);
    request_reply_json(req, 200, &out);
}

static void service_reply(struct request *req, int r, const struct strbuf *out,
                          const struct aq_error *err)
{
    if (r < 0)
        request_fail(req, err);
    else
        request_reply_json(req, 200, out);
}

static void service_on_prioritize(struct request *req, void *data)
{
    struct scheduler_daemon *scheduler = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct aq_error err = { 0 };
    size_t len;
    const char *body = request_get_body(req, &len);

    service_reply(req, extender_prioritize(&scheduler->extender, body, len, &out, &err), &out,
                  &err);
}

static void service_on_preempt(struct request *req, void *data)
{
    struct scheduler_daemon *scheduler = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct aq_error err = { 0 };
    size_t len;
    const char *body = request_get_body(req, &len);

    service_reply(req, extender_preempt(&scheduler->extender, body, len, &out, &err), &out, &err);
}

static void service_on_bind(struct request *req, void *data)
{
    scheduler_bind(data, req);
}

static void service_on_health(struct request *req, void *data)
{
    const struct scheduler_daemon *scheduler = data;
    struct aq_error err = { 0 };

    if (scheduler->extender.is_complete) {
        request_reply(req, 200, "text/plain", "ok\n", 3);
        return;
    }
    (void)aq_fail(&err, EAGAIN, "the nodes and pods of the cluster are not all known yet");
    request_fail(req, &err);
}

static const struct route service_routes[] = {
    { METHOD_POST, "/filter", 0, service_on_filter, NULL, "The node for a pod",
      .body_max = EXTENDER_BODY_MAX },
    { METHOD_POST, "/prioritize", 0, service_on_prioritize, NULL, "How good nodes are for a pod",
      .body_max = EXTENDER_BODY_MAX },
    { METHOD_POST, "/bind", 0, service_on_bind, NULL,
      "Bind a pod, with the cards of its containers", .body_max = EXTENDER_BODY_MAX },
    { METHOD_POST, "/preempt", 0, service_on_preempt, NULL, "Whom to evict so that a pod has room",
      .body_max = EXTENDER_BODY_MAX },
    { METHOD_GET, "/health", 0, service_on_health, NULL, "200 once all nodes and pods are known" },
};

int scheduler_listen(struct scheduler_daemon *scheduler, struct aq_error *err)
{
    const struct listener_options listen = { .address = scheduler->settings->scheduler_listen };
    struct server_options options = { .limits = { .connections_max = 256 } };
    struct listener *listener;
    int r;

    scheduler->router = router_new();
    r = router_add(scheduler->router, service_routes, AQ_COUNT(service_routes), scheduler, err);
    options.app.router = scheduler->router;
    scheduler->server = server_new(scheduler->loop, &options);
    if (r == 0)
        r = server_listen(scheduler->server, &listen, &listener, err);
    if (r == -EPERM)
        r = aq_fail_field(
            err, EPERM, "scheduler.listen",
            "scheduler.listen '%.100s' can be reached from outside: the extender is for "
            "the kube-scheduler beside it alone",
            listen.address);
    if (r == 0)
        log_info("kube-scheduler's extender is served on %s", listen.address);
    return r;
}
