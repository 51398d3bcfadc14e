/* SPDX-License-Identifier: Apache-2.0 */
/* service.h - what the commands on model services share */
#ifndef AQ_CLI_SERVICE_SERVICE_H
#define AQ_CLI_SERVICE_SERVICE_H

#include "cli/list.h"
#include "cli/request.h"

#define SERVICES_PATH "/aliquot/v1/model-services"

extern const struct cli_things model_services;
extern const struct column service_columns[];
extern const struct column service_replica_columns[];

/* Copy what is nested in a service into members of its own, which columns show: "ready" ("1/2"),
 * "image", "requests" and others.
 */
void service_adapt(json_t *service);

/* Read one by name or id. *ret is the caller's. */
int service_get(struct cli *cli, const char *name, json_t **ret, struct aq_error *err);

/* Print a service as a record; or for users as a line of the list, after a change. */
int service_print(struct cli *cli, json_t *service, struct aq_error *err);
int service_print_line(struct cli *cli, json_t *service, struct aq_error *err);

/* Move members with a dot in their names, as rows of options have them, into objects: "limits.cap"
 * into {"limits": {"cap"}}.
 */
void service_nest(json_t *body);

/* "3" as an integer, "1-8" as text. NULL for other texts. */
json_t *service_parse_replicas(const char *text);

/* Find a replica that has not ended, by its number, session id or session name; NULL = the newest.
 * Borrowed from the service. -ENOENT: there is none such; 'err' says which there are.
 */
int service_find_replica(const json_t *service, const char *replica, const json_t **ret,
                         struct aq_error *err);

#define SERVICE_SESSION_MAX 40 /* of an id */

/* Find the session of a replica, also of one that has ended, by its number; NULL = the newest. Its id
 * into 'id'. -ENOENT.
 */
int service_find_session(struct cli *cli, const json_t *service, const char *number,
                         char id[SERVICE_SESSION_MAX], struct aq_error *err);

/* ---- waiting ---- */

enum service_stage {
    SERVICE_COMES,
    SERVICE_IS_READY,
    SERVICE_AWAITS_PROMOTION, /* all new replicas are ready, and people decide */
    SERVICE_FAILS,
    SERVICE_ENDS,
    SERVICE_ABANDONED, /* the goal is another revision than the one that was deployed */
};

/* How far a service is on the way to as many ready replicas of its goal as wanted; 'revision' is the
 * one that was deployed, 0 = any. Replicas that fail in a rollout that will be aborted after more
 * failures are on the way.
 */
enum service_stage service_get_stage(const json_t *service, int64_t revision);

/* Follow a service until as many replicas of the goal revision as wanted are ready and no other
 * revision takes requests, or people have to promote it; progress goes to standard error. Returns an
 * exit status: 0; 1 if a replica failed, the rollout of 'revision' (0 = any) was aborted or the service
 * ended, with the reason and the last lines of the replica's log on standard error; 3 after
 * timeout_usec (0 = no limit). Or -errno. A manager that has answered the command before
 * ('has_answered'), and then does not, is waited for.
 */
int service_wait(struct cli *cli, const char *service, int64_t revision, int64_t timeout_usec,
                 bool has_answered, struct aq_error *err);

struct service_wait_opts {
    bool wait;
    struct cli_int timeout;
};

/* The rows for a struct that has the above at 'offset'. */
/* clang-format off */
#define SERVICE_WAIT_ROWS(offset)                                                                  \
    { 'w', "wait", CLI_FLAG, (offset) + offsetof(struct service_wait_opts, wait), NULL,            \
      "wait until its replicas are ready; exits with 1 if that fails" },                           \
    { 0, "timeout", CLI_DURATION, (offset) + offsetof(struct service_wait_opts, timeout), "TIME",  \
      "wait, but give up after this long, with exit status 3" }
/* clang-format on */

/* These two rows alone, for struct service_wait_opts. */
extern const struct cli_opt service_wait_rows[];

/* If it was asked for, wait as service_wait() does, after a command that the manager answered. */
int service_wait_if(struct cli *cli, const struct service_wait_opts *opts, const char *service,
                    int64_t revision, struct aq_error *err);

/* ---- creation ---- */

/* Set what no option said and the user's settings have, and for whom it is. -EINVAL: it has folders
 * and no image.
 */
int service_add_usual(const struct cli *cli, json_t *body, struct aq_error *err);

/* ---- tokens ---- */

/* Create a token; *ret, the caller's, has it in "token". */
int service_add_token(struct cli *cli, const char *service, json_t *body, json_t **ret,
                      struct aq_error *err);

#endif
