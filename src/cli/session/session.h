/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - what the commands on sessions share */
#ifndef AQ_CLI_SESSION_SESSION_H
#define AQ_CLI_SESSION_SESSION_H

#include "base/strbuf.h"
#include "cli/cli.h"
#include "cli/session/follow.h"

#define EXIT_CANNOT_EXECUTE 126 /* as shells say it */
#define EXIT_NO_SUCH_PROGRAM 127

extern const struct column session_columns[];

/* The row of --kernel, for commands that reach into one kernel. */
/* clang-format off */
#define SESSION_KERNEL_OPT_ROW(type, member)                                                       \
    { 0, "kernel", CLI_STR, offsetof(type, member), "HOSTNAME",                                    \
      "in this kernel of the session, such as sub1; default main1", "kernel" }
/* clang-format on */

/* "/aliquot/v1/sessions/NAME<rest>" or "/session/NAME<rest>", the name escaped,
 * with --owner as a parameter.
 */
void session_path(const struct cli *cli, struct strbuf *path, const char *name, const char *rest);
void session_old_path(const struct cli *cli, struct strbuf *path, const char *name,
                      const char *rest);

/* The path of a list: of these statuses, or (NULL) of all that live and with
 * 'ended' of the others, too; of the caller or --owner, or of everyone.
 */
void session_list_path(const struct cli *cli, struct strbuf *path, const char *status, bool ended,
                       bool everyone);

/* Put "session 'NAME': " before the error, unless its text names the session already. */
int session_wrap_error(struct aq_error *err, const char *name);

/* As session_wrap_error(); of the name of an array, the error says that it is one. */
int session_fail(struct cli *cli, const char *name, struct aq_error *err);

/* Read one session by name, id or the beginning of an id. */
int session_get(struct cli *cli, const char *name, json_t **ret, struct aq_error *err);

/* The integer that its program ended with; NULL before, and where none is known. */
const json_t *session_exit_code(const json_t *session);

/* What following it needs, of a session as session_get() gives it. */
int session_read(const struct cli *cli, const json_t *session, struct follow_session *ret,
                 struct aq_error *err);

/* Its id and name. */
int session_resolve(struct cli *cli, const char *name, struct follow_session *ret,
                    struct aq_error *err);

/* The same once it runs: one that waits is waited for, with what for on standard error.
 * -ECHILD if it has ended: 'err' says how.
 */
int session_await(struct cli *cli, const char *name, struct follow_session *ret,
                  struct aq_error *err);

/* The same for one of its kernels, by host name; NULL = the main one. -ENOENT if it has none such,
 * with those that it has in 'err'.
 */
int session_await_kernel(struct cli *cli, const char *name, const char *kernel,
                         struct follow_session *ret, struct aq_error *err);

struct attach_result {
    bool was_open;    /* the terminal was there */
    bool has_output;  /* and has shown something */
    bool is_detached; /* left by keys, or our input has ended; the session goes on */
};

/* Open its terminal on ours until either ends. */
int attach_session(struct cli *cli, const struct follow_session *session, struct attach_result *ret,
                   struct aq_error *err);

/* Apps of a kernel (NULL: the main one) of a session that runs, as the manager lists them:
 * [{"name", "protocol", "ports", ...}].
 */
int session_apps_get(struct cli *cli, const char *name, const char *kernel, json_t **ret,
                     struct aq_error *err);

/* The list that the manager gives of apps, with a note if it is empty. */
int session_apps_show(struct cli *cli, const json_t *apps, struct aq_error *err);

/* For users, of a session that runs: a table of its apps, as far as they can be asked. */
int session_apps_print(struct cli *cli, const json_t *session, struct aq_error *err);
/* The same of what went through them. */
int session_traffic_print(struct cli *cli, const json_t *session, struct aq_error *err);

/* For users, a table of what a session or an array waits for. */
int session_dependencies_print(struct cli *cli, const json_t *row, struct aq_error *err);

/* The manager's sentences, the member "text"; the data behind them are for machine formats. */
int session_print_text(struct cli *cli, const json_t *answer, struct aq_error *err);

/* Between which agents it was chosen when the session was placed last. */
int choices_show(struct cli *cli, const char *name, struct aq_error *err);

#endif
