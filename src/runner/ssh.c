/* SPDX-License-Identifier: Apache-2.0 */
/* ssh.c - a server of its own for each connection to the container's SSH port
 *
 * Nothing runs until somebody connects. Server and loader are the node's; it
 * has the user's identity, so he alone can log in.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "runner/runner.h"

#define WAITING_MAX 16
#define ALIVE_SEC "60" /* a client that does not answer three times is gone */

/* As the user: no passwords, no root, and with the environment of his program. For files alone it
 * forwards no ports, and asks after clients.
 */
static void ssh_serve(struct runner *r, int socket, uint32_t address)
{
    char loader[128], program[128], host_key[] = "/home/config/ssh/dropbear_ed25519_host_key";
    char host_key_ecdsa[] = "/home/config/ssh/dropbear_ecdsa_host_key";
    char *argv[] = { loader,
                     (char *)"--inhibit-cache",
                     (char *)"--library-path",
                     (char *)(uintptr_t)r->options.ssh,
                     program,
                     (char *)"-i",
                     (char *)"-e",
                     (char *)"-m",
                     (char *)"-s",
                     (char *)"-w",
                     (char *)"-r",
                     host_key,
                     (char *)"-r",
                     host_key_ecdsa,
                     r->options.is_for_files ? (char *)"-j" : NULL,
                     (char *)"-k",
                     (char *)"-K",
                     (char *)ALIVE_SEC,
                     NULL };
    const struct command_spec spec = { .argv = argv, .streams = COMMAND_SOCKET, .socket = socket };
    struct aq_error err = { 0 };
    struct command command;

    (void)snprintf(loader, sizeof(loader), "%s/ld.so", r->options.ssh);
    (void)snprintf(program, sizeof(program), "%s/dropbear", r->options.ssh);
    if (command_start(&r->options, &spec, &command, &err) < 0)
        return; /* who cannot be started hangs up */
    aq_closep(&command.start);
    r->ssh.clients[r->ssh.count++] = (struct runner_ssh_client){ command.pid, address };
}

/* Each address has no more connections than are left for others: one whose owner does not log in
 * neither shuts out users nor takes the memory of their programs.
 */
static bool ssh_has_room(const struct runner_ssh *ssh, uint32_t address)
{
    size_t own = 0;

    for (size_t i = 0; i < ssh->count; i++)
        own += ssh->clients[i].address == address;
    return own < SSH_CLIENTS_MAX - ssh->count;
}

static void ssh_on_connection(struct watch *watch, uint32_t events)
{
    struct sockaddr_in peer = { .sin_family = AF_INET };
    socklen_t len = sizeof(peer);
    int socket = accept4(watch->fd, (struct sockaddr *)&peer, &len, SOCK_CLOEXEC);
    struct runner *r = watch->owner;

    (void)events;
    if (socket >= 0 && ssh_has_room(&r->ssh, peer.sin_addr.s_addr))
        ssh_serve(r, socket, peer.sin_addr.s_addr);
    aq_closep(&socket);
}

bool ssh_reaped(struct runner *r, pid_t pid)
{
    struct runner_ssh *ssh = &r->ssh;

    for (size_t i = 0; i < ssh->count; i++) {
        if (ssh->clients[i].server != pid)
            continue;
        ssh->clients[i] = ssh->clients[--ssh->count];
        ssh->idle_from_usec = clock_monotonic_usec();
        return true;
    }
    return false;
}

int ssh_idle_msec(const struct runner *r)
{
    int64_t end = r->ssh.idle_from_usec + r->options.ssh_idle_sec * USEC_PER_SEC;
    int64_t left = end - clock_monotonic_usec();

    if (!r->options.ssh_idle_sec || r->ssh.count)
        return -1;
    return left > 0 ? (int)(left / USEC_PER_MSEC) + 1 : 0;
}

void ssh_open(struct runner *r)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons(r->options.ssh_port ? r->options.ssh_port
                                                                               : 2200),
                                         .sin_addr.s_addr = htonl(INADDR_ANY) };
    const int yes = 1;
    int fd;

    r->ssh.idle_from_usec = clock_monotonic_usec();
    if (!r->options.ssh)
        return;
    if (r->options.is_for_files)
        (void)clearenv(); /* variables may have programs load libraries of the user's */
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0
        || listen(fd, WAITING_MAX) < 0) {
        (void)dprintf(STDERR_FILENO, "aliquot-runner: no SSH server: %s\n", strerror(errno));
        aq_closep(&fd);
        return;
    }
    watch_init(&r->ssh.listener, r->epoll, fd, ssh_on_connection, r);
    watch_want(&r->ssh.listener, EPOLLIN);
}
