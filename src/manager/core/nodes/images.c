/* SPDX-License-Identifier: Apache-2.0 */
/* images.c - images on agents: jobs, progress of sessions, what is where */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "manager/core/events/bus_internal.h"
#include "manager/core/nodes/images_internal.h"
#include "manager/core/session/agent_command.h"
#include "manager/core/session/image_requirements.h"
#include "manager/core/session/retry.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define FAILURE_MAX 1024 /* bytes of an agent's text */

struct core_image_job {
    struct list link; /* core.image_jobs */
    struct uuid id;
    char *agent_id, *image;
    core_image_fn fn;
    void *data;
};

static void images_job_free(struct core_image_job *job)
{
    list_remove(&job->link);
    free(job->agent_id);
    free(job->image);
    free(job);
}

int core_command_image(struct core *core, const char *agent_id, struct msg_image_command *command,
                       core_image_fn fn, void *data, struct core_image_job **ret,
                       struct aq_error *err)
{
    struct core_image_job *job = aq_alloc(sizeof(*job));
    struct message msg = { .type = MSG_IMAGE_COMMAND };
    int r = 0;

    list_add(&core->image_jobs, &job->link);
    job->fn = fn;
    job->data = data;
    job->id = command->job_id = uuid_random();
    job->agent_id = aq_strdup(agent_id);
    job->image = aq_strdup(command->image ? command->image : "");
    if (!core_agent_is_connected(core, agent_id))
        r = aq_fail_kind(err, ENOTCONN, "service-unavailable", "agent '%s' is not connected",
                         agent_id);
    msg.image_command = *command;
    if (r == 0)
        r = core->send(core, agent_id, &msg, err);
    if (r < 0)
        images_job_free(job);
    else
        *ret = job;
    return r;
}

void core_set_logins(struct core *core, char *auths)
{
    char *old = core->logins;
    bool is_same = old && auths ? strcmp(old, auths) == 0 : !old && !auths;

    core->logins = auths;
    for (size_t i = 0; i < core->agent_count && !is_same; i++)
        agent_command_logins(core, core->agents_sorted[i]->a.id);
    if (old)
        explicit_bzero(old, strlen(old));
    free(old);
}

void core_cancel_image(struct core *core, struct core_image_job *job)
{
    struct message msg = { .type = MSG_IMAGE_COMMAND };

    if (!job)
        return;
    msg.image_command = (struct msg_image_command){ .job_id = job->id, .action = "cancel" };
    (void)core->send(core, job->agent_id, &msg, NULL); /* an agent that is gone has ended it */
    images_job_free(job);
}

static void images_tell(struct core_image_job *job, const struct core_image_status *status)
{
    core_image_fn fn = job->fn;
    void *data = job->data;

    if (status->is_final)
        images_job_free(job); /* before: the callback may do anything */
    fn(data, status);
}

static const char *images_find_state(const char *name)
{
    static const char *const states[] = { "resolving", "retrying", "unpacking" };

    for (size_t i = 0; i < AQ_COUNT(states); i++)
        if (strcmp(states[i], name) == 0)
            return states[i];
    return "fetching";
}

/* A session's image comes: not durable, only told. By an agent that has a kernel of it: what
 * another one says would reach its user as news.
 */
static void images_tell_session(struct core *core, const struct agent_entry *a,
                                const struct msg_image_status *msg,
                                const struct core_image_status *status)
{
    struct kernel_entry *f = agent_entry_find_kernel(core, a, &msg->session_id, &msg->kernel_id);
    struct session_entry *l = f ? f->entry : NULL;
    const struct core_event event = {
        .name = "session_image_pull",
        .session = l ? &l->s : NULL,
        .reason = "",
        .image = status,
    };

    if (!l)
        return;
    f->pull = (struct core_image_progress){ images_find_state(status->state), status->done_bytes,
                                            status->total_bytes };
    if (status->error_text || status->is_final) {
        free(f->pull_failure);
        f->pull_failure = status->is_final ? NULL : aq_strndup(status->error_text, FAILURE_MAX);
        if (f->pull_failure)
            utf8_drop_partial(f->pull_failure);
    }
    retry_take_pull(core, l, &msg->kernel_id, status->is_final);
    if (!status->is_final) /* the session's next status says that */
        bus_publish(core, &event);
}

void images_take_status(struct core *core, const struct agent_entry *a,
                        const struct msg_image_status *msg)
{
    struct core_image_status status = {
        .agent_id = a->a.id,
        .image = msg->image ? msg->image : "",
        .state = msg->state,
        .is_final = strcmp(msg->state, "ready") == 0 || strcmp(msg->state, "failed") == 0,
        /* shares are reckoned of it */
        .done_bytes = msg->total_bytes ? AQ_MIN(msg->done_bytes, msg->total_bytes)
                                       : msg->done_bytes,
        .total_bytes = msg->total_bytes,
        .freed_bytes = msg->freed_bytes,
        .digest = msg->digest,
        .error_kind = msg->error_kind,
        .error_text = msg->error_text,
    };

    if (uuid_is_nil(&msg->job_id)) {
        images_tell_session(core, a, msg, &status);
        return;
    }
    LIST_FOREACH(it, &core->image_jobs) {
        struct core_image_job *job = LIST_ENTRY(it, struct core_image_job, link);

        if (uuid_equals(&job->id, &msg->job_id) && strcmp(job->agent_id, a->a.id) == 0) {
            images_tell(job, &status);
            return;
        }
    }
}

bool core_get_pull(const struct session *s, struct core_image_progress *ret)
{
    const struct session_entry *l = session_entry_of(s);

    for (size_t i = 0; i < s->kernel_count; i++)
        if (l->kernels[i].is_pulling) {
            *ret = l->kernels[i].pull;
            return true;
        }
    return false;
}

void core_add_pull_failures(const struct session *s, struct strbuf *text)
{
    const struct session_entry *l = session_entry_of(s);
    char hostname[KERNEL_HOSTNAME_MAX];

    for (size_t i = 0; i < s->kernel_count; i++)
        if (l->kernels[i].is_pulling && l->kernels[i].pull_failure)
            strbuf_addf(text, "%s%s on agent '%s': %s; retrying", text->len ? "\n" : "",
                        kernel_hostname(&s->kernels[i], hostname), s->kernels[i].agent_id,
                        l->kernels[i].pull_failure);
}

void images_take_list(struct core *core, struct agent_entry *a, const struct msg_image_list *msg)
{
    free(a->images);
    a->images = aq_strdup(msg->images);
    image_requirements_take(core, a->images);
}

/* The first job of the agent, NULL if there is none. */
static struct core_image_job *images_find_job_of(struct core *core, const char *agent_id)
{
    LIST_FOREACH(it, &core->image_jobs) {
        struct core_image_job *job = LIST_ENTRY(it, struct core_image_job, link);

        if (strcmp(job->agent_id, agent_id) == 0)
            return job;
    }
    return NULL;
}

void images_fail_jobs(struct core *core, const struct agent_entry *a)
{
    struct core_image_job *job;

    while ((job = images_find_job_of(core, a->a.id))) {
        AQ_CLEANUP(aq_freep) char *image = aq_strdup(job->image);
        const struct core_image_status status = {
            .agent_id = a->a.id,
            .image = image,
            .state = "failed",
            .is_final = true,
            .error_kind = "agent-disconnected",
            .error_text = "the connection to the agent was lost; ask again when it is back",
        };

        images_tell(job, &status);
    }
}

const char *core_get_agent_images(const struct core *core, const char *agent_id)
{
    const struct agent_entry *a = agent_entry_find(core, agent_id);

    return a && a->images ? a->images : "[]";
}

void images_free_jobs(struct core *core)
{
    LIST_FOREACH(it, &core->image_jobs)
        images_job_free(LIST_ENTRY(it, struct core_image_job, link));
}
