/* SPDX-License-Identifier: Apache-2.0 */
/* array.h - arrays of sessions, for the commands on sessions
 *
 * Where a command takes the name of a session, it may be that of an array, or "NAME[INDICES]".
 */
#ifndef AQ_CLI_SESSION_ARRAY_H
#define AQ_CLI_SESSION_ARRAY_H

#include "cli/cli.h"
#include "cli/list.h"

/* The row of --array. */
/* clang-format off */
#define ARRAY_OPT_ROW(type)                                                                        \
    { 0, "array", CLI_STR, offsetof(type, spec.array), "INDICES",                                  \
      "run it once per index, as in 0-99%8 or 0-15:4,20; %8: 8 at once" }
/* clang-format on */

/* "/aliquot/v1/arrays/NAME<rest>", the name escaped, with --owner as a parameter. */
void array_path(const struct cli *cli, struct strbuf *path, const char *name, const char *rest);

/* Read one by name or id. -ENOENT */
int array_get(struct cli *cli, const char *name, json_t **ret, struct aq_error *err);

/* Wait until all elements have ended, with FOLLOW_ flags; *ret_exit becomes the highest exit
 * status of them, 'timeout_usec' 0 = none. As follow_sessions().
 */
int array_follow(struct cli *cli, const char *name, unsigned flags, int64_t timeout_usec,
                 int *ret_exit, struct aq_error *err);

/* The same of the array's name, without output. -ENOENT: there is none. */
int array_wait(struct cli *cli, const char *name, int64_t timeout_usec, int *ret_exit,
               struct aq_error *err);

/* Cancel the array, or of "NAME[INDICES]" these elements; 'recursive': also what waits for them.
 * -ENOENT: there is none that lives.
 */
int array_cancel(struct cli *cli, const char *name, bool forced, bool recursive,
                 struct aq_error *err);

/* The live arrays as rows of session_columns; with 'ended' the others, too. */
int array_list_rows(struct cli *cli, const char *status, bool ended, bool everyone, json_t **ret,
                    struct aq_error *err);

/* Show one as "session info" does. */
int array_show(struct cli *cli, const char *name, struct aq_error *err);

#endif
