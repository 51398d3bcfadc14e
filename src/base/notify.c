/* SPDX-License-Identifier: Apache-2.0 */
/* notify.c - report our state to the service manager (sd_notify(3)) */
#include "base/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

void notify_send(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    AQ_CLEANUP(aq_closep) int fd = -1;
    size_t len = path ? strlen(path) : 0;

    if (len < 2 || len >= sizeof(to.sun_path))
        return;
    memcpy(to.sun_path, path, len);
    if (path[0] == '@')
        to.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to,
                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

int64_t notify_watchdog_usec(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

    if (!usec || (pid && strtol(pid, NULL, 10) != (long)getpid()))
        return 0;
    return AQ_MAX(strtoll(usec, NULL, 10), 0) / 2;
}

void notify_extend_watchdog(bool is_long)
{
    int64_t usec = 2 * notify_watchdog_usec();
    char state[48];

    if (!usec || usec >= NOTIFY_LONG_USEC)
        return;
    (void)snprintf(state, sizeof(state), "WATCHDOG_USEC=%lld",
                   (long long)(is_long ? NOTIFY_LONG_USEC : usec));
    notify_send(state);
    notify_send("WATCHDOG=1"); /* the new time begins now */
}
