/* SPDX-License-Identifier: Apache-2.0 */
/* /aliquot/v1/images: which images are on which nodes; pull, remove and collect there. */
#include <errno.h>
#include <string.h>

#include "base/json_load.h"
#include "http/sse.h"
#include "manager/image/image_feature.h"
#include "manager/image/image_aliases.h"
#include "manager/image/image_limits.h"
#include "manager/call/list.h"
#include "manager/image/image_inventory.h"
#include "model/reference.h"

#define AGENTS_MAX 1000

/* ---- list ---- */

struct image_list_params {
    const char *agent, *image;
    int64_t limit, offset;
};

static const struct field list_fields[] = {
    { "agent|agent_id", FIELD_STR, FIELD_NULLABLE, offsetof(struct image_list_params, agent), 1,
      AGENT_ID_MAX, .doc = "only those of this agent" },
    { "image", FIELD_STR, FIELD_NULLABLE, offsetof(struct image_list_params, image), 1,
      REFERENCE_MAX, .doc = "only that of this name or alias, with its resource_limits" },
    { "limit", FIELD_INT, 0, offsetof(struct image_list_params, limit), 1, API_LIST_MAX },
    { "offset", FIELD_INT, 0, offsetof(struct image_list_params, offset), 0, INT64_C(1000000000) },
    FIELD_END,
};

static void image_write_rows(struct jsonw *w, const json_t *rows,
                             const struct image_list_params *params)
{
    jsonw_key(w, "items");
    jsonw_array_begin(w);
    for (int64_t i = params->offset;
         i < params->offset + params->limit && i < (int64_t)json_array_size(rows); i++) {
        char *text = json_dump_text(json_array_get(rows, (size_t)i), JSON_COMPACT);

        jsonw_raw(w, text, strlen(text));
        free(text);
    }
    jsonw_array_end(w);
    jsonw_member_int(w, "total", (int64_t)json_array_size(rows));
}

static bool image_has_name(const json_t *row, const char *canonical)
{
    bool found = false;
    size_t i;
    json_t *name;

    json_array_foreach(json_object_get(row, "names"), i, name) {
        struct reference ref;

        if (found || reference_parse(json_string_value(name), NULL, &ref, NULL) < 0)
            continue;
        found = strcmp(ref.text, canonical) == 0;
        reference_done(&ref);
    }
    return found;
}

/* Those that have the name, with what holds for it. */
static int image_choose(const struct api *api, const char *image, json_t **rows,
                        struct aq_error *err)
{
    json_t *chosen, *row;
    struct aq_error why = { 0 };
    struct reference ref;
    int r = reference_parse(image_aliases_resolve(api, image), NULL, &ref, &why);
    size_t i;

    if (r < 0)
        return api_fail_param(err, "image", "%s", why.text);
    chosen = json_array();
    json_array_foreach(*rows, i, row) {
        if (!image_has_name(row, ref.text))
            continue;
        (void)json_object_set_new(
            row, "resource_limits",
            image_limits_shown(api, ref.text, json_object_get(row, "labels")));
        (void)json_array_append(chosen, row);
    }
    reference_done(&ref);
    json_decref(*rows);
    *rows = chosen;
    return 0;
}

static void image_on_list(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct image_list_params params = { .limit = API_LIST_DEFAULT };
    struct api *api = data;
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };
    json_auto_t *rows = NULL;

    if (api_decode(req, &params, NULL, &err) == 0) {
        rows = image_inventory(api, params.agent);
        if (params.image)
            (void)image_choose(api, params.image, &rows, &err);
    }
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    jsonw_object_begin(&w);
    image_write_rows(&w, rows, &params);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

/* ---- pull, remove, collect: an event stream, one job for each agent ---- */

struct order_params {
    const char *image;
    struct str_list agents;
    bool always, all;
};

struct image_orders {
    struct api *api;
    struct request *req;
    size_t waiting, count;
    bool is_over;
    struct order_job {
        struct image_orders *orders;
        struct core_image_job *job; /* NULL = ended */
    } * jobs;
};

static void image_commands_end(struct image_orders *orders)
{
    if (orders->is_over)
        return;
    orders->is_over = true;
    request_set_gone(orders->req, NULL, NULL);
    for (size_t i = 0; i < orders->count; i++)
        core_cancel_image(orders->api->core, AQ_TAKE(orders->jobs[i].job));
    request_end(orders->req); /* it is in its arena */
}

static void image_on_gone(struct request *req, void *data)
{
    (void)req;
    image_commands_end(data);
}

static int image_send_status(struct image_orders *orders, const struct core_image_status *status)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "agent", status->agent_id);
    jsonw_member_str(&w, "image", status->image);
    jsonw_member_str(&w, "state", status->state);
    jsonw_member_int(&w, "done_bytes", status->done_bytes);
    jsonw_member_int(&w, "total_bytes", status->total_bytes);
    jsonw_member_int(&w, "freed_bytes", status->freed_bytes);
    jsonw_member_str(&w, "digest", status->digest);
    jsonw_member_str(&w, "error_kind", status->error_kind);
    jsonw_member_str(&w, "error", status->error_text);
    jsonw_object_end(&w);
    return sse_send(orders->req, "image", NULL, out.data, out.len);
}

static void image_on_status(void *data, const struct core_image_status *status)
{
    struct order_job *job = data;
    struct image_orders *orders = job->orders;

    if (status->is_final) {
        job->job = NULL;
        orders->waiting--;
    }
    if (image_send_status(orders, status) < 0) {
        image_commands_end(orders); /* gone, or too slow to be kept */
        return;
    }
    if (orders->waiting == 0) {
        (void)sse_send(orders->req, "server_close", NULL, "{}", 2);
        image_commands_end(orders);
    }
}

/* An agent that cannot be asked is told of like one that failed. */
static void image_start_on_agent(struct image_orders *orders, const char *agent_id,
                                 const struct msg_image_command *order)
{
    struct order_job *job = &orders->jobs[orders->count++];
    struct msg_image_command copy = *order;
    struct aq_error err = { 0 };
    const struct core_image_status failed = {
        .agent_id = agent_id,
        .image = order->image ? order->image : "",
        .state = "failed",
        .error_kind = "agent-disconnected",
        .error_text = err.text,
    };

    job->orders = orders;
    if (core_command_image(orders->api->core, agent_id, &copy, image_on_status, job, &job->job,
                           &err)
        == 0)
        orders->waiting++;
    else
        (void)image_send_status(orders, &failed);
}

static int image_choose_agents(const struct api *api, struct request *req,
                               const struct order_params *params, struct str_list *ret,
                               struct aq_error *err)
{
    const struct agent *agent;

    for (size_t i = 0; i < params->agents.count; i++)
        if (!core_find_agent(api->core, params->agents.items[i]))
            return problem_no_such(err, "agent instance", "there is no agent '%.64s'",
                                   params->agents.items[i]);
    *ret = params->agents;
    if (params->agents.count)
        return 0;
    ret->items = arena_array(request_get_arena(req), AGENTS_MAX, sizeof(*ret->items));
    for (size_t i = 0; ret->count < AGENTS_MAX && (agent = core_get_agent(api->core, i)); i++)
        if (core_agent_is_connected(api->core, agent->id))
            ret->items[ret->count++] = agent->id;
    if (ret->count == 0)
        return aq_fail_kind(err, ENOTCONN, "service-unavailable", "no agent is connected");
    return 0;
}

static int image_check_name(const char *image, struct aq_error *err)
{
    struct reference ref;
    int r;

    if (digest_is_valid(image))
        return 0;
    r = reference_parse(image, NULL, &ref, err);
    if (r == 0)
        reference_done(&ref);
    return r < 0 ? api_fail_param(err, "image", "%s", err->text) : 0;
}

static void image_start(struct image_orders *orders, const struct str_list *agents,
                        const struct msg_image_command *order)
{
    sse_begin(orders->req, NULL, NULL);
    request_set_gone(orders->req, image_on_gone, orders);
    for (size_t i = 0; i < agents->count; i++)
        image_start_on_agent(orders, agents->items[i], order);
    if (orders->waiting == 0) {
        (void)sse_send(orders->req, "server_close", NULL, "{}", 2);
        image_commands_end(orders);
    }
}

static void image_send_command(struct api *api, struct request *req, const char *action)
{
    struct image_orders *orders = arena_alloc(request_get_arena(req), sizeof(*orders));
    struct order_params params = { .image = NULL };
    struct str_list agents = { NULL, 0 };
    struct msg_image_command msg;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0 && params.image)
        (void)image_check_name(params.image, &err);
    if (!err.code)
        (void)image_choose_agents(api, req, &params, &agents, &err);
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    *orders = (struct image_orders){ .api = api, .req = req };
    orders->jobs = arena_array(request_get_arena(req), agents.count, sizeof(*orders->jobs));
    msg = (struct msg_image_command){ .action = action,
                                      .image = params.image
                                                   ? image_aliases_resolve(api, params.image)
                                                   : NULL,
                                      .always = params.always,
                                      .all = params.all };
    image_start(orders, &agents, &msg);
}

/* clang-format off */
#define AGENTS_FIELD                                                                               \
    { "agents|agent", FIELD_STR_LIST, FIELD_NULLABLE, offsetof(struct order_params, agents), 0,    \
      AGENTS_MAX, .doc = "ids; default: all that are connected" }
/* clang-format on */

static const struct field pull_fields[] = {
    { "image", FIELD_STR, FIELD_REQUIRED, offsetof(struct order_params, image), 1, REFERENCE_MAX },
    { "always", FIELD_BOOL, 0, offsetof(struct order_params, always),
      .doc = "ask the registry although it is there" },
    AGENTS_FIELD,
    FIELD_END,
};

static const struct field remove_fields[] = {
    { "image", FIELD_STR, FIELD_REQUIRED, offsetof(struct order_params, image), 1, REFERENCE_MAX,
      .doc = "a name or a digest" },
    AGENTS_FIELD,
    FIELD_END,
};

static const struct field collect_fields[] = {
    { "all", FIELD_BOOL, 0, offsetof(struct order_params, all),
      .doc = "everything that is unused, not only what is too old or too much" },
    AGENTS_FIELD,
    FIELD_END,
};

static void image_on_pull(struct request *req, void *data)
{
    image_send_command(data, req, "pull");
}

static void image_on_remove(struct request *req, void *data)
{
    image_send_command(data, req, "remove");
}

static void image_on_collect(struct request *req, void *data)
{
    image_send_command(data, req, "collect");
}

/* ---- import ---- */

static void image_on_import(struct request *req, void *data)
{
    struct aq_error err;

    (void)data;
    aq_fail_kind(&err, ENOTSUP, "not-implemented",
                 "images are not made from others here; any image of a registry can be used by its "
                 "name, and 'aliquot image pull NAME' fetches it beforehand");
    request_fail(req, &err);
}

static const struct route image_routes[] = {
    { METHOD_GET, "/image/import", API_USER, image_on_import, NULL,
      "Refused: images are used by their names", .answer = { ROUTE_REFUSED } },
    { METHOD_POST, "/image/import", API_USER, image_on_import, NULL,
      "Refused: images are used by their names", .answer = { ROUTE_REFUSED } },
    { METHOD_GET, "/aliquot/v1/images", API_USER, image_on_list, list_fields,
      "Images on the nodes" },
    { METHOD_POST, "/aliquot/v1/images/collect", API_SUPERADMIN, image_on_collect, collect_fields,
      "Remove unused images; server-sent events tell of each agent",
      .answer = { .types = "text/event-stream" } },
    { METHOD_POST, "/aliquot/v1/images/pull", API_SUPERADMIN, image_on_pull, pull_fields,
      "Fetch an image; server-sent events tell how far each agent is",
      .answer = { .types = "text/event-stream" } },
    { METHOD_POST, "/aliquot/v1/images/remove", API_SUPERADMIN, image_on_remove, remove_fields,
      "Remove an image; server-sent events tell of each agent",
      .answer = { .types = "text/event-stream" } },
};
API_ROUTES_END(image);
