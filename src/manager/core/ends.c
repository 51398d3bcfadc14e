/* ends.c - proposals that end a session, or send it back to the queue */
#include <string.h>

#include "base/fault.h"
#include "manager/core/parts.h"

struct event *end_propose(struct core *core, struct live *l, enum session_status to,
                          const char *reason, enum session_result result, const char *data)
{
    struct event *e = propose_session(core, l, to, reason);
    AQ_CLEANUP(aq_freep) char *misuse = data ? NULL : misuse_json(l);

    if (!e)
        return NULL;
    data = data ? data : misuse;
    e->session_status.result = l->s.result == RESULT_UNDEFINED ? result : RESULT_UNDEFINED;
    if (data && !(e->session_status.status_data = strdup(data)))
        core_die("a status");
    return e;
}

void end_propose_forced(struct core *core, struct live *l)
{
    struct event *e = NULL;

    if (l->end_is_forced && !l->s.forced && (e = propose(core, l, EVENT_SESSION_FORCED)))
        e->session_change.id = l->s.id;
}

enum session_result end_result(const struct live *l)
{
    return l->s.type == SESSION_BATCH ? RESULT_FAILURE : RESULT_UNDEFINED;
}

void end_begin(struct core *core, struct live *l, const char *reason, enum session_result result,
               const char *data)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (kernel_is_holding(l->s.kernels[i].status))
            (void)propose_kernel(core, l, i, KERNEL_TERMINATING, reason);
    end_propose_forced(core, l);
    end_propose(core, l, SESSION_TERMINATING, reason, result, data);
    AQ_FAULT("core.terminate.proposed");
}

bool end_may_reschedule(const struct live *l)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (kernel_is_terminal(l->s.kernels[i].status))
            return false;
    return session_status_may_follow(l->s.status, SESSION_RESCHEDULING);
}

bool end_agents_are_connected(const struct core *core, const struct live *l)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (l->s.kernels[i].agent_id && !core_agent_is_connected(core, l->s.kernels[i].agent_id))
            return false;
    return true;
}
