/* SPDX-License-Identifier: Apache-2.0 */
/* standard_input.c - this program's standard input, read on the loop for a session */
#include "cli/session/standard_input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

bool standard_input_is_given(void)
{
    int flags = fcntl(STDIN_FILENO, F_GETFL);
    struct stat st;

    if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY || fstat(STDIN_FILENO, &st) < 0)
        return false;
    return !S_ISDIR(st.st_mode) && !isatty(STDIN_FILENO)
           && !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)); /* /dev/null */
}

/* ---- a piece that stays where it is ---- */

static mode_t standard_input_type(void)
{
    struct stat st;

    return fstat(STDIN_FILENO, &st) < 0 ? 0 : st.st_mode & S_IFMT;
}

static ssize_t standard_input_look_into_pipe(char *bytes)
{
    int copy[2];
    ssize_t got;

    if (pipe2(copy, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    got = tee(STDIN_FILENO, copy[1], STANDARD_INPUT_HELD_MAX, SPLICE_F_NONBLOCK);
    if (got > 0)
        got = read(copy[0], bytes, STANDARD_INPUT_HELD_MAX);
    (void)close(copy[0]);
    (void)close(copy[1]);
    return got;
}

static ssize_t standard_input_look(char *bytes)
{
    return standard_input_type() == S_IFIFO
               ? standard_input_look_into_pipe(bytes)
               : recv(STDIN_FILENO, bytes, STANDARD_INPUT_HELD_MAX, MSG_PEEK | MSG_DONTWAIT);
}

/* ---- all of it ---- */

static void standard_input_go_on(struct standard_input *in);

static void standard_input_give(struct standard_input *in, ssize_t got)
{
    if (in->is_closing || in->is_ended)
        return;
    in->is_ended = got <= 0;
    in->is_shown = in->is_held && got > 0;
    in->message[0] = STANDARD_INPUT_CHANNEL;
    if ((in->is_ended || in->is_shown) && in->has_poll)
        (void)uv_poll_stop(&in->poll);
    in->fn(in->data, in->message, in->is_ended ? 0 : (size_t)got + 1);
    standard_input_go_on(in);
}

static void standard_input_on_ready(uv_poll_t *poll, int status, int events)
{
    struct standard_input *in = poll->data;
    ssize_t got = status < 0    ? 0
                  : in->is_held ? standard_input_look(in->message + 1)
                                : read(STDIN_FILENO, in->message + 1, STANDARD_INPUT_MAX);

    (void)events;
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    standard_input_give(in, got);
}

static void standard_input_on_read(uv_fs_t *request)
{
    struct standard_input *in = request->data;
    ssize_t got = request->result;

    uv_fs_req_cleanup(request);
    in->is_reading = false;
    standard_input_give(in, got);
}

static void standard_input_go_on(struct standard_input *in)
{
    const uv_buf_t buf = uv_buf_init(in->message + 1,
                                     in->is_held ? STANDARD_INPUT_HELD_MAX : STANDARD_INPUT_MAX);
    int64_t at = in->is_held && !in->has_poll ? lseek(STDIN_FILENO, 0, SEEK_CUR) : -1;

    if (in->is_paused || in->is_ended || in->is_closing || in->is_shown)
        return;
    if (in->has_poll) {
        (void)uv_poll_start(&in->poll, UV_READABLE | UV_DISCONNECT, standard_input_on_ready);
    } else if (!in->is_reading) {
        in->read.data = in;
        in->is_reading = uv_fs_read(in->loop, &in->read, STDIN_FILENO, &buf, 1, at,
                                    standard_input_on_read)
                         == 0;
    }
}

/* What epoll does not take is a file, which never keeps a reader waiting. */
int standard_input_open(struct standard_input *in, uv_loop_t *loop, standard_input_fn *fn,
                        void *data, struct aq_error *err)
{
    int r;

    *in = (struct standard_input){ .fn = fn, .data = data, .is_paused = true };
    in->saved_flags = fcntl(STDIN_FILENO, F_GETFL);
    r = uv_poll_init(loop, &in->poll, STDIN_FILENO);
    if (r < 0 && r != UV_EPERM)
        return aq_fail(err, -r, "standard input: %s", uv_strerror(r));
    in->loop = loop;
    in->has_poll = in->is_open = r == 0;
    in->poll.data = in;
    return 0;
}

bool standard_input_hold(struct standard_input *in)
{
    mode_t type = standard_input_type();

    in->is_held = type == S_IFIFO || type == S_IFSOCK || type == S_IFREG;
    return in->is_held;
}

void standard_input_take(struct standard_input *in, size_t bytes, bool more)
{
    char piece[STANDARD_INPUT_HELD_MAX];

    if (standard_input_type() == S_IFREG)
        (void)lseek(STDIN_FILENO, (off_t)bytes, SEEK_CUR);
    else
        while (bytes) {
            ssize_t got = read(STDIN_FILENO, piece, AQ_MIN(bytes, sizeof(piece)));

            if (got == 0 || (got < 0 && errno != EINTR))
                break;
            bytes -= got > 0 ? (size_t)got : 0;
        }
    if (!more)
        return;
    in->is_held = in->is_shown = false;
    standard_input_go_on(in);
}

void standard_input_pause(struct standard_input *in, bool paused)
{
    in->is_paused = paused;
    if (paused && in->has_poll)
        (void)uv_poll_stop(&in->poll);
    standard_input_go_on(in);
}

static void standard_input_on_closed(uv_handle_t *handle)
{
    struct standard_input *in = handle->data;

    in->is_open = false;
}

void standard_input_close(struct standard_input *in)
{
    if (!in->loop)
        return;
    in->is_closing = true;
    if (in->has_poll)
        uv_close((uv_handle_t *)&in->poll, standard_input_on_closed);
    while (in->is_open || in->is_reading)
        (void)uv_run(in->loop, UV_RUN_ONCE);
    if (in->saved_flags >= 0)
        (void)fcntl(STDIN_FILENO, F_SETFL, in->saved_flags);
    in->loop = NULL;
}

int standard_output_write(int fd, const char *bytes, size_t len)
{
    while (len) {
        struct pollfd ready = { .fd = fd, .events = POLLOUT };
        ssize_t put = write(fd, bytes, len);

        if (put < 0 && errno == EAGAIN)
            (void)poll(&ready, 1, -1);
        else if (put < 0 && errno != EINTR)
            return -errno;
        if (put > 0) {
            bytes += put;
            len -= (size_t)put;
        }
    }
    return 0;
}
