/* SPDX-License-Identifier: Apache-2.0 */
/* agent.h - one node: its resources, its kernels, its link to the manager
 *
 * Everything runs on the thread of one libuv loop, but for changes of
 * directories, which are made by disk_worker.h in a worker thread.
 */
#ifndef AQ_AGENT_AGENT_H
#define AQ_AGENT_AGENT_H

#include <uv.h>

#include "agent/runtime/runtime.h"
#include "agent/settings/settings.h"
#include "base/error.h"

struct agent_daemon;

struct agent_events {
    void (*on_ready)(void *data); /* the manager has welcomed us for the first time */
    /* Fenced, revoked or rejected for good: nothing is started any more; stop. */
    void (*on_rejected)(void *data, const char *kind, const char *text);
};

/* The ways in which kernels run here. */
struct agent_runtimes {
    struct runtime *process;
    struct runtime *containers; /* NULL = none work, and 'no_containers' says why */
    const char *no_containers;
};

/* Take over the state directory (-EBUSY if another agent has it), find again what
 * ran there, and connect. Needs the certificates of identity.h. 'settings' and
 * 'runtimes' are borrowed for the agent's life.
 */
int agent_new(uv_loop_t *loop, const struct settings *settings,
              const struct agent_runtimes *runtimes, const struct agent_events *events, void *data,
              struct agent_daemon **ret, struct aq_error *err);

/* 'left' kernels could not be ended. */
typedef void (*agent_ended_fn)(void *data, size_t left);

/* End all kernels and take no more, as the agent leaves this machine. 'on_done'
 * gets the data of agent_new(), once they have ended and the manager has heard
 * of it, if that can be reached; after a minute at the latest.
 */
void agent_end_kernels(struct agent_daemon *agent, agent_ended_fn on_done);

/* Say bye and let go; kernels run on. The loop ends when all is closed. */
void agent_free(struct agent_daemon *agent);
AQ_DEFINE_CLEANUP(struct agent_daemon, agent_free)

#endif
