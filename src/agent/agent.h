/* agent.h - one node: its resources, its kernels, its link to the manager
 *
 * Everything runs on the thread of one libuv loop, but for changes of
 * folders, which are made by disk.h in a worker thread.
 */
#ifndef AQ_AGENT_AGENT_H
#define AQ_AGENT_AGENT_H

#include <uv.h>

#include "agent/runtime/runtime.h"
#include "agent/settings.h"
#include "base/error.h"

struct agent;

struct agent_events {
    void (*on_ready)(void *data); /* the manager has welcomed us for the first time */
    /* Fenced, revoked or refused for good: nothing is started any more; stop. */
    void (*on_refused)(void *data, const char *kind, const char *text);
};

/* The ways in which kernels run here. */
struct agent_runtimes {
    struct runtime *process;
    struct runtime *containers; /* NULL = none work, and 'no_containers' says why */
    const char *no_containers;
};

/* Take over the state folder (-EBUSY if another agent has it), find again what
 * ran there, and connect. Needs the certificates of joining.h. 'settings' and
 * 'runtimes' are borrowed for the agent's life.
 */
int agent_new(uv_loop_t *loop, const struct settings *settings,
              const struct agent_runtimes *runtimes, const struct agent_events *events, void *data,
              struct agent **ret, struct aq_error *err);

/* Say bye and let go; kernels run on. The loop ends when all is closed. */
void agent_free(struct agent *agent);
AQ_DEFINE_CLEANUP(struct agent, agent_free)

#endif
