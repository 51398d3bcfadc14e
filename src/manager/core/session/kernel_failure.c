/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_failure.c - the kernel whose end ends its session, and the words for it */
#include "manager/core/session/kernel_failure.h"

#include <jansson.h>
#include <signal.h>
#include <string.h>

#include "base/json_load.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "manager/core/lookup.h"
#include "manager/core/session/lifecycle.h"
#include "manager/core/session/rerun.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"

/* ---- which kernel ---- */

bool kernel_failure_has_succeeded(const struct kernel_entry *f)
{
    return f->fact == FACT_ENDED && f->has_exit && f->exit_code == 0
           && (!f->reason || strcmp(f->reason, REASON_SELF_TERMINATED) == 0
               || strcmp(f->reason, REASON_TASK_FINISHED) == 0);
}

static bool kernel_failure_ends_session(const struct session_entry *l)
{
    return l->s.kernel_count > 1 && strcmp(session_on_failure(&l->s), SESSION_ON_FAILURE_END) == 0;
}

/* True if the failure of this kernel ends the session. Kernels that give way to another session
 * have not failed.
 */
static bool kernel_failure_is_fatal(const struct session_entry *l, const struct kernel_entry *f)
{
    return kernel_failure_ends_session(l) && !kernel_failure_has_succeeded(f)
           && !f->single.is_preempted && !(f->reason && strcmp(f->reason, REASON_PREEMPTED) == 0);
}

size_t kernel_failure_find(const struct core *core, const struct session_entry *l, int64_t now)
{
    size_t first = l->s.kernel_count;

    for (size_t i = 0; i < l->s.kernel_count; i++) {
        const struct kernel_entry *f = &l->kernels[i];

        if (l->s.kernels[i].status != KERNEL_RUNNING || !lifecycle_has_ended(core, l, i, now)
            || (i > 0 && !kernel_failure_is_fatal(l, f)))
            continue;
        if (first == l->s.kernel_count || f->ended_usec < l->kernels[first].ended_usec)
            first = i;
    }
    return first;
}

size_t kernel_failure_find_at_start(const struct session_entry *l, bool all_begun)
{
    bool any = !all_begun && kernel_failure_ends_session(l);

    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (l->kernels[i].fact == FACT_ENDED
            && (session_reason_is_bootstrap(l->kernels[i].reason)
                || (any && !kernel_failure_has_succeeded(&l->kernels[i]))))
            return i;
    return l->s.kernel_count;
}

const char *kernel_failure_reason(const struct session_entry *l, size_t rank,
                                  enum session_result *ret_result)
{
    const struct kernel_entry *f = &l->kernels[rank];
    bool ok = kernel_failure_has_succeeded(f);
    bool has_result = l->s.type == SESSION_BATCH || (!ok && kernel_failure_ends_session(l));

    *ret_result = !has_result ? RESULT_UNDEFINED : ok ? RESULT_SUCCESS : RESULT_FAILURE;
    if (f->fact == FACT_ABSENT)
        return REASON_CONTAINER_NOT_FOUND;
    if (session_reason_is_bootstrap(f->reason))
        *ret_result = RESULT_FAILURE; /* whatever its type: its program never ran */
    if (f->reason && strcmp(f->reason, REASON_SELF_TERMINATED) != 0)
        return f->reason;
    if (!has_result)
        return REASON_SELF_TERMINATED;
    return ok ? REASON_TASK_FINISHED : REASON_TASK_FAILED;
}

/* ---- the words ---- */

static void kernel_failure_describe(const struct kernel_entry *f, struct strbuf *text)
{
    if (f->fact == FACT_ABSENT)
        strbuf_adds(text, "its container has disappeared");
    else if (f->reason && strcmp(f->reason, REASON_OUT_OF_MEMORY) == 0)
        strbuf_adds(text, "its memory was used up");
    else if (f->has_exit && f->exit_code > 128 && f->exit_code <= 128 + SIGRTMAX)
        strbuf_addf(text, "its program was killed by signal %d (%s)", f->exit_code - 128,
                    strsignal(f->exit_code - 128));
    else if (f->has_exit)
        strbuf_addf(text, "its program ended with exit status %d", f->exit_code);
    else
        strbuf_adds(text, "its program ended without an exit status");
}

char *kernel_failure_json(const struct session_entry *l, size_t rank)
{
    const struct kernel_entry *f = &l->kernels[rank];
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char hostname[KERNEL_HOSTNAME_MAX];
    json_auto_t *data = NULL, *said = NULL;
    const char *remark;

    if (l->s.kernel_count == 1 || kernel_failure_has_succeeded(f))
        return aq_strdup(f->error);
    data = json_pack("{s:s, s:s?}", "kernel", kernel_hostname(&l->s.kernels[rank], hostname),
                     "agent", l->s.kernels[rank].agent_id);
    said = json_load_string(f->error, 0);
    remark = json_string_value(json_object_get(said, "text"));
    if (f->has_exit)
        (void)json_object_set_new(data, "exit_code", json_integer(f->exit_code));
    if (json_object_get(said, "error")) {
        (void)json_object_set(data, "error", json_object_get(said, "error"));
        return json_dump_text(data, JSON_COMPACT);
    }
    strbuf_addf(&text, "Kernel %s on agent '%s' failed: ", hostname, l->s.kernels[rank].agent_id);
    kernel_failure_describe(f, &text);
    strbuf_addf(&text, ".%s%s", remark ? "\n" : "", remark ? remark : "");
    if (f->limit_violations)
        strbuf_addf(&text, "\nA GPU was misused: %s", f->limit_violations);
    (void)json_object_set_new(data, "text", json_string(text.data));
    return json_dump_text(data, JSON_COMPACT);
}

static bool kernel_failure_is_in(const char *status_data)
{
    json_auto_t *data = json_load_string(status_data, 0);

    return json_is_string(json_object_get(data, "kernel"));
}

void kernel_failure_log(const struct session_entry *l, const char *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char id[UUID_TEXT_MAX];

    if (!kernel_failure_is_in(data))
        return;
    core_status_text(data, &text);
    log_info("a kernel failed session=%s (%s): %s", uuid_format(&l->s.id, id), l->s.name,
             text.data);
}

bool kernel_failure_is_noted(const struct session_entry *l)
{
    return kernel_failure_is_in(l->s.status_data);
}

/* ---- lost agents ---- */

/* Its node ended the kernel while it was cut off, and was back before it was given up. */
static bool kernel_failure_is_lease_over(const struct kernel_entry *f)
{
    return f->fact == FACT_ENDED && f->reason && strcmp(f->reason, REASON_AGENT_LOST) == 0;
}

bool kernel_failure_is_given_up(const struct core *core, const struct session_entry *l, size_t rank,
                                bool forced)
{
    const char *id = l->s.kernels[rank].agent_id;
    const struct agent_entry *a = agent_entry_find(core, id);

    return kernel_failure_is_lease_over(&l->kernels[rank])
           || agent_entry_is_given_up(core, id, forced)
           || (a && a->is_known && a->a.status == AGENT_LOST && a->loss_handled
               && (l->s.spec->on_node_loss || rerun_leaves_lost_agent(l)));
}

bool kernel_failure_restarts_lost(const struct session_entry *l)
{
    const char *word = session_on_node_loss(&l->s);

    return word && strcmp(word, SESSION_ON_NODE_LOSS_RESTART_KERNEL) == 0;
}

bool kernel_failure_restarts_all(const struct session_entry *l)
{
    const char *said = l->s.spec->on_node_loss, *group = l->resource_group->g.agent_loss_policy;

    return said ? strcmp(said, SESSION_ON_NODE_LOSS_END) != 0
                : group && strcmp(group, "requeue") == 0;
}

char *kernel_failure_loss_json(const struct session_entry *l, size_t rank)
{
    const char *agent = l->s.kernels[rank].agent_id;
    json_auto_t *kernels = json_array(), *data = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char hostname[KERNEL_HOSTNAME_MAX];

    if (l->s.kernel_count == 1)
        return NULL;
    strbuf_addf(&text, "Agent '%s' was lost with", agent);
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        const struct kernel *k = &l->s.kernels[i];

        if (!k->agent_id || strcmp(k->agent_id, agent) != 0 || !kernel_is_holding(k->status))
            continue;
        strbuf_addf(&text, "%s %s", json_array_size(kernels) ? "," : "",
                    kernel_hostname(k, hostname));
        (void)json_array_append_new(kernels, json_string(hostname));
    }
    strbuf_adds(&text, " of this session.");
    data = json_pack("{s:O, s:s, s:O, s:s}", "kernel", json_array_get(kernels, 0), "agent", agent,
                     "kernels", kernels, "text", text.data);
    return json_dump_text(data, JSON_COMPACT);
}
