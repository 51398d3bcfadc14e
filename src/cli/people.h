/* people.h - users, keypairs, domains, projects, resource groups, policies
 *
 * All are rows with a key; a table of columns and a table of options per noun
 * say what is different. An option's name is that of the member in the
 * request, with '-' for '_'.
 */
#ifndef AQ_CLI_PEOPLE_H
#define AQ_CLI_PEOPLE_H

#include "cli/list.h"

/* The options that were given as an object: text as text, numbers and
 * durations (in seconds) as numbers, "yes|no" as booleans, other choices as
 * their word, "SLOT=AMOUNT" lists as an object, other lists as an array.
 * Options that are flags are left to the command.
 */
int people_body(const struct cli_opt *opts, const void *target, json_t **ret,
                struct aq_error *err);

#endif
