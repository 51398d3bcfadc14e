/* SPDX-License-Identifier: Apache-2.0 */
/* accounts.h - users, keypairs, domains, projects, resource groups, policies
 *
 * All are rows with a key; a table of columns and a table of options per noun
 * say what is different. An option's name is that of the member in the
 * request, with '-' for '_'.
 */
#ifndef AQ_CLI_ADMIN_ACCOUNTS_H
#define AQ_CLI_ADMIN_ACCOUNTS_H

#include "cli/list.h"
#include "http/message.h"

struct noun {
    const char *prefix;   /* of its commands' names */
    const char *singular; /* as messages say it */
    const char *path;
    const char *key; /* member that the argument of "create" becomes */
    const struct column *columns;
    bool has_domain; /* "create" needs one; the configured one if not given */
    bool has_id;     /* paths name it by its id: a project */
};

/* That of the command that runs. */
const struct noun *accounts_noun_of(const struct cli *cli);

/* The path of the row that 'key' names, followed by 'rest'. Asks the manager for the id of
 * a project that is named.
 */
int accounts_path(struct cli *cli, const char *key, const char *rest, struct strbuf *path,
                  struct aq_error *err);

/* Ask for 'method' of the path of each row in turn, as above; ends with the first error. */
int accounts_call_each(struct cli *cli, enum method method, const char *rest, int argc, char **argv,
                       struct aq_error *err);

/* The options that were given as an object, as cli_option_add() makes members of them. Options
 * that are flags are left to the command.
 */
int accounts_request_body(const struct cli_opt *opts, const void *target, json_t **ret,
                          struct aq_error *err);

#endif
