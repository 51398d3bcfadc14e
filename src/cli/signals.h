/* SPDX-License-Identifier: Apache-2.0 */
/* signals.h - signals as events of a loop, while a command works */
#ifndef AQ_CLI_SIGNALS_H
#define AQ_CLI_SIGNALS_H

#include <stddef.h>
#include <uv.h>

#define CLI_SIGNALS_MAX 5

typedef void cli_signal_fn(void *data, int signum);

struct cli_signals {
    uv_loop_t *loop;
    uv_signal_t handles[CLI_SIGNALS_MAX];
    size_t count, open;
    cli_signal_fn *on_signal;
    void *data;
};

/* Give these signals, of which 0 is the last, to 'on_signal' in the loop's thread. */
void cli_signals_open(struct cli_signals *signals, uv_loop_t *loop, const int *signums,
                      cli_signal_fn *on_signal, void *data);

/* Runs the loop until nothing of them is left in it. Nothing if they were never opened. */
void cli_signals_close(struct cli_signals *signals);

#endif
