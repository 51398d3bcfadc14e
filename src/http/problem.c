/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as problem documents. */
#include "http/problem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"

/* Sorted by slug (test_text.c checks). Most are Backend.AI's; those for
 * what HTTP itself refuses (414, 431, ...) are ours.
 */
static const struct problem_type types[] = {
    { "app-failed", 503, "Failed to launch the app service.", "session_execute_app-failed" },
    { "auth-failed", 401, "Credential/signature mismatch.", "user_auth_unauthorized" },
    { "bad-gateway", 502, "Bad gateway.", "api_generic_bad-gateway" },
    { "conflict", 409, "Another request changes the same.", "api_update_conflict" },
    { "database-away", 503, "The database server is away.", "api_generic_unavailable" },
    { "disk-full", 507, "The disk of the session is full.", "session_write_disk-full" },
    { "expectation-failed", 417, "Unsupported expectation.", "api_parsing_invalid-parameters" },
    { "generic-bad-request", 400, "Bad request.", "backendai_generic_bad-request" },
    { "generic-forbidden", 403, "Forbidden operation.", "backendai_generic_forbidden" },
    { "graphql-error", 400, "GraphQL-generated error.", "api_parsing_invalid-parameters" },
    { "head-too-large", 431, "Request header fields too large.", "api_parsing_too-large" },
    { "host-network-forbidden", 403, "The host network is not allowed.",
      "session_create_forbidden" },
    { "http-version-not-supported", 505, "Unsupported HTTP version.", "api_parsing_not-supported" },
    { "idempotency-key-reused", 422, "The Idempotency-Key was used for another request.",
      "api_parsing_mismatch" },
    { "instance-not-available", 503, "There is no available instance.",
      "instance_access_unavailable" },
    { "insufficient-privilege", 403, "Insufficient privilege.", "user_auth_forbidden" },
    { "internal-server-error", 500, "Internal server error.", "backendai_generic_internal-error" },
    { "invalid-api-params", 400, "Missing or invalid API parameters.",
      "api_generic_invalid-parameters" },
    { "invalid-auth-params", 400, "Missing or invalid authorization parameters.",
      "user_auth_invalid-parameters" },
    { "invalid-credentials", 400, "Authentication credentials not valid.",
      "user_auth_invalid-parameters" },
    { "kernel-creation-failed", 500, "Kernel creation has failed.",
      "kernel_create_internal-error" },
    { "kernel-destruction-failed", 500, "Kernel destruction has failed.",
      "kernel_soft-delete_internal-error" },
    { "kernel-execution-failed", 500, "Executing user code in the kernel has failed.",
      "kernel_execute_internal-error" },
    { "kernel-restart-failed", 500, "Kernel restart has failed.", "kernel_start_internal-error" },
    { "method-not-allowed", 405, "HTTP method not allowed.", "api_access_forbidden" },
    { "not-implemented", 503, "This API is not implemented.", "api_generic_not-implemented" },
    { "notification-failed", 502, "The notification was not delivered.",
      "notification_execute_delivery-failed" },
    { "object-not-found", 404, "No such object.", "backendai_read_not-found" },
    { "password-expired", 401, "Password has expired.", "user_auth_data-expired" },
    { "quota-exceeded", 412, "You have reached your resource limit.",
      "session_create_unavailable" },
    { "rate-limit-exceeded", 429, "You have reached your API query rate limit.",
      "api_access_unavailable" },
    { "rejected-by-hook", 400, "Operation rejected by a hook plugin.", "plugin_hook_forbidden" },
    { "request-timeout", 408, "The request took too long.", "api_parsing_timeout" },
    { "request-too-large", 413, "Request body too large.", "api_parsing_too-large" },
    { "reservation-already-exists", 409, "A reservation already has this name.",
      "reservation_create_already-exists" },
    { "reservation-does-not-fit", 409, "The reservation does not fit.",
      "reservation_create_conflict" },
    { "server-frozen", 503, "The server is frozen due to maintenance.", "api_access_unavailable" },
    { "server-misconfigured", 500, "The server is misconfigured.",
      "backendai_setup_internal-error" },
    { "service-already-exists", 409, "A model service already has this name.",
      "model-service_create_already-exists" },
    { "service-unavailable", 503, "Service unavailable.", "backendai_generic_unavailable" },
    { "session-already-exists", 400,
      "The session already exists but you requested not to reuse it.",
      "session_create_already-exists" },
    { "session-ended", 410, "The session has ended.", "session_read_ended" },
    { "session-not-ended", 409, "The session has not ended.", "session_create_conflict" },
    { "session-not-repeatable", 409, "The session cannot be repeated.", "session_create_conflict" },
    { "session-type-lacks-feature", 403, "Sessions of this type have no such feature.",
      "session_access_forbidden" },
    { "storage-proxy-error", 502, "The storage proxy returned an error.",
      "storage_request_bad-gateway" },
    { "too-many-kernels", 404, "There are two or more matching kernels.", "kernel_read_conflict" },
    { "too-many-requests", 429, "Too many attempts.", "auth_access_rate-limited" },
    { "too-many-sessions-matched", 404, "Too many sessions matched.", "session_read_conflict" },
    { "too-many-vfolders", 404, "There are two or more matching virtual folders.",
      "vfolder_read_conflict" },
    { "uri-too-long", 414, "Request line too long.", "api_parsing_too-large" },
    { "url-not-found", 404, "Unknown URL path.", "api_read_not-found" },
    { "vfolder-already-exists", 400, "The virtual folder already exists with the same name.",
      "vfolder_create_already-exists" },
    { "vfolder-creation-failed", 400, "Virtual folder creation has failed.",
      "vfolder_create_internal-error" },
    { "vfolder-operation-failed", 400, "Virtual folder operation has failed.",
      "vfolder_generic_internal-error" },
};

/* What an error without a kind is. */
static const struct {
    int code;
    const char *slug;
} codes[] = {
    { EACCES, "generic-forbidden" },      { EPERM, "generic-forbidden" },
    { ENOENT, "object-not-found" },       { EEXIST, "generic-bad-request" },
    { EBADMSG, "generic-bad-request" },   { EPROTO, "generic-bad-request" },
    { EDQUOT, "quota-exceeded" },         { EFBIG, "request-too-large" },
    { EMSGSIZE, "request-too-large" },    { EAGAIN, "service-unavailable" },
    { EBUSY, "service-unavailable" },     { ENOSPC, "service-unavailable" },
    { ETIMEDOUT, "service-unavailable" }, { ESTALE, "service-unavailable" },
    { EHOSTDOWN, "database-away" },       { EOWNERDEAD, "service-unavailable" },
    { EALREADY, "service-unavailable" },  { ENOSYS, "not-implemented" },
    { ENOTSUP, "not-implemented" },       { ENOTCONN, "service-unavailable" },
    { EROFS, "service-unavailable" },
};

const struct problem_type *problem_find(const char *slug)
{
    size_t low = 0, high = AQ_COUNT(types);

    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = strcmp(slug, types[mid].slug);

        if (!order)
            return &types[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

const struct problem_type *problem_of(const struct aq_error *err)
{
    const struct problem_type *type = err->kind ? problem_find(err->kind) : NULL;

    if (type)
        return type;
    if (err->code == EINVAL || err->code == ERANGE || err->code == E2BIG)
        return problem_find(err->field[0] ? "invalid-api-params" : "generic-bad-request");
    for (size_t i = 0; i < AQ_COUNT(codes); i++)
        if (err->code == codes[i].code)
            return problem_find(codes[i].slug);
    return problem_find("internal-server-error");
}

static bool problem_is_type(const struct problem_type *type, const char *slug)
{
    return !strcmp(type->slug, slug);
}

static void problem_write_title(struct jsonw *w, const struct problem_type *type,
                                const struct aq_error *err)
{
    char title[sizeof(err->field) + 16];

    if (problem_is_type(type, "object-not-found") && err->field[0]) {
        (void)snprintf(title, sizeof(title), "No such %s.", err->field);
        jsonw_member_str(w, "title", title);
    } else if (strcmp(err->field, PROBLEM_FIELD_ROLE) == 0) {
        jsonw_member_str(w, "title", PROBLEM_TITLE_ROLE);
    } else {
        jsonw_member_str(w, "title", type->title);
    }
}

void problem_write(struct strbuf *out, const struct aq_error *err, const char *data)
{
    const struct problem_type *type = problem_of(err);
    bool by_field = problem_is_type(type, "invalid-api-params") && err->field[0] && !data;
    struct jsonw w = jsonw_make(out);
    char url[96];

    jsonw_object_begin(&w);
    (void)snprintf(url, sizeof(url), "https://api.backend.ai/probs/%s", type->slug);
    jsonw_member_str(&w, "type", url);
    problem_write_title(&w, type, err);
    if (by_field)
        jsonw_member_str(&w, "msg", "Input validation error");
    else if (problem_is_type(type, "internal-server-error"))
        jsonw_member_str(&w, "msg", "The server's log says more.");
    else if (problem_is_type(type, "database-away")) /* where it is concerns administrators */
        jsonw_member_str(&w, "msg", "the database cannot be reached; ask again later");
    else if (err->text[0])
        jsonw_member_str(&w, "msg", err->text);
    if (by_field) {
        jsonw_key(&w, "data");
        jsonw_object_begin(&w);
        jsonw_member_str(&w, err->field, err->text);
        jsonw_object_end(&w);
    } else if (data) {
        jsonw_key(&w, "data");
        jsonw_raw(&w, data, strlen(data));
    }
    jsonw_member_str(&w, "error_code", type->error_code);
    jsonw_object_end(&w);
}

int problem_no_such(struct aq_error *err, const char *object, const char *fmt, ...)
{
    va_list args;

    if (!err)
        return -ENOENT;
    va_start(args, fmt);
    err->code = ENOENT;
    err->kind = "object-not-found";
    (void)snprintf(err->field, sizeof(err->field), "%s", object);
    (void)vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
    return -ENOENT;
}
