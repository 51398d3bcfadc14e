/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c - where things are tried, and how nothing of that is left */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/doctor/doctor_internal.h"
#include "base/fs.h"

/* ---- the directory ---- */

/* A running agent has the lock on the folder itself. 0 or -errno */
static int doctor_lock_directory(struct doctor *d)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s.lock", d->trial_directory);
    struct stat st;

    d->trial_lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (d->trial_lock < 0 || flock(d->trial_lock, LOCK_EX | LOCK_NB) < 0
        || fstat(d->trial_lock, &st) < 0)
        return -errno;
    return st.st_nlink ? 0 : -EWOULDBLOCK; /* the check that has just ended has removed it */
}

/* What a check that was killed has left goes first. */
static int doctor_make_directory(struct doctor *d, struct aq_error *err)
{
    int r = fs_mkdirs(d->settings->state, 0700, err);

    if (r < 0)
        return r;
    if ((r = doctor_lock_directory(d)) < 0) {
        aq_closep(&d->trial_lock);
        return r == -EWOULDBLOCK
                   ? aq_fail(err, EBUSY, "another check is at work in %s", d->settings->state)
                   : aq_fail(err, -r, "cannot create %s.lock: %s", d->trial_directory,
                             strerror(-r));
    }
    (void)fs_remove_tree(AT_FDCWD, d->trial_directory, NULL);
    return fs_mkdirs(d->trial_directory, 0700, err);
}

int doctor_try(struct doctor *d)
{
    if (d->has_tried)
        return -d->trial_err.code;
    d->has_tried = true;
    d->host.users = -1;
    d->trial_directory = aq_format("%s/check", d->settings->state);
    d->kept = fs_find_existing(d->settings->state);
    d->kept_run = fs_find_existing(d->settings->run);
    d->trial_settings = *d->settings;
    d->trial_settings.state = d->trial_directory;
    d->has_directory = doctor_make_directory(d, &d->trial_err) == 0;
    if (d->has_directory)
        (void)oci_host_init(&d->host, &d->trial_settings, &d->trial_err);
    return -d->trial_err.code;
}

void doctor_end_trial(struct doctor *d)
{
    AQ_CLEANUP(aq_freep) char *run = d->has_directory ? oci_host_name_directory(&d->trial_settings)
                                                      : NULL;

    if (d->has_tried && !d->trial_err.code)
        oci_host_done(&d->host);
    if (run) /* whatever a trial that failed has left there, too */
        (void)fs_remove_tree(AT_FDCWD, run, NULL);
    if (d->trial_lock >= 0) {
        AQ_CLEANUP(aq_freep) char *lock = aq_format("%s.lock", d->trial_directory);

        (void)fs_remove_tree(AT_FDCWD, d->trial_directory, NULL);
        (void)unlink(lock);
    }
    if (d->kept)
        fs_remove_folders(d->settings->state, d->kept);
    if (d->kept_run)
        fs_remove_folders(d->settings->run, d->kept_run);
    aq_closep(&d->trial_lock);
    free(d->trial_directory);
    free(d->kept);
    free(d->kept_run);
}

/* ---- a process of its own ---- */

static _Noreturn void doctor_be_apart(int (*fn)(struct doctor *doctor, struct aq_error *err),
                                      struct doctor *d, int out)
{
    struct aq_error err = { 0 };

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (unshare(CLONE_NEWNS | CLONE_NEWNET) < 0)
        (void)aq_fail_errno(&err, "make namespaces for mounts and a network");
    else if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        (void)aq_fail_errno(&err, "make mounts private");
    else
        (void)fn(d, &err);
    err.kind = NULL; /* of another address space from here on */
    (void)fs_write_all(out, &err, sizeof(err));
    _exit(0);
}

int doctor_run_apart(int (*fn)(struct doctor *doctor, struct aq_error *err), struct doctor *d,
                     int timeout_msec, struct aq_error *err)
{
    struct aq_error got = { 0 };
    struct pollfd wait_for = { .events = POLLIN };
    int ends[2], r = 0;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return aq_fail_errno(err, "pipe");
    pid = fork();
    if (pid == 0)
        doctor_be_apart(fn, d, ends[1]);
    aq_closep(&ends[1]);
    wait_for.fd = ends[0];
    if (pid < 0)
        r = aq_fail_errno(err, "fork");
    else if (poll(&wait_for, 1, timeout_msec) <= 0)
        r = aq_fail(err, ETIMEDOUT, "it did not end in time");
    else if (read(ends[0], &got, sizeof(got)) != (ssize_t)sizeof(got))
        r = aq_fail(err, EIO, "the trial ended without a word");
    else if (got.code)
        r = aq_fail(err, got.code, "%s", got.text);
    aq_closep(&ends[0]);
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    return r;
}
