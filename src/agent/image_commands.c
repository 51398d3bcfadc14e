/* SPDX-License-Identifier: Apache-2.0 */
/* image_commands.c - images at the manager's command: pull, remove, collect, list */
#include <errno.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/memory.h"

#define PROGRESS_USEC (200 * USEC_PER_MSEC) /* between two messages of one job */
#define LISTED_MAX 2000
#define LABEL_MAX 1024

struct image_job {
    struct list link;
    struct agent_daemon *agent;
    struct uuid job_id;
    char *image;
    struct image_request *request; /* while a pull goes on */
    struct image_told told;
};

/* ---- what we tell ---- */

static void image_commands_send_status(struct agent_daemon *agent,
                                       const struct msg_image_status *status)
{
    const struct message msg = { .type = MSG_IMAGE_STATUS, .image_status = *status };

    agent_send(agent, &msg);
}

static void image_commands_send_failure(struct agent_daemon *agent, const struct uuid *job_id,
                                        const char *image, const struct aq_error *err)
{
    const struct msg_image_status status = {
        .job_id = *job_id,
        .image = image,
        .state = "failed",
        .error_kind = err->kind ? err->kind : "image-pull-failed",
        .error_text = err->text,
    };

    image_commands_send_status(agent, &status);
}

static void image_commands_write_image(struct jsonw *w, const struct image_info *info)
{
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
        const struct text_pair *label = &info->config->labels[i];

        if (strlen(label->key) + strlen(label->value) <= LABEL_MAX)
            jsonw_member_str(w, label->key, label->value);
    }
    jsonw_object_end(w);
    jsonw_object_end(w);
}

struct image_commands_listing {
    struct jsonw w;
    size_t count;
};

static int image_commands_write_some(void *data, const struct image_info *info)
{
    struct image_commands_listing *listing = data;

    if (listing->count++ >= LISTED_MAX)
        return -ENOSPC;
    image_commands_write_image(&listing->w, info);
    return 0;
}

void image_commands_list(struct agent_daemon *agent)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct image_commands_listing listing = { .w = jsonw_make(&text) };
    struct message msg = { .type = MSG_IMAGE_LIST };

    jsonw_array_begin(&listing.w);
    (void)images_each(agent->images, image_commands_write_some, &listing);
    jsonw_array_end(&listing.w);
    msg.image_list.images = text.data;
    agent_send(agent, &msg);
}

static void image_commands_on_change(void *data)
{
    image_commands_list(data);
}

/* A phase that begins is told at once. */
static bool image_commands_is_due(struct image_told *told, const struct image_progress *progress)
{
    int64_t now = clock_monotonic_usec();

    if (told->usec && told->phase == progress->phase && now - told->usec < PROGRESS_USEC)
        return false;
    *told = (struct image_told){ now, progress->phase };
    return true;
}

void image_commands_progress(struct agent_daemon *agent, const struct uuid *session_id,
                             const struct uuid *kernel_id, const char *image,
                             const struct image_progress *progress, struct image_told *told)
{
    const struct msg_image_status status = {
        .session_id = *session_id,
        .kernel_id = *kernel_id,
        .image = image,
        .state = progress ? image_phase_name(progress->phase) : "ready",
        .done_bytes = progress ? progress->done_bytes : 0,
        .total_bytes = progress ? progress->total_bytes : 0,
        .error_text = progress && progress->failure ? progress->failure->text : NULL,
    };

    if (progress ? image_commands_is_due(told, progress) : told->usec)
        image_commands_send_status(agent, &status);
    if (!progress)
        *told = (struct image_told){ 0 };
}

/* ---- pulls ---- */

static void image_job_free(struct image_job *job)
{
    list_remove(&job->link);
    free(job->image);
    free(job);
}

static void image_commands_on_progress(void *data, const struct image_progress *progress)
{
    struct image_job *job = data;
    const struct msg_image_status status = {
        .job_id = job->job_id,
        .image = job->image,
        .state = image_phase_name(progress->phase),
        .done_bytes = progress->done_bytes,
        .total_bytes = progress->total_bytes,
        .error_text = progress->failure ? progress->failure->text : NULL,
    };

    if (image_commands_is_due(&job->told, progress))
        image_commands_send_status(job->agent, &status);
}

static void image_commands_on_ready(void *data, struct image *image)
{
    struct image_job *job = data;
    const struct msg_image_status status = {
        .job_id = job->job_id,
        .image = job->image,
        .state = "ready",
        .digest = image->digest,
        .done_bytes = image->size_bytes,
        .total_bytes = image->size_bytes,
    };

    image_commands_send_status(job->agent, &status);
    image_unref(image);
    image_job_free(job);
}

static void image_commands_on_failed(void *data, const struct aq_error *err)
{
    struct image_job *job = data;

    image_commands_send_failure(job->agent, &job->job_id, job->image, err);
    image_job_free(job);
}

static int image_commands_pull(struct agent_daemon *agent, const struct msg_image_command *msg,
                               struct aq_error *err)
{
    static const struct image_events events = { image_commands_on_progress, image_commands_on_ready,
                                                image_commands_on_failed };
    struct image_job *job = aq_alloc(sizeof(*job));
    int r;

    job->image = aq_strdup(msg->image);
    job->agent = agent;
    job->job_id = msg->job_id;
    list_add(&agent->image_jobs, &job->link);
    r = images_get(agent->images, msg->image, NULL,
                   msg->always ? IMAGE_PULL_ALWAYS : IMAGE_PULL_MISSING, &events, job,
                   &job->request, err);
    if (r < 0)
        image_job_free(job);
    return r;
}

static void image_commands_cancel(struct agent_daemon *agent, const struct uuid *job_id)
{
    LIST_FOREACH(it, &agent->image_jobs) {
        struct image_job *job = LIST_ENTRY(it, struct image_job, link);

        if (!uuid_equals(&job->job_id, job_id))
            continue;
        images_cancel(job->request);
        image_job_free(job);
    }
}

/* ---- commands ---- */

static void image_commands_send_freed(struct agent_daemon *agent,
                                      const struct msg_image_command *msg, int64_t bytes)
{
    const struct msg_image_status status = {
        .job_id = msg->job_id,
        .image = msg->image,
        .state = "ready",
        .freed_bytes = bytes,
    };

    image_commands_send_status(agent, &status);
}

static int image_commands_act(struct agent_daemon *agent, const struct msg_image_command *msg,
                              struct aq_error *err)
{
    bool needs_image = strcmp(msg->action, "pull") == 0 || strcmp(msg->action, "remove") == 0;
    int64_t bytes = 0;
    int r;

    if (needs_image && !msg->image)
        return aq_fail_field(err, EINVAL, "image", "an image is needed");
    if (strcmp(msg->action, "pull") == 0)
        return image_commands_pull(agent, msg, err);
    if (strcmp(msg->action, "remove") == 0) {
        r = images_remove(agent->images, msg->image, &bytes, err);
        if (r < 0)
            return r;
    } else if (strcmp(msg->action, "collect") == 0) {
        bytes = images_collect(agent->images, msg->all);
    } else if (strcmp(msg->action, "cancel") == 0) {
        image_commands_cancel(agent, &msg->job_id);
        return 0;
    } else {
        return aq_fail_field(err, EINVAL, "action", "this agent knows no '%.40s' of images",
                             msg->action);
    }
    image_commands_send_freed(agent, msg, bytes);
    return 0;
}

void image_commands_handle(struct agent_daemon *agent, const struct msg_image_command *command)
{
    struct aq_error err = { 0 };

    if (image_commands_act(agent, command, &err) < 0)
        image_commands_send_failure(agent, &command->job_id, command->image, &err);
}

void image_commands_take_logins(struct agent_daemon *agent, const char *auths)
{
    AQ_CLEANUP(aq_freep) char *text = auths ? aq_format("{\"auths\":%s}\n", auths) : NULL;
    struct aq_error err = { 0 };

    (void)images_set_logins(agent->images, text, &err);
    if (err.code)
        log_warning("the logins of registries are not kept: %s", err.text);
    if (text)
        explicit_bzero(text, strlen(text));
}

void image_commands_start(struct agent_daemon *agent)
{
    images_set_on_change(agent->images, image_commands_on_change, agent);
}

void image_commands_free(struct agent_daemon *agent)
{
    if (agent->images)
        images_set_on_change(agent->images, NULL, NULL);
    LIST_FOREACH(it, &agent->image_jobs) {
        struct image_job *job = LIST_ENTRY(it, struct image_job, link);

        images_cancel(job->request);
        image_job_free(job);
    }
}
