/* SPDX-License-Identifier: Apache-2.0 */
/* own_service.c - this agent as a service of systemd: at the manager's command its state is asked
 * for, and it is stopped or restarted by systemctl, as an administrator of the machine would do
 *
 * One command at a time, in a worker thread. Sessions outlive all of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/program.h"

#define SYSTEMCTL_MSEC 10000
#define SERVICE ".service"

struct own_service_job {
    uv_work_t work;
    struct agent_daemon *agent; /* NULL = it has ended */
    const struct settings *settings;
    struct uuid job_id;
    char action[16], unit[OWN_SERVICE_UNIT_MAX];
    struct strbuf state;
    int result;
    struct aq_error err;
};

/* ---- which unit ---- */

bool own_service_read_unit(const char *cgroups, char ret[OWN_SERVICE_UNIT_MAX])
{
    bool found = false;

    /* "0::/system.slice/aliquot-agent.service/agent" */
    for (const char *at = cgroups; *at && !found;) {
        const char *end = at + strcspn(at, "\n");

        for (const char *part = at; part < end;) {
            size_t len = strcspn(part, "/\n"), tail = strlen(SERVICE);

            if (len > tail && len < OWN_SERVICE_UNIT_MAX
                && memcmp(part + len - tail, SERVICE, tail) == 0) {
                memcpy(ret, part, len);
                ret[len] = '\0';
                found = true;
            }
            part += len + 1;
        }
        at = *end ? end + 1 : end;
    }
    return found;
}

/* systemd says which process it started; what that one started is not the service. */
static bool own_service_is_started_by_systemd(void)
{
    const char *pid = getenv("SYSTEMD_EXEC_PID");

    return pid && strtol(pid, NULL, 10) == (long)getpid();
}

static int own_service_find_unit(struct own_service_job *job, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf cgroups = STRBUF_INIT;
    const char *set = job->settings->service_unit;

    if (set && strlen(set) < sizeof(job->unit)) {
        memcpy(job->unit, set, strlen(set) + 1);
        return 0;
    }
    if (!own_service_is_started_by_systemd())
        return aq_fail_kind(err, ENOTSUP, "service-unavailable",
                            "systemd does not run it: stop or restart it on its machine as it was "
                            "started");
    if (fs_read(AT_FDCWD, "/proc/self/cgroup", 64 << 10, &cgroups, err) < 0
        || !own_service_read_unit(cgroups.data, job->unit))
        return aq_fail_kind(err, ENOTSUP, "service-unavailable",
                            "its cgroup does not tell its unit of systemd: set [service] unit of "
                            "agent.toml");
    return 0;
}

/* ---- systemctl ---- */

static void own_service_on_work(uv_work_t *work)
{
    static char user[] = "--user", show[] = "show", no_block[] = "--no-block", end[] = "--";
    static char properties[] = "--property=ActiveState,SubState,NRestarts";
    struct own_service_job *job = AQ_CONTAINER_OF(work, struct own_service_job, work);
    bool is_status = strcmp(job->action, "status") == 0;
    char *argv[8];
    size_t n = 0;

    argv[n++] = job->settings->service_systemctl;
    if (geteuid() != 0)
        argv[n++] = user;
    argv[n++] = is_status ? show : no_block;
    argv[n++] = is_status ? properties : job->action;
    argv[n++] = end;
    argv[n++] = job->unit;
    argv[n] = NULL;
    job->result = program_run(argv, NULL, SYSTEMCTL_MSEC, &job->state, &job->err);
}

static void own_service_reply(struct agent_daemon *agent, const struct own_service_job *job)
{
    const struct message msg = {
        .type = MSG_SERVICE_STATUS,
        .service_status = { .job_id = job->job_id,
                            .unit = job->unit[0] ? job->unit : NULL,
                            .state = job->result < 0 ? NULL : job->state.data,
                            .error_text = job->result < 0 ? job->err.text : NULL },
    };

    agent_send(agent, &msg);
}

static void own_service_job_free(struct own_service_job *job)
{
    strbuf_done(&job->state);
    free(job);
}

static void own_service_on_worked(uv_work_t *work, int status)
{
    struct own_service_job *job = AQ_CONTAINER_OF(work, struct own_service_job, work);

    (void)status;
    if (job->result < 0)
        log_warning("systemctl %s %s: %s", job->action, job->unit, job->err.text);
    if (job->agent) {
        job->agent->service_job = NULL;
        own_service_reply(job->agent, job);
    }
    own_service_job_free(job);
}

/* ---- commands ---- */

static int own_service_check(const struct agent_daemon *agent, struct own_service_job *job,
                             const char *action, struct aq_error *err)
{
    static const char *const actions[] = { "status", "stop", "restart" };

    for (size_t i = 0; i < AQ_COUNT(actions); i++)
        if (strcmp(action, actions[i]) == 0)
            memcpy(job->action, actions[i], strlen(actions[i]) + 1);
    if (!job->action[0])
        return aq_fail_kind(err, ENOTSUP, "service-unavailable", "it does not know '%.32s'",
                            action);
    if (agent->service_job)
        return aq_fail_kind(err, EBUSY, "service-unavailable", "systemctl %s runs already",
                            agent->service_job->action);
    return own_service_find_unit(job, err);
}

void own_service_handle(struct agent_daemon *agent, const struct msg_service_command *command)
{
    struct own_service_job *job = aq_alloc(sizeof(*job));

    strbuf_init(&job->state);
    job->job_id = command->job_id;
    job->settings = agent->settings;
    job->result = own_service_check(agent, job, command->action, &job->err);
    if (job->result < 0) {
        own_service_reply(agent, job);
        own_service_job_free(job);
        return;
    }
    (void)uv_queue_work(agent->loop, &job->work, own_service_on_work, own_service_on_worked);
    job->agent = agent;
    agent->service_job = job;
    if (strcmp(job->action, "status") != 0)
        log_warning("the manager wants '%s %s %s'", agent->settings->service_systemctl, job->action,
                    job->unit);
}

void own_service_free(struct agent_daemon *agent)
{
    if (agent->service_job)
        agent->service_job->agent = NULL;
    agent->service_job = NULL;
}
