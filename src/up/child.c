/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - a program that is kept running */
#include "up/child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/strbuf.h"

#define BACKOFF_MIN_MSEC 100
#define BACKOFF_MAX_MSEC 10000
#define STEADY_USEC (60 * USEC_PER_SEC)

struct child {
    const struct child_spec *spec;
    const struct child_ops *ops;
    void *data;
    uv_loop_t *loop;
    uv_poll_t poll;   /* of notify_fd */
    uv_timer_t timer; /* restart, or the grace time of a stop */
    struct sockaddr_un notify;
    int notify_fd, folder_fd; /* the directory that its address names */
    pid_t pid;
    bool is_ready, is_stopping, is_waiting; /* waiting to be restarted */
    unsigned deaths;
    uint64_t backoff_msec;
    int64_t started_usec;
    unsigned handles;
};

/* ---- notification ---- */

static void child_on_notify(uv_poll_t *poll, int status, int events)
{
    struct child *child = poll->data;
    char text[512];
    ssize_t len;

    (void)status;
    (void)events;
    while ((len = recv(child->notify_fd, text, sizeof(text) - 1, MSG_DONTWAIT)) >= 0) {
        text[len] = '\0';
        if (child->is_ready || !child->pid
            || !(strncmp(text, "READY=1", 7) == 0 || strstr(text, "\nREADY=1")))
            continue;
        child->is_ready = true;
        child->deaths = 0;
        child->ops->on_ready(child, child->data);
    }
}

/* Its address names the directory by our descriptor: the path of a state may be
 * longer than that of a socket. Returns the socket.
 */
static int child_open_notify(struct child *child, struct aq_error *err)
{
    const char *path = child->spec->notify_path, *name = strrchr(path, '/');
    AQ_CLEANUP(aq_freep) char *folder = aq_strndup(path, (size_t)(name - path));
    AQ_CLEANUP(aq_closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return aq_fail_errno(err, "notification socket");
    child->folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (child->folder_fd < 0)
        return aq_fail_errno(err, "open '%s'", folder);
    (void)snprintf(child->notify.sun_path, sizeof(child->notify.sun_path), "/proc/%d/fd/%d%s",
                   (int)getpid(), child->folder_fd, name);
    (void)unlink(path);
    if (bind(fd, (const struct sockaddr *)&child->notify, sizeof(child->notify)) < 0)
        return aq_fail_errno(err, "bind '%s'", path);
    return AQ_TAKE_FD(fd);
}

/* ---- starting ---- */

/* In the new process: nothing but calls that are safe after fork(). */
static _Noreturn void child_become(const struct child *child, pid_t parent, int log_fd, int null_fd,
                                   char *const *env)
{
    sigset_t none;

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(125); /* it died before the line above */
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    if (dup2(null_fd, STDIN_FILENO) < 0 || dup2(log_fd, STDOUT_FILENO) < 0
        || dup2(log_fd, STDERR_FILENO) < 0)
        _exit(125);
    (void)execve(child->spec->argv[0], child->spec->argv, env);
    _exit(127);
}

extern char **environ;

/* Daemons and what they start have no use for who we are. */
static bool child_is_private(const char *variable)
{
    static const char *const names[] = { "NOTIFY_SOCKET=", "ALIQUOT_ACCESS_KEY=",
                                         "ALIQUOT_SECRET_KEY=", "BACKEND_ACCESS_KEY=",
                                         "BACKEND_SECRET_KEY=" };

    for (size_t i = 0; i < AQ_COUNT(names); i++)
        if (strncmp(variable, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Our environment without what is private to us, with the spec's variable and NOTIFY_SOCKET=path.
 */
static char **child_make_env(const struct child_spec *spec, const char *notify_path)
{
    size_t count = 0, used = 0;
    char **env;

    while (environ[count])
        count++;
    env = aq_alloc_array(count + 3, sizeof(*env));
    for (size_t i = 0; i < count; i++)
        if (!child_is_private(environ[i]))
            env[used++] = environ[i];
    if (spec->variable)
        env[used++] = spec->variable;
    env[used] = aq_format("NOTIFY_SOCKET=%s", notify_path);
    return env;
}

static void child_free_env(char **env)
{
    for (size_t i = 0; env[i]; i++)
        if (!env[i + 1])
            free(env[i]);
    free(env);
}

int child_start(struct child *child, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int log_fd = open(child->spec->log_path,
                                            O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    AQ_CLEANUP(aq_closep) int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    pid_t parent = getpid(), pid;
    char **env;

    if (log_fd < 0 || null_fd < 0)
        return aq_fail_errno(err, "open '%s'", child->spec->log_path);
    env = child_make_env(child->spec, child->notify.sun_path);
    pid = fork();
    if (pid == 0)
        child_become(child, parent, log_fd, null_fd, env);
    child_free_env(env);
    if (pid < 0)
        return aq_fail_errno(err, "start the %s", child->spec->name);
    child->pid = pid;
    child->is_ready = child->is_waiting = false;
    child->started_usec = clock_monotonic_usec();
    return 0;
}

/* ---- ending ---- */

static void child_on_restart(uv_timer_t *timer)
{
    struct child *child = timer->data;

    if (child_start(child, NULL) < 0)
        (void)uv_timer_start(&child->timer, child_on_restart, BACKOFF_MAX_MSEC, 0);
}

static void child_on_grace_over(uv_timer_t *timer)
{
    struct child *child = timer->data;

    if (child->pid)
        (void)kill(child->pid, SIGKILL);
}

void child_reap(struct child *child)
{
    int status;
    pid_t pid = child->pid ? waitpid(child->pid, &status, WNOHANG) : 0;

    if (pid <= 0)
        return;
    child->pid = 0;
    child->is_ready = false;
    (void)uv_timer_stop(&child->timer);
    if (child->is_stopping) {
        child->is_stopping = false;
        child->ops->on_stopped(child, child->data);
        return;
    }
    if (clock_monotonic_usec() - child->started_usec >= STEADY_USEC || !child->backoff_msec)
        child->backoff_msec = BACKOFF_MIN_MSEC;
    else
        child->backoff_msec = AQ_MIN(child->backoff_msec * 2, (uint64_t)BACKOFF_MAX_MSEC);
    child->is_waiting = true;
    (void)uv_timer_start(&child->timer, child_on_restart, child->backoff_msec, 0);
    child->ops->on_death(child, status, ++child->deaths, child->data);
}

void child_stop(struct child *child, unsigned grace_msec)
{
    (void)uv_timer_stop(&child->timer);
    child->is_waiting = false;
    if (!child->pid) {
        child->ops->on_stopped(child, child->data);
        return;
    }
    child->is_stopping = true;
    (void)kill(child->pid, SIGTERM);
    (void)uv_timer_start(&child->timer, child_on_grace_over, grace_msec, 0);
}

/* ---- the object ---- */

int child_new(uv_loop_t *loop, const struct child_spec *spec, const struct child_ops *ops,
              void *data, struct child **ret, struct aq_error *err)
{
    struct child *child = aq_alloc(sizeof(*child));

    *child = (struct child){ .spec = spec,
                             .ops = ops,
                             .data = data,
                             .loop = loop,
                             .notify.sun_family = AF_UNIX,
                             .folder_fd = -1 };
    child->notify_fd = child_open_notify(child, err);
    if (child->notify_fd < 0 || uv_poll_init(loop, &child->poll, child->notify_fd) < 0) {
        int r = child->notify_fd < 0 ? child->notify_fd : aq_fail(err, EIO, "%s", spec->name);

        aq_closep(&child->notify_fd);
        aq_closep(&child->folder_fd);
        free(child);
        return r;
    }
    (void)uv_timer_init(loop, &child->timer);
    child->poll.data = child->timer.data = child;
    child->handles = 2;
    (void)uv_poll_start(&child->poll, UV_READABLE, child_on_notify);
    *ret = child;
    return 0;
}

static void child_on_handle_closed(uv_handle_t *handle)
{
    struct child *child = handle->data;

    if (--child->handles)
        return;
    aq_closep(&child->notify_fd);
    aq_closep(&child->folder_fd);
    (void)unlink(child->spec->notify_path);
    free(child);
}

void child_free(struct child *child)
{
    if (!child)
        return;
    uv_close((uv_handle_t *)&child->poll, child_on_handle_closed);
    uv_close((uv_handle_t *)&child->timer, child_on_handle_closed);
}

const char *child_get_name(const struct child *child)
{
    return child->spec->name;
}

pid_t child_get_pid(const struct child *child)
{
    return child->pid;
}

bool child_is_ready(const struct child *child)
{
    return child->is_ready;
}

bool child_is_active(const struct child *child)
{
    return child->pid != 0 || child->is_waiting;
}
