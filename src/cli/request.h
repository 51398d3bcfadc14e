/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - requests that commands make of their options and arguments
 *
 * The row of an option names the member of the request that it becomes (opt.h), so that a command
 * says its path and what is special about it alone.
 */
#ifndef AQ_CLI_REQUEST_H
#define AQ_CLI_REQUEST_H

#include "cli/client.h"

/* ---- options ---- */

/* Set 'member' of the body if the option was given: text as text, of "JSON" as what it says;
 * numbers as numbers, durations in seconds, rounded up as 0 is often no limit; flags as true;
 * "yes|no" as a boolean, other choices as their word; a list of "SLOT=AMOUNT" or "KEY=VALUE" as an
 * object, other lists as an array. -EINVAL, of kind usage, names the option.
 */
int cli_option_add(const struct cli_opt *opt, const void *target, const char *member, json_t *body,
                   struct aq_error *err);

/* The same of each option whose row names a member. */
int cli_options_add(const struct cli_opt *opts, const void *target, json_t *body,
                    struct aq_error *err);

/* Append a query of the options that were given and name a member: text, numbers, flags as
 * "true".
 */
void cli_path_options(struct strbuf *path, const struct cli_opt *opts, const void *target);

/* ---- requests ---- */

/* As cli_call(), with a body that is taken. NULL is one that could not be made of the arguments:
 * the error is then 'why', such as "an argument is not UTF-8", of kind usage.
 */
int cli_send(struct cli *cli, enum method method, const char *path, json_t *body, const char *why,
             json_t **ret, struct aq_error *err);

/* Describe one of {"errors": [{"line", "field", "msg"}]} in a line without its end. */
typedef void cli_describe_fn(const void *data, const json_t *error, struct strbuf *out);

/* POST rows of a file with secrets, of which nothing stays in memory. What the manager says of
 * single rows goes to standard error. *ret_status gets the answer's, and 0 if there is none.
 */
int cli_send_rows(struct cli *cli, const char *path, const json_t *body, cli_describe_fn *describe,
                  const void *data, int *ret_status, json_t **ret, struct aq_error *err);

/* Things of the manager that arguments name by a key. */
struct cli_things {
    const char *path; /* "/aliquot/v1/agents/" */
    const char *noun; /* errors begin "NOUN 'KEY': "; NULL = they are left as they are */
};

/* Append the path of one, and 'rest', such as "" or "/drain". */
void cli_thing_path(const struct cli_things *things, const char *key, const char *rest,
                    struct strbuf *path);

/* As cli_call(), of one of them. */
int cli_thing_call(struct cli *cli, enum method method, const struct cli_things *things,
                   const char *key, const char *rest, const json_t *body, json_t **ret,
                   struct aq_error *err);

/* As cli_call_once(), of one of them. */
int cli_thing_call_once(struct cli *cli, const struct cli_things *things, const char *key,
                        const char *rest, const json_t *body, json_t **ret, struct aq_error *err);

/* cli_thing_call() of one after the other, until one fails. */
int cli_things_call(struct cli *cli, enum method method, const struct cli_things *things,
                    const char *rest, const json_t *body, int argc, char **argv,
                    struct aq_error *err);

#endif
