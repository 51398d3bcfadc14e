/* SPDX-License-Identifier: Apache-2.0 */
/* remote_shell.c - "aliquot-rsh HOST COMMAND...": a command in another kernel of the session */
#include "runner/remote_shell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/memory.h"

#define PORTS_MAX (128u << 10) /* bytes of the file: 1000 kernels with the longest names */
/* The client's home: it has the keys of all hosts of the session, and takes no others. */
#define CLIENT_HOME "/home/config/ssh/client"

unsigned remote_shell_find_port(const char *ports, const char *host)
{
    size_t len = strlen(host);

    for (const char *at = ports; len && *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (strncmp(at, host, len) == 0 && at[len] == ' ')
            return (unsigned)strtoul(at + len + 1, NULL, 10);
    return 0;
}

/* The words after the options; NULL at the first one that ssh knows and this does not. */
static char **remote_shell_skip_options(char **argv)
{
    for (argv++; *argv && argv[0][0] == '-'; argv++)
        if (!argv[0][1] || argv[0][1 + strspn(*argv + 1, "nqTx")])
            return NULL;
    return argv;
}

static int remote_shell_become_client(char *host, unsigned port, int argc, char **command,
                                      struct aq_error *err)
{
    char port_text[16];
    char *before[] = { (char *)"/opt/kernel/ssh/ld.so",
                       (char *)"--inhibit-cache",
                       (char *)"--library-path",
                       (char *)"/opt/kernel/ssh",
                       (char *)"/opt/kernel/ssh/dbclient",
                       (char *)"-T",
                       (char *)"-K",
                       (char *)"60",
                       (char *)"-i",
                       (char *)"/home/config/ssh/id_cluster.dropbear",
                       (char *)"-p",
                       port_text,
                       host };
    char **argv = aq_alloc_array(AQ_COUNT(before) + (size_t)argc + 1, sizeof(*argv));

    (void)snprintf(port_text, sizeof(port_text), "%u", port);
    memcpy(argv, before, sizeof(before));
    for (size_t i = 0; command[i]; i++)
        argv[AQ_COUNT(before) + i] = command[i];
    (void)setenv("HOME", CLIENT_HOME, 1);
    (void)execv(argv[0], argv);
    free(argv);
    return aq_fail_errno(err, "start the node's client of SSH");
}

int remote_shell_run(int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf ports = STRBUF_INIT;
    char **words = remote_shell_skip_options(argv);
    unsigned port;
    int r;

    if (!words || !words[0] || !words[1])
        return aq_fail(err, EINVAL, "expected 'aliquot-rsh [-nqTx] HOST COMMAND...'");
    r = fs_read(AT_FDCWD, REMOTE_SHELL_PORTS, PORTS_MAX, &ports, err);
    if (r < 0)
        return r;
    port = remote_shell_find_port(ports.data, words[0]);
    if (!port)
        return aq_fail(err, EINVAL, "'%.64s' is not a kernel of this session", words[0]);
    return remote_shell_become_client(words[0], port, argc, words + 1, err);
}
