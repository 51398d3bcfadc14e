/* SPDX-License-Identifier: Apache-2.0 */
/* ssh.c - a server of its own for each connection to the container's SSH port
 *
 * Nothing runs until somebody connects. Server and loader are the node's; it
 * has the user's identity, so he alone can log in.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runner/runner.h"

#define WAITING_MAX 16

/* As the user: no passwords, no root, and with the environment of his program. */
static void ssh_serve(struct runner *r, int socket)
{
    char loader[128], program[128], host_key[] = "/home/config/ssh/dropbear_ed25519_host_key";
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
                     NULL };
    const struct command_spec spec = { .argv = argv, .streams = COMMAND_SOCKET, .socket = socket };
    struct aq_error err = { 0 };
    struct command command;

    (void)snprintf(loader, sizeof(loader), "%s/ld.so", r->options.ssh);
    (void)snprintf(program, sizeof(program), "%s/dropbear", r->options.ssh);
    if (command_start(&r->options, &spec, &command, &err) == 0)
        aq_closep(&command.start); /* who cannot be started hangs up */
}

static void ssh_on_connection(struct watch *watch, uint32_t events)
{
    int socket = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC);

    (void)events;
    if (socket >= 0)
        ssh_serve(watch->owner, socket);
    aq_closep(&socket);
}

void ssh_open(struct runner *r)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons(2200),
                                         .sin_addr.s_addr = htonl(INADDR_ANY) };
    const int yes = 1;
    int fd;

    if (!r->options.ssh)
        return;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0
        || listen(fd, WAITING_MAX) < 0) {
        (void)dprintf(STDERR_FILENO, "aliquot-runner: no SSH server: %s\n", strerror(errno));
        aq_closep(&fd);
        return;
    }
    watch_init(&r->ssh, r->epoll, fd, ssh_on_connection, r);
    watch_want(&r->ssh, EPOLLIN);
}
