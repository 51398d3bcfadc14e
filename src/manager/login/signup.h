/* SPDX-License-Identifier: Apache-2.0 */
/* signup.h - who may make an account without an administrator, and how often somebody may try
 *
 * The settings of [signup], and a hook that they may name: a command or a URL that decides.
 * Attempts of one address wait ever longer, as failed logins do (login_limit.h), and only so
 * many ask the hook at a time. Loop's thread.
 */
#ifndef AQ_MANAGER_LOGIN_SIGNUP_H
#define AQ_MANAGER_LOGIN_SIGNUP_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "conf/conf.h"
#include "manager/login/hook_command.h"
#include "manager/login/login_limit.h"

struct signup_rules {
    bool is_open;
    char *domain;
    struct conf_list projects; /* names */
    char *policy;              /* of the keypair */
    char *status;              /* of the new user */
    struct conf_list command;  /* the hook: a program and its arguments */
    char *user;                /* as whom a manager of root runs it */
    char *url;                 /* or this one */
    int64_t timeout_usec;
};

struct signup;

/* 'rules' are borrowed. -EINVAL names the setting. */
int signup_new(uv_loop_t *loop, const struct signup_rules *rules, struct signup **ret,
               struct aq_error *err);
/* What the hook has not answered is answered with -ECANCELED. */
void signup_stop(struct signup *signup);
void signup_free(struct signup *signup); /* NULL is fine */

const struct signup_rules *signup_get_rules(const struct signup *signup);

/* May this address try, now? 0, or how many microseconds to wait; as login_limits_begin(). */
int64_t signup_begin(struct signup *signup, struct login_try *attempt);

bool signup_has_hook(const struct signup *signup);
/* Ask the hook; 'done' is called later, once, also with -ETIMEDOUT. -EAGAIN
 * (rate-limit-exceeded) if too many ask.
 */
int signup_ask(struct signup *signup, const char *question, hook_answer_fn *done, void *data,
               struct aq_error *err);

#endif
