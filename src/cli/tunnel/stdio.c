/* SPDX-License-Identifier: Apache-2.0 */
/* A tunnel between standard input and output, as ssh(1) and others want it of a program. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/session/standard_input.h"
#include "cli/tunnel/tunnel.h"

struct stdio_run {
    struct tunnel *tunnel; /* NULL after its end */
    struct standard_input input;
    bool is_over;
    int r;
    struct aq_error err;
};

static void stdio_leave(struct stdio_run *run, int r)
{
    if (run->is_over)
        return;
    run->is_over = true;
    run->r = r;
}

static void stdio_on_input(void *data, const char *message, size_t len)
{
    struct stdio_run *run = data;
    int r;

    if (!run->tunnel)
        return;
    if (!len) {
        tunnel_end(run->tunnel);
        return;
    }
    r = tunnel_send(run->tunnel, message + 1, len - 1);
    standard_input_pause(&run->input, r != 0);
}

static void stdio_on_open(void *data)
{
    struct stdio_run *run = data;

    standard_input_pause(&run->input, false);
}

static void stdio_on_bytes(void *data, const char *bytes, size_t len)
{
    struct stdio_run *run = data;
    int r = standard_output_write(STDOUT_FILENO, bytes, len);

    if (r < 0)
        stdio_leave(run, aq_fail(&run->err, -r, "standard output: %s", strerror(-r)));
}

/* Who reads from us sees the end; the descriptor stays taken. */
static void stdio_on_end(void *data)
{
    AQ_CLEANUP(aq_closep) int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    (void)data;
    (void)dup2(null, STDOUT_FILENO);
}

static void stdio_on_close(void *data, const struct aq_error *err)
{
    struct stdio_run *run = data;

    run->tunnel = NULL;
    run->err = *err;
    stdio_leave(run, -err->code);
}

static const struct tunnel_ops stdio_tunnel_ops = {
    .on_open = stdio_on_open,
    .on_bytes = stdio_on_bytes,
    .on_end = stdio_on_end,
    .on_drain = stdio_on_open,
    .on_close = stdio_on_close,
};

int tunnel_run_stdio(struct cli *cli, const struct follow_session *session, uint16_t port,
                     struct aq_error *err)
{
    struct stdio_run run = { .r = 0 };
    uv_loop_t *loop;
    int r = cli_client_open(cli, &loop, NULL, err);

    if (r == 0)
        r = standard_input_open(&run.input, loop, stdio_on_input, &run, err);
    if (r == 0)
        r = tunnel_open(cli, session, NULL, port, &stdio_tunnel_ops, &run, &run.tunnel, err);
    while (r == 0 && !run.is_over)
        (void)uv_run(loop, UV_RUN_ONCE);
    tunnel_free(run.tunnel);
    standard_input_close(&run.input);
    if (r == 0 && run.r < 0) {
        *err = run.err;
        r = run.r;
    }
    return r;
}
