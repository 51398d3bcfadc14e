/* SPDX-License-Identifier: Apache-2.0 */
/* Code that is run in a session: what clients ask, and how they are told. */
#include "manager/stream/code_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/uuid.h"
#include "manager/session/session.h"
#include "manager/stream/stream_feature.h"

const struct field code_run_fields[] = {
    { "mode", FIELD_STR, FIELD_REQUIRED, offsetof(struct code_run_params, mode), 1, 16,
      .doc = "query, batch, continue, input or complete" },
    { "code", FIELD_STR, FIELD_NULLABLE, offsetof(struct code_run_params, code), 0, CODE_RUN_MAX },
    { "runId|run_id", FIELD_STR, FIELD_NULLABLE, offsetof(struct code_run_params, run_id), 1,
      CODE_RUN_ID_MAX, .doc = "letters, digits, - and _; made if there is none" },
    { "options", FIELD_OBJECT, FIELD_NULLABLE, offsetof(struct code_run_params, options),
      .doc = "of a query: \"language\" (python, shell, c or another that the image names); of a "
             "batch: \"clean\", \"build\", "
             "\"exec\", commands or \"*\"; of complete: \"row\", \"col\", \"line\", \"post\"" },
    OWNER_FIELD(struct code_run_params, owner_access_key),
    KERNEL_FIELD(struct code_run_params, kernel),
    FIELD_END,
};

/* ---- questions ---- */

const char *code_run_text(const json_t *options, const char *name)
{
    return json_string_value(json_object_get(options, name));
}

static int code_run_set_run_id(const struct code_run_params *params, bool is_new,
                               struct code_run *ret, struct aq_error *err)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    struct uuid id;

    if (!params->run_id && !is_new)
        return api_fail_param(err, "runId", "is required; the answer to the query has it");
    if (params->run_id && strspn(params->run_id, allowed) < strlen(params->run_id))
        return api_fail_param(err, "runId", "must be letters, digits, - and _");
    if (params->run_id) {
        memcpy(ret->id, params->run_id, strlen(params->run_id) + 1);
        return 0;
    }
    id = uuid_random();
    for (size_t i = 0; i < sizeof(id.bytes); i++)
        (void)snprintf(ret->id + 2 * i, 3, "%02x", id.bytes[i]);
    return 0;
}

/* Three commands; JSON has no NUL in texts that decode_json() lets pass. */
static int code_run_set_batch(const json_t *options, struct code_run *ret, struct aq_error *err)
{
    static const char *const steps[] = { "clean", "build", "exec" };

    for (size_t i = 0; i < AQ_COUNT(steps); i++) {
        const json_t *given = json_object_get(options, steps[i]);

        if (given && !json_is_null(given) && !json_is_string(given))
            return api_fail_param(err, steps[i], "must be a command, or * for the usual one");
        strbuf_adds(&ret->bytes, json_is_string(given) ? json_string_value(given) : "");
        strbuf_addc(&ret->bytes, '\0');
    }
    return 0;
}

static int code_run_set_language(const json_t *options, struct code_run *ret, struct aq_error *err)
{
    const json_t *given = json_object_get(options, "language");
    const char *text = json_string_value(given);

    ret->language[0] = '-';
    if (!given || json_is_null(given))
        return 0;
    if (!text || !*text || strlen(text) >= sizeof(ret->language)
        || text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_")])
        return api_fail_param(err, "language", "must be a word such as python, shell or c");
    memcpy(ret->language, text, strlen(text) + 1);
    return 0;
}

static void code_run_set_completion(const struct code_run_params *params, struct code_run *ret)
{
    json_auto_t *asked = params->options ? json_copy((json_t *)(uintptr_t)params->options)
                                         : json_object();
    AQ_CLEANUP(aq_freep) char *text = NULL;

    (void)json_object_set_new(asked, "code", json_string(params->code ? params->code : ""));
    text = json_dumps(asked, JSON_COMPACT);
    strbuf_adds(&ret->bytes, text);
}

int code_run_read(const struct code_run_params *params, struct code_run *ret, struct aq_error *err)
{
    const char *code = params->code ? params->code : "";
    bool is_query = strcmp(params->mode, "query") == 0;
    bool is_batch = strcmp(params->mode, "batch") == 0;
    int r = 0;

    (void)strcpy(ret->language, "-");
    ret->verb = is_query ? "run" : params->mode;
    if (strcmp(params->mode, "complete") == 0) {
        (void)strcpy(ret->id, "-");
        code_run_set_completion(params, ret);
    } else if (is_query || is_batch || strcmp(params->mode, "input") == 0
               || strcmp(params->mode, "continue") == 0) {
        r = code_run_set_run_id(params, is_query || is_batch, ret, err);
    } else {
        r = api_fail_param(err, "mode", "must be query, batch, continue, input or complete");
    }
    if (r == 0 && is_batch)
        r = code_run_set_batch(params->options, ret, err);
    else if (r == 0 && is_query)
        r = code_run_set_language(params->options, ret, err);
    if (r == 0 && (is_query || *ret->verb == 'i'))
        strbuf_adds(&ret->bytes, code);
    return r;
}

int code_run_ask(struct executor_link *link, const struct code_run *run, int64_t wait_msec,
                 struct aq_error *err)
{
    const int64_t limit_usec = run->api->stream->execution_timeout_usec;
    const struct executor_question question = { .verb = run->verb,
                                                .id = run->id,
                                                .language = run->language,
                                                .wait_msec = wait_msec,
                                                .limit_msec = limit_usec / USEC_PER_MSEC,
                                                .bytes = run->bytes.data,
                                                .len = run->bytes.len };

    return executor_link_ask(link, &question, err);
}

/* ---- answers ---- */

void code_run_write_raw(const json_t *reply, const char *from, const char *to, struct jsonw *w)
{
    const json_t *value = json_object_get(reply, from);
    AQ_CLEANUP(aq_freep) char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY)
                                            : NULL;

    jsonw_key(w, to);
    if (text)
        jsonw_raw(w, text, strlen(text));
    else
        jsonw_null(w);
}

static void code_run_write_console(const json_t *reply, struct jsonw *w)
{
    if (json_is_array(json_object_get(reply, "console"))) {
        code_run_write_raw(reply, "console", "console", w);
        return;
    }
    jsonw_key(w, "console");
    jsonw_array_begin(w);
    jsonw_array_end(w);
}

void code_run_write_result(const json_t *reply, struct jsonw *w)
{
    const char *status = code_run_text(reply, "status");

    jsonw_member_str(w, "status", status ? status : "finished");
    code_run_write_raw(reply, "exit_code", "exitCode", w);
    jsonw_key(w, "options");
    if (status && strcmp(status, "waiting-input") == 0) {
        jsonw_object_begin(w);
        jsonw_member_bool(w, "is_password", json_is_true(json_object_get(reply, "is_password")));
        jsonw_object_end(w);
    } else {
        jsonw_null(w);
    }
    jsonw_key(w, "files");
    jsonw_array_begin(w);
    jsonw_array_end(w);
    code_run_write_console(reply, w);
}

int code_run_check_reply(const json_t *reply, struct aq_error *err)
{
    const char *error = code_run_text(reply, "error");

    return error ? aq_fail_kind(err, EINVAL, "generic-bad-request", "%s", error) : 0;
}

/* ---- events ---- */

static void code_run_on_ended(void *data, int r, const struct aq_error *err)
{
    (void)data;
    (void)r; /* it has ended by itself, or is asked about again */
    (void)err;
}

static void code_run_end_session(const struct code_run *run)
{
    core_announce_execution(run->api->core, &run->session_id, "execution_timeout", run->id, NULL);
    if (run->api->stream->execution_timeout_usec)
        core_terminate_session(run->api->core, &run->session_id, false, REASON_EXEC_TIMEOUT,
                               NULL /* nobody's wish */, code_run_on_ended, NULL);
}

bool code_run_announce(struct code_run *run, const json_t *reply)
{
    const char *status = code_run_text(reply, "status");
    bool is_new = strcmp(run->verb, "run") == 0 || strcmp(run->verb, "batch") == 0;
    bool has_ended = !status || strcmp(status, "finished") == 0;
    bool is_late = status && strcmp(status, "exec-timeout") == 0;
    int exit_code = (int)json_integer_value(json_object_get(reply, "exit_code"));

    if (is_new && !run->is_announced)
        core_announce_execution(run->api->core, &run->session_id, "execution_started", run->id,
                                NULL);
    run->is_announced = true;
    if (has_ended)
        core_announce_execution(run->api->core, &run->session_id, "execution_finished", run->id,
                                &exit_code);
    else if (is_late)
        code_run_end_session(run);
    return has_ended || is_late;
}
