/* SPDX-License-Identifier: Apache-2.0 */
/* command_runner.c - further commands beside a program that is in no container */
#include "monitor/command_runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/installed.h"
#include "monitor/child.h"
#include "monitor/runner_link.h"

#define ARGUMENTS_MAX 12

/* As monitor/protocol.h and the agent know it. */
static const struct sockaddr_un command_runner_address = { .sun_family = AF_UNIX,
                                                           .sun_path = "runner.sock" };

int command_runner_open(struct command_runner *runner, struct aq_error *err)
{
    int fd = child_raise_program(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

    (void)unlink(command_runner_address.sun_path);
    if (fd < 0
        || bind(fd, (const struct sockaddr *)&command_runner_address,
                sizeof(command_runner_address))
               < 0
        || listen(fd, RUNNER_CONNECTIONS_MAX) < 0) {
        (void)aq_fail_errno(err, "listen on runner.sock");
        aq_closep(&fd);
        return -err->code;
    }
    runner->listener = fd;
    return 0;
}

static size_t command_runner_put(const char **argv, const char *name, const char *value)
{
    argv[0] = name;
    argv[1] = value;
    return value ? 2 : 0;
}

/* In the child; the runner takes the ids, as only root can give them to each command. */
static void command_runner_become(const struct command_runner *runner,
                                  const struct program *program, const char *path)
{
    const char *argv[ARGUMENTS_MAX] = { path, "--socket", "3" };
    int null = open("/dev/null", O_RDWR);
    char uid[16], gid[16];
    size_t n = 3;

    (void)snprintf(uid, sizeof(uid), "%u", program->uid);
    (void)snprintf(gid, sizeof(gid), "%u", program->gid);
    n += command_runner_put(argv + n, "--uid", program->has_uid ? uid : NULL);
    n += command_runner_put(argv + n, "--gid", program->has_gid ? gid : NULL);
    n += command_runner_put(argv + n, "--cwd", program->cwd);
    argv[n] = NULL;
    for (int i = 0; i < 3; i++)
        if (null < 0 || dup2(null, i) < 0)
            _exit(1);
    if (setsid() < 0 || child_set_usual(program) < 0
        || dup2(runner->listener, RUNNER_SOCKET_FD) < 0)
        _exit(1);
    (void)execve(path, (char *const *)argv, program->envp);
    _exit(127);
}

/* Close connections that no runner will serve. */
static void command_runner_send_away(const struct command_runner *runner)
{
    int fd;

    while ((fd = accept4(runner->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        aq_closep(&fd);
}

int command_runner_start(struct command_runner *runner, const struct program *program,
                         struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = installed_find("aliquot-runner");
    pid_t monitor = getpid(), pid = path ? fork() : -1;

    if (pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != monitor)
            _exit(1);
        command_runner_become(runner, program, path);
    }
    if (pid < 0) {
        command_runner_send_away(runner);
        return path ? aq_fail_errno(err, "fork")
                    : aq_fail(err, ENOENT, "there is no aliquot-runner");
    }
    runner->pid = pid;
    return 0;
}

bool command_runner_reaped(struct command_runner *runner, pid_t pid)
{
    if (!runner->pid || pid != runner->pid)
        return false;
    runner->pid = 0;
    command_runner_send_away(runner);
    return true;
}

void command_runner_close(struct command_runner *runner)
{
    if (runner->listener >= 0)
        (void)unlink(command_runner_address.sun_path);
    aq_closep(&runner->listener);
}
