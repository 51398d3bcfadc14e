/* SPDX-License-Identifier: Apache-2.0 */
/* What the manager answers when it refuses: problem documents into errors. */
#include <errno.h>
#include <string.h>

#include "cli/client.h"
#include "http/problem.h"

static int client_error_code(int status, const char *slug)
{
    if (slug && strstr(slug, "already-exists"))
        return EEXIST;
    switch (status) {
    case 401:
    case 403:
        return EACCES;
    case 404:
        return ENOENT;
    case 409:
        return EEXIST;
    case 412:
        return EDQUOT;
    case 429:
        return EBUSY;
    case 502:
    case 503:
        return EAGAIN;
    case 504:
        return ETIMEDOUT;
    default:
        return status >= 400 && status < 500 ? EINVAL : EIO;
    }
}

/* "name: is required; mem: ..." of {"name": "is required"}. */
static void client_error_describe_fields(const json_t *data, struct strbuf *out)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)data, key, value) {
        if (json_is_string(value))
            strbuf_addf(out, "%s%s: %s", out->len ? "; " : "", key, json_string_value(value));
    }
}

int cli_fail_status(int status, const char *body, size_t len, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf fields = STRBUF_INIT;
    json_t *problem = json_loadb(body, len, 0, NULL);
    const char *type = json_string_value(json_object_get(problem, "type"));
    const char *slug = type ? strrchr(type, '/') : NULL;
    const char *title = json_string_value(json_object_get(problem, "title"));
    const char *msg = json_string_value(json_object_get(problem, "msg"));
    const struct problem_type *known = slug ? problem_find(slug + 1) : NULL;
    const json_t *data = json_object_get(problem, "data");
    int code = client_error_code(status, slug);

    if (known && strcmp(known->slug, "invalid-api-params") == 0)
        client_error_describe_fields(data, &fields);
    if (fields.len)
        aq_fail(err, code, "%s", fields.data);
    else if (msg && known && strcmp(known->slug, "object-not-found") == 0)
        aq_fail(err, code, "%s", msg); /* the title says the same in fewer words */
    else if (title && msg)
        aq_fail(err, code, "%s (%s)", msg, title);
    else if (title || msg)
        aq_fail(err, code, "%s", title ? title : msg);
    else
        aq_fail(err, code, "the manager answered with status %d %s", status, status_text(status));
    if (err)
        err->kind = known ? known->slug : NULL;
    json_decref(problem);
    return -code;
}
