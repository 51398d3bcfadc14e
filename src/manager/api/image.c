/* /aliquot/v1/images: which images are on which nodes; pull, remove and collect there. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "http/sse.h"
#include "manager/api/aliases.h"
#include "manager/api/api.h"
#include "manager/api/image.h"
#include "model/reference.h"

#define AGENTS_MAX 1000

/* ---- list ---- */

/* One row for each digest, in the order of first sight by agents' ids. */
struct inventory {
    json_t *rows;   /* array */
    json_t *places; /* digest -> row */
};

static int add_texts(json_t *to, const json_t *from)
{
    size_t i, k;
    json_t *text, *known;

    json_array_foreach((json_t *)(uintptr_t)from, i, text) {
        bool is_known = false;

        json_array_foreach(to, k, known)
            is_known = is_known || json_equal(known, text);
        if (!is_known && json_array_append(to, text) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int set_time(json_t *row, const char *key, const json_t *image, const char *from)
{
    int64_t usec = json_integer_value(json_object_get(image, from));
    char text[CLOCK_ISO_MAX];

    return json_object_set_new(row, key, usec ? json_string(clock_format_iso(usec, text))
                                              : json_null());
}

static json_t *new_row(struct inventory *inventory, const json_t *image)
{
    static const char *const same[] = { "digest", "architecture", "size_bytes", "labels" };
    json_t *row = json_pack("{s:[],s:[],s:b}", "names", "agents", "in_use", 0);

    for (size_t i = 0; row && i < AQ_COUNT(same); i++)
        (void)json_object_set(row, same[i], json_object_get(image, same[i]));
    if (!row || set_time(row, "fetched_at", image, "fetched_at") < 0
        || json_array_append_new(inventory->rows, row) < 0
        || json_object_set(inventory->places, json_string_value(json_object_get(image, "digest")),
                           row) < 0)
        return NULL;
    return row;
}

static int add_image(struct inventory *inventory, const char *agent_id, const json_t *image)
{
    const char *digest = json_string_value(json_object_get(image, "digest"));
    json_t *row = digest ? json_object_get(inventory->places, digest) : NULL;

    if (!digest)
        return 0; /* of an agent of a later version */
    if (!row && !(row = new_row(inventory, image)))
        return -ENOMEM;
    if (json_integer_value(json_object_get(image, "holds")))
        (void)json_object_set_new(row, "in_use", json_true());
    if (json_array_append_new(json_object_get(row, "agents"), json_string(agent_id)) < 0)
        return -ENOMEM;
    return add_texts(json_object_get(row, "names"), json_object_get(image, "names"));
}

static int add_agent(struct inventory *inventory, const struct core *core, const char *agent_id)
{
    json_t *images = json_loads(core_get_agent_images(core, agent_id), 0, NULL), *image;
    size_t i;
    int r = 0;

    json_array_foreach(images, i, image)
        if (r == 0)
            r = add_image(inventory, agent_id, image);
    json_decref(images);
    return r;
}

int image_inventory(const struct core *core, const char *agent_id, json_t **ret)
{
    struct inventory inventory = { json_array(), json_object() };
    const struct agent *agent;
    int r = inventory.rows && inventory.places ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && (agent = core_get_agent(core, i)); i++)
        if (!agent_id || strcmp(agent_id, agent->id) == 0)
            r = add_agent(&inventory, core, agent->id);
    json_decref(inventory.places);
    if (r == 0)
        *ret = inventory.rows;
    else
        json_decref(inventory.rows);
    return r;
}

struct list_params {
    const char *agent;
    int64_t limit, offset;
};

static const struct field list_fields[] = {
    { "agent|agent_id", FIELD_STR, FIELD_NULLABLE, offsetof(struct list_params, agent), 1,
      AGENT_ID_MAX, .doc = "only those of this agent" },
    { "limit", FIELD_INT, 0, offsetof(struct list_params, limit), 1, API_LIST_MAX },
    { "offset", FIELD_INT, 0, offsetof(struct list_params, offset), 0, INT64_C(1000000000) },
    FIELD_END,
};

static void write_rows(struct jsonw *w, const json_t *rows, const struct list_params *params)
{
    jsonw_key(w, "items");
    jsonw_array_begin(w);
    for (int64_t i = params->offset;
         i < params->offset + params->limit && i < (int64_t)json_array_size(rows); i++) {
        char *text = json_dumps(json_array_get(rows, (size_t)i), JSON_COMPACT);

        if (text)
            jsonw_raw(w, text, strlen(text));
        free(text);
    }
    jsonw_array_end(w);
    jsonw_member_int(w, "total", (int64_t)json_array_size(rows));
}

static void on_list(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct list_params params = { .limit = API_LIST_DEFAULT };
    struct api *api = data;
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };
    json_t *rows = NULL;

    if (api_decode(req, &params, NULL, &err) == 0
        && image_inventory(api->core, params.agent, &rows) < 0)
        aq_fail(&err, ENOMEM, "images");
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    jsonw_object_begin(&w);
    write_rows(&w, rows, &params);
    jsonw_object_end(&w);
    json_decref(rows);
    request_reply_json(req, 200, &out);
}

/* ---- pull, remove, collect: an event stream, one job for each agent ---- */

struct order_params {
    const char *image;
    struct str_list agents;
    bool always, all;
};

struct orders {
    struct api *api;
    struct request *req;
    size_t waiting, count;
    bool is_over;
    struct order_job {
        struct orders *orders;
        struct core_image_job *job; /* NULL = ended */
    } *jobs;
};

static void orders_end(struct orders *orders)
{
    if (orders->is_over)
        return;
    orders->is_over = true;
    request_set_gone(orders->req, NULL, NULL);
    for (size_t i = 0; i < orders->count; i++)
        core_cancel_image(orders->api->core, AQ_TAKE(orders->jobs[i].job));
    request_end(orders->req); /* it is in its arena */
}

static void on_gone(struct request *req, void *data)
{
    (void)req;
    orders_end(data);
}

static int send_status(struct orders *orders, const struct core_image_status *status)
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
    return strbuf_ok(&out) ? sse_send(orders->req, "image", NULL, out.data, out.len) : -ENOMEM;
}

static void on_status(void *data, const struct core_image_status *status)
{
    struct order_job *job = data;
    struct orders *orders = job->orders;

    if (status->is_final) {
        job->job = NULL;
        orders->waiting--;
    }
    if (send_status(orders, status) < 0) {
        orders_end(orders); /* gone, or too slow to be kept */
        return;
    }
    if (orders->waiting == 0) {
        (void)sse_send(orders->req, "server_close", NULL, "{}", 2);
        orders_end(orders);
    }
}

/* An agent that cannot be asked is told of like one that failed. */
static void start_one(struct orders *orders, const char *agent_id,
                      const struct msg_image_order *order)
{
    struct order_job *job = &orders->jobs[orders->count++];
    struct msg_image_order copy = *order;
    struct aq_error err = { 0 };
    const struct core_image_status failed = {
        .agent_id = agent_id, .image = order->image ? order->image : "", .state = "failed",
        .error_kind = "agent-disconnected", .error_text = err.text,
    };

    job->orders = orders;
    if (core_order_image(orders->api->core, agent_id, &copy, on_status, job, &job->job,
                         &err) == 0)
        orders->waiting++;
    else
        (void)send_status(orders, &failed);
}

static int choose_agents(const struct api *api, struct request *req,
                         const struct order_params *params, struct str_list *ret,
                         struct aq_error *err)
{
    const struct agent *agent;

    for (size_t i = 0; i < params->agents.count; i++)
        if (!core_find_agent(api->core, params->agents.items[i]))
            return problem_no_such(err, "agent instance", "'%.64s' does not exist",
                                   params->agents.items[i]);
    *ret = params->agents;
    if (params->agents.count)
        return 0;
    ret->items = arena_array(request_get_arena(req), AGENTS_MAX, sizeof(*ret->items));
    if (!ret->items)
        return aq_fail(err, ENOMEM, "images");
    for (size_t i = 0; ret->count < AGENTS_MAX && (agent = core_get_agent(api->core, i)); i++)
        if (core_agent_is_connected(api->core, agent->id))
            ret->items[ret->count++] = agent->id;
    if (ret->count == 0)
        return aq_fail_kind(err, ENOTCONN, "service-unavailable", "no agent is connected");
    return 0;
}

static int check_name(const char *image, struct aq_error *err)
{
    struct reference ref;
    int r;

    if (digest_is_valid(image))
        return 0;
    r = reference_parse(image, NULL, &ref, err);
    if (r == 0)
        reference_done(&ref);
    return r < 0 && r != -ENOMEM ? api_fail_param(err, "image", "%s", err->text) : r;
}

static void start(struct orders *orders, const struct str_list *agents,
                  const struct msg_image_order *order)
{
    sse_begin(orders->req, NULL, NULL);
    request_set_gone(orders->req, on_gone, orders);
    for (size_t i = 0; i < agents->count; i++)
        start_one(orders, agents->items[i], order);
    if (orders->waiting == 0) {
        (void)sse_send(orders->req, "server_close", NULL, "{}", 2);
        orders_end(orders);
    }
}

static void order(struct api *api, struct request *req, const char *action)
{
    struct orders *orders = arena_alloc(request_get_arena(req), sizeof(*orders));
    struct order_params params = { .image = NULL };
    struct str_list agents = { NULL, 0 };
    struct msg_image_order msg;
    struct aq_error err = { 0 };

    if (!orders)
        aq_fail(&err, ENOMEM, "images");
    if (!err.code && api_decode(req, &params, NULL, &err) == 0 && params.image)
        (void)check_name(params.image, &err);
    if (!err.code)
        (void)choose_agents(api, req, &params, &agents, &err);
    if (!err.code) {
        *orders = (struct orders){ .api = api, .req = req };
        orders->jobs = arena_array(request_get_arena(req), agents.count, sizeof(*orders->jobs));
        if (!orders->jobs)
            aq_fail(&err, ENOMEM, "images");
    }
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    msg = (struct msg_image_order){ .action = action,
                                    .image = params.image ? aliases_resolve(api, params.image) : NULL,
                                    .always = params.always, .all = params.all };
    start(orders, &agents, &msg);
}

#define AGENTS_FIELD                                                                               \
    { "agents|agent", FIELD_STR_LIST, FIELD_NULLABLE, offsetof(struct order_params, agents), 0,    \
      AGENTS_MAX, .doc = "ids; all that are connected unless given" }

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

static void on_pull(struct request *req, void *data)
{
    order(data, req, "pull");
}

static void on_remove(struct request *req, void *data)
{
    order(data, req, "remove");
}

static void on_collect(struct request *req, void *data)
{
    order(data, req, "collect");
}

const struct route image_routes[] = {
    { METHOD_GET, "/aliquot/v1/images", API_USER, on_list, list_fields,
      "Images on the nodes" },
    { METHOD_POST, "/aliquot/v1/images/collect", API_SUPERADMIN, on_collect, collect_fields,
      "Remove unused images; server-sent events tell of each agent" },
    { METHOD_POST, "/aliquot/v1/images/pull", API_SUPERADMIN, on_pull, pull_fields,
      "Fetch an image; server-sent events tell how far each agent is" },
    { METHOD_POST, "/aliquot/v1/images/remove", API_SUPERADMIN, on_remove, remove_fields,
      "Remove an image; server-sent events tell of each agent" },
};
API_ROUTES_END(image);
