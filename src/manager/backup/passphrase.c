/* SPDX-License-Identifier: Apache-2.0 */
/* The passphrase of a backup. */
#include "manager/backup/passphrase.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

/* One line, without its end. */
static int passphrase_take(int fd, const char *name, char ret[PASSPHRASE_MAX + 1],
                           struct aq_error *err)
{
    size_t len = 0;

    while (len <= PASSPHRASE_MAX) {
        ssize_t got = read(fd, ret + len, 1);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return aq_fail_errno(err, "read %s", name);
        if (got == 0 || ret[len] == '\n')
            break;
        len++;
    }
    if (len == 0 || len > PASSPHRASE_MAX)
        return aq_fail_field(err, EINVAL, "passphrase", "the first line of %s has %s", name,
                             len ? "more than 1024 bytes" : "nothing in it");
    ret[len] = '\0';
    return 0;
}

static int passphrase_read_file(const char *file, char ret[PASSPHRASE_MAX + 1],
                                struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = -1;
    struct stat st;

    if (strcmp(file, "-") == 0)
        return passphrase_take(STDIN_FILENO, "standard input", ret, err);
    fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return aq_fail_errno(err, "open the passphrase file '%s'", file);
    if (st.st_mode & 077)
        return aq_fail(err, EACCES, "the passphrase file '%s' can be read by others: chmod 600 it",
                       file);
    return passphrase_take(fd, file, ret, err);
}

static int passphrase_ask(const char *prompt, char ret[PASSPHRASE_MAX + 1], struct aq_error *err)
{
    struct termios before, silent;
    int r;

    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return aq_fail_field(err, EINVAL, "--passphrase-file",
                             "there is no terminal to ask for the passphrase: name a file");
    silent = before;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    (void)fputs(prompt, stderr);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
    r = passphrase_take(STDIN_FILENO, "the terminal", ret, err);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    (void)fputc('\n', stderr);
    return r;
}

int passphrase_read(const char *file, bool is_new, char ret[PASSPHRASE_MAX + 1],
                    struct aq_error *err)
{
    char again[PASSPHRASE_MAX + 1];
    int r = file ? passphrase_read_file(file, ret, err) : passphrase_ask("passphrase: ", ret, err);

    if (r < 0 || file || !is_new)
        return r;
    r = passphrase_ask("once more: ", again, err);
    if (r == 0 && strcmp(again, ret) != 0)
        r = aq_fail(err, EINVAL, "the two passphrases differ");
    explicit_bzero(again, sizeof(again));
    return r;
}
