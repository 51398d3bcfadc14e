/* SPDX-License-Identifier: Apache-2.0 */
/* project.h - which project new sessions belong to */
#ifndef AQ_CLI_PROJECT_H
#define AQ_CLI_PROJECT_H

#include "cli/cli.h"

/* Of GraphQL's type User, what project_choose() reads. */
#define PROJECT_USER_FIELDS "role domain_name groups { name }"

/* The project of the settings; else the one that the manager takes for a request that names none:
 * "default" if the user is a member, or the only one. NULL = the user has to name one. 'user' has
 * PROJECT_USER_FIELDS; borrowed from it or the settings.
 */
const char *project_choose(const struct cli *cli, const json_t *user);

/* May the user's sessions be in it? Administrators need no membership. */
bool project_is_usable(const json_t *user, const char *name);

/* The same for the caller, whom the manager is asked about unless the settings say it. *ret is the
 * caller's to free; NULL = unknown: several, or --owner names another user.
 */
int project_find(struct cli *cli, char **ret, struct aq_error *err);

#endif
