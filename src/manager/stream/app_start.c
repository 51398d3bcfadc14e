/* SPDX-License-Identifier: Apache-2.0 */
/* app_start.c - see app_start.h */
#include "manager/stream/app_start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manager/stream/app_question.h"
#include "manager/stream/executor_link.h"

struct app_start {
    struct list link;
    char proxy[AGENT_ID_MAX + 1];
    struct uuid request_id, session_id;
    char app[SERVICE_NAME_MAX + 1];
    char access_key[TICKET_KEY_MAX];
    struct executor_link *executor;
    app_started_fn *fn;
    void *data;
};

static void app_start_free(struct app_start *start)
{
    list_remove(&start->link);
    executor_link_close(start->executor);
    free(start);
}

static void app_start_end(struct app_start *start, uint16_t port, const struct aq_error *err)
{
    const struct msg_app_connect want = { .request_id = start->request_id,
                                          .session_id = start->session_id,
                                          .app = start->app,
                                          .access_key = start->access_key };

    list_remove(&start->link);
    list_init(&start->link);
    start->fn(start->data, start->proxy, &want, port, err);
    app_start_free(start);
}

static void app_start_on_reply(void *data, const json_t *reply)
{
    struct app_start *start = data;
    struct aq_error err = { 0 };
    uint16_t port;

    if (app_question_read(reply, start->app, &port, &err) == 0 && !port)
        (void)aq_fail_kind(&err, EPIPE, "service-unavailable",
                           "the session's executor answered without a port");
    app_start_end(start, err.code ? 0 : port, err.code ? &err : NULL);
}

static void app_start_on_failed(void *data, const struct aq_error *err)
{
    const struct aq_error copy = *err;

    app_start_end(data, 0, &copy);
}

int app_start(struct list *starts, struct api *api, const char *proxy, const struct kernel *kernel,
              const struct msg_app_connect *want, app_started_fn *fn, void *data,
              struct aq_error *err)
{
    static const struct executor_link_ops ops = { app_start_on_reply, app_start_on_failed };
    const struct app_params params = { .app = want->app };
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    struct app_start *start = aq_alloc(sizeof(*start));
    int r;

    *start = (struct app_start){
        .request_id = want->request_id, .session_id = want->session_id, .fn = fn, .data = data
    };
    (void)snprintf(start->proxy, sizeof(start->proxy), "%s", proxy);
    (void)snprintf(start->app, sizeof(start->app), "%s", want->app);
    (void)snprintf(start->access_key, sizeof(start->access_key), "%s", want->access_key);
    list_add(starts, &start->link);
    r = app_question_write(&params, &body, err);
    if (r == 0)
        r = executor_link_open(api->core, kernel, &ops, start, &start->executor, err);
    if (r == 0)
        r = executor_link_ask(start->executor,
                              &(struct executor_question){ .verb = "app",
                                                           .id = start->app,
                                                           .language = "-",
                                                           .wait_msec = APP_WAIT_MSEC,
                                                           .bytes = body.data,
                                                           .len = body.len },
                              err);
    if (r < 0)
        app_start_free(start);
    return r;
}

void app_starts_cancel(struct list *starts, const char *proxy)
{
    LIST_FOREACH(it, starts) {
        struct app_start *start = LIST_ENTRY(it, struct app_start, link);

        if (!proxy || strcmp(start->proxy, proxy) == 0)
            app_start_free(start);
    }
}
