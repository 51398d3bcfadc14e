/* images.c - images on agents: jobs, progress of sessions, what is where */
#include <errno.h>
#include <string.h>

#include "manager/core/image_needs.h"
#include "manager/core/parts.h"

struct core_image_job {
    struct list link; /* core.image_jobs */
    struct uuid id;
    char *agent_id, *image;
    core_image_fn fn;
    void *data;
};

static void job_free(struct core_image_job *job)
{
    list_remove(&job->link);
    free(job->agent_id);
    free(job->image);
    free(job);
}

int core_order_image(struct core *core, const char *agent_id, struct msg_image_order *order,
                     core_image_fn fn, void *data, struct core_image_job **ret,
                     struct aq_error *err)
{
    struct core_image_job *job = calloc(1, sizeof(*job));
    struct message msg = { .type = MSG_IMAGE_ORDER };
    int r = 0;

    if (!job)
        return aq_fail(err, ENOMEM, "image");
    list_add(&core->image_jobs, &job->link);
    job->fn = fn;
    job->data = data;
    job->id = order->job_id = uuid_random();
    job->agent_id = strdup(agent_id);
    job->image = strdup(order->image ? order->image : "");
    if (!job->agent_id || !job->image)
        r = aq_fail(err, ENOMEM, "image");
    else if (!core_agent_is_connected(core, agent_id))
        r = aq_fail(err, ENOTCONN, "agent '%s' is not connected", agent_id);
    msg.image_order = *order;
    if (r == 0)
        r = core->send(core, agent_id, &msg, err);
    if (r < 0)
        job_free(job);
    else
        *ret = job;
    return r;
}

void core_cancel_image(struct core *core, struct core_image_job *job)
{
    struct message msg = { .type = MSG_IMAGE_ORDER };

    if (!job)
        return;
    msg.image_order = (struct msg_image_order){ .job_id = job->id, .action = "cancel" };
    (void)core->send(core, job->agent_id, &msg, NULL); /* an agent that is gone has ended it */
    job_free(job);
}

static void tell(struct core_image_job *job, const struct core_image_status *status)
{
    core_image_fn fn = job->fn;
    void *data = job->data;

    if (status->is_final)
        job_free(job); /* before: the callback may do anything */
    fn(data, status);
}

/* A session's image comes: not durable, only told. */
static void tell_session(struct core *core, const struct msg_image_status *msg,
                         const struct core_image_status *status)
{
    struct live *l = live_find(core, &msg->session_id);
    const struct core_event event = {
        .name = "session_image_pull", .session = l ? &l->s : NULL, .reason = "", .image = status,
    };

    if (!l)
        return;
    retry_take_pull(core, l, &msg->kernel_id, status->is_final);
    bus_publish(core, &event);
}

void images_take_status(struct core *core, const struct agent_live *a,
                        const struct msg_image_status *msg)
{
    struct core_image_status status = {
        .agent_id = a->a.id, .image = msg->image ? msg->image : "", .state = msg->state,
        .is_final = strcmp(msg->state, "ready") == 0 || strcmp(msg->state, "failed") == 0,
        .done_bytes = msg->done_bytes, .total_bytes = msg->total_bytes,
        .freed_bytes = msg->freed_bytes, .digest = msg->digest,
        .error_kind = msg->error_kind, .error_text = msg->error_text,
    };

    if (uuid_is_nil(&msg->job_id)) {
        tell_session(core, msg, &status);
        return;
    }
    LIST_FOREACH(it, &core->image_jobs) {
        struct core_image_job *job = LIST_ENTRY(it, struct core_image_job, link);

        if (uuid_equals(&job->id, &msg->job_id) && strcmp(job->agent_id, a->a.id) == 0) {
            tell(job, &status);
            return;
        }
    }
}

void images_take_list(struct core *core, struct agent_live *a, const struct msg_image_list *msg)
{
    char *copy = strdup(msg->images);

    if (!copy)
        return; /* it says so again */
    free(a->images);
    a->images = copy;
    image_needs_take(core, copy);
}

/* The first job of the agent, NULL if there is none. */
static struct core_image_job *find_job_of(struct core *core, const char *agent_id)
{
    LIST_FOREACH(it, &core->image_jobs) {
        struct core_image_job *job = LIST_ENTRY(it, struct core_image_job, link);

        if (strcmp(job->agent_id, agent_id) == 0)
            return job;
    }
    return NULL;
}

void images_fail_jobs(struct core *core, const struct agent_live *a)
{
    struct core_image_job *job;

    while ((job = find_job_of(core, a->a.id))) {
        AQ_CLEANUP(aq_freep) char *image = strdup(job->image);
        const struct core_image_status status = {
            .agent_id = a->a.id, .image = image ? image : "", .state = "failed", .is_final = true,
            .error_kind = "agent-disconnected",
            .error_text = "the connection to the agent was lost; ask again when it is back",
        };

        tell(job, &status);
    }
}

const char *core_get_agent_images(const struct core *core, const char *agent_id)
{
    const struct agent_live *a = agent_find(core, agent_id);

    return a && a->images ? a->images : "[]";
}

void images_free_jobs(struct core *core)
{
    LIST_FOREACH(it, &core->image_jobs)
        job_free(LIST_ENTRY(it, struct core_image_job, link));
}
