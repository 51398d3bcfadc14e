/* SPDX-License-Identifier: Apache-2.0 */
/* silence.h - tell the user when a manager that they follow does not answer
 *
 * A manager that has stopped, or whose machine is cut off, ends no connection: a log without new
 * lines looks the same. While the stream is silent, a request is sent to the manager every ten
 * seconds; a note is printed when it does not answer, and when it answers again.
 */
#ifndef AQ_CLI_SILENCE_H
#define AQ_CLI_SILENCE_H

#include <uv.h>

#include "cli/cli.h"
#include "http/client.h"

struct silence {
    struct cli *cli;
    uv_loop_t *loop;
    uv_timer_t timer;
    struct exchange *asking;
    bool has_heard, is_noted, is_closed;
};

/* Begin on the client's loop; both must be there until silence_end(). */
void silence_begin(struct silence *s, struct cli *cli, uv_loop_t *loop);
/* The stream has had bytes. */
void silence_broken(struct silence *s);
/* Runs the loop until the timer is closed. */
void silence_end(struct silence *s);

#endif
