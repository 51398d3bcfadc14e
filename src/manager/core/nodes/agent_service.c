/* SPDX-License-Identifier: Apache-2.0 */
/* agent_service.c - agents as services of their machines: commands under way */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/core/nodes/agent_service_internal.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/state.h"

#define WAIT_USEC (20 * USEC_PER_SEC) /* the agent gives systemctl ten seconds */
#define STATE_MAX 1000

struct agent_service_job {
    struct list link; /* core.service_jobs */
    struct uuid id;
    char agent_id[AGENT_ID_MAX + 1];
    bool ends; /* the agent's connection ends by it */
    int64_t due_usec;
    core_service_fn fn;
    void *data;
};

static void agent_service_job_free(struct agent_service_job *job)
{
    list_remove(&job->link);
    free(job);
}

static void agent_service_finish(struct agent_service_job *job, int r, const struct aq_error *err,
                                 const char *unit, const char *state)
{
    core_service_fn fn = job->fn;
    void *data = job->data;

    agent_service_job_free(job); /* before: the callback may do anything */
    fn(data, r, err, unit, state);
}

static struct agent_service_job *agent_service_find(const struct core *core, const char *agent_id)
{
    LIST_FOREACH(it, &core->service_jobs) {
        struct agent_service_job *job = LIST_ENTRY(it, struct agent_service_job, link);

        if (strcmp(job->agent_id, agent_id) == 0)
            return job;
    }
    return NULL;
}

static int agent_service_send(struct core *core, const char *agent_id, const char *action,
                              const struct uuid *id, struct aq_error *err)
{
    const struct message msg = { .type = MSG_SERVICE_COMMAND,
                                 .service_command = { .job_id = *id, .action = action } };

    if (!core_agent_is_connected(core, agent_id))
        return aq_fail_kind(err, ENOTCONN, "service-unavailable",
                            "agent %s is not connected: on its machine say 'systemctl %s "
                            "aliquot-agent'",
                            agent_id, action);
    if (agent_service_find(core, agent_id))
        return aq_fail_kind(err, EBUSY, "service-unavailable",
                            "agent %s has not answered the last command yet", agent_id);
    return core->send(core, agent_id, &msg, err);
}

void core_command_service(struct core *core, const char *agent_id, const char *action,
                          core_service_fn fn, void *data)
{
    struct agent_service_job *job;
    const struct uuid id = uuid_random();
    struct aq_error err = { 0 };
    int r = agent_service_send(core, agent_id, action, &id, &err);

    if (r < 0) {
        fn(data, r, &err, "", "");
        return;
    }
    job = aq_alloc(sizeof(*job));
    job->id = id;
    memcpy(job->agent_id, agent_id, strlen(agent_id) + 1); /* of an agent: not longer */
    job->ends = strcmp(action, "status") != 0;
    job->due_usec = clock_monotonic_usec() + WAIT_USEC;
    job->fn = fn;
    job->data = data;
    list_add(&core->service_jobs, &job->link);
}

void agent_service_take_status(struct core *core, const struct agent_entry *a,
                               const struct msg_service_status *msg)
{
    struct agent_service_job *job = agent_service_find(core, a->a.id);
    char unit[257], state[STATE_MAX + 1];
    struct aq_error err = { 0 };
    int r = 0;

    if (!job || !uuid_equals(&job->id, &msg->job_id))
        return;
    (void)snprintf(unit, sizeof(unit), "%s", msg->unit ? msg->unit : "");
    (void)snprintf(state, sizeof(state), "%s", msg->state ? msg->state : "");
    if (!msg->state)
        r = aq_fail_kind(&err, EAGAIN, "service-unavailable", "agent %s: %.400s", a->a.id,
                         msg->error_text ? msg->error_text : "it cannot");
    agent_service_finish(job, r, &err, unit, state);
}

void agent_service_lost(struct core *core, const struct agent_entry *a)
{
    struct agent_service_job *job = agent_service_find(core, a->a.id);
    struct aq_error err = { 0 };
    int r = 0;

    if (!job)
        return;
    if (!job->ends)
        r = aq_fail_kind(&err, ENOTCONN, "service-unavailable",
                         "the connection to agent %s was lost; ask again when it is back", a->a.id);
    agent_service_finish(job, r, &err, "", "");
}

void agent_service_tick(struct core *core, int64_t now)
{
    struct agent_service_job *late = NULL;
    struct aq_error err = { 0 };

    do {
        late = NULL;
        LIST_FOREACH(it, &core->service_jobs) {
            struct agent_service_job *job = LIST_ENTRY(it, struct agent_service_job, link);

            if (now >= job->due_usec)
                late = job;
        }
        if (late)
            agent_service_finish(late,
                                 aq_fail_kind(&err, ETIMEDOUT, "service-unavailable",
                                              "agent %s does not answer: it may be older than "
                                              "this command",
                                              late->agent_id),
                                 &err, "", "");
    } while (late);
}

void agent_service_free(struct core *core)
{
    LIST_FOREACH(it, &core->service_jobs)
        agent_service_job_free(LIST_ENTRY(it, struct agent_service_job, link));
}
