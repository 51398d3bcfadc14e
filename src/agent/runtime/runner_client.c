/* SPDX-License-Identifier: Apache-2.0 */
/* runner_client.c - what the agent asks of aliquot-runner inside a container */
#include "agent/runtime/runner_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/runtime/runner_wire.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "monitor/protocol.h"

/* Copy the packet into the struct of its type; false if it is too short. */
#define UNPACK(into, packet, len) \
    ((len) >= sizeof(into) && (memcpy(&(into), (packet), sizeof(into)), true))

/* ---- commands ---- */

struct runner_command {
    struct runner_wire *wire; /* NULL once it has told its end */
    const struct runner_command_ops *ops;
    void *data;
    bool is_feed, is_files, is_started;
};

static void runner_client_tell_failed(struct runner_command *c, int code, const char *text)
{
    struct aq_error err = { 0 };

    runner_wire_close(AQ_TAKE(c->wire));
    (void)aq_fail_kind(&err, code, code == ECONNRESET ? "session-ended" : "exec-failed", "%s",
                       text);
    c->ops->on_failed(c->data, &err);
}

/* Who does not know FILES would say nothing to it. */
static void runner_client_on_hello(struct runner_command *c, const char *packet, size_t len)
{
    struct runner_hello hello;
    struct aq_error err = { 0 };

    if (!c->is_files || !UNPACK(hello, packet, len) || hello.protocol >= RUNNER_WITH_FILES)
        return;
    runner_wire_close(AQ_TAKE(c->wire));
    (void)aq_fail_kind(&err, ENOTSUP, "old-runner",
                       "the session was started by an older release, which moves no files; "
                       "restart it");
    c->ops->on_failed(c->data, &err);
}

/* Of a monitor this is a byte. */
static void runner_client_on_started(struct runner_command *c, const char *packet, size_t len)
{
    struct runner_started started;

    c->is_started = true;
    if (c->ops->on_taken && UNPACK(started, packet, len) && started.reports)
        c->ops->on_taken(c->data, 0, false);
    c->ops->on_started(c->data);
}

static void runner_client_on_taken(struct runner_command *c, const char *packet, size_t len)
{
    struct runner_taken taken;

    if (c->ops->on_taken && UNPACK(taken, packet, len))
        c->ops->on_taken(c->data, taken.bytes, taken.is_all);
}

static void runner_client_on_failed(struct runner_command *c, const char *packet, size_t len)
{
    struct runner_failed failed;

    if (!UNPACK(failed, packet, len))
        return;
    failed.text[sizeof(failed.text) - 1] = '\0';
    runner_client_tell_failed(c, failed.code > 0 ? failed.code : EIO, failed.text);
}

static void runner_client_on_ended(struct runner_command *c, const char *packet, size_t len)
{
    struct runner_ended ended;

    if (!UNPACK(ended, packet, len))
        return;
    runner_wire_close(AQ_TAKE(c->wire));
    c->ops->on_ended(c->data, ended.status);
}

static void runner_client_on_command_packet(void *data, const char *packet, size_t len)
{
    struct runner_command *c = data;

    if (len == 0 && c->is_feed && !c->is_started) {
        runner_client_tell_failed(c, EBUSY,
                                  "the program's input has ended, or comes from elsewhere");
        return;
    }
    if (len == 0) {
        runner_client_tell_failed(c, ECONNRESET, "the container has ended");
        return;
    }
    switch (packet[0]) {
    case RUNNER_HELLO:
        runner_client_on_hello(c, packet, len);
        break;
    case RUNNER_STARTED:
        runner_client_on_started(c, packet, len);
        break;
    case RUNNER_TAKEN:
        runner_client_on_taken(c, packet, len);
        break;
    case RUNNER_OUTPUT:
        c->ops->on_output(c->data, false, packet + 1, len - 1);
        break;
    case RUNNER_ERRORS:
        c->ops->on_output(c->data, true, packet + 1, len - 1);
        break;
    case RUNNER_ENDED:
        runner_client_on_ended(c, packet, len);
        break;
    case RUNNER_FAILED:
        runner_client_on_failed(c, packet, len);
        break;
    default:
        break;
    }
}

static void runner_client_on_command_drain(void *data)
{
    struct runner_command *c = data;

    c->ops->on_drain(c->data);
}

static void runner_client_add_strings(struct strbuf *out, const char *const *strings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        strbuf_add(out, strings[i], strlen(strings[i]) + 1);
}

static int runner_client_send_command(struct runner_wire *wire,
                                      const struct runner_command_spec *spec, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf packet = STRBUF_INIT;
    const struct runner_exec head = {
        .type = spec->is_files ? RUNNER_FILES : RUNNER_EXEC,
        .rows = spec->rows,
        .cols = spec->cols,
        .flags = (spec->tty ? RUNNER_EXEC_TTY : 0) | (spec->has_input ? RUNNER_EXEC_INPUT : 0)
                 | (spec->reports_input ? RUNNER_EXEC_REPORTS : 0),
        .argc = (uint16_t)spec->argc,
        .envc = (uint16_t)spec->envc,
    };
    const char *cwd = spec->cwd ? spec->cwd : "";

    if (spec->argc > RUNNER_ARGUMENTS_MAX || spec->envc > RUNNER_ARGUMENTS_MAX)
        return aq_fail_field(err, E2BIG, "argv", "a command has %d arguments at most",
                             RUNNER_ARGUMENTS_MAX);
    strbuf_add(&packet, &head, sizeof(head));
    runner_client_add_strings(&packet, spec->argv, spec->argc);
    runner_client_add_strings(&packet, spec->envp, spec->envc);
    runner_client_add_strings(&packet, &cwd, 1);
    if (packet.len > RUNNER_PACKET_MAX)
        return aq_fail_field(err, E2BIG, "argv",
                             "the command is longer than %d bytes; give it as a file or as input",
                             RUNNER_PACKET_MAX);
    return runner_wire_send(wire, packet.data, packet.len) < 0
               ? aq_fail(err, ENOTCONN, "the container does not run")
               : 0;
}

static const struct runner_wire_ops command_wire_ops = {
    .on_packet = runner_client_on_command_packet, .on_drain = runner_client_on_command_drain
};

int runner_command_new(uv_loop_t *loop, const char *directory, pid_t keeper,
                       const struct runner_command_spec *spec, const struct runner_command_ops *ops,
                       void *data, struct runner_command **ret, struct aq_error *err)
{
    struct runner_command *c = aq_alloc(sizeof(*c));
    int r;

    c->ops = ops;
    c->data = data;
    c->is_files = spec->is_files;
    r = runner_wire_open(loop, directory, RUNNER_SOCKET, keeper, RUNNER_OUTPUT_MAX,
                         &command_wire_ops, c, &c->wire, err);
    if (r == 0)
        r = runner_client_send_command(c->wire, spec, err);
    if (r < 0)
        runner_command_free(c);
    else
        *ret = c;
    return r;
}

/* The monitor's messages about input are those of the runner. */
_Static_assert((int)MONITOR_INPUT == (int)RUNNER_INPUT
                   && (int)MONITOR_END_INPUT == (int)RUNNER_END_INPUT
                   && (int)MONITOR_FED == (int)RUNNER_STARTED,
               "input goes to monitor and runner alike");

int runner_feed_new(uv_loop_t *loop, const char *directory, const struct runner_command_ops *ops,
                    void *data, struct runner_command **ret, struct aq_error *err)
{
    struct runner_command *c = aq_alloc(sizeof(*c));
    int r;

    c->ops = ops;
    c->data = data;
    c->is_feed = true;
    r = runner_wire_open(loop, directory, MONITOR_SOCKET, 0, MONITOR_INPUT_MAX, &command_wire_ops,
                         c, &c->wire, err);
    if (r == 0 && runner_wire_send_bytes(c->wire, MONITOR_FEED, NULL, 0) < 0)
        r = aq_fail(err, ENOTCONN, "the program does not run");
    if (r < 0)
        runner_command_free(c);
    else
        *ret = c;
    return r;
}

int runner_command_input(struct runner_command *command, const char *bytes, size_t len)
{
    if (!command->wire)
        return -EPIPE;
    return len ? runner_wire_send_bytes(command->wire, RUNNER_INPUT, bytes, len) : 0;
}

void runner_command_end_input(struct runner_command *command)
{
    if (command->wire)
        (void)runner_wire_send_bytes(command->wire, RUNNER_END_INPUT, NULL, 0);
}

void runner_command_resize(struct runner_command *command, uint16_t rows, uint16_t cols)
{
    const struct runner_resize packet = { .type = RUNNER_RESIZE, .rows = rows, .cols = cols };

    if (command->wire)
        (void)runner_wire_send(command->wire, &packet, sizeof(packet));
}

void runner_command_signal(struct runner_command *command, int signum)
{
    const struct runner_signal packet = { .type = RUNNER_SIGNAL, .signal = signum };

    if (command->wire)
        (void)runner_wire_send(command->wire, &packet, sizeof(packet));
}

void runner_command_pause(struct runner_command *command, bool paused)
{
    if (command->wire)
        runner_wire_pause(command->wire, paused);
}

void runner_command_free(struct runner_command *command)
{
    if (!command)
        return;
    runner_wire_close(command->wire);
    free(command);
}
