/* SPDX-License-Identifier: Apache-2.0 */
/* Decode a request's parameters, and write its answer. */
#include "manager/call/api.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"

static const struct field no_fields[] = { FIELD_END };

bool api_may_have_body(const struct request *req)
{
    static const char json[] = "application/json";
    enum method method = request_get_method(req);
    const char *type = request_get_header(req, "Content-Type");

    return (method != METHOD_GET && method != METHOD_HEAD)
           || (type && strncasecmp(type, json, sizeof(json) - 1) == 0);
}

int api_parse(struct request *req, json_t **ret, struct aq_error *err)
{
    const char *body;
    size_t len;

    body = request_get_body(req, &len);
    if (len && !api_may_have_body(req))
        return aq_fail_kind(err, EINVAL, "invalid-api-params",
                            "the body of a GET needs 'Content-Type: application/json'");
    if (len)
        return decode_json(body, len, ret, err);
    *ret = decode_query(request_get_queries(req));
    return 0;
}

int api_decode(struct request *req, void *target, json_t **ret_tree, struct aq_error *err)
{
    const struct field *table = request_get_route(req)->body;
    json_auto_t *tree = NULL;
    char nothing;
    int r;

    if ((r = api_parse(req, &tree, err)) < 0
        || (r = decode_object(table ? table : no_fields, tree, request_get_arena(req),
                              target ? target : &nothing, err))
               < 0)
        return r;
    if (ret_tree)
        *ret_tree = AQ_TAKE(tree);
    return 0;
}

bool api_has_no_params(struct request *req)
{
    struct aq_error err = { 0 };

    if (api_decode(req, NULL, NULL, &err) == 0)
        return true;
    request_fail(req, &err);
    return false;
}

int api_fail_param(struct aq_error *err, const char *field, const char *fmt, ...)
{
    char text[sizeof(err->text)];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    aq_fail_field(err, EINVAL, field, "%s", text);
    if (err)
        err->kind = "invalid-api-params";
    return -EINVAL;
}

void api_reply_done(void *req, int r, const struct aq_error *err)
{
    if (r < 0)
        request_fail(req, err);
    else
        request_reply_empty(req, 204);
}

void api_write_time(struct jsonw *w, const char *key, int64_t usec)
{
    char iso[CLOCK_ISO_MAX];

    jsonw_member_str(w, key, usec ? clock_format_iso(usec, iso) : NULL);
}

void api_write_raw(struct jsonw *w, const char *key, const char *json)
{
    jsonw_key(w, key);
    if (json && *json)
        jsonw_raw(w, json, strlen(json));
    else
        jsonw_null(w);
}

void api_write_mistake(struct strbuf *out, const struct aq_error *err)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "type", "error");
    jsonw_member_str(&w, "field", err->field);
    jsonw_member_str(&w, "message", err->text);
    jsonw_object_end(&w);
}

void api_write_uuid(struct jsonw *w, const char *key, const struct uuid *id)
{
    char text[UUID_TEXT_MAX];

    jsonw_member_str(w, key, uuid_is_nil(id) ? NULL : uuid_format(id, text));
}

void api_say_login_ended(struct request *req)
{
    request_add_header(req, WEB_ENDED_HEADER, "1");
}
