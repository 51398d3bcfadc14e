/* SPDX-License-Identifier: Apache-2.0 */
/* The apps of a session: the list that a proxy or a user chooses from, starting and ending one.
 *
 * The executor of the kernel's container is asked (runner/apps.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "manager/stream/app_proxy.h"
#include "manager/stream/app_question.h"
#include "manager/session/session.h"
#include "manager/stream/executor_link.h"
#include "manager/stream/stream_feature.h"
#include "model/service_port.h"
#include "model/session_feature.h"

#define LIST_MSEC 5000

struct app_control {
    struct request *req;
    struct api *api;
    struct uuid target_id; /* for the proxy: app_proxy.h */
    struct executor_link *link;
    void (*on_answer)(struct app_control *ask, const json_t *answer);
    json_t *published; /* of a list */
    char app[SERVICE_NAME_MAX + 1];
};

static void app_control_free(struct app_control *ask)
{
    executor_link_close(ask->link);
    json_decref(ask->published);
    free(ask);
}

/* What it waits for may take minutes. */
static void app_control_on_gone(struct request *req, void *data)
{
    request_set_gone(req, NULL, NULL);
    app_control_free(data);
    request_fail(req, &(struct aq_error){ .code = EPIPE });
}

static void app_control_on_reply(void *data, const json_t *answer)
{
    struct app_control *ask = data;

    request_set_gone(ask->req, NULL, NULL);
    executor_link_close(AQ_TAKE(ask->link)); /* nothing finds 'ask' any more */
    ask->on_answer(ask, answer);
    app_control_free(ask);
}

static void app_control_reply_list(struct app_control *ask, const json_t *answer)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    apps_write_states(ask->published, answer, &w);
    request_reply_json(ask->req, 200, &out);
}

static void app_control_on_failed(void *data, const struct aq_error *err)
{
    const struct aq_error copy = *err; /* the link's */
    struct app_control *ask = data;

    request_set_gone(ask->req, NULL, NULL);
    executor_link_close(AQ_TAKE(ask->link)); /* nothing finds 'ask' any more */
    if (ask->published)
        app_control_reply_list(ask, NULL);
    else
        request_fail(ask->req, &copy);
    app_control_free(ask);
}

static const struct executor_link_ops app_control_link_ops = { app_control_on_reply,
                                                               app_control_on_failed };

static struct app_control *app_control_new(struct request *req,
                                           void (*on_answer)(struct app_control *ask,
                                                             const json_t *answer))
{
    struct app_control *ask = aq_alloc(sizeof(*ask));

    ask->req = req;
    ask->on_answer = on_answer;
    return ask;
}

static int app_control_ask(const struct api *api, struct app_control *ask,
                           const struct kernel *kernel, const char *verb, const char *id,
                           int64_t wait_msec, const struct strbuf *body, struct aq_error *err)
{
    const struct executor_question question = { .verb = verb,
                                                .id = id,
                                                .language = "-",
                                                .wait_msec = wait_msec,
                                                .bytes = body ? body->data : NULL,
                                                .len = body ? body->len : 0 };
    int r = session_feature_check(kernel->session->type, SESSION_APPS, err);

    if (r == 0)
        r = executor_link_open(api->core, kernel, &app_control_link_ops, ask, &ask->link, err);
    if (r == 0)
        r = executor_link_ask(ask->link, &question, err);
    if (r == 0)
        request_set_gone(ask->req, app_control_on_gone, ask);
    return r;
}

/* ---- the list ---- */

static void app_control_on_found(struct request *req, const struct session_row *row, void *data)
{
    (void)row;
    (void)data;
    request_reply(req, 200, "application/json", "[]", 2);
}

/* What is published is told also if the container cannot be asked. A session that has ended has
 * none: a page may ask as it ends.
 */
static void app_control_on_list(struct request *req, void *data)
{
    struct kernel_params params = { 0 };
    const struct session *session = NULL;
    const struct kernel *kernel;
    struct app_control *ask;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0)
        request_fail(req, &err);
    else if (!session_find_is_live(data, req, params.owner_access_key))
        session_find(data, req, params.owner_access_key, app_control_on_found, NULL);
    else
        session = session_find_live(data, req, params.owner_access_key);
    if (!session)
        return;
    if (!(kernel = session_find_kernel(session, params.kernel, &err))) {
        request_fail(req, &err);
        return;
    }
    ask = app_control_new(req, app_control_reply_list);
    ask->published = json_load_string(apps_raw(kernel), 0);
    if (app_control_ask(data, ask, kernel, "apps", "-", LIST_MSEC, NULL, &err) < 0)
        app_control_on_failed(ask, &err);
}

/* ---- start and end ---- */

/* The answer to start-service, while a token for the proxy is made. */
struct app_started {
    struct request *req;
    const struct api *api;
    const char *status;
    struct uuid target_id;
    uint16_t port;
};

static void app_control_write_started(const struct app_started *started, const char *token)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const char *url = token ? core_find_front_url(started->api->core, FRONT_PROXY, NULL) : NULL;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "token", url ? token : NULL);
    jsonw_member_str(&w, "wsproxy_addr", url);
    jsonw_member_str(&w, "status", started->status);
    jsonw_member_int(&w, "port", started->port);
    if (!core_find_session(started->api->core, &started->target_id)) /* a kernel's id */
        api_write_uuid(&w, "target_id", &started->target_id);
    jsonw_object_end(&w);
    request_reply_json(started->req, 200, &out);
}

static void app_control_on_token(void *data, int r, const struct aq_error *err, const char *token)
{
    const struct app_started *started = data;

    if (r < 0)
        request_fail(started->req, err);
    else
        app_control_write_started(started, token);
}

/* With a proxy that is connected, a token for it and its address. */
static void app_control_tell_started(struct request *req, struct api *api,
                                     const struct uuid *target, const char *app, const char *status,
                                     uint16_t port)
{
    struct app_started *started = arena_alloc(request_get_arena(req), sizeof(*started));

    *started = (struct app_started){
        .req = req, .api = api, .status = status, .target_id = *target, .port = port
    };
    if (!core_find_front_url(api->core, FRONT_PROXY, NULL))
        app_control_write_started(started, NULL);
    else
        app_proxy_make_token(api, target, app, api_principal(req)->access_key, app_control_on_token,
                             started);
}

static void app_control_reply_start(struct app_control *ask, const json_t *answer)
{
    const char *status = json_string_value(json_object_get(answer, "status"));
    bool is_new = status && strcmp(status, "started") == 0;
    struct aq_error err = { 0 };
    uint16_t port = 0;

    if (app_question_read(answer, ask->app, &port, &err) < 0)
        request_fail(ask->req, &err);
    else
        app_control_tell_started(ask->req, ask->api, &ask->target_id, ask->app,
                                 is_new ? "started" : "running", port);
}

static void app_control_reply_end(struct app_control *ask, const json_t *answer)
{
    struct aq_error err = { 0 };
    uint16_t port;

    if (app_question_read(answer, ask->app, &port, &err) < 0)
        request_fail(ask->req, &err);
    else
        request_reply_empty(ask->req, 204);
}

static void app_control_start(struct request *req, struct api *api, const struct app_params *params,
                              bool is_end)
{
    const struct session *session = session_find_live(api, req, params->owner_access_key);
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    const struct kernel *kernel;
    struct app_control *ask;
    struct aq_error err = { 0 };
    struct uuid target;
    uint16_t port;
    int r;

    if (!session)
        return;
    if (!(kernel = session_find_kernel(session, params->kernel, &err))) {
        request_fail(req, &err);
        return;
    }
    target = app_proxy_target(kernel);
    port = is_end ? 0 : apps_find_port(kernel, params->app, params->port);
    if (port) { /* the platform itself serves it */
        app_control_tell_started(req, api, &target, params->app, "running", port);
        return;
    }
    ask = app_control_new(req, is_end ? app_control_reply_end : app_control_reply_start);
    r = app_question_write(params, &body, &err);
    if (r == 0) {
        (void)snprintf(ask->app, sizeof(ask->app), "%s", params->app);
        ask->api = api;
        ask->target_id = target;
        r = app_control_ask(api, ask, kernel, is_end ? "end-app" : "app", params->app,
                            APP_WAIT_MSEC, &body, &err);
    }
    if (r == 0)
        return;
    app_control_free(ask);
    request_fail(req, &err);
}

static void app_control_by_fields(struct request *req, struct api *api, bool is_end)
{
    struct app_params params = { NULL };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0)
        request_fail(req, &err);
    else
        app_control_start(req, api, &params, is_end);
}

static void app_control_on_start(struct request *req, void *data)
{
    app_control_by_fields(req, data, false);
}

static void app_control_on_end(struct request *req, void *data)
{
    app_control_by_fields(req, data, true);
}

static const struct field app_control_end_fields[] = {
    { "service_name|app", FIELD_STR, FIELD_REQUIRED, offsetof(struct app_params, app), 1,
      SERVICE_NAME_MAX },
    OWNER_FIELD(struct app_params, owner_access_key),
    KERNEL_FIELD(struct app_params, kernel),
    FIELD_END,
};

static const struct route app_control_routes[] = {
    { METHOD_GET, "/stream/session/{name}/apps", API_USER, app_control_on_list, kernel_fields,
      "The apps of a kernel's container, and how they are" },
    { METHOD_POST, "/session/{name}/start-service", API_USER, app_control_on_start, app_fields,
      "Start an app of a session if it does not run, and wait until it listens" },
    { METHOD_POST, "/session/{name}/shutdown-service", API_USER, app_control_on_end,
      app_control_end_fields, "End an app of a session; the next connection starts it again",
      .answer = { 204 } },
};
API_ROUTES_END(app_control);
