/* SPDX-License-Identifier: Apache-2.0 */
/* screen.c - the whole terminal, for programs that one stays in */
#include "base/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/utf8.h"

#define ROWS_USUAL 24
#define COLUMNS_USUAL 80

/* After an Esc the rest of a sequence comes at once, over a slow line a little later. */
#define REST_USEC (300 * USEC_PER_MSEC)

/* How often to look whether the terminal is ours again. */
#define BACKGROUND_MSEC 200

/* Alternate screen, no cursor, lines are not continued; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"

/* ---- signals: a handler may run in any thread, so it only writes to a pipe ---- */

static const int screen_signals[] = {
    SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH, SIGCONT
};
static struct sigaction screen_before[AQ_COUNT(screen_signals)];
static int screen_pipe[2] = { -1, -1 };

static void screen_on_signal(int signum)
{
    char byte = (char)signum;
    int saved = errno;
    ssize_t written = write(screen_pipe[1], &byte, 1); /* full: there is enough to do */

    (void)written;
    errno = saved;
}

static int screen_catch_signals(struct aq_error *err)
{
    struct sigaction action = { .sa_handler = screen_on_signal, .sa_flags = SA_RESTART };

    if (pipe2(screen_pipe, O_NONBLOCK | O_CLOEXEC) < 0)
        return aq_fail_errno(err, "pipe");
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < AQ_COUNT(screen_signals); i++)
        (void)sigaction(screen_signals[i], &action, &screen_before[i]);
    return 0;
}

static void screen_release_signals(void)
{
    for (size_t i = 0; i < AQ_COUNT(screen_signals); i++)
        (void)sigaction(screen_signals[i], &screen_before[i], NULL);
    aq_closep(&screen_pipe[0]);
    aq_closep(&screen_pipe[1]);
    screen_pipe[0] = screen_pipe[1] = -1;
}

/* ---- the terminal ---- */

bool screen_is_possible(void)
{
    const char *term = getenv("TERM");

    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !(term && strcmp(term, "dumb") == 0);
}

static void screen_measure(struct screen *s)
{
    struct winsize size;
    bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col;

    s->rows = is_known ? size.ws_row : ROWS_USUAL;
    s->columns = is_known ? size.ws_col : COLUMNS_USUAL;
}

/* Ctrl-C and Ctrl-Z stay signals: they are for all programs of a pipeline. */
static void screen_enter(struct screen *s)
{
    struct termios raw = s->saved;

    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    raw.c_iflag &= ~(tcflag_t)(IXON | ISTRIP);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    (void)fs_write_all(STDOUT_FILENO, ENTER, sizeof(ENTER) - 1);
    s->is_entered = true;
    screen_measure(s);
}

static void screen_leave(struct screen *s)
{
    if (!s->is_entered)
        return;
    (void)fs_write_all(STDOUT_FILENO, LEAVE, sizeof(LEAVE) - 1);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &s->saved);
    s->is_entered = false;
}

int screen_open(struct screen *s, struct aq_error *err)
{
    int r;

    *s = (struct screen){ .is_ascii = MB_CUR_MAX == 1, .keys = KEY_READER_INIT };
    if (tcgetattr(STDIN_FILENO, &s->saved) < 0)
        return aq_fail_errno(err, "terminal");
    r = screen_catch_signals(err);
    if (r < 0)
        return r;
    s->is_open = true;
    screen_enter(s);
    return 0;
}

void screen_close(struct screen *s)
{
    if (!s->is_open)
        return;
    screen_leave(s);
    screen_release_signals();
    s->is_open = false;
}

/* ---- what signals do ---- */

/* End or stop as without us. Nothing stops a process group that no shell watches: it goes on. */
static void screen_obey(struct screen *s, int signum)
{
    screen_leave(s);
    (void)signal(signum, SIG_DFL);
    (void)raise(signum);
}

static void screen_restart(struct screen *s)
{
    struct sigaction action = { .sa_handler = screen_on_signal, .sa_flags = SA_RESTART };

    (void)sigaction(SIGTSTP, &action, NULL);
    screen_enter(s);
}

static bool screen_take_signal(int *ret_signum)
{
    unsigned char byte;

    if (read(screen_pipe[0], &byte, 1) != 1)
        return false;
    *ret_signum = byte;
    return true;
}

struct screen_came {
    bool is_stopped, is_continued, is_changed;
    uint32_t key;
};

/* All that came since. What ends the program ends it here. */
static void screen_take_signals(struct screen *s, struct screen_came *came)
{
    int signum;

    while (screen_take_signal(&signum)) {
        came->is_stopped |= signum == SIGTSTP;
        came->is_continued |= signum == SIGCONT;
        came->is_changed |= signum == SIGWINCH;
        if (signum == SIGINT)
            came->key = KEY_INTERRUPT;
        else if (signum == SIGTERM || signum == SIGHUP || signum == SIGQUIT)
            screen_obey(s, signum);
    }
}

/* A shell has the terminal. */
static bool screen_is_background(void)
{
    pid_t group = tcgetpgrp(STDIN_FILENO);

    return group >= 0 && group != getpgrp();
}

/* A stopped program that is ended must not touch the terminal again, which is its shell's:
 * that would stop it once more. It is continued and ended at once, but another thread may
 * be the one that hears of its end, a moment later.
 */
static void screen_await_terminal(struct screen *s, struct screen_came *came)
{
    struct pollfd polls = { screen_pipe[0], POLLIN, 0 };

    while (!came->key && screen_is_background()) {
        (void)poll(&polls, 1, BACKGROUND_MSEC);
        screen_take_signals(s, came);
    }
}

static uint32_t screen_handle_signals(struct screen *s)
{
    struct screen_came came = { .key = KEY_NONE };

    screen_take_signals(s, &came);
    if (came.is_stopped) {
        screen_obey(s, SIGTSTP);
        came.is_continued = true;
        screen_take_signals(s, &came);
    }
    if (came.is_continued)
        screen_await_terminal(s, &came);
    if (came.key)
        return came.key;
    if (came.is_continued)
        screen_restart(s);
    if (came.is_changed)
        screen_measure(s);
    return came.is_continued || came.is_changed ? SCREEN_CHANGED : KEY_NONE;
}

/* ---- keys ---- */

static uint32_t screen_take_key(struct screen *s)
{
    uint32_t key = KEY_NONE;

    while (!key && s->at < s->len)
        key = key_reader_feed(&s->keys, s->bytes[s->at++]);
    return key;
}

/* Nothing is there to be read: an Esc that was alone for long enough is a key. */
static uint32_t screen_end_key(struct screen *s)
{
    bool is_late = clock_monotonic_usec() >= s->read_usec + REST_USEC;

    return is_late && key_reader_is_amid(&s->keys) ? key_reader_end(&s->keys) : KEY_NONE;
}

/* False at the end of the input. */
static bool screen_read(struct screen *s)
{
    ssize_t got = read(STDIN_FILENO, s->bytes, sizeof(s->bytes));

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    s->at = 0;
    s->len = got > 0 ? (size_t)got : 0;
    s->read_usec = clock_monotonic_usec();
    return got > 0;
}

static int screen_timeout_msec(const struct screen *s, int64_t until_usec)
{
    int64_t usec;

    if (key_reader_is_amid(&s->keys))
        until_usec = AQ_MIN(until_usec, s->read_usec + REST_USEC);
    usec = AQ_MAX(until_usec - clock_monotonic_usec(), INT64_C(0));
    return (int)AQ_MIN((usec + USEC_PER_MSEC - 1) / USEC_PER_MSEC, INT64_C(3600000));
}

uint32_t screen_wait(struct screen *s, int fd, int64_t until_usec)
{
    for (;;) {
        struct pollfd polls[] = { { screen_pipe[0], POLLIN, 0 },
                                  { STDIN_FILENO, POLLIN, 0 },
                                  { fd, POLLIN, 0 } };
        uint32_t key = screen_take_key(s);

        if (key)
            return key;
        if (poll(polls, AQ_COUNT(polls), screen_timeout_msec(s, until_usec)) < 0)
            continue; /* interrupted: the pipe says by what */
        if (polls[0].revents && (key = screen_handle_signals(s)))
            return key;
        if (polls[1].revents && !screen_read(s))
            return KEY_INTERRUPT;
        if (!polls[1].revents && (key = screen_end_key(s)))
            return key;
        if (polls[2].revents || (!polls[1].revents && clock_monotonic_usec() >= until_usec))
            return KEY_NONE;
    }
}

/* ---- frames ---- */

static bool screen_is_colour(const char *text, size_t len, size_t *ret_size)
{
    size_t size = 2;

    if (len < 3 || text[0] != '\033' || text[1] != '[')
        return false;
    size += strspn(text + size, "0123456789;");
    if (size >= len || text[size] != 'm')
        return false;
    *ret_size = size + 1;
    return true;
}

/* The next piece of a line: a colour (true), or plain text. */
static bool screen_next_piece(const char *text, size_t len, size_t *ret_size)
{
    const char *escape;

    if (screen_is_colour(text, len, ret_size))
        return true;
    escape = memchr(text + 1, '\033', len - 1);
    *ret_size = escape ? (size_t)(escape - text) : len;
    return false;
}

static size_t screen_width(const char *text, size_t len)
{
    size_t width = 0, size;

    for (size_t at = 0; at < len; at += size)
        if (!screen_next_piece(text + at, len - at, &size))
            width += utf8_width(text + at, size);
    return width;
}

/* Colours take no room. A line that is too long ends with a mark, so that half a number is not
 * taken for a number.
 */
static void screen_write_line(const struct screen *s, const char *text, size_t len,
                              struct strbuf *out)
{
    bool is_cut = screen_width(text, len) > (size_t)s->columns, is_marked = false;
    size_t room = (size_t)s->columns - is_cut, size, fits;

    for (size_t at = 0; at < len; at += size) {
        if (screen_next_piece(text + at, len - at, &size)) {
            strbuf_add(out, text + at, size);
            continue;
        }
        fits = is_marked ? 0 : utf8_fit(text + at, size, room);
        room -= utf8_width(text + at, fits);
        strbuf_add(out, text + at, fits);
        if (fits < size && !is_marked)
            strbuf_adds(out, s->is_ascii ? "~" : "\xe2\x80\xa6");
        is_marked |= fits < size;
    }
    if (room) /* erasing from beyond the last column would erase that */
        strbuf_adds(out, "\033[K");
}

void screen_write_frame(const struct screen *s, const struct strbuf *text, struct strbuf *out)
{
    const char *at = text->data, *end = text->data + text->len;
    int row;

    strbuf_adds(out, "\033[H");
    for (row = 0; row < s->rows && at < end; row++) {
        size_t len = (size_t)(strchrnul(at, '\n') - at);

        strbuf_adds(out, row ? "\r\n" : "");
        screen_write_line(s, at, len, out);
        at += len + 1;
    }
    if (row < s->rows)
        strbuf_adds(out, row ? "\r\n\033[J" : "\033[J");
}

void screen_draw(struct screen *s, const struct strbuf *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    screen_write_frame(s, text, &out);
    (void)fs_write_all(STDOUT_FILENO, out.data, out.len);
}
