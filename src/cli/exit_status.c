/* SPDX-License-Identifier: Apache-2.0 */
/* Exit statuses: what each means, and which an error gets. */
#include <errno.h>
#include <string.h>

#include "cli/cli.h"

const struct cli_exit_status cli_exit_statuses[] = {
    { CLI_EXIT_OK, "done" },
    { CLI_EXIT_FAILURE, "failed for another reason than those below" },
    { CLI_EXIT_USAGE, "mistake on the command line" },
    { CLI_EXIT_TIMEOUT, "waited for as long as --timeout allows" },
    { CLI_EXIT_INVALID, "the manager refused a value" },
    { CLI_EXIT_NOT_FOUND, "no such session, agent or other object" },
    { CLI_EXIT_DENIED, "not logged in, or not allowed to" },
    { CLI_EXIT_CONFLICT, "in conflict with what is there, or over a quota" },
    { CLI_EXIT_UNREACHABLE, "the manager cannot be reached, or takes no changes now" },
    { CLI_EXIT_UNFIT, "'doctor': something that is needed does not work here" },
    { CLI_EXIT_TIME_LIMIT,
      "'run', 'submit' and 'session wait': the program ended with 0, but at its time limit" },
    { CLI_EXIT_OWN,
      "'run', 'submit', 'exec', 'ssh', 'scp' and 'session wait': the command failed, not the "
      "program" },
    { CLI_EXIT_INTERRUPTED, "interrupted by Ctrl-C" },
    { 0, NULL },
};

enum cli_exit cli_exit_for(const struct aq_error *err)
{
    if (err->kind && strcmp(err->kind, CLI_KIND_USAGE) == 0)
        return CLI_EXIT_USAGE;
    if (err->kind && strcmp(err->kind, CLI_KIND_UNREACHABLE) == 0)
        return CLI_EXIT_UNREACHABLE;
    switch (err->code) {
    case 0:
        return CLI_EXIT_OK;
    case ETIMEDOUT:
        return CLI_EXIT_TIMEOUT;
    case EINVAL:
    case ERANGE:
        return CLI_EXIT_INVALID;
    case ENOENT:
        return CLI_EXIT_NOT_FOUND;
    case EACCES:
    case EPERM:
        return CLI_EXIT_DENIED;
    case EEXIST:
    case EBUSY:
    case EDQUOT:
    case ESTALE:
        return CLI_EXIT_CONFLICT;
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EPIPE:
    case EAGAIN:
        return CLI_EXIT_UNREACHABLE;
    case EINTR:
    case ECANCELED:
        return CLI_EXIT_INTERRUPTED;
    default:
        return CLI_EXIT_FAILURE;
    }
}
