/* SPDX-License-Identifier: Apache-2.0 */
/* login.h - is this the password of that user?
 *
 * Asked for a request. What limits guesses is in login_limit.h, what makes
 * them wait for each other in password_queue.h. Whether the user exists makes
 * no difference to the answer, nor to when it comes.
 */
#ifndef AQ_MANAGER_LOGIN_LOGIN_H
#define AQ_MANAGER_LOGIN_LOGIN_H

#include "manager/call/api.h"
#include "http/client_address.h"
#include "manager/call/login_audit.h"
#include "manager/login/login_limit.h"
#include "manager/login/password_queue.h"

/* In the request's arena; of a web server's question, which has none, wherever that is. */
struct login {
    struct api *api;
    struct request *req; /* NULL: who asks is in 'address', and 'refused' is told */
    /* 'retry_sec': when it can be tried again; 0 = it says nothing. */
    void (*refused)(struct login *login, const struct aq_error *err, int64_t retry_sec);
    const char *device; /* a browser in which this user has logged in before; NULL = unknown */
    const char *action; /* for the audit log */
    const char *type, *domain, *email, *password;
    const char *new_password; /* NULL: only verify */
    bool is_change;           /* that follows has an entry in the audit log, by login_who() */

    /* When it is done: */
    bool is_right;
    struct uuid user_id;
    int64_t changed_usec;            /* when the password was set */
    char access_key[ACCESS_KEY_MAX]; /* the oldest that lets anybody in; "" = there is none */

    char address[CLIENT_ADDRESS_MAX]; /* who asks */
    char network[CLIENT_ADDRESS_MAX]; /* of which guesses are counted */
    struct login_try attempt;
    struct password_check check; /* new_hash: that of new_password */
    bool renews_hash;            /* or of 'password', whose hash another program made */
    void (*done)(struct login *login);
};

/* In the request's arena. */
struct login *login_new(struct api *api, struct request *req);

/* Find out and call 'done', on the loop, unless the request was refused (429
 * with Retry-After, or what is wrong with the store). Counted as a failure
 * until login_succeed().
 */
void login_start(struct login *login, void (*done)(struct login *login));

/* Who changes their account with this password, for the change's entry in the audit log. */
struct audit_who login_who(const struct login *login);

/* The keypair by which an active user with the right password is let in: then the login has
 * succeeded. NULL after answering why not.
 */
const struct keypair *login_admit(struct login *login, const struct user **ret_user,
                                  struct login_failures *ret_failed);

/* The user is not what may log in, told to who knows the password only: true after answering that.
 */
bool login_is_unverified(struct login *login, const struct user *user);

/* The user is let in. What others tried in vain since the last time. */
void login_succeed(struct login *login, struct login_failures *ret);

/* Answer that it is the wrong password, or no such user. */
void login_fail(struct login *login);

struct msg_web_ended;

/* Web servers end these logins with a browser, and what is open in their name. */
void login_tell_ended(const struct api *api, const struct msg_web_ended *ended);

struct signup_rules;

/* Let people sign up, if the rules do; borrowed. -EINVAL names the setting. Before the first
 * request.
 */
int login_open_signup(struct api *api, const struct signup_rules *rules, struct aq_error *err);

#endif
