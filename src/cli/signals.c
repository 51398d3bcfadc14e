/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as events of a loop. */
#include "cli/signals.h"

static void signals_on_signal(uv_signal_t *handle, int signum)
{
    struct cli_signals *signals = handle->data;

    signals->on_signal(signals->data, signum);
}

void cli_signals_open(struct cli_signals *signals, uv_loop_t *loop, const int *signums,
                      cli_signal_fn *on_signal, void *data)
{
    *signals = (struct cli_signals){ .loop = loop, .on_signal = on_signal, .data = data };
    for (; signums[signals->count]; signals->count++) {
        uv_signal_t *handle = &signals->handles[signals->count];

        (void)uv_signal_init(loop, handle);
        handle->data = signals;
        (void)uv_signal_start(handle, signals_on_signal, signums[signals->count]);
    }
    signals->open = signals->count;
}

static void signals_on_closed(uv_handle_t *handle)
{
    struct cli_signals *signals = handle->data;

    signals->open--;
}

void cli_signals_close(struct cli_signals *signals)
{
    for (size_t i = 0; i < signals->count; i++)
        uv_close((uv_handle_t *)&signals->handles[i], signals_on_closed);
    signals->count = 0;
    while (signals->open)
        (void)uv_run(signals->loop, UV_RUN_ONCE);
}
