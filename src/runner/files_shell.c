/* SPDX-License-Identifier: Apache-2.0 */
/* files_shell.c - the shell of sessions for files: it starts what moves files, and nothing else */
#include "runner/files_shell.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/shell_word.h"

#define DIRECTORY "/opt/kernel/ssh"
#define WORDS_MAX 256
#define WORDS_BEFORE 5 /* the loader's, and the program */

static bool files_shell_allows_sftp(char **argv)
{
    return !argv[1];
}

/* As a daemon it would do what a file of settings says. */
static bool files_shell_allows_rsync(char **argv)
{
    if (!argv[1] || strcmp(argv[1], "--server") != 0)
        return false;
    for (; *argv; argv++)
        if (strncmp(*argv, "--daemon", strlen("--daemon")) == 0)
            return false;
    return true;
}

/* As the other end of a client's: all that comes before the paths are options without a value. */
static bool files_shell_allows_scp(char **argv)
{
    bool is_end = false;

    for (argv++; *argv && argv[0][0] == '-' && strcmp(*argv, "--") != 0; argv++) {
        if (strspn(*argv + 1, "dfpqrtv") != strlen(*argv + 1))
            return false;
        is_end |= strpbrk(*argv, "ft") != NULL;
    }
    return is_end;
}

static const struct {
    const char *name;
    bool (*allows)(char **argv);
} files_shell_programs[] = {
    { "sftp-server", files_shell_allows_sftp },
    { "rsync", files_shell_allows_rsync },
    { "scp", files_shell_allows_scp },
};

/* The words are never freed: the process becomes the program. */
static int files_shell_split(const char *command, char **argv, struct aq_error *err)
{
    size_t count = 0;

    for (const char *at = command + strspn(command, " \t\n"); *at;) {
        struct strbuf word = STRBUF_INIT;

        at = shell_word_take(at, &word);
        if (!at || count == WORDS_MAX)
            return aq_fail(err, EPERM, "'%.200s' takes a shell, and here is none", command);
        strbuf_adds(&word, "");
        if (!strbuf_ok(&word))
            return aq_fail_oom(err);
        argv[count++] = word.data;
    }
    return 0;
}

static int files_shell_execute(const char *name, char **argv, struct aq_error *err)
{
    char program[128];
    char *const loader[WORDS_BEFORE] = { (char *)DIRECTORY "/ld.so", (char *)"--inhibit-cache",
                                         (char *)"--library-path", (char *)DIRECTORY, program };

    (void)snprintf(program, sizeof(program), DIRECTORY "/%s", name);
    if (access(program, F_OK) < 0)
        return aq_fail(err, ENOENT, "this node has no %s", name);
    memcpy(argv, loader, sizeof(loader));
    (void)execv(argv[0], argv);
    return aq_fail_errno(err, "%s", name);
}

int files_shell_run(int argc, char **argv, struct aq_error *err)
{
    char *words[WORDS_BEFORE + WORDS_MAX] = { NULL }, **own = words + WORDS_BEFORE - 1;
    const char *name;
    int r;

    if (argc != 3 || strcmp(argv[1], "-c") != 0)
        return aq_fail(err, EPERM,
                       "this session moves files and runs nothing: use sftp, scp or rsync");
    if ((r = files_shell_split(argv[2], own, err)) < 0)
        return r;
    name = own[0] && strrchr(own[0], '/') ? strrchr(own[0], '/') + 1 : own[0];
    for (size_t i = 0; name && i < AQ_COUNT(files_shell_programs); i++)
        if (strcmp(name, files_shell_programs[i].name) == 0 && files_shell_programs[i].allows(own))
            return files_shell_execute(files_shell_programs[i].name, words, err);
    return aq_fail(err, EPERM,
                   "'%.200s' is not run here: this session moves files, by sftp, scp or rsync",
                   argv[2]);
}
