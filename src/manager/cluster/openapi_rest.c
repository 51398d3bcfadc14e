/* SPDX-License-Identifier: Apache-2.0 */
/* GET /spec/openapi: all routes as an OpenAPI 3.1 document.
 *
 * The document is written from the route tables that requests are matched with, and from the
 * field tables that their parameters are decoded by. Both are constant, so it is written once.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "manager/cluster/cluster_feature.h"
#include "manager/call/field_schema.h"
#include "manager/call/repeat.h"

#define OWN_PREFIX "/aliquot/v1/"
#define OPENAPI_PIECE 65536 /* bytes */

/* ---- parameters ---- */

/* A GET or DELETE is described with a query, although its parameters may be a JSON body, too. */
static bool openapi_takes_body(const struct route *route)
{
    return route->method != METHOD_GET && route->method != METHOD_HEAD
           && route->method != METHOD_DELETE;
}

static void openapi_begin_parameter(const char *name, size_t len, const char *in, bool is_required,
                                    struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_key(w, "name");
    jsonw_strn(w, name, len);
    jsonw_member_str(w, "in", in);
    jsonw_member_bool(w, "required", is_required);
}

static void openapi_write_path_parameters(const char *path, struct jsonw *w)
{
    static const char schema[] = "{\"type\":\"string\",\"minLength\":1}";

    for (const char *name = strchr(path, '{'); name; name = strchr(name, '{')) {
        size_t len = strcspn(++name, "}");

        openapi_begin_parameter(name, len, "path", true, w);
        jsonw_key(w, "schema");
        jsonw_raw(w, schema, sizeof(schema) - 1);
        jsonw_object_end(w);
    }
}

static void openapi_write_query(const struct field *table, struct jsonw *w)
{
    for (const struct field *field = table; field && field->names; field++) {
        openapi_begin_parameter(field->names, strcspn(field->names, "|"), "query",
                                field_schema_is_required(field), w);
        field_schema_write_notes(field, w);
        jsonw_key(w, "schema");
        field_schema_write_value(field, w);
        jsonw_object_end(w);
    }
}

static void openapi_write_idempotency_key(struct jsonw *w)
{
    static const char name[] = "Idempotency-Key";

    openapi_begin_parameter(name, sizeof(name) - 1, "header", false, w);
    jsonw_member_str(
        w, "description",
        "identifies the request: a repetition with the same key gets the first reply and creates nothing");
    jsonw_key(w, "schema");
    jsonw_object_begin(w);
    jsonw_member_str(w, "type", "string");
    jsonw_member_int(w, "minLength", 1);
    jsonw_member_int(w, "maxLength", REPEAT_KEY_MAX);
    jsonw_object_end(w);
    jsonw_object_end(w);
}

static void openapi_write_parameters(const struct route *route, struct jsonw *w)
{
    jsonw_key(w, "parameters");
    jsonw_array_begin(w);
    openapi_write_path_parameters(route->path, w);
    if (!openapi_takes_body(route) || route->flags & ROUTE_STREAM_BODY)
        openapi_write_query(route->body, w);
    if (route->role & API_ANSWERED_ONCE)
        openapi_write_idempotency_key(w);
    jsonw_array_end(w);
}

/* ---- bodies ---- */

/* "content" with each of the media types "a|b". */
static void openapi_write_content(const char *types, struct jsonw *w)
{
    size_t len;

    jsonw_key(w, "content");
    jsonw_object_begin(w);
    for (const char *type = types; *type; type += len + (type[len] == '|')) {
        len = strcspn(type, "|");
        jsonw_keyn(w, type, len);
        jsonw_object_begin(w);
        jsonw_object_end(w);
    }
    jsonw_object_end(w);
}

/* An object of the route's fields, or where the route takes one, a list of them. */
static void openapi_write_json_body(const struct route *route, struct jsonw *w)
{
    if (!route->list_max) {
        field_schema_write_object(route->body, w);
        return;
    }
    jsonw_object_begin(w);
    jsonw_key(w, "anyOf");
    jsonw_array_begin(w);
    field_schema_write_object(route->body, w);
    jsonw_object_begin(w);
    jsonw_member_str(w, "type", "array");
    jsonw_member_int(w, "minItems", 1);
    jsonw_member_int(w, "maxItems", route->list_max);
    jsonw_key(w, "items");
    field_schema_write_object(route->body, w);
    jsonw_object_end(w);
    jsonw_array_end(w);
    jsonw_object_end(w);
}

static bool openapi_has_required(const struct field *table)
{
    for (; table->names; table++)
        if (field_schema_is_required(table))
            return true;
    return false;
}

static void openapi_write_body(const struct route *route, struct jsonw *w)
{
    bool is_stream = route->flags & ROUTE_STREAM_BODY;

    if (!openapi_takes_body(route) || (!route->body && !is_stream))
        return;
    jsonw_key(w, "requestBody");
    jsonw_object_begin(w);
    jsonw_member_bool(w, "required", is_stream || openapi_has_required(route->body));
    if (is_stream) {
        openapi_write_content(route->body_types, w);
    } else {
        jsonw_key(w, "content");
        jsonw_object_begin(w);
        jsonw_key(w, "application/json");
        jsonw_object_begin(w);
        jsonw_key(w, "schema");
        openapi_write_json_body(route, w);
        jsonw_object_end(w);
        jsonw_object_end(w);
    }
    jsonw_object_end(w);
}

/* ---- answers ---- */

/* Errors that the guard and the decoder answer with, before a handler runs. */
static const struct {
    int status;
    const char *name, *text;
} openapi_errors[] = {
    { 400, "BadRequest", "A parameter is missing, unknown or has a wrong value: `data` names it." },
    { 401, "Unauthorized", "The signature is missing or wrong, or the caller may not do this." },
    { 404, "NotFound",
      "An object that the path names does not exist, or the caller may not see it." },
    { 413, "TooLarge", "The body is too large." },
    { 422, "KeyReused", "The Idempotency-Key was used for another request." },
    { 429, "TooMany", "The caller has sent too many requests, or has too many under way." },
    { 503, "Frozen", "The manager is frozen by an administrator, or its database is away." },
};

static bool openapi_may_fail(const struct route *route, int status)
{
    switch (status) {
    case 401:
        return (route->role & API_ROLE_MASK) != API_PUBLIC;
    case 404:
        return strchr(route->path, '{');
    case 413:
        return openapi_takes_body(route);
    case 422:
        return route->role & API_ANSWERED_ONCE;
    case 503:
        return route->role & API_FREEZABLE;
    default:
        return true;
    }
}

static void openapi_write_reference(const char *key, const char *response, struct jsonw *w)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    strbuf_addf(&path, "#/components/responses/%s", response);
    jsonw_key(w, key);
    jsonw_object_begin(w);
    jsonw_member_str(w, "$ref", path.data);
    jsonw_object_end(w);
}

static void openapi_write_success(const struct route *route, int status, struct jsonw *w)
{
    const char *types = route->answer.types ? route->answer.types : "application/json";
    char code[12];

    (void)snprintf(code, sizeof(code), "%d", status);
    jsonw_key(w, code);
    jsonw_object_begin(w);
    jsonw_member_str(w, "description", status == 101 ? "A WebSocket" : status_text(status));
    if (status != 101 && status != 204 && *types)
        openapi_write_content(types, w);
    jsonw_object_end(w);
}

static void openapi_write_responses(const struct route *route, struct jsonw *w)
{
    char code[12];

    jsonw_key(w, "responses");
    jsonw_object_begin(w);
    if (route->answer.status != ROUTE_REFUSED)
        openapi_write_success(route, route->answer.status ? route->answer.status : 200, w);
    if (route->answer.other)
        openapi_write_success(route, route->answer.other, w);
    for (size_t i = 0; i < AQ_COUNT(openapi_errors); i++) {
        if (!openapi_may_fail(route, openapi_errors[i].status))
            continue;
        (void)snprintf(code, sizeof(code), "%d", openapi_errors[i].status);
        openapi_write_reference(code, openapi_errors[i].name, w);
    }
    openapi_write_reference("default", "Problem", w);
    jsonw_object_end(w);
}

/* ---- operations ---- */

/* "get_session_name_logs" for GET /session/{name}/logs. */
static void openapi_write_id(const struct route *route, struct jsonw *w)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf id = STRBUF_INIT;
    size_t len;

    for (const char *c = method_name(route->method); *c; c++)
        strbuf_addc(&id, (char)tolower((unsigned char)*c));
    for (const char *segment = route->path; *segment; segment += len) {
        bool is_parameter = *++segment == '{';

        len = strcspn(segment, "/");
        if (len == 0 || (len == 1 && *segment == '_'))
            continue;
        strbuf_addc(&id, '_');
        strbuf_add(&id, segment + is_parameter, len - 2u * is_parameter);
    }
    jsonw_member_str(w, "operationId", id.data);
}

/* The beginning that routes for the same things share: "/session", "/aliquot/v1/sessions". */
static void openapi_write_tags(const char *path, struct jsonw *w)
{
    size_t prefix = strncmp(path, OWN_PREFIX, sizeof(OWN_PREFIX) - 1) ? 1 : sizeof(OWN_PREFIX) - 1;

    jsonw_key(w, "tags");
    jsonw_array_begin(w);
    jsonw_strn(w, path, prefix + strcspn(path + prefix, "/"));
    jsonw_array_end(w);
}

static void openapi_write_access(const struct route *route, struct jsonw *w)
{
    static const char *const texts[] = {
        [API_PUBLIC] = "For anyone, without a signature.",
        [API_USER] = "For users.",
        [API_ADMIN] = "For administrators, in their own domain.",
        [API_SUPERADMIN] = "For superadmins.",
    };
    int role = route->role & API_ROLE_MASK;

    jsonw_member_str(w, "description", texts[role]);
    jsonw_member_str(w, "x-access", api_role_name(role));
    if (role != API_PUBLIC)
        return;
    jsonw_key(w, "security");
    jsonw_array_begin(w);
    jsonw_array_end(w);
}

static void openapi_write_operation(const struct route *route, struct jsonw *w)
{
    char method[12] = "";

    for (size_t i = 0; i + 1 < sizeof(method) && method_name(route->method)[i]; i++)
        method[i] = (char)tolower((unsigned char)method_name(route->method)[i]);
    jsonw_key(w, method);
    jsonw_object_begin(w);
    openapi_write_id(route, w);
    jsonw_member_str(w, "summary", route->doc);
    openapi_write_tags(route->path, w);
    openapi_write_access(route, w);
    if (route->answer.status == ROUTE_REFUSED)
        jsonw_member_bool(w, "deprecated", true);
    openapi_write_parameters(route, w);
    openapi_write_body(route, w);
    openapi_write_responses(route, w);
    jsonw_object_end(w);
}

/* ---- the document ---- */

static void openapi_write_problem(const char *name, const char *text, struct jsonw *w)
{
    static const char content[] = "{\"application/problem+json\":{\"schema\":"
                                  "{\"$ref\":\"#/components/schemas/Problem\"}}}";

    jsonw_key(w, name);
    jsonw_object_begin(w);
    jsonw_member_str(w, "description", text);
    jsonw_key(w, "content");
    jsonw_raw(w, content, sizeof(content) - 1);
    jsonw_object_end(w);
}

static void openapi_write_components(struct jsonw *w)
{
    static const char schemas[] =
        "{\"Problem\":{\"type\":\"object\",\"description\":\"An error as a problem document (RFC 9457)\","
        "\"required\":[\"type\",\"title\",\"error_code\"],\"properties\":{"
        "\"type\":{\"type\":\"string\",\"format\":\"uri\"},\"title\":{\"type\":\"string\"},"
        "\"error_code\":{\"type\":\"string\"},"
        "\"msg\":{\"type\":\"string\",\"description\":\"what failed, with the wrong value and "
        "the remedy\"},\"data\":{\"description\":\"for 400, an object of the wrong parameters and what is "
        "wrong with each\"}}}}";
    static const char security[] =
        "{\"signature\":{\"type\":\"http\",\"scheme\":\"BackendAI\",\"description\":"
        "\"`Authorization: BackendAI signMethod=HMAC-SHA256, credential=ACCESS_KEY:SIGNATURE`, "
        "with the headers `Date` and `X-BackendAI-Version`. The signature is the hexadecimal "
        "HMAC-SHA256, by the key HMAC(HMAC(secret key, date as YYYYMMDD), Host), of seven lines: "
        "method, path with query, date, `host:` and Host, `content-type:` and the media type, "
        "`x-backendai-version:` and the version, and the SHA-256 of nothing.\"}}";

    jsonw_key(w, "components");
    jsonw_object_begin(w);
    jsonw_key(w, "schemas");
    jsonw_raw(w, schemas, sizeof(schemas) - 1);
    jsonw_key(w, "securitySchemes");
    jsonw_raw(w, security, sizeof(security) - 1);
    jsonw_key(w, "responses");
    jsonw_object_begin(w);
    for (size_t i = 0; i < AQ_COUNT(openapi_errors); i++)
        openapi_write_problem(openapi_errors[i].name, openapi_errors[i].text, w);
    openapi_write_problem("Problem", "Another error.", w);
    jsonw_object_end(w);
    jsonw_object_end(w);
}

static void openapi_write_head(struct jsonw *w)
{
    static const char security[] = "[{\"signature\":[]}]";
    static const char info[] =
        "{\"title\":\"Aliquot manager\",\"version\":\"" ALIQUOT_VERSION "\",\"license\":"
        "{\"name\":\"Apache License 2.0\",\"identifier\":\"Apache-2.0\"},\"description\":"
        "\"Backend.AI's REST protocol at its usual paths, and Aliquot's own routes below "
        "`/aliquot/v1/`. Parameters are read from the JSON body, or from the query if there is no "
        "body. `x-aliases` are further names of a parameter, which older clients use. "
        "`/kernel/...` stands for `/session/...`.\"}";

    jsonw_member_str(w, "openapi", "3.1.0");
    jsonw_key(w, "info");
    jsonw_raw(w, info, sizeof(info) - 1);
    jsonw_key(w, "security");
    jsonw_raw(w, security, sizeof(security) - 1);
}

/* Routes are sorted by their paths. */
static void openapi_write_paths(const struct router *router, struct jsonw *w)
{
    size_t count;
    const struct route *const *routes = router_list(router, &count);

    jsonw_key(w, "paths");
    jsonw_object_begin(w);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(routes[i - 1]->path, routes[i]->path)) {
            jsonw_key(w, routes[i]->path);
            jsonw_object_begin(w);
        }
        openapi_write_operation(routes[i], w);
        if (i + 1 == count || strcmp(routes[i]->path, routes[i + 1]->path))
            jsonw_object_end(w);
    }
    jsonw_object_end(w);
}

static void openapi_write(const struct router *router, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    openapi_write_head(&w);
    openapi_write_paths(router, &w);
    openapi_write_components(&w);
    jsonw_object_end(&w);
}

/* ---- the answer ---- */

/* Pieces are sent from the one document as the client reads, so an unread answer holds a piece. */
struct openapi_reply {
    const char *next;
    size_t left;
};

static void openapi_on_gone(struct request *req, void *data)
{
    (void)data;
    request_abort(req);
}

static void openapi_send(struct request *req, void *data)
{
    struct openapi_reply *reply = data;
    int r = 0;

    while (r == 0 && reply->left && !request_get_queued(req)) {
        size_t len = AQ_MIN(reply->left, OPENAPI_PIECE);

        r = request_write(req, reply->next, len);
        reply->next += len;
        reply->left -= len;
    }
    if (r == 0 && reply->left)
        return;
    request_set_gone(req, NULL, NULL);
    if (r < 0)
        request_abort(req);
    else
        request_end(req);
}

static void openapi_on_request(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct openapi_reply *reply;
    struct api *api = data;

    if (!api_has_no_params(req))
        return;
    if (!api->cluster->openapi) {
        openapi_write(api->router, &out);
        api->cluster->openapi = strbuf_steal(&out);
    }
    reply = arena_alloc(request_get_arena(req), sizeof(*reply));
    *reply = (struct openapi_reply){ api->cluster->openapi, strlen(api->cluster->openapi) };
    request_begin_sized(req, 200, "application/json", reply->left, openapi_send, reply);
    request_set_gone(req, openapi_on_gone, NULL);
    openapi_send(req, reply);
}

static const struct route openapi_routes[] = {
    { METHOD_GET, "/spec/openapi", API_PUBLIC, openapi_on_request, NULL,
      "All routes as an OpenAPI 3.1 document" },
    { METHOD_GET, "/spec/openapi/spec.json", API_PUBLIC, openapi_on_request, NULL,
      "All routes as an OpenAPI 3.1 document, where Backend.AI's manager has it" },
};
API_ROUTES_END(openapi);
