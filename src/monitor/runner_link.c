/* SPDX-License-Identifier: Apache-2.0 */
/* runner_link.c - the monitor's side of aliquot-runner, process 1 of a container */
#include "monitor/runner_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/sender.h"

#define FD_FIRST 16 /* above those of the runner */

static const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "runner.sock" };

/* The same descriptor, high enough not to be in the way. */
static int runner_link_raise_fd(int fd)
{
    int raised = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FD_FIRST);

    aq_closep(&fd);
    return raised;
}

int runner_link_open(struct runner_link *link, const char *file, struct aq_error *err)
{
    if (file && stat(file, &link->before) < 0)
        return aq_fail_errno(err, "'%s'", file);
    link->file = file;
    link->listener = runner_link_raise_fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    (void)unlink(address.sun_path);
    if (link->listener < 0
        || bind(link->listener, (const struct sockaddr *)&address, sizeof(address)) < 0
        || listen(link->listener, RUNNER_CONNECTIONS_MAX) < 0)
        return aq_fail_errno(err, "listen on runner.sock");
    link->report = runner_link_raise_fd(memfd_create("report", MFD_CLOEXEC));
    link->log = runner_link_raise_fd(memfd_create("log", MFD_CLOEXEC));
    return link->report < 0 || link->log < 0 ? aq_fail_errno(err, "make the runner's report") : 0;
}

int runner_link_pass(const struct runner_link *link)
{
    return dup2(link->listener, RUNNER_SOCKET_FD) < 0 || dup2(link->report, RUNNER_REPORT_FD) < 0
                   || dup2(link->log, RUNTIME_LOG_FD) < 0
               ? -errno
               : 0;
}

void runner_link_connect(struct runner_link *link)
{
    link->connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* the listener accepts later; only a queue of others would refuse */
    if (link->connection >= 0
        && (sender_ask(link->connection) < 0
            || connect(link->connection, (const struct sockaddr *)&address, sizeof(address)) < 0))
        aq_closep(&link->connection);
    aq_closep(&link->listener);
}

/* 0 if the process runs the file that was mounted for it. An upgrade may have put another one in
 * its place between our look at it and the mount.
 */
static int runner_link_check(struct runner_link *link, pid_t pid)
{
    struct stat now, used;
    char path[48];

    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    if (stat(path, &used) < 0) {
        link->is_over = pid > 0 && (errno == ENOENT || errno == ESRCH);
        return link->is_over ? 0 : -errno;
    }
    if (used.st_dev == link->before.st_dev && used.st_ino == link->before.st_ino)
        return 0;
    return stat(link->file, &now) == 0 && used.st_dev == now.st_dev && used.st_ino == now.st_ino
               ? 0
               : -EPERM;
}

int runner_link_receive(struct runner_link *link, struct runner_hello *ret)
{
    char packet[sizeof(*ret)];
    pid_t sender;
    int r;
    ssize_t got = sender_receive(link->connection, packet, sizeof(packet), &sender);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0)
        return got < 0 ? -errno : -ECONNRESET;
    if (link->file && (r = runner_link_check(link, sender)) < 0) {
        link->distrust = -r;
        return r;
    }
    if (got != (ssize_t)sizeof(*ret) || packet[0] != RUNNER_HELLO)
        return 0;
    memcpy(ret, packet, sizeof(*ret));
    return 1;
}

bool runner_link_read_report(const struct runner_link *link, struct runner_report *ret)
{
    return link->report >= 0 && pread(link->report, ret, sizeof(*ret), 0) == (ssize_t)sizeof(*ret)
           && ret->magic == RUNNER_REPORT_MAGIC
           && memchr(ret->text, '\0', sizeof(ret->text)) != NULL;
}

int runner_link_read_output(const struct runner_link *link, const struct runner_report *report,
                            char bytes[VALUES_FILE_READ_MAX])
{
    int len = report->output;

    if (len <= 0)
        return len;
    if (len > VALUES_FILE_READ_MAX
        || pread(link->report, bytes, (size_t)len, (off_t)sizeof(*report)) != (ssize_t)len)
        return -EPROTO;
    return len;
}

void runner_link_read_log(const struct runner_link *link, size_t max, struct strbuf *out)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("/proc/self/fd/%d", link->log);

    if (path && link->log >= 0)
        (void)fs_read(AT_FDCWD, path, max, out, NULL);
}

void runner_link_close(struct runner_link *link)
{
    if (link->report >= 0)
        (void)unlink("runner.sock");
    aq_closep(&link->listener);
    aq_closep(&link->report);
    aq_closep(&link->log);
    aq_closep(&link->connection);
}
