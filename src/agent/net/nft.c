/* SPDX-License-Identifier: Apache-2.0 */
/* nft.c - runs nft(8): each text is one transaction */
#include "agent/net/nft.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"

extern char **environ;

static int nft_spawn(int input, int errors, pid_t *ret, struct aq_error *err)
{
    /* sbin is not on everyone's path */
    static const char *const paths[] = { "/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft" };
    char *argv[] = { (char *)"nft", (char *)"-f", (char *)"-", NULL };
    posix_spawn_file_actions_t actions;
    int r = ENOENT;

    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, errors, STDOUT_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    for (size_t i = 0; r == ENOENT && i < AQ_COUNT(paths); i++)
        r = posix_spawn(ret, paths[i], &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return r ? aq_fail(err, r, "the program nft: %s; install the package nftables", strerror(r))
             : 0;
}

static int nft_open_memory(const char *name, struct aq_error *err)
{
    int fd = memfd_create(name, MFD_CLOEXEC);

    return fd < 0 ? aq_fail_errno(err, "memfd") : fd;
}

/* What nft complained of. */
static int nft_fail(int errors, struct aq_error *err)
{
    char text[240] = "";
    ssize_t got = pread(errors, text, sizeof(text) - 1, 0);

    text[got > 0 ? got : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return aq_fail(err, strstr(text, "not permitted") ? EPERM : EIO, "nft: %s",
                   text[0] ? text : "it ended without a word");
}

int nft_run(const char *commands, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int input = nft_open_memory("nft-commands", err);
    AQ_CLEANUP(aq_closep) int errors = input < 0 ? input : nft_open_memory("nft-errors", err);
    int status, r;
    pid_t pid;

    if (errors < 0)
        return errors;
    r = fs_write_all(input, commands, strlen(commands));
    if (r < 0)
        return aq_fail(err, -r, "write the commands for nft: %s", strerror(-r));
    if (lseek(input, 0, SEEK_SET) < 0)
        return aq_fail_errno(err, "seek in the commands for nft");
    r = nft_spawn(input, errors, &pid, err);
    if (r < 0)
        return r;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return aq_fail_errno(err, "wait for nft");
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : nft_fail(errors, err);
}
