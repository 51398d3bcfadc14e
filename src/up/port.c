/* SPDX-License-Identifier: Apache-2.0 */
/* port.c - may a program listen on this port of the loopback? */
#include "up/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#define TRIES 50
#define PAUSE_USEC 100000

static int port_try(uint16_t port)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons(port),
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    AQ_CLEANUP(aq_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0
        || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1) < 0)
        return -errno;
    return 0;
}

int port_wait(uint16_t port, const char *option, struct aq_error *err)
{
    int r = port_try(port);

    for (int i = 0; i < TRIES && r == -EADDRINUSE; i++) {
        (void)usleep(PAUSE_USEC);
        r = port_try(port);
    }
    if (r == -EADDRINUSE)
        return aq_fail(err, EADDRINUSE,
                       "another program listens on 127.0.0.1:%u ('ss -ltnp' says "
                       "which): end it, or choose another %s; --port-offset 100 moves all ports",
                       port, option);
    if (r < 0) {
        errno = -r;
        return aq_fail_errno(err, "listen on 127.0.0.1:%u", port);
    }
    return 0;
}
