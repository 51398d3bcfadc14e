/* SPDX-License-Identifier: Apache-2.0 */
/* To open a WebSocket again. */
#include "cli/reopen.h"

#include "base/clock.h"

#define PAUSE_MSEC 300

static void reopen_on_timer(void *data)
{
    struct reopen *reopen = data;

    reopen->timer = NULL;
    reopen->fn(reopen->data);
}

bool reopen_later(struct reopen *reopen, uv_loop_t *loop, const struct aq_error *err,
                  int64_t for_usec, void (*fn)(void *data), void *data)
{
    int64_t now = clock_monotonic_usec();

    if (!reopen->since_usec)
        reopen->since_usec = now;
    if (cli_exit_for(err) != CLI_EXIT_UNREACHABLE || now - reopen->since_usec > for_usec)
        return false;
    reopen->fn = fn;
    reopen->data = data;
    reopen->timer = defer_call(loop, PAUSE_MSEC, reopen_on_timer, reopen);
    return true;
}

void reopen_done(struct reopen *reopen)
{
    defer_cancel(reopen->timer);
    *reopen = (struct reopen){ .timer = NULL };
}
