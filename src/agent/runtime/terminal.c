/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.c - attaches to the terminal that a monitor keeps, or the runner of a container */
#include "agent/runtime/terminal.h"

#include "agent/runtime/runner_wire.h"
#include "base/memory.h"
#include "monitor/protocol.h"

struct runtime_terminal {
    struct runner_wire *wire;
    const struct runtime_terminal_ops *ops;
    void *data;
};

_Static_assert((int)MONITOR_OUTPUT == (int)RUNNER_OUTPUT
                   && (int)MONITOR_SKIPPED == (int)RUNNER_SKIPPED
                   && (int)MONITOR_GONE == (int)RUNNER_ENDED
                   && (int)MONITOR_ATTACH == (int)RUNNER_ATTACH
                   && (int)MONITOR_INPUT == (int)RUNNER_INPUT
                   && (int)MONITOR_RESIZE == (int)RUNNER_RESIZE
                   && sizeof(struct monitor_resize) == sizeof(struct runner_resize)
                   && MONITOR_MESSAGE_MAX <= RUNNER_OUTPUT_MAX,
               "a terminal of a monitor is as one of a runner");

static void terminal_on_packet(void *data, const char *packet, size_t len)
{
    static const char skipped[] = "\r\n[output was skipped]\r\n";
    struct runtime_terminal *t = data;

    if (len == 0 || packet[0] == RUNNER_ENDED || packet[0] == RUNNER_FAILED)
        t->ops->on_closed(t->data);
    else if (packet[0] == RUNNER_OUTPUT)
        t->ops->on_output(t->data, packet + 1, len - 1);
    else if (packet[0] == RUNNER_SKIPPED)
        t->ops->on_output(t->data, skipped, sizeof(skipped) - 1);
}

static void terminal_on_drain(void *data)
{
    struct runtime_terminal *t = data;

    t->ops->on_drain(t->data);
}

int terminal_open(uv_loop_t *loop, const char *directory, const char *socket, pid_t keeper,
                  size_t piece_max, const struct runtime_terminal_ops *ops, void *data,
                  struct runtime_terminal **ret, struct aq_error *err)
{
    static const struct runner_wire_ops wire_ops = { .on_packet = terminal_on_packet,
                                                     .on_drain = terminal_on_drain };
    struct runtime_terminal *t = aq_alloc(sizeof(*t));
    int r;

    t->ops = ops;
    t->data = data;
    r = runner_wire_open(loop, directory, socket, keeper, piece_max, &wire_ops, t, &t->wire, err);
    if (r < 0) {
        free(t);
        return r;
    }
    (void)runner_wire_send_bytes(t->wire, RUNNER_ATTACH, NULL, 0);
    *ret = t;
    return 0;
}

void runtime_resize(struct runtime_terminal *terminal, uint16_t rows, uint16_t cols)
{
    const struct runner_resize packet = { .type = RUNNER_RESIZE, .rows = rows, .cols = cols };

    (void)runner_wire_send(terminal->wire, &packet, sizeof(packet));
}

void runtime_detach(struct runtime_terminal *terminal)
{
    if (!terminal)
        return;
    runner_wire_close(terminal->wire);
    free(terminal);
}

/* ---- as an end of a pump ---- */

/* One whose program has ended needs no input; on_closed() follows, after the last output. */
static int terminal_put(void *end, const char *bytes, size_t len)
{
    struct runtime_terminal *t = end;
    int r = runner_wire_send_bytes(t->wire, RUNNER_INPUT, bytes, len);

    return r == -EPIPE ? 0 : r;
}

static void terminal_pause(void *end, bool is_paused)
{
    struct runtime_terminal *t = end;

    runner_wire_pause(t->wire, is_paused);
}

const struct pump_ops runtime_terminal_pump = { .put = terminal_put, .pause = terminal_pause };
