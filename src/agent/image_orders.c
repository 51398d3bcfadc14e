/* Images by order of the manager: pull, remove, collect; and what is here. */
#include <errno.h>
#include <string.h>

#include "agent/node.h"
#include "base/clock.h"
#include "base/jsonw.h"

#define PROGRESS_USEC (200 * USEC_PER_MSEC) /* between two messages of one job */
#define LISTED_MAX 2000
#define LABEL_MAX 1024

struct image_order {
    struct list link;
    struct agent *agent;
    struct uuid job_id;
    char *image;
    struct image_request *request; /* while a pull goes on */
    int64_t told_usec;             /* monotonic */
    enum image_phase phase;
};

/* ---- what we tell ---- */

static void send_status(struct agent *agent, const struct msg_image_status *status)
{
    const struct message msg = { .type = MSG_IMAGE_STATUS, .image_status = *status };

    agent_send(agent, &msg);
}

static void send_failure(struct agent *agent, const struct uuid *job_id, const char *image,
                         const struct aq_error *err)
{
    const struct msg_image_status status = {
        .job_id = *job_id, .image = image, .state = "failed",
        .error_kind = err->kind ? err->kind : "image-pull-failed", .error_text = err->text,
    };

    send_status(agent, &status);
}

static int write_image(void *data, const struct image_info *info)
{
    struct jsonw *w = data;

    jsonw_object_begin(w);
    jsonw_member_str(w, "digest", info->digest);
    jsonw_key(w, "names");
    jsonw_array_begin(w);
    for (size_t i = 0; i < info->name_count; i++)
        jsonw_str(w, info->names[i]);
    jsonw_array_end(w);
    jsonw_member_int(w, "size_bytes", info->size_bytes);
    jsonw_member_str(w, "architecture", info->architecture);
    jsonw_member_int(w, "fetched_at", info->fetched_usec);
    jsonw_member_int(w, "used_at", info->used_usec);
    jsonw_member_int(w, "holds", info->holds);
    jsonw_key(w, "labels");
    jsonw_object_begin(w);
    for (size_t i = 0; i < info->config->label_count; i++) {
        const struct image_label *label = &info->config->labels[i];

        if (strlen(label->key) + strlen(label->value) <= LABEL_MAX)
            jsonw_member_str(w, label->key, label->value);
    }
    jsonw_object_end(w);
    jsonw_object_end(w);
    return 0;
}

struct listing {
    struct jsonw w;
    size_t count;
};

static int write_some(void *data, const struct image_info *info)
{
    struct listing *listing = data;

    return listing->count++ < LISTED_MAX ? write_image(&listing->w, info) : -ENOSPC;
}

void image_orders_list(struct agent *agent)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct listing listing = { .w = jsonw_make(&text) };
    struct message msg = { .type = MSG_IMAGE_LIST };

    jsonw_array_begin(&listing.w);
    (void)images_each(agent->images, write_some, &listing);
    jsonw_array_end(&listing.w);
    msg.image_list.images = text.data;
    if (strbuf_ok(&text))
        agent_send(agent, &msg);
}

static void on_change(void *data)
{
    image_orders_list(data);
}

void image_orders_progress(struct agent *agent, const struct uuid *session_id,
                           const struct uuid *kernel_id, const char *image,
                           const struct image_progress *progress, int64_t *told_usec)
{
    const struct msg_image_status status = {
        .session_id = *session_id, .kernel_id = *kernel_id, .image = image,
        .state = image_phase_name(progress->phase),
        .done_bytes = progress->done_bytes, .total_bytes = progress->total_bytes,
    };
    int64_t now = clock_monotonic_usec();

    if (*told_usec && now - *told_usec < PROGRESS_USEC)
        return;
    *told_usec = now;
    send_status(agent, &status);
}

/* ---- pulls ---- */

static void order_free(struct image_order *order)
{
    list_remove(&order->link);
    free(order->image);
    free(order);
}

static void on_progress(void *data, const struct image_progress *progress)
{
    struct image_order *order = data;
    const struct msg_image_status status = {
        .job_id = order->job_id, .image = order->image, .state = image_phase_name(progress->phase),
        .done_bytes = progress->done_bytes, .total_bytes = progress->total_bytes,
    };
    int64_t now = clock_monotonic_usec();

    if (order->told_usec && order->phase == progress->phase
        && now - order->told_usec < PROGRESS_USEC)
        return;
    order->told_usec = now;
    order->phase = progress->phase;
    send_status(order->agent, &status);
}

static void on_ready(void *data, struct image *image)
{
    struct image_order *order = data;
    const struct msg_image_status status = {
        .job_id = order->job_id, .image = order->image, .state = "ready",
        .digest = image->digest, .done_bytes = image->size_bytes,
        .total_bytes = image->size_bytes,
    };

    send_status(order->agent, &status);
    image_unref(image);
    order_free(order);
}

static void on_failed(void *data, const struct aq_error *err)
{
    struct image_order *order = data;

    send_failure(order->agent, &order->job_id, order->image, err);
    order_free(order);
}

static int pull(struct agent *agent, const struct msg_image_order *msg, struct aq_error *err)
{
    static const struct image_events events = { on_progress, on_ready, on_failed };
    struct image_order *order = calloc(1, sizeof(*order));
    int r;

    if (!order || !(order->image = strdup(msg->image))) {
        free(order);
        return aq_fail(err, ENOMEM, "image");
    }
    order->agent = agent;
    order->job_id = msg->job_id;
    list_add(&agent->image_orders, &order->link);
    r = images_get(agent->images, msg->image, NULL,
                   msg->always ? IMAGE_PULL_ALWAYS : IMAGE_PULL_MISSING, &events, order,
                   &order->request, err);
    if (r < 0)
        order_free(order);
    return r;
}

static void cancel(struct agent *agent, const struct uuid *job_id)
{
    LIST_FOREACH(it, &agent->image_orders) {
        struct image_order *order = LIST_ENTRY(it, struct image_order, link);

        if (!uuid_equals(&order->job_id, job_id))
            continue;
        images_cancel(order->request);
        order_free(order);
    }
}

/* ---- orders ---- */

static void send_freed(struct agent *agent, const struct msg_image_order *msg, int64_t bytes)
{
    const struct msg_image_status status = {
        .job_id = msg->job_id, .image = msg->image, .state = "ready", .freed_bytes = bytes,
    };

    send_status(agent, &status);
}

static int act(struct agent *agent, const struct msg_image_order *msg, struct aq_error *err)
{
    bool needs_image = strcmp(msg->action, "pull") == 0 || strcmp(msg->action, "remove") == 0;
    int64_t bytes = 0;
    int r;

    if (needs_image && !msg->image)
        return aq_fail_field(err, EINVAL, "image", "an image is needed");
    if (strcmp(msg->action, "pull") == 0)
        return pull(agent, msg, err);
    if (strcmp(msg->action, "remove") == 0) {
        r = images_remove(agent->images, msg->image, &bytes, err);
        if (r < 0)
            return r;
    } else if (strcmp(msg->action, "collect") == 0) {
        bytes = images_collect(agent->images, msg->all);
    } else if (strcmp(msg->action, "cancel") == 0) {
        cancel(agent, &msg->job_id);
        return 0;
    } else {
        return aq_fail_field(err, EINVAL, "action", "this agent knows no '%.40s' of images",
                             msg->action);
    }
    send_freed(agent, msg, bytes);
    return 0;
}

void image_orders_take(struct agent *agent, const struct msg_image_order *order)
{
    struct aq_error err = { 0 };

    if (act(agent, order, &err) < 0)
        send_failure(agent, &order->job_id, order->image, &err);
}

void image_orders_start(struct agent *agent)
{
    images_set_on_change(agent->images, on_change, agent);
}

void image_orders_free(struct agent *agent)
{
    if (agent->images)
        images_set_on_change(agent->images, NULL, NULL);
    LIST_FOREACH(it, &agent->image_orders) {
        struct image_order *order = LIST_ENTRY(it, struct image_order, link);

        images_cancel(order->request);
        order_free(order);
    }
}
