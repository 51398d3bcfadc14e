/* SPDX-License-Identifier: Apache-2.0 */
/* The web terminal of a container. */
#include "runner/web_terminal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "runner/app_launch.h"
#include "runner/web_client.h"

#define CLIENTS_MAX 128 /* at a time, those that only fetch the page among them */
#define WAITING_MAX 64
#define TYPE_AGAIN_MSEC 50 /* a terminal that discards a line too long has room, and wakes nobody */

struct web_terminal {
    int epoll;
    struct watch listener, signals;
    struct list clients;
    size_t client_count, shell_count;
};

static int64_t web_terminal_now(void)
{
    return clock_monotonic_usec() / USEC_PER_MSEC;
}

static void web_terminal_on_connection(struct watch *watch, uint32_t events)
{
    struct web_terminal *t = watch->owner;
    int socket = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC);
    const int yes = 1;
    struct web_client *client;

    (void)events;
    if (socket < 0)
        return;
    (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    client = web_client_new(t->epoll, socket, &t->shell_count, web_terminal_now());
    if (!client) {
        aq_closep(&socket);
        return;
    }
    list_add(&t->clients, &client->link);
    t->client_count++;
}

static void web_terminal_reap(struct web_terminal *t, pid_t pid, int status)
{
    LIST_FOREACH(it, &t->clients) {
        struct web_client *client = LIST_ENTRY(it, struct web_client, link);

        if (client->pid == pid) {
            web_client_reaped(client, status);
            return;
        }
    }
}

static void web_terminal_on_signal(struct watch *watch, uint32_t events)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;

    (void)events;
    (void)!read(watch->fd, &info, sizeof(info));
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        web_terminal_reap(watch->owner, pid, status);
}

/* ---- the loop ---- */

/* Milliseconds until there is more to do; -1 = until something happens. */
static int web_terminal_turn(struct web_terminal *t)
{
    int64_t now = web_terminal_now(), next = INT64_MAX;

    LIST_FOREACH(it, &t->clients) {
        struct web_client *client = LIST_ENTRY(it, struct web_client, link);

        if (client->is_gone || now >= client->until_msec) {
            web_client_free(client);
            t->client_count--;
            continue;
        }
        next = AQ_MIN(next, client->until_msec);
        if (web_client_type_on(client))
            next = AQ_MIN(next, now + TYPE_AGAIN_MSEC);
    }
    watch_want(&t->listener, t->client_count < CLIENTS_MAX ? EPOLLIN : 0);
    return next == INT64_MAX ? -1 : (int)AQ_MAX(next - now, 0);
}

static int web_terminal_listen(uint16_t port, struct aq_error *err)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons(port),
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int yes = 1;

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0
        && listen(fd, WAITING_MAX) == 0)
        return fd;
    (void)aq_fail_errno(err, "port %u", port);
    aq_closep(&fd);
    return -err->code;
}

static int web_terminal_open(struct web_terminal *t, uint16_t port, struct aq_error *err)
{
    int listener, signals;
    sigset_t mask;

    (void)sigemptyset(&mask);
    (void)sigaddset(&mask, SIGCHLD);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    t->epoll = epoll_create1(EPOLL_CLOEXEC);
    signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (t->epoll < 0 || signals < 0)
        return aq_fail_errno(err, "the terminal's loop");
    if ((listener = web_terminal_listen(port, err)) < 0)
        return listener;
    watch_init(&t->listener, t->epoll, listener, web_terminal_on_connection, t);
    watch_init(&t->signals, t->epoll, signals, web_terminal_on_signal, t);
    watch_want(&t->signals, EPOLLIN);
    return 0;
}

/* What is started in a shell is no part of the app: it may outlive it. */
static int web_terminal_set_environment(struct aq_error *err)
{
    return unsetenv(APP_MARK) < 0 || setenv("TERM", "xterm-256color", 1) < 0 ? aq_fail_oom(err) : 0;
}

int web_terminal_serve(uint16_t port, struct aq_error *err)
{
    struct web_terminal t = { .epoll = -1 };
    struct epoll_event event;
    int r = web_terminal_set_environment(err);

    list_init(&t.clients);
    if (r == 0)
        r = web_terminal_open(&t, port, err);
    while (r == 0)
        if (epoll_wait(t.epoll, &event, 1, web_terminal_turn(&t)) == 1) {
            struct watch *watch = event.data.ptr;

            watch->fn(watch, event.events);
        }
    return r;
}
