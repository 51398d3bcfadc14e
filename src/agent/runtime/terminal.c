/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.c - attaches to the terminal that a monitor keeps */
#include "agent/runtime/terminal.h"

#include <errno.h>
#include <string.h>

#include "agent/runtime/packets.h"

struct terminal {
    struct runtime_terminal super;
    struct packets *packets;
    const struct runtime_terminal_ops *ops;
    void *data;
};

static void terminal_on_packet(void *data, const char *packet, size_t len)
{
    static const char skipped[] = "\r\n[output was skipped]\r\n";
    struct terminal *t = data;

    if (len == 0 || packet[0] == MONITOR_GONE)
        t->ops->on_closed(t->data);
    else if (packet[0] == MONITOR_OUTPUT)
        t->ops->on_output(t->data, packet + 1, len - 1);
    else if (packet[0] == MONITOR_SKIPPED)
        t->ops->on_output(t->data, skipped, sizeof(skipped) - 1);
}

int terminal_open(uv_loop_t *loop, const char *directory, const struct runtime_ops *runtime,
                  const struct runtime_terminal_ops *ops, void *data, struct runtime_terminal **ret,
                  struct aq_error *err)
{
    struct terminal *t = calloc(1, sizeof(*t));
    int fd, r;

    if (!t)
        return aq_fail_oom(err);
    t->super.ops = runtime;
    t->ops = ops;
    t->data = data;
    fd = packets_connect(directory, err);
    r = fd < 0 ? fd : packets_new(loop, fd, terminal_on_packet, t, &t->packets, err);
    if (r < 0) {
        free(t);
        return r;
    }
    (void)packets_send(t->packets, &(const char){ MONITOR_ATTACH }, 1);
    *ret = &t->super;
    return 0;
}

/* A monitor that is slow loses input, as a real terminal does. */
int terminal_input(struct runtime_terminal *terminal, const char *bytes, size_t len)
{
    struct terminal *t = AQ_CONTAINER_OF(terminal, struct terminal, super);
    char packet[MONITOR_MESSAGE_MAX];

    packet[0] = MONITOR_INPUT;
    while (len) {
        size_t part = AQ_MIN(len, sizeof(packet) - 1);

        memcpy(packet + 1, bytes, part);
        if (packets_send(t->packets, packet, part + 1) < 0)
            return 0;
        bytes += part;
        len -= part;
    }
    return 0;
}

void terminal_resize(struct runtime_terminal *terminal, uint16_t rows, uint16_t cols)
{
    struct terminal *t = AQ_CONTAINER_OF(terminal, struct terminal, super);
    const struct monitor_resize packet = { .type = MONITOR_RESIZE, .rows = rows, .cols = cols };

    (void)packets_send(t->packets, &packet, sizeof(packet));
}

void terminal_pause(struct runtime_terminal *terminal, bool paused)
{
    packets_pause(AQ_CONTAINER_OF(terminal, struct terminal, super)->packets, paused);
}

void terminal_detach(struct runtime_terminal *terminal)
{
    struct terminal *t = AQ_CONTAINER_OF(terminal, struct terminal, super);

    packets_close(t->packets);
    free(t);
}
