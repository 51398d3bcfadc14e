/* SPDX-License-Identifier: Apache-2.0 */
/* create.h - what the commands that create sessions share */
#ifndef AQ_CLI_SESSION_CREATE_H
#define AQ_CLI_SESSION_CREATE_H

#include "cli/session/follow.h"
#include "cli/session/session_spec.h"

#define CREATE_COUNT_MAX 100000              /* sessions of one --count */
#define CREATE_AT_ONCE_MAX 1000              /* sessions in one request: all of them or none ... */
#define CREATE_BYTES_MAX ((size_t)500 << 10) /* ... and bytes: the manager takes 512 KiB */

/* What is to be created. */
struct create_request {
    const struct spec_opts *spec;
    bool is_batch;
    size_t count; /* 0 = one, without a number in its name */
    int argc;
    char **argv;         /* as for spec_to_json() */
    bool is_partly_done; /* set by create_all() that failed: the first requests were not in vain */
};

/* *ret is the list of what was created: [{"sessionId", "sessionName", "status"}]. */
int create_all(struct cli *cli, struct create_request *request, json_t **ret, struct aq_error *err);

/* An error of kind usage if --count is out of range, or there is an array, too. */
int create_check_count(const struct spec_opts *spec, const struct cli_int *count,
                       struct aq_error *err);

/* Say by the local clock when a session starts that --starts-at delays, and in how long. */
void create_note_start(struct cli *cli, const struct spec_opts *spec);

/* The list in the format that was asked for. */
int create_print(struct cli *cli, const json_t *created, struct aq_error *err);

/* Wait for all of them, with FOLLOW_ flags. Returns the exit status, or as follow_sessions(). */
int create_follow(struct cli *cli, const json_t *created, const struct spec_opts *spec,
                  unsigned flags, struct aq_error *err);

/* Wait until the first of them runs, as follow_sessions() does; Ctrl-C twice ends it. */
int create_await(struct cli *cli, const json_t *created, const struct spec_opts *spec,
                 struct follow_session *ret, struct aq_error *err);

/* Say on a terminal that the files of a session without folders are deleted when it ends. */
void create_note_files(const struct cli *cli, const struct spec_opts *spec);

#endif
