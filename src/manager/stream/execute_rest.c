/* SPDX-License-Identifier: Apache-2.0 */
/* Code that is run in a session, a request for each piece of the answer.
 *
 * POST /session/{name} {"mode", "code", "runId", "options"} gives {"result": {"runId", "status",
 * "exitCode", "options", "files", "console"}}. The executor in the container keeps it all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manager/stream/code_run.h"
#include "manager/stream/stream_feature.h"
#include "manager/session/session.h"
#include "model/session_feature.h"

#define WAIT_MSEC 2000 /* then it is "continued" */

struct execute {
    struct request *req;
    struct executor_link *link;
    struct code_run run;
};

static void execute_free(struct execute *ex)
{
    executor_link_close(ex->link);
    strbuf_done(&ex->run.bytes);
    free(ex);
}

static void execute_on_reply(void *data, const json_t *reply)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct execute *ex = data;
    struct request *req = ex->req;
    bool is_interrupt = strcmp(ex->run.verb, "interrupt") == 0;
    struct aq_error err = { 0 };

    jsonw_object_begin(&w);
    jsonw_key(&w, "result");
    jsonw_object_begin(&w);
    if (strcmp(ex->run.verb, "complete") == 0) {
        jsonw_member_str(&w, "status", "finished");
        code_run_write_raw(reply, "suggestions", "completions", &w);
    } else {
        jsonw_member_str(&w, "runId", ex->run.id);
        code_run_write_result(reply, &w);
    }
    jsonw_object_end(&w);
    jsonw_object_end(&w);
    if (code_run_check_reply(reply, &err) == 0 && !is_interrupt
        && strcmp(ex->run.verb, "complete") != 0)
        (void)code_run_announce(&ex->run, reply);
    execute_free(ex);
    if (err.code)
        request_fail(req, &err);
    else if (is_interrupt)
        request_reply(req, 204, NULL, NULL, 0);
    else
        request_reply_json(req, 200, &out);
}

static void execute_on_failed(void *data, const struct aq_error *err)
{
    const struct aq_error copy = *err; /* the link's */
    struct execute *ex = data;
    struct request *req = ex->req;

    execute_free(ex);
    request_fail(req, &copy);
}

static const struct executor_link_ops execute_link_ops = { execute_on_reply, execute_on_failed };

static struct execute *execute_new(struct api *api, struct request *req)
{
    struct execute *ex = aq_alloc(sizeof(*ex));

    ex->req = req;
    ex->run.api = api;
    strbuf_init(&ex->run.bytes);
    return ex;
}

/* Takes 'ex'. */
static void execute_start(struct execute *ex, const char *owner_access_key, const char *hostname)
{
    struct api *api = ex->run.api;
    struct request *req = ex->req;
    const struct session *session = session_find_live(api, req, owner_access_key);
    const struct kernel *kernel;
    struct aq_error err = { 0 };

    if (!session) { /* which is answered */
        execute_free(ex);
        return;
    }
    ex->run.session_id = session->id;
    if (session_feature_check(session->type, SESSION_CODE, &err) < 0
        || !(kernel = session_find_kernel(session, hostname, &err))
        || executor_link_open(api->core, kernel, &execute_link_ops, ex, &ex->link, &err) < 0
        || code_run_ask(ex->link, &ex->run, WAIT_MSEC, &err) < 0) {
        execute_free(ex);
        request_fail(req, &err);
    }
}

static void execute_by_mode(struct request *req, struct api *api, const char *mode)
{
    struct code_run_params params = { .mode = mode };
    struct execute *ex = execute_new(api, req);
    json_auto_t *tree = NULL;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, &tree, &err) < 0 || code_run_read(&params, &ex->run, &err) < 0) {
        execute_free(ex);
        request_fail(req, &err);
        return;
    }
    execute_start(ex, params.owner_access_key, params.kernel);
}

static void execute_on_execute(struct request *req, void *data)
{
    execute_by_mode(req, data, NULL);
}

static const struct field complete_fields[] = {
    { "code", FIELD_STR, FIELD_NULLABLE, offsetof(struct code_run_params, code), 0, CODE_RUN_MAX },
    { "options", FIELD_OBJECT, FIELD_NULLABLE, offsetof(struct code_run_params, options),
      .doc = "\"row\", \"col\", \"line\", \"post\"" },
    OWNER_FIELD(struct code_run_params, owner_access_key),
    KERNEL_FIELD(struct code_run_params, kernel),
    FIELD_END,
};

static void execute_on_complete(struct request *req, void *data)
{
    execute_by_mode(req, data, "complete");
}

static void execute_on_interrupt(struct request *req, void *data)
{
    struct kernel_params params = { NULL };
    struct execute *ex = execute_new(data, req);
    struct aq_error err = { 0 };

    ex->run.verb = "interrupt";
    (void)strcpy(ex->run.language, "-");
    (void)strcpy(ex->run.id, "-");
    if (api_decode(req, &params, NULL, &err) < 0) {
        execute_free(ex);
        request_fail(req, &err);
        return;
    }
    execute_start(ex, params.owner_access_key, params.kernel);
}

static const struct route execute_routes[] = {
    { METHOD_POST, "/session/{name}", API_USER, execute_on_execute, code_run_fields,
      "Run code in a kernel of a session, or read on what it has written" },
    { METHOD_POST, "/session/{name}/complete", API_USER, execute_on_complete, complete_fields,
      "Say how a line of code could go on" },
    { METHOD_POST, "/session/{name}/interrupt", API_USER, execute_on_interrupt, kernel_fields,
      "Interrupt the code that runs in a session", .answer = { 204 } },
};
API_ROUTES_END(execute);
