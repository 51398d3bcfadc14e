/* SPDX-License-Identifier: Apache-2.0 */
/* hook_command.h - a command of the administrator's that is asked a question
 *
 * It gets the question on standard input and answers on standard output. No shell; the
 * environment is PATH alone, the working directory "/". Loop's thread.
 */
#ifndef AQ_MANAGER_LOGIN_HOOK_COMMAND_H
#define AQ_MANAGER_LOGIN_HOOK_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <uv.h>

#include "base/error.h"

struct hook_command;

#define HOOK_ANSWER_MAX 16384u /* bytes */

struct hook_command_spec {
    char **argv;    /* ends with NULL; argv[0] is an absolute path */
    bool sets_user; /* run it as: */
    uid_t uid;
    gid_t gid;
};

/* 'answer' if err->code is 0; borrowed for the call. The command is gone then. */
typedef void hook_answer_fn(void *data, const char *answer, size_t len, const struct aq_error *err);

/* 'done' is called later, once: -ECHILD for another exit status than 0, -EFBIG for more than
 * HOOK_ANSWER_MAX. Fails with why it was not started.
 */
int hook_command_start(uv_loop_t *loop, const struct hook_command_spec *spec, const char *question,
                       hook_answer_fn *done, void *data, struct hook_command **ret,
                       struct aq_error *err);

/* Kill it with all that it has started; 'done' is not called. */
void hook_command_stop(struct hook_command *command);

#endif
