/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.h - starts a monitor without copying the agent
 *
 * uv_spawn() forks: the kernel copies the page tables of the whole agent for
 * a child that is another program at once, which cost as much as all else that
 * the agent does for a short job. posix_spawn() does not, and a descriptor of
 * the process tells of its end.
 */
#ifndef AQ_AGENT_RUNTIME_SPAWN_H
#define AQ_AGENT_RUNTIME_SPAWN_H

#include <uv.h>

#include "base/error.h"

#define SPAWN_FDS 2

struct spawned;

/* It has ended and was reaped; the handle is gone after the call. */
typedef void spawned_end_fn(void *data, int status, int signum);

/* Start args[0], an absolute path, in a session of its own, without input or
 * output, with our standard error and 'fds' (-1 = none) as descriptors 3 and 4.
 * It outlives us.
 */
int spawn(uv_loop_t *loop, char *const args[], const int fds[SPAWN_FDS], spawned_end_fn *on_end,
          void *data, struct spawned **ret, struct aq_error *err);

/* No callback follows, and the loop does not wait for it any more. NULL is fine. */
void spawned_forget(struct spawned *spawned);

/* The loop has ended: let go of all that were forgotten and run on. It has to
 * run once more to close them.
 */
void spawned_leave(void);

#endif
