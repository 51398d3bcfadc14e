/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - parses a request to run a command (protocol.h) */
#include "runner/request.h"

#include <errno.h>
#include <string.h>

#include "runner/protocol.h"

/* The string at *at, which then stands behind it; NULL if its end is missing. */
static char *request_take_string(struct request *r, size_t len, size_t *at)
{
    char *text = r->strings + *at;
    const char *end = *at < len ? memchr(text, '\0', len - *at) : NULL;

    if (!end)
        return NULL;
    *at += (size_t)(end - text) + 1;
    return text;
}

static int request_take_strings(struct request *r, size_t len, struct aq_error *err)
{
    size_t at = 0;

    for (size_t i = 0; i < r->argc; i++)
        if (!(r->argv[i] = request_take_string(r, len, &at)))
            return aq_fail_field(err, EINVAL, "argv", "the command's arguments are cut off");
    for (size_t i = 0; i < r->envc; i++) {
        r->envp[i] = request_take_string(r, len, &at);
        if (!r->envp[i] || r->envp[i][0] == '=' || !strchr(r->envp[i], '='))
            return aq_fail_field(err, EINVAL, "env", "a variable of the command is no NAME=value");
    }
    r->cwd = request_take_string(r, len, &at);
    if (!r->cwd || at != len)
        return aq_fail_field(err, EINVAL, "cwd", "the command's working folder has no end");
    if (r->cwd[0] == '\0')
        r->cwd = NULL;
    else if (r->cwd[0] != '/')
        return aq_fail_field(err, EINVAL, "cwd", "the working folder must be an absolute path");
    return r->argc && r->argv[0][0] == '\0'
               ? aq_fail_field(err, EINVAL, "argv", "the command's name is empty")
               : 0;
}

int request_parse(const char *packet, size_t len, struct request *ret, struct aq_error *err)
{
    struct request r = { 0 };
    struct runner_exec head;
    int result;

    if (len < sizeof(head) || len > RUNNER_PACKET_MAX)
        return aq_fail(err, EINVAL, "the command's packet has a wrong size");
    memcpy(&head, packet, sizeof(head));
    if (head.argc > RUNNER_ARGUMENTS_MAX || head.envc > RUNNER_ARGUMENTS_MAX)
        return aq_fail_field(err, EINVAL, "argv", "more than %d arguments or variables",
                             RUNNER_ARGUMENTS_MAX);
    r.argc = head.argc;
    r.envc = head.envc;
    r.tty = head.flags & RUNNER_EXEC_TTY;
    r.reports = !r.tty && (head.flags & RUNNER_EXEC_REPORTS);
    r.input = r.tty || (head.flags & RUNNER_EXEC_INPUT);
    r.rows = head.rows ? head.rows : 24;
    r.cols = head.cols ? head.cols : 80;
    r.argv = calloc(r.argc + 1, sizeof(*r.argv));
    r.envp = calloc(r.envc + 1, sizeof(*r.envp));
    r.strings = malloc(len - sizeof(head) + 1);
    if (!r.argv || !r.envp || !r.strings) {
        request_done(&r);
        return aq_fail_oom(err);
    }
    memcpy(r.strings, packet + sizeof(head), len - sizeof(head));
    result = request_take_strings(&r, len - sizeof(head), err);
    if (result < 0)
        request_done(&r);
    else
        *ret = r;
    return result;
}

void request_done(struct request *request)
{
    free(request->argv);
    free(request->envp);
    free(request->strings);
    *request = (struct request){ 0 };
}
