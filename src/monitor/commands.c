/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - what clients of the monitor ask for: input, signals, a size, the end */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "monitor/monitor_internal.h"

/* Have commands_on_client() told when a client has sent something, unless it waits for the
 * terminal; or has room, if it is behind.
 */
static void commands_watch_client(const struct monitor *m, int slot)
{
    const struct client *client = &m->clients.slots[slot];
    struct epoll_event event = { .events = (client->typed.len ? EPOLLRDHUP : EPOLLIN)
                                           | (client->behind ? EPOLLOUT : 0),
                                 .data.u32 = SOURCE_CLIENT + (uint32_t)slot };

    (void)epoll_ctl(m->epoll, EPOLL_CTL_MOD, client->fd, &event);
}

/* Send a client what it lacks: all, or the newest MONITOR_REPLAY_MAX bytes. */
static void commands_catch_up(struct monitor *m, int slot)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf newest = STRBUF_INIT;
    struct client *client = &m->clients.slots[slot];

    if (client->behind > MONITOR_REPLAY_MAX) {
        if (!clients_send_skipped(client))
            return;
        client->behind = MONITOR_REPLAY_MAX;
    }
    log_ring_tail(&m->log, (size_t)client->behind, &newest);
    if (client->behind == MONITOR_REPLAY_MAX) /* what came before is left out */
        strbuf_consume(&newest, utf8_rest(newest.data, newest.len));
    client->behind = newest.len - clients_send_output(client, newest.data, newest.len);
    if (!client->behind)
        commands_watch_client(m, slot);
}

static void commands_attach(struct monitor *m, int slot)
{
    struct client *client = &m->clients.slots[slot];

    client->attached = true;
    client->behind = MONITOR_REPLAY_MAX;
    commands_catch_up(m, slot);
    commands_watch_client(m, slot);
}

void commands_pass_output(struct monitor *m, const char *bytes, size_t len)
{
    for (int slot = 0; slot < CLIENTS_MAX; slot++) {
        struct client *client = &m->clients.slots[slot];
        bool was_behind = client->behind > 0;

        if (!client->attached)
            continue;
        client->behind += len - (was_behind ? 0 : clients_send_output(client, bytes, len));
        if (client->behind && !was_behind)
            commands_watch_client(m, slot);
    }
}

static void commands_resize(struct monitor *m, const struct monitor_resize *to)
{
    const struct winsize size = { .ws_row = to->rows, .ws_col = to->cols };

    if (m->child.input >= 0)
        (void)ioctl(m->child.input, TIOCSWINSZ, &size);
}

/* As much as the terminal takes; what nobody has open takes all. */
static void commands_write_typed(const struct monitor *m, struct strbuf *typed)
{
    while (typed->len) {
        ssize_t put = write(m->child.input, typed->data, typed->len);

        if (put == 0 || (put < 0 && errno == EAGAIN))
            return;
        if (put < 0 && errno != EINTR)
            strbuf_clear(typed);
        if (put > 0)
            strbuf_consume(typed, (size_t)put);
    }
}

void commands_type_on(struct monitor *m)
{
    struct epoll_event event = { .events = EPOLLIN, .data.u32 = SOURCE_OUTPUT };
    bool was_full = m->is_terminal_full;

    m->is_terminal_full = false;
    for (int slot = 0; slot < CLIENTS_MAX; slot++) {
        struct strbuf *typed = &m->clients.slots[slot].typed;

        if (!typed->len)
            continue;
        commands_write_typed(m, typed);
        if (!typed->len)
            commands_watch_client(m, slot);
        m->is_terminal_full |= typed->len > 0;
    }
    if (m->is_terminal_full)
        event.events |= EPOLLOUT;
    if (m->is_terminal_full != was_full)
        (void)epoll_ctl(m->epoll, EPOLL_CTL_MOD, m->child.output, &event);
}

static void commands_type(struct monitor *m, int slot, const char *bytes, size_t len)
{
    struct strbuf *typed = &m->clients.slots[slot].typed;

    if (m->child.input < 0)
        return;
    strbuf_add(typed, bytes, len);
    if (!strbuf_ok(typed)) {
        clients_drop(&m->clients, slot); /* rather than lose a piece in the middle */
        return;
    }
    commands_type_on(m);
    if (typed->len)
        commands_watch_client(m, slot);
}

static void commands_on_feed(struct monitor *m, int slot)
{
    struct client *client = &m->clients.slots[slot];
    const char answer = MONITOR_FED;

    if (!input_take(&m->input, slot) || send(client->fd, &answer, 1, MSG_NOSIGNAL) < 0)
        clients_drop(&m->clients, slot);
}

/* While the pipe is full, its client waits: no end of it is seen either, which comes after
 * what it has sent.
 */
static void commands_feed(struct monitor *m, int slot, const char *bytes, size_t len)
{
    if (input_give(&m->input, bytes, len))
        return;
    (void)epoll_ctl(m->epoll, EPOLL_CTL_DEL, m->clients.slots[slot].fd, NULL);
    monitor_watch(m, m->input.pipe, SOURCE_INPUT);
}

void commands_on_input_room(struct monitor *m)
{
    int pipe = m->input.pipe, slot = m->input.slot;

    if (pipe < 0 || !input_write(&m->input))
        return;
    if (m->input.pipe >= 0)
        (void)epoll_ctl(m->epoll, EPOLL_CTL_DEL, pipe, NULL);
    monitor_watch(m, m->clients.slots[slot].fd, SOURCE_CLIENT + (uint32_t)slot);
}

/* A client has gone, and what it gave with it. */
static void commands_drop_client(struct monitor *m, int slot)
{
    clients_drop(&m->clients, slot);
    if (slot == m->input.slot)
        input_end(&m->input);
}

/* Copy the packet into the struct of its type; false if it is too short. */
#define UNPACK(into, packet, len) \
    ((len) >= sizeof(into) && (memcpy(&(into), (packet), sizeof(into)), true))

static void commands_pass_signal(const struct monitor *m, int number)
{
    if (number == SIGKILL)
        monitor_kill_program(m);
    else if (number > 0 && number < NSIG)
        (void)kill(-m->child.pid, number);
}

static void commands_on_packet(struct monitor *m, int slot, const char *packet, size_t len)
{
    struct monitor_terminate end = { .notice_usec = 0 };
    struct monitor_lease lease;
    struct monitor_signal sig;
    struct monitor_resize size;

    switch (packet[0]) {
    case MONITOR_TERMINATE:
        if (len
            >= offsetof(struct monitor_terminate, notice_usec)) { /* older agents do not send it */
            memcpy(&end, packet, AQ_MIN(len, sizeof(end)));
            monitor_end_program(m, MONITOR_TERMINATED, end.notice_usec, end.grace_usec);
        }
        break;
    case MONITOR_LEASE:
        if (UNPACK(lease, packet, len))
            lease_set(m, lease.until_usec, lease.grace_usec);
        break;
    case MONITOR_SIGNAL:
        if (UNPACK(sig, packet, len))
            commands_pass_signal(m, sig.signal);
        break;
    case MONITOR_ATTACH:
        commands_attach(m, slot);
        break;
    case MONITOR_INPUT:
        if (slot == m->input.slot)
            commands_feed(m, slot, packet + 1, len - 1);
        else
            commands_type(m, slot, packet + 1, len - 1);
        break;
    case MONITOR_FEED:
        commands_on_feed(m, slot);
        break;
    case MONITOR_END_INPUT:
        if (slot == m->input.slot)
            input_end(&m->input);
        break;
    case MONITOR_RESIZE:
        if (UNPACK(size, packet, len))
            commands_resize(m, &size);
        break;
    default:
        break; /* of a newer agent */
    }
}

void commands_listen_if_needed(struct monitor *m)
{
    int64_t now_usec = clock_monotonic_usec();
    struct aq_error err = { 0 };

    if (m->clients.listener >= 0
        || (!m->program.tty && !input_is_awaited(&m->input) && clients_has_any(&m->clients)
            && now_usec < m->listen_usec))
        return;
    m->listen_usec = now_usec + LISTEN_MSEC * USEC_PER_MSEC;
    if (clients_open(&m->clients, &err) == 0)
        monitor_watch(m, m->clients.listener, SOURCE_LISTENER);
    else if (!m->has_warned)
        log_warning("%s", err.text);
    m->has_warned = m->clients.listener < 0;
}

/* Takes all of 'fds'. */
static void commands_keep(struct monitor *m, int fds[MONITOR_KEPT])
{
    for (int i = 0; i < MONITOR_KEPT; i++) {
        aq_closep(&m->kept[i]);
        m->kept[i] = AQ_TAKE_FD(fds[i]);
    }
}

void commands_on_client(struct monitor *m, int slot, uint32_t events)
{
    char packet[MONITOR_MESSAGE_MAX];
    int fds[MONITOR_KEPT];
    long got;

    if ((events & EPOLLOUT) && m->clients.slots[slot].behind)
        commands_catch_up(m, slot);
    if (events == EPOLLOUT)
        return;
    if (m->clients.slots[slot].typed.len) {
        commands_drop_client(m, slot); /* it has gone, and nothing that it sent is read */
        return;
    }
    got = clients_receive(&m->clients, slot, packet, fds);
    if (got == 0)
        commands_drop_client(m, slot);
    else if (got == 1 && packet[0] == MONITOR_KEEP)
        commands_keep(m, fds);
    else if (got > 0)
        commands_on_packet(m, slot, packet, (size_t)got);
    for (int i = 0; i < MONITOR_KEPT; i++)
        aq_closep(&fds[i]);
}

static struct monitor_hello commands_make_hello(const struct monitor *m)
{
    return (struct monitor_hello){
        .type = MONITOR_HELLO,
        .protocol = MONITOR_PROTOCOL,
        .tty = m->has_tty,
        .flags = (uint8_t)((m->runner.is_over ? MONITOR_HELLO_OVER : 0)
                           | (m->has_booted ? 0 : MONITOR_HELLO_BOOTSTRAP)),
        .pid = m->child.pid,
        .started_usec = m->started_usec,
    };
}

void commands_on_connection(struct monitor *m)
{
    const struct monitor_hello hello = commands_make_hello(m);
    int slot = clients_accept(&m->clients, m->is_running ? &hello : NULL);

    if (slot >= 0)
        monitor_watch(m, m->clients.slots[slot].fd, SOURCE_CLIENT + (uint32_t)slot);
}

void commands_greet_all(struct monitor *m)
{
    const struct monitor_hello hello = commands_make_hello(m);

    for (int slot = 0; slot < CLIENTS_MAX; slot++)
        if (m->clients.slots[slot].fd >= 0)
            clients_greet(&m->clients, slot, &hello);
}
