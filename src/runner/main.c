/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-runner - PID 1 of a container */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "runner/execute.h"
#include "runner/files_shell.h"
#include "runner/remote_shell.h"
#include "runner/runner.h"
#include "runner/web_terminal.h"

#define EXIT_RUNNER 125 /* the runner itself failed, as docker(1) says it */

static int main_read_port(const char *option, const char *text, uint16_t *ret, struct aq_error *err)
{
    char *end;
    long port = strtol(text, &end, 10);

    if (end == text || *end || port < 1 || port > UINT16_MAX)
        return aq_fail_field(err, EINVAL, option, "'%.20s' is no port", text);
    *ret = (uint16_t)port;
    return 0;
}

/* "--connect PORT [--half-close]" */
static int main_connect(const char *text, bool half_close, struct aq_error *err)
{
    uint16_t port;
    int r = main_read_port("--connect", text, &port, err);

    return r < 0 ? r : execute_pass_to_port(port, half_close, err);
}

/* "--terminal PORT" */
static int main_serve_terminal(const char *text, struct aq_error *err)
{
    uint16_t port;
    int r = main_read_port("--terminal", text, &port, err);

    return r < 0 ? r : web_terminal_serve(port, err);
}

/* By the name under which the node's SSH server starts it: with the loader that is beside it. */
static int main_serve_sftp(struct aq_error *err)
{
    char *argv[] = { (char *)"/opt/kernel/ssh/ld.so",
                     (char *)"--inhibit-cache",
                     (char *)"--library-path",
                     (char *)"/opt/kernel/ssh",
                     (char *)"/opt/kernel/ssh/sftp-server",
                     NULL };

    (void)execv(argv[0], argv);
    return aq_fail_errno(err, "sftp-server");
}

/* A shell that a login begins with is called "-sh". */
static bool main_is_called(const char *self, const char *name)
{
    const char *slash = strrchr(self, '/');
    const char *own = slash ? slash + 1 : self;

    return strcmp(own + (*own == '-'), name) == 0;
}

int main(int argc, char **argv)
{
    struct aq_error err = { 0 };
    struct options options;
    int r;

    memory_recover();
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        (void)dprintf(STDOUT_FILENO, "aliquot-runner %s\n", ALIQUOT_VERSION);
        return 0;
    }
    if (argc > 0 && main_is_called(argv[0], "sftp-server"))
        r = main_serve_sftp(&err);
    else if (argc > 0 && main_is_called(argv[0], "aliquot-rsh"))
        r = remote_shell_run(argc, argv, &err);
    else if (argc > 0 && main_is_called(argv[0], "sh"))
        r = files_shell_run(argc, argv, &err);
    else if (argc == 2 && strcmp(argv[1], "--execute") == 0)
        r = execute_pass_bytes(&err);
    else if (argc >= 2 && argc <= 3 && strcmp(argv[1], "--app") == 0
             && (argc == 2 || strcmp(argv[2], "--half-close") == 0))
        r = execute_pass_to_app(argc == 3, &err);
    else if (argc >= 3 && argc <= 4 && strcmp(argv[1], "--connect") == 0
             && (argc == 3 || strcmp(argv[3], "--half-close") == 0))
        r = main_connect(argv[2], argc == 4, &err);
    else if (argc == 3 && strcmp(argv[1], "--terminal") == 0)
        r = main_serve_terminal(argv[2], &err);
    else if ((r = options_parse(argc, argv, &options, &err)) == 0)
        r = runner_run(&options, &err);
    if (r < 0)
        (void)dprintf(STDERR_FILENO, "aliquot-runner: %s\n", err.text);
    return r == -ECONNREFUSED ? EXECUTE_EXIT_REFUSED : r < 0 ? EXIT_RUNNER : r;
}
