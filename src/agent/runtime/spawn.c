/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c - starts a monitor without copying the agent */
#include "agent/runtime/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"
#include "base/memory.h"

struct spawned {
    uv_poll_t poll; /* of the process's descriptor */
    int fd;
    spawned_end_fn *on_end; /* NULL after spawned_forget() */
    void *data;
    struct list link; /* in 'forgotten', if it is */
    bool is_forgotten;
};

/* Nobody waits for these, but each is reaped. */
static struct list forgotten;

/* Signals as a new program expects them, whatever we do with ours. All are named: the
 * library asks for the others' state, one by one.
 */
static int spawn_set_attributes(posix_spawnattr_t *attr)
{
    sigset_t all, none;
    int r;

    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    if ((r = posix_spawnattr_setsigdefault(attr, &all)) == 0
        && (r = posix_spawnattr_setsigmask(attr, &none)) == 0)
        r = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF
                                               | POSIX_SPAWN_SETSIGMASK);
    return r;
}

/* Ours are none of 3 and 4, which are libuv's: nothing is overwritten before it is copied. */
static int spawn_set_descriptors(posix_spawn_file_actions_t *actions, const int fds[SPAWN_FDS])
{
    int r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

    if (r == 0)
        r = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    for (int i = 0; r == 0 && i < SPAWN_FDS && fds[i] >= 0; i++)
        r = posix_spawn_file_actions_adddup2(actions, fds[i], STDERR_FILENO + 1 + i);
    return r;
}

/* A positive errno, or 0. */
static int spawn_start(char *const args[], const int fds[SPAWN_FDS], pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int r = posix_spawnattr_init(&attr);

    if (r != 0)
        return r;
    r = posix_spawn_file_actions_init(&actions);
    if (r == 0) {
        if ((r = spawn_set_attributes(&attr)) == 0
            && (r = spawn_set_descriptors(&actions, fds)) == 0)
            r = posix_spawn(ret_pid, args[0], &actions, &attr, args, environ);
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    (void)posix_spawnattr_destroy(&attr);
    return r;
}

static void spawn_on_closed(uv_handle_t *handle)
{
    struct spawned *spawned = handle->data;

    if (spawned->is_forgotten)
        list_remove(&spawned->link);

    aq_closep(&spawned->fd);
    free(spawned);
}

static void spawn_on_ended(uv_poll_t *poll, int status, int events)
{
    struct spawned *spawned = poll->data;
    siginfo_t info = { .si_code = CLD_EXITED };
    bool was_signalled;

    (void)status;
    (void)events;
    if (waitid(P_PIDFD, (id_t)spawned->fd, &info, WEXITED) < 0 && errno == EINTR)
        return;
    was_signalled = info.si_code != CLD_EXITED;
    (void)uv_poll_stop(poll);
    uv_close((uv_handle_t *)poll, spawn_on_closed);
    if (spawned->on_end)
        spawned->on_end(spawned->data, was_signalled ? 0 : info.si_status,
                        was_signalled ? info.si_status : 0);
}

int spawn(uv_loop_t *loop, char *const args[], const int fds[SPAWN_FDS], spawned_end_fn *on_end,
          void *data, struct spawned **ret, struct aq_error *err)
{
    struct spawned *spawned = aq_alloc(sizeof(*spawned));
    pid_t pid;
    int r = spawn_start(args, fds, &pid);

    if (r != 0) {
        free(spawned);
        return aq_fail(err, r, "start '%s': %s", args[0], strerror(r));
    }
    *spawned = (struct spawned){ .fd = pidfd_open(pid, 0), .on_end = on_end, .data = data };
    spawned->poll.data = spawned;
    if (spawned->fd < 0 || uv_poll_init(loop, &spawned->poll, spawned->fd) < 0) {
        /* it runs all the same, and its end shows in its connection */
        aq_closep(&spawned->fd);
        free(spawned);
        *ret = NULL;
        return 0;
    }
    (void)uv_poll_start(&spawned->poll, UV_READABLE, spawn_on_ended);
    *ret = spawned;
    return 0;
}

void spawned_forget(struct spawned *spawned)
{
    if (!spawned)
        return;
    spawned->on_end = NULL;
    spawned->is_forgotten = true;
    if (!forgotten.next)
        list_init(&forgotten);
    list_add(&forgotten, &spawned->link);
    uv_unref((uv_handle_t *)&spawned->poll);
}

void spawned_leave(void)
{
    if (!forgotten.next)
        return;
    LIST_FOREACH(it, &forgotten) {
        uv_handle_t *handle = (uv_handle_t *)&LIST_ENTRY(it, struct spawned, link)->poll;

        if (!uv_is_closing(handle))
            uv_close(handle, spawn_on_closed);
    }
}
