/* SPDX-License-Identifier: Apache-2.0 */
/* inventory.c - what agents report: greetings, heartbeats, kernels
 *
 * A report is a fact about an attempt of a kernel. It is written down and the
 * session looked at; what an agent has and we do not know is ended and
 * forgotten, what it should have and has not is a fact too (FACT_ABSENT).
 */
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "base/name_values.h"
#include "http/stream.h"
#include "manager/core/nodes/connection.h"
#include "manager/core/nodes/agent_service_internal.h"
#include "manager/core/nodes/images_internal.h"
#include "manager/core/nodes/inventory.h"
#include "manager/core/nodes/join.h"
#include "manager/core/nodes/liveness.h"
#include "manager/core/nodes/managers_internal.h"
#include "manager/core/nodes/lost_commits.h"
#include "manager/core/nodes/orphans.h"
#include "manager/core/nodes/reach.h"
#include "manager/core/nodes/replica_metrics.h"
#include "manager/core/nodes/registration.h"
#include "manager/core/nodes/fronts_internal.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/scheduling/rejection.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/session/agent_command.h"
#include "manager/core/session/kernel_lease.h"
#include "manager/core/session/limit_violation.h"
#include "manager/core/session/resize.h"
#include "manager/core/serving/service_health.h"
#include "manager/core/state/agent_devices.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "manager/core/statistics/statistics_internal.h"

/* ---- reasons: agents' words become ours ---- */

static const char *inventory_known_reason(const char *text)
{
    static const char *const known[] = {
        REASON_USER_REQUESTED,      REASON_FORCE_TERMINATED,  REASON_SELF_TERMINATED,
        REASON_TASK_FINISHED,       REASON_TASK_FAILED,       REASON_TASK_TIMEOUT,
        REASON_FAILED_TO_CREATE,    REASON_FAILED_TO_START,   REASON_HANG_TIMEOUT,
        REASON_RESTARTING,          REASON_AGENT_LOST,        REASON_NOT_FOUND_IN_MANAGER,
        REASON_CONTAINER_NOT_FOUND, REASON_MONITOR_LOST,      REASON_OUT_OF_MEMORY,
        REASON_GPU_OUT_OF_MEMORY,   REASON_GPU_MISUSE,        REASON_AGENT_REMOVED,
        REASON_BOOTSTRAP_FAILED,    REASON_BOOTSTRAP_TIMEOUT, REASON_EXEC_TIMEOUT,
        REASON_PREEMPTED,           REASON_BAD_OUTPUT
    };

    for (size_t i = 0; text && i < AQ_COUNT(known); i++)
        if (strcmp(known[i], text) == 0)
            return known[i];
    return NULL;
}

/* Another agent, or this one later, may well start it. */
static bool inventory_is_transient_error(const char *kind)
{
    static const char *const passing[] = { "draining",
                                           "insufficient-resource",
                                           "fractional-resource-fragmented",
                                           "unsupported-resource",
                                           "busy",
                                           "port-in-use" };

    for (size_t i = 0; kind && i < AQ_COUNT(passing); i++)
        if (strcmp(passing[i], kind) == 0)
            return true;
    return false;
}

#define EXIT_CODE_MAX INT64_C(255)

/* ---- facts ---- */

static enum fact fact_of(const struct msg_kernel_status *m)
{
    switch (m->state) {
    case MSG_KERNEL_RUNNING:
        return FACT_RUNNING;
    case MSG_KERNEL_TERMINATED:
        return FACT_ENDED;
    case MSG_KERNEL_ERROR:
        return FACT_ERROR;
    case MSG_KERNEL_CREATING:
    case MSG_KERNEL_RESTARTING:
    case MSG_KERNEL_TERMINATING:
        break;
    }
    return m->bootstrap ? FACT_BOOTSTRAPPING : FACT_CREATING;
}

/* Facts only move forward, whatever order reports come in. */
static bool inventory_is_news(enum fact have, enum fact heard)
{
    return have == FACT_ABSENT || (heard > have && have < FACT_ENDED);
}

/* Its agent says what the script wrote last. */
static bool inventory_has_bootstrap_failed(const struct kernel_entry *f)
{
    return f->fact == FACT_ENDED && session_reason_is_bootstrap(f->reason);
}

/* Which rule its values break; or that a process of it was killed, which its reason does not say. */
static bool inventory_has_remark(const struct kernel_entry *f, const struct msg_kernel_status *m)
{
    if (f->fact == FACT_ENDED && m->error_text && f->reason
        && strcmp(f->reason, REASON_BAD_OUTPUT) == 0)
        return true;
    return f->fact == FACT_ENDED && m->error_text && m->error_kind
           && strcmp(m->error_kind, REASON_OUT_OF_MEMORY) == 0
           && (!f->reason || strcmp(f->reason, REASON_OUT_OF_MEMORY) != 0);
}

/* What its agent says of its end besides the reason; NULL = nothing. */
static char *inventory_remark_json(const struct agent_entry *a, const struct kernel_entry *f,
                                   const struct msg_kernel_status *m)
{
    if (f->fact == FACT_ERROR || inventory_has_bootstrap_failed(f))
        return rejection_json(a->a.id, m);
    return inventory_has_remark(f, m) ? rejection_remark_json(m->error_text) : NULL;
}

static void inventory_take_fact(struct core *core, struct agent_entry *a, struct session_entry *l,
                                size_t rank, const struct msg_kernel_status *m)
{
    struct kernel_entry *f = &l->kernels[rank];
    enum fact heard = fact_of(m);

    if (heard == FACT_CREATING && m->is_ready && !f->is_ready) {
        f->is_ready = true;
        durable_touch(core, &l->durable);
    }
    if (!inventory_is_news(f->fact, heard))
        return;
    f->fact = heard;
    if (m->alloc && (!f->alloc || strcmp(f->alloc, m->alloc) != 0)) {
        free(f->alloc);
        f->alloc = aq_strdup(m->alloc);
        sched_sync_devices_changed(core, a);
        if (agent_devices_are_known(a))
            sched_sync_mark_session(l);
    }
    if (m->service_ports) {
        free(f->service_ports);
        f->service_ports = aq_strdup(m->service_ports);
    }
    if (heard == FACT_ENDED) {
        f->has_exit = m->has_exit;
        f->exit_code = (int)AQ_MIN(m->exit_code, EXIT_CODE_MAX);
        f->reason = inventory_known_reason(m->reason);
        free(f->outputs);
        f->outputs = m->outputs ? aq_strdup(m->outputs) : NULL;
    }
    if (heard == FACT_ERROR || heard == FACT_ENDED) {
        f->ended_usec = clock_monotonic_usec();
        free(f->error);
        f->error = inventory_remark_json(a, f, m);
        service_note_last_lines(l, rank, m->last_lines);
    }
    if (heard == FACT_ERROR) {
        f->error_is_transient = inventory_is_transient_error(m->error_kind);
        f->error_is_image = m->error_kind && strncmp(m->error_kind, "image-", 6) == 0;
        sched_sync_mark_agent(core, a); /* it may have less than its scheduler knows of */
    }
    durable_touch(core, &l->durable);
    AQ_FAULT("core.status.received");
}

/* Not ours, or not any more: it must end, and when it has, its directory may go. */
static void inventory_end_orphan(struct core *core, struct agent_entry *a,
                                 const struct msg_kernel_status *m)
{
    if (m->state == MSG_KERNEL_TERMINATED || m->state == MSG_KERNEL_ERROR)
        agent_command_forget(core, a->a.id, &m->kernel_id, m->attempt);
    else
        agent_command_end_orphan(core, a->a.id, &m->kernel_id, m->attempt);
}

/* What of a report is kept for as long as the kernel, in memory and in the store. No agent of ours
 * says as much.
 */
#define KEPT_JSON_MAX ((size_t)64 << 10)
#define KEPT_TEXT_MAX ((size_t)16 << 10)

/* NULL for what is too long. */
static const char *inventory_bound(const char *text, size_t max)
{
    return text && strnlen(text, max + 1) <= max ? text : NULL;
}

static struct msg_kernel_status inventory_bound_report(const struct msg_kernel_status *m)
{
    struct msg_kernel_status ret = *m;

    ret.alloc = inventory_bound(m->alloc, KEPT_JSON_MAX);
    ret.prepared_alloc = inventory_bound(m->prepared_alloc, KEPT_JSON_MAX);
    ret.outputs = inventory_bound(m->outputs, NAME_VALUES_JSON_MAX);
    ret.service_ports = inventory_bound(m->service_ports, KEPT_JSON_MAX);
    ret.error_kind = inventory_bound(m->error_kind, KEPT_TEXT_MAX);
    ret.error_field = inventory_bound(m->error_field, KEPT_TEXT_MAX);
    ret.error_text = inventory_bound(m->error_text, KEPT_TEXT_MAX);
    ret.last_lines = inventory_bound(m->last_lines, KEPT_TEXT_MAX);
    ret.limit_violation = inventory_bound(m->limit_violation, KEPT_TEXT_MAX);
    return ret;
}

static void inventory_handle_kernel(struct core *core, struct agent_entry *a,
                                    const struct msg_kernel_status *said)
{
    const struct msg_kernel_status report = inventory_bound_report(said), *m = &report;
    struct session_entry *l = session_entry_find(core, &m->session_id);
    struct kernel *k = NULL;
    bool is_here;

    for (size_t i = 0; l && i < l->s.kernel_count; i++)
        if (uuid_equals(&l->s.kernels[i].id, &m->kernel_id))
            k = &l->s.kernels[i];
    is_here = k && kernel_is_holding(k->status) && k->agent_id && strcmp(k->agent_id, a->a.id) == 0;
    if (!is_here || m->attempt > k->attempt) {
        if (!orphans_keep(core, a, l, m))
            inventory_end_orphan(core, a, m);
        else if (is_here)
            l->kernels[k->rank].heartbeat = a->heartbeat; /* it is there, a later attempt */
        return;
    }
    (void)lost_commits_note(core, a->a.id, m->epoch, m->commit);
    l->kernels[k->rank].heartbeat = a->heartbeat;
    if (m->attempt == k->attempt) {
        limit_violation_take(core, a, l, k->rank, m->limit_violation);
        resize_take(core, a, l, k->rank, m);
        inventory_take_fact(core, a, l, k->rank, m);
    } else {
        durable_touch(core, &l->durable); /* the command to restart may have been lost */
    }
}

static void inventory_find_absent(struct core *core, struct agent_entry *a)
{
    LIST_FOREACH(link, &a->kernels) {
        struct kernel_entry *f = LIST_ENTRY(link, struct kernel_entry, agent_link);

        if (f->heartbeat == a->heartbeat || f->fact == FACT_ENDED || f->fact == FACT_ERROR)
            continue;
        f->fact = FACT_ABSENT;
        f->ended_usec = clock_monotonic_usec();
        durable_touch(core, &f->entry->durable);
    }
}

/* ---- the link's callbacks ---- */

static void inventory_handle_heartbeat(struct core *core, struct agent_entry *a,
                                       const struct msg_heartbeat *m)
{
    bool first = !a->is_synced;

    a->is_synced = true;
    a->heartbeat++;
    for (size_t i = 0; i < m->kernel_count; i++)
        inventory_handle_kernel(core, a, &m->kernels[i]);
    inventory_find_absent(core, a);
    orphans_drop_absent(core, a);
    kernel_lease_reply(core, a, m);
    registration_update(core, a, m);
    if (a->a.status == AGENT_LOST)
        registration_save(core, a); /* it was silent, but its connection has lasted */
    else if (a->is_unsaved)
        registration_save(core, a);
    if (first) {
        agent_entry_touch_sessions(core, a); /* commands may not have reached it */
        sched_sync_mark_agent(core, a);
        agent_command_logins(core, a->a.id);
        reach_connected(core, a);
        replica_metrics_greet(core, a->a.id);
        agent_command_drain(core, a->a.id, a->is_known && !a->a.schedulable);
        queue_agent_changed(
            core, resource_group_entry_get(core, a->a.resource_group ? a->a.resource_group : ""));
    }
    AQ_FAULT("core.heartbeat.handled");
}

static int inventory_on_hello(void *data, const struct msg_hello *hello,
                              struct msg_welcome *welcome, int64_t *retry_usec,
                              struct aq_error *err)
{
    struct core *core = data;
    struct agent_entry *a;
    int r;

    if (core_is_front(hello->agent_id))
        return fronts_take_hello(core, hello, err);
    r = agent_id_check(hello->agent_id, err);

    if (r < 0)
        return r;
    *retry_usec = 10 * USEC_PER_SEC; /* an administrator can repair what follows */
    a = agent_entry_add(core, hello->agent_id);
    if ((r = registration_take(core, a, hello, err)) < 0) {
        log_limited(&a->log, LOG_LEVEL_WARNING, "agent '%s' is refused: %s", a->a.id, err->text);
        return r;
    }
    (void)lost_commits_note(core, a->a.id, hello->epoch, hello->commit);
    welcome->heartbeat_usec = core->conf.heartbeat_usec;
    welcome->has_leases = true;
    return 0;
}

static void inventory_on_connected(void *data, const char *agent_id, const struct uuid *incarnation)
{
    struct core *core = data;
    struct agent_entry *a;

    if (core_is_front(agent_id))
        return;
    a = agent_entry_add(core, agent_id);
    /* What was sent to a former process never arrives any more. */
    if (!uuid_equals(&a->incarnation, incarnation))
        LIST_FOREACH(link, &a->kernels) {
            struct kernel_entry *f = LIST_ENTRY(link, struct kernel_entry, agent_link);

            f->sent_usec = f->release_usec = 0;
            f->network_version = 0;
            f->destroy_sent = f->kill_sent = false;
        }
    a->incarnation = *incarnation;
    a->is_connected = true;
    a->is_synced = false;
    liveness_hear(core, a);
    sched_sync_mark_agent(core, a);
    log_limited(&a->log, LOG_LEVEL_INFO, "agent '%s' is connected", agent_id);
    registration_save(core, a);
}

static void inventory_on_message(void *data, const char *agent_id, const struct message *msg)
{
    struct core *core = data;
    struct agent_entry *a;

    if (core_is_front(agent_id)) {
        fronts_take_message(core, agent_id, msg);
        return;
    }
    a = agent_entry_add(core, agent_id);
    liveness_hear(core, a);
    if (msg->type == MSG_HEARTBEAT)
        inventory_handle_heartbeat(core, a, &msg->heartbeat);
    else if (msg->type == MSG_KERNEL_STATUS)
        inventory_handle_kernel(core, a, &msg->kernel_status);
    else if (msg->type == MSG_KERNEL_HEALTH)
        service_note_health(core, agent_id, &msg->kernel_health);
    else if (msg->type == MSG_METRICS_VALUES)
        replica_metrics_take(core, agent_id, &msg->metrics_values);
    else if (msg->type == MSG_KERNEL_ORDER)
        orphans_take_order(core, a, &msg->kernel_order);
    else if (msg->type == MSG_IMAGE_STATUS)
        images_take_status(core, a, &msg->image_status);
    else if (msg->type == MSG_IMAGE_LIST)
        images_take_list(core, a, &msg->image_list);
    else if (msg->type == MSG_SERVICE_STATUS)
        agent_service_take_status(core, a, &msg->service_status);
    else if (msg->type == MSG_STATISTICS)
        statistics_take(core, a, &msg->statistics);
    else if (msg->type == MSG_NETWORK_REACH)
        reach_take_report(core, a, &msg->network_reach);
}

static void inventory_on_disconnected(void *data, const char *agent_id,
                                      const struct uuid *incarnation, bool orderly, const char *why)
{
    struct agent_entry *a = agent_entry_find(data, agent_id);

    if (core_is_front(agent_id))
        fronts_lost(data, agent_id, incarnation, why);
    if (!a || !uuid_equals(&a->incarnation, incarnation))
        return;
    connection_lost(data, a);
    log_limited(&a->log, LOG_LEVEL_INFO, "agent '%s' %s: %s", agent_id,
                orderly ? "has left" : "is disconnected", why);
}

static void inventory_on_http(void *data, struct stream *stream, struct strbuf *first,
                              const char *peer)
{
    const struct core *core = data;

    if (core->conf.on_http && managers_check(core, core_front_name(FRONT_MANAGER, peer), NULL) == 0)
        core->conf.on_http(core->conf.on_http_data, stream, first, peer);
    else
        stream_close(stream);
}

const struct link_server_ops inventory_link_ops = {
    .on_hello = inventory_on_hello,
    .on_connected = inventory_on_connected,
    .on_message = inventory_on_message,
    .on_disconnected = inventory_on_disconnected,
    .on_join = join_request,
    .on_http = inventory_on_http,
};
