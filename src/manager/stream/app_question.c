/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about an app to the executor of its container. */
#include "manager/stream/app_question.h"

#include <errno.h>
#include <string.h>

#include "base/json_load.h"
#include "manager/session/session.h"
#include "model/service_port.h"

const struct field app_fields[] = {
    { "app|service", FIELD_STR, FIELD_REQUIRED, offsetof(struct app_params, app), 1,
      SERVICE_NAME_MAX },
    { "port", FIELD_INT, FIELD_NULLABLE, offsetof(struct app_params, port), 1, 65535,
      .doc = "of the app; its first if there is none" },
    { "arguments", FIELD_STR, FIELD_NULLABLE, offsetof(struct app_params, arguments), 0,
      APP_GIVEN_MAX,
      .doc = "JSON {ARGUMENT: TEXT, [TEXT...] or null}, which its definition allows" },
    { "envs", FIELD_STR, FIELD_NULLABLE, offsetof(struct app_params, envs), 0, APP_GIVEN_MAX,
      .doc = "JSON {VARIABLE: TEXT}, which its definition allows" },
    APP_HALF_CLOSE_FIELD,
    { "login_session_token", FIELD_IGNORED },
    OWNER_FIELD(struct app_params, owner_access_key),
    KERNEL_FIELD(struct app_params, kernel),
    FIELD_END,
};

/* The text of an object as a member; nothing of NULL, "" and null. */
static int app_question_add(struct jsonw *w, const char *name, const char *text,
                            struct aq_error *err)
{
    json_auto_t *given = NULL;
    AQ_CLEANUP(aq_freep) char *clean = NULL;

    if (!text || !*text)
        return 0;
    if (decode_json(text, strlen(text), &given, err) < 0)
        return api_fail_param(err, name, "must be the JSON text of an object");
    if (json_is_null(given))
        return 0;
    if (!json_is_object(given))
        return api_fail_param(err, name, "must be the JSON text of an object");
    clean = json_dump_text(given, JSON_COMPACT);
    jsonw_key(w, name);
    jsonw_raw(w, clean, strlen(clean));
    return 0;
}

int app_question_write(const struct app_params *params, struct strbuf *out, struct aq_error *err)
{
    struct jsonw w = jsonw_make(out);
    int r = apps_check_name(params->app, err);

    jsonw_object_begin(&w);
    jsonw_member_int(&w, "port", params->port);
    if (r == 0)
        r = app_question_add(&w, "envs", params->envs, err);
    if (r == 0)
        r = app_question_add(&w, "arguments", params->arguments, err);
    jsonw_object_end(&w);
    return r;
}

int app_question_read(const json_t *answer, const char *app, uint16_t *ret, struct aq_error *err)
{
    const char *kind = json_string_value(json_object_get(answer, "kind"));
    const char *text = json_string_value(json_object_get(answer, "error"));
    json_int_t port = json_integer_value(json_object_get(answer, "port"));

    *ret = port > 0 && port <= UINT16_MAX ? (uint16_t)port : 0;
    if (!text)
        return 0;
    if (kind && strcmp(kind, "no-such-app") == 0)
        return problem_no_such(err, "app service", "'%s': %s", app, text);
    if (kind && strcmp(kind, "not-allowed") == 0)
        return aq_fail_kind(err, EINVAL, "generic-bad-request", "%s", text);
    return aq_fail_kind(err, EAGAIN, "app-failed", "%s", text);
}
