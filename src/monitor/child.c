/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - starts the program, and ends everything that came from it */
#include "monitor/child.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fs.h"
#include "monitor/cgroup.h"
#include "monitor/protocol.h"
#include "monitor/rootfs.h"

#define ERROR_FD_FIRST 16
#define VOLUMES_MSEC 30000

/* What the child tells through the error pipe when it cannot become the program. */
struct child_failure {
    int code;
    char text[sizeof(((struct aq_error *)0)->text)];
};

/* How the child came to be. */
struct birth {
    pid_t monitor;
    bool is_inside; /* cgroups_fork() */
    int executable; /* -1 = by the path */
};

struct child_plumbing {
    int parent_in, child_in;   /* pipe, without a terminal; parent_in -1 = the input is empty */
    int parent_out, child_out; /* pipe or terminal, of either side */
    int error_read, error_write;
    int bootstrap_read, bootstrap_write; /* -1 = none */
};

static int child_open_terminal(const struct program *p, struct child_plumbing *pl,
                               struct aq_error *err)
{
    const struct winsize size = { .ws_row = p->rows, .ws_col = p->cols };
    char path[64];

    pl->parent_out = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (pl->parent_out < 0 || grantpt(pl->parent_out) < 0 || unlockpt(pl->parent_out) < 0
        || ptsname_r(pl->parent_out, path, sizeof(path)) != 0)
        return aq_fail_errno(err, "open a terminal");
    pl->child_out = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (pl->child_out < 0)
        return aq_fail_errno(err, "open '%s'", path);
    (void)ioctl(pl->child_out, TIOCSWINSZ, &size);
    if (p->has_uid)
        fs_try_chown(pl->child_out, p->uid);
    return 0;
}

/* Containers use the pipe of the runner instead. */
static int child_open_bootstrap(const struct program *p, struct child_plumbing *pl,
                                struct aq_error *err)
{
    int pair[2];

    if (!p->has_bootstrap || sandbox_is_used(&p->sandbox))
        return 0;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return aq_fail_errno(err, "pipe");
    pl->bootstrap_read = pair[0];
    pl->bootstrap_write = fcntl(pair[1], F_DUPFD_CLOEXEC, ERROR_FD_FIRST);
    aq_closep(&pair[1]);
    return pl->bootstrap_write < 0 ? aq_fail_errno(err, "pipe") : 0;
}

static int child_open_plumbing(const struct program *p, struct child_plumbing *pl,
                               struct aq_error *err)
{
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) < 0)
        return aq_fail_errno(err, "pipe");
    pl->error_read = pair[0];
    /* not where descriptors are put that the program gets */
    pl->error_write = fcntl(pair[1], F_DUPFD_CLOEXEC, ERROR_FD_FIRST);
    aq_closep(&pair[1]);
    if (pl->error_write < 0)
        return aq_fail_errno(err, "pipe");
    if (child_open_bootstrap(p, pl, err) < 0)
        return -err->code;
    if (p->tty)
        return child_open_terminal(p, pl, err);
    if (pipe2(pair, O_CLOEXEC) < 0)
        return aq_fail_errno(err, "pipe");
    pl->parent_out = pair[0];
    pl->child_out = pair[1];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return aq_fail_errno(err, "pipe");
    pl->child_in = pair[0];
    pl->parent_in = pair[1];
    if (!p->input_sec)
        aq_closep(&pl->parent_in); /* it is at its end; not /dev/null, which is the node's */
    if (p->has_uid)                /* so that /dev/stdin can be opened */
        fs_try_chown(pl->child_in, p->uid);
    return 0;
}

static void child_plumbing_close(struct child_plumbing *pl)
{
    aq_closep(&pl->parent_in);
    aq_closep(&pl->child_in);
    aq_closep(&pl->parent_out);
    aq_closep(&pl->child_out);
    aq_closep(&pl->error_read);
    aq_closep(&pl->error_write);
    aq_closep(&pl->bootstrap_read);
    aq_closep(&pl->bootstrap_write);
}

/* ---- in the child, between fork and exec ---- */

static const char *child_set_descriptors(const struct program *p, const struct child_plumbing *pl)
{
    int input = p->tty ? pl->child_out : pl->child_in;

    if (setsid() < 0)
        return "setsid";
    if (p->tty && ioctl(pl->child_out, TIOCSCTTY, 0) < 0)
        return "controlling terminal";
    if (dup2(input, STDIN_FILENO) < 0 || dup2(pl->child_out, STDOUT_FILENO) < 0
        || dup2(pl->child_out, STDERR_FILENO) < 0)
        return "standard descriptors";
    if (pl->bootstrap_write >= 0 && dup2(pl->bootstrap_write, MONITOR_BOOTSTRAP_FD) < 0)
        return "descriptor of the bootstrap script";
    return NULL;
}

static int child_set_limits(const struct program *p)
{
    for (size_t i = 0; i < p->limit_count; i++)
        if (setrlimit(p->limits[i].resource, &p->limits[i].value) < 0)
            return -errno;
    return 0;
}

static const char *child_set_identity(const struct program *p)
{
    if (child_set_limits(p) < 0)
        return "resource limits";
    if (p->has_gid && (setgroups(0, NULL) < 0 || setgid(p->gid) < 0))
        return "gid";
    if (p->has_uid && setuid(p->uid) < 0)
        return "uid";
    return NULL;
}

/* What monitor.c did to them. */
static void child_reset_signals(void)
{
    sigset_t none;

    (void)signal(SIGHUP, SIG_DFL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

int child_set_usual(const struct program *program)
{
    child_reset_signals();
    return child_set_limits(program);
}

static int child_write_score(const char *score)
{
    AQ_CLEANUP(aq_closep) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    return fd < 0 ? -errno : fs_write_all(fd, score, strlen(score));
}

/* The OCI runtime, and with it the container, begins in these. The runtime is
 * not the one to die when the container's memory is short.
 */
static int child_enter_sandbox(const struct sandbox *sandbox, bool is_inside, struct aq_error *err)
{
    int r = rootfs_enter(sandbox, err);

    if (r == 0) /* not earlier: these may forbid the loop device */
        r = cgroups_join(sandbox, is_inside, err);
    if (r < 0)
        return r;
    AQ_FAULT("monitor.cgroups.joined");
    (void)child_write_score("-900");
    return rootfs_hide(sandbox, err);
}

static int child_prepare(const struct program *p, const struct child_plumbing *pl,
                         const struct runner_link *runner, const struct birth *birth,
                         struct aq_error *err)
{
    const char *step = child_set_descriptors(p, pl);

    child_reset_signals();
    if (!step)
        step = child_set_identity(p);
    /* after the change of identity, which clears it */
    if (!step && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        step = "parent death signal";
    if (step)
        return aq_fail_errno(err, "%s: %s", p->argv[0], step);
    if (getppid() != birth->monitor)
        _exit(1); /* it is dead already */
    if (sandbox_is_used(&p->sandbox) && child_enter_sandbox(&p->sandbox, birth->is_inside, err) < 0)
        return -err->code;
    return runner && runner_link_pass(runner) < 0 ? aq_fail_errno(err, "descriptors of the runner")
                                                  : 0;
}

__attribute__((noreturn)) static void become_program(const struct program *p,
                                                     const struct child_plumbing *pl,
                                                     const struct runner_link *runner,
                                                     const struct birth *birth)
{
    struct child_failure failure = { 0 };
    struct aq_error err = { 0 };
    int r = child_prepare(p, pl, runner, birth, &err);

    if (r == 0 && p->cwd && chdir(p->cwd) < 0)
        r = aq_fail_errno(&err, "%s: working directory", p->argv[0]);
    if (r == 0) {
        if (birth->executable >= 0)
            (void)execveat(birth->executable, "", p->argv, p->envp, AT_EMPTY_PATH);
        (void)execve(p->argv[0], p->argv, p->envp);
        (void)aq_fail_errno(&err, "%s: execute", p->argv[0]);
    }
    failure.code = err.code;
    (void)snprintf(failure.text, sizeof(failure.text), "%s", err.text);
    (void)fs_write_all(pl->error_write, &failure, sizeof(failure));
    _exit(127);
}

/* ---- in the parent ---- */

/* End of file means that exec closed the pipe. With folders of users it may never come, as a
 * volume of another machine can hang a process that looks at it, and not be killed there either.
 */
static int child_await_exec(struct child_plumbing *pl, pid_t pid, bool has_volumes,
                            struct aq_error *err)
{
    struct pollfd outcome = { .fd = pl->error_read, .events = POLLIN };
    struct child_failure failure;
    ssize_t got;

    aq_closep(&pl->error_write);
    if (has_volumes && poll(&outcome, 1, VOLUMES_MSEC) == 0) {
        (void)kill(pid, SIGKILL);
        return aq_fail(err, ETIMEDOUT, "a volume of the session's folders does not answer");
    }
    do
        got = read(pl->error_read, &failure, sizeof(failure));
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof(failure))
        return 0;
    (void)waitpid(pid, NULL, 0);
    failure.text[sizeof(failure.text) - 1] = '\0';
    return aq_fail(err, failure.code, "%s", failure.text);
}

int child_raise_program(int fd)
{
    int raised = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, ERROR_FD_FIRST);

    aq_closep(&fd);
    return raised;
}

int child_start(const struct program *program, int executable, const struct runner_link *runner,
                struct child *ret, struct aq_error *err)
{
    struct child_plumbing pl = { -1, -1, -1, -1, -1, -1, -1, -1 };
    struct birth birth = { .monitor = getpid(), .executable = executable };
    pid_t pid = -1;
    int r = child_open_plumbing(program, &pl, err);

    if (r == 0) {
        pid = cgroups_fork(&program->sandbox, &birth.is_inside);
        if (pid == 0)
            become_program(program, &pl, runner, &birth);
        r = pid < 0 ? aq_fail_errno(err, "fork")
                    : child_await_exec(&pl, pid, program->sandbox.volume_mount_count > 0, err);
    }
    if (r < 0) {
        child_plumbing_close(&pl);
        return r;
    }
    (void)fcntl(pl.parent_out, F_SETFL, O_NONBLOCK);
    ret->pid = pid;
    ret->output = AQ_TAKE_FD(pl.parent_out);
    ret->input = program->tty ? ret->output : -1;
    if (pl.parent_in >= 0)
        (void)fcntl(pl.parent_in, F_SETFL, O_NONBLOCK);
    ret->feed = AQ_TAKE_FD(pl.parent_in);
    ret->bootstrap = AQ_TAKE_FD(pl.bootstrap_read);
    child_plumbing_close(&pl);
    return 0;
}

int child_open_mounts(const struct child *child)
{
    char path[48];

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)child->pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Send SIGKILL to the direct children; false if /proc does not name them. */
static bool child_kill_children(void)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char path[64], *at;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    if (fs_read(AT_FDCWD, path, 1 << 20, &text, NULL) < 0)
        return false;
    at = text.data;
    for (;;) {
        char *end;
        long pid = strtol(at, &end, 10);

        if (end == at || pid <= 1)
            return true;
        (void)kill((pid_t)pid, SIGKILL);
        at = end;
    }
}

void child_kill_all(void)
{
    /* A killed child's children become ours: kill and wait until none is left. */
    while (child_kill_children())
        if (waitpid(-1, NULL, 0) < 0 && errno != EINTR)
            return;
}

static void child_close_dirp(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

static bool child_has_marker(const char *pid, const char *marker)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%.20s/environ", pid);
    if (fs_read(AT_FDCWD, path, 1 << 22, &text, NULL) < 0)
        return false;
    for (size_t at = 0; at < text.len; at += strlen(text.data + at) + 1)
        if (strcmp(text.data + at, marker) == 0)
            return true;
    return false;
}

/* One walk over /proc; returns how many it killed. */
static int child_kill_marked_once(const char *marker)
{
    AQ_CLEANUP(child_close_dirp) DIR *proc = opendir("/proc");
    struct dirent *entry;
    int killed = 0;

    while (proc && (entry = readdir(proc))) {
        if (!isdigit((unsigned char)entry->d_name[0]) || atoi(entry->d_name) == getpid())
            continue;
        if (child_has_marker(entry->d_name, marker) && kill(atoi(entry->d_name), SIGKILL) == 0)
            killed++;
    }
    return killed;
}

void child_kill_marked(const char *marker)
{
    /* What forks faster than we walk is met again; what is dying too. */
    for (int round = 0; round < 1000 && child_kill_marked_once(marker) > 0; round++)
        (void)usleep(1000);
}
