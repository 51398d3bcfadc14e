/* SPDX-License-Identifier: Apache-2.0 */
/* preload_image: fetches that go on as a background task, as they may take hours.
 *
 * Its progress is in hundredths of each fetch, so that the end is known from
 * the beginning although sizes are not.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "manager/image/image_aliases.h"
#include "manager/call/tasks.h"
#include "manager/image/image_mutation_gql.h"

#define WHOLE 100

struct preload {
    struct task *task; /* owns it */
    size_t count, waiting, failed;
    char why[440]; /* of the first that failed */
    struct fetch {
        struct preload *preload;
        int64_t percent;
    } fetches[];
};

static void image_preload_note_failure(struct preload *p, const char *agent, const char *image,
                                       const char *why)
{
    if (p->failed++ == 0)
        (void)snprintf(p->why, sizeof(p->why), "%s on agent %s: %.300s", image, agent, why);
    log_warning("an image is not fetched image=%s agent=%s: %s", image, agent, why);
}

static int64_t image_preload_sum(const struct preload *p)
{
    int64_t percent = 0;

    for (size_t i = 0; i < p->count; i++)
        percent += p->fetches[i].percent;
    return percent;
}

static void image_preload_tell(struct preload *p, const struct core_image_status *status)
{
    char msg[512];
    int len = snprintf(msg, sizeof(msg), "%s on agent %s: %s", status->image, status->agent_id,
                       status->state);

    if (status->total_bytes && !status->is_final && len > 0 && (size_t)len < sizeof(msg))
        (void)snprintf(msg + len, sizeof(msg) - (size_t)len, ", %" PRId64 " of %" PRId64 " bytes",
                       status->done_bytes, status->total_bytes);
    task_update(p->task, image_preload_sum(p), msg);
}

static void image_preload_end(struct preload *p)
{
    char msg[480];

    if (p->failed)
        (void)snprintf(msg, sizeof(msg), "%s%s", p->why, p->failed > 1 ? " (and others)" : "");
    else
        (void)snprintf(msg, sizeof(msg), "%zu fetches are done", p->count);
    task_end(p->task, p->failed > 0, msg);
}

/* Fetching is the first half, unpacking the second, in each of which all bytes pass. */
static int64_t image_preload_percent(const struct core_image_status *status)
{
    int64_t half = WHOLE / 2 - 1;

    if (status->is_final)
        return WHOLE;
    if (status->total_bytes <= 0)
        return 0;
    half = (int64_t)((double)status->done_bytes / (double)status->total_bytes * (double)half);
    return strcmp(status->state, "unpacking") == 0 ? WHOLE / 2 + half : half;
}

static void image_preload_on_status(void *data, const struct core_image_status *status)
{
    struct fetch *fetch = data;
    struct preload *p = fetch->preload;

    /* never back, although an agent that lost its manager counts from 0 again */
    fetch->percent = AQ_MAX(fetch->percent, image_preload_percent(status));
    if (status->is_final && strcmp(status->state, "ready") != 0)
        image_preload_note_failure(p, status->agent_id, status->image,
                                   status->error_text ? status->error_text : "failed");
    image_preload_tell(p, status);
    if (status->is_final && --p->waiting == 0)
        image_preload_end(p);
}

static void image_preload_command(struct preload *p, struct core *core, const char *agent_id,
                                  const char *image)
{
    struct msg_image_command msg = { .action = "pull", .image = image };
    struct fetch *fetch = &p->fetches[p->count];
    struct core_image_job *job;
    struct aq_error err = { 0 };

    *fetch = (struct fetch){ .preload = p };
    if (core_command_image(core, agent_id, &msg, image_preload_on_status, fetch, &job, &err) < 0) {
        image_preload_note_failure(p, agent_id, image, err.text);
        return;
    }
    p->count++;
    p->waiting++;
}

/* Each image on each of these agents; none = all that are connected. */
static void image_preload_command_all(struct preload *p, const struct api *api,
                                      const struct gql_value *images,
                                      const struct gql_value *agents)
{
    for (uint32_t i = 0; i < images->count; i++) {
        const char *image = image_aliases_resolve(api, images->items[i].text);
        const struct agent *agent;

        for (uint32_t k = 0; k < agents->count; k++)
            image_preload_command(p, api->core, agents->items[k].text, image);
        for (size_t k = 0; !agents->count && (agent = core_get_agent(api->core, k)); k++)
            if (core_agent_is_connected(api->core, agent->id))
                image_preload_command(p, api->core, agent->id, image);
    }
}

static struct preload *image_preload_new(const struct api *api, const struct gql_value *images,
                                         const struct gql_value *agents)
{
    size_t count = agents->count;

    while (!agents->count && core_get_agent(api->core, count))
        count++;
    return aq_alloc(sizeof(struct preload) + count * images->count * sizeof(struct fetch));
}

int image_preload(struct gql_call *call)
{
    const struct gql_value *images = &call->args[SCHEMA_ARG_Mutations_preload_image_references];
    const struct gql_value *agents = &call->args[SCHEMA_ARG_Mutations_preload_image_target_agents];
    const struct gql_context *context = call->context;
    struct api *api = mutation_api(call);
    const char *wrong;
    struct preload *p;
    char msg[560];
    int r;

    if (!mutation_may(call))
        return GQL_DONE;
    if ((wrong = image_mutation_check_lists(call, images, agents)))
        return mutation_finish(call, false, wrong, NULL);
    p = image_preload_new(api, images, agents);
    p->task = task_start(api->tasks, &context->who->user_id, p);
    image_preload_command_all(p, api, images, agents);
    if (!p->waiting) {
        r = mutation_finish(call, false, p->failed ? p->why : "no agent is connected", NULL);
        image_preload_end(p);
        return r;
    }
    task_set_total(p->task, (int64_t)p->count * WHOLE);
    (void)snprintf(msg, sizeof(msg),
                   "%zu fetches have begun; 'aliquot image ls' shows what has "
                   "come%s%s",
                   p->count, p->failed ? "; " : "", p->why);
    return mutation_finish(call, !p->failed, msg, task_id(p->task));
}
