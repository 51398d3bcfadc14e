/* SPDX-License-Identifier: Apache-2.0 */
/* wireguard_go.c - the daemon wireguard-go: WireGuard where the Linux kernel has none */
#include "agent/net/wireguard_go.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strbuf.h"

extern char **environ;

#define PROGRAM "/usr/bin/wireguard-go"
#define START_USEC (10 * USEC_PER_SEC)
#define STEP_USEC (5 * USEC_PER_MSEC)
#define STOP_MSEC 3000
#define LOG_MAX (1 << 20)

/* The one that this process has started, to be reaped. */
static pid_t wireguard_go_child;

static void wireguard_go_reap(void)
{
    if (wireguard_go_child > 0 && waitpid(wireguard_go_child, NULL, WNOHANG) != 0)
        wireguard_go_child = 0;
}

int wireguard_go_check(struct aq_error *err)
{
    if (access(PROGRAM, X_OK) < 0)
        return aq_fail(err, ENOENT,
                       "the program wireguard-go is missing; install the package wireguard-go");
    if (access("/dev/net/tun", R_OK | W_OK) < 0)
        return aq_fail_errno(err, "wireguard-go needs '/dev/net/tun' (modprobe tun)");
    return 0;
}

static void wireguard_go_socket(const char *name, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
    (void)snprintf(ret->sun_path, sizeof(ret->sun_path), "/var/run/wireguard/%.15s.sock", name);
}

/* Who listens on its socket; 0 = nobody. */
static pid_t wireguard_go_find(const char *name)
{
    struct sockaddr_un address;
    AQ_CLEANUP(aq_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct ucred peer = { .pid = 0 };
    socklen_t len = sizeof(peer);

    wireguard_go_socket(name, &address);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0
        || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return 0;
    return peer.pid;
}

bool wireguard_go_is_alive(const char *name)
{
    wireguard_go_reap();
    return wireguard_go_find(name) != 0;
}

void wireguard_go_trim_log(const char *directory)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/log", directory);
    struct stat st;

    if (stat(path, &st) == 0 && st.st_size > LOG_MAX && truncate(path, 0) < 0)
        log_warning("cannot empty '%s': %s", path, strerror(errno));
}

static int wireguard_go_spawn(const char *name, const char *log, pid_t *ret, struct aq_error *err)
{
    char *argv[] = { (char *)PROGRAM, (char *)"-f", (char *)name, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t all, none;
    int r;

    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setsigdefault(&attr, &all);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF
                                              | POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log,
                                           O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    (void)posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    r = posix_spawn(ret, PROGRAM, &actions, &attr, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attr);
    return r ? aq_fail(err, r, "start '%s': %s", PROGRAM, strerror(r)) : 0;
}

int wireguard_go_start(const char *name, const char *directory, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *log = aq_format("%s/log", directory);
    int64_t deadline = clock_monotonic_usec() + START_USEC;
    int r = wireguard_go_spawn(name, log, &wireguard_go_child, err);

    if (r < 0)
        return r;
    while (wireguard_go_find(name) != wireguard_go_child) {
        AQ_CLEANUP(aq_freep) char *last = NULL;
        pid_t child = wireguard_go_child;

        wireguard_go_reap();
        if (wireguard_go_child && clock_monotonic_usec() < deadline) {
            (void)usleep(STEP_USEC);
            continue;
        }
        if (wireguard_go_child) {
            (void)kill(child, SIGKILL);
            (void)waitpid(child, NULL, 0);
            wireguard_go_child = 0;
        }
        last = log_read_last(log, 0);
        return aq_fail(err, EIO, "wireguard-go did not start: %s", last ? last : "no message");
    }
    return 0;
}

void wireguard_go_stop(const char *name)
{
    pid_t pid = wireguard_go_find(name);
    AQ_CLEANUP(aq_closep) int fd = pid ? pidfd_open(pid, 0) : -1;
    struct pollfd end = { .fd = fd, .events = POLLIN };
    struct sockaddr_un address;

    /* asked again: the number may be another process's by now */
    if (fd >= 0 && wireguard_go_find(name) == pid) {
        (void)pidfd_send_signal(fd, SIGTERM, NULL, 0);
        if (poll(&end, 1, STOP_MSEC) == 0) {
            (void)pidfd_send_signal(fd, SIGKILL, NULL, 0);
            (void)poll(&end, 1, STOP_MSEC);
        }
    }
    wireguard_go_socket(name, &address);
    if (!wireguard_go_find(name)) /* one that was killed leaves it */
        (void)unlink(address.sun_path);
    wireguard_go_reap();
}
