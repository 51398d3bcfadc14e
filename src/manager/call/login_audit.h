/* SPDX-License-Identifier: Apache-2.0 */
/* login_audit.h - logins in the audit log, however many
 *
 * The first of an account from an address with the same outcome is written at
 * once, what follows as one entry a minute that says how many there were.
 * Beyond a budget they are one entry each five minutes for all accounts
 * together, so that who guesses, or logs in without end, cannot push the
 * entries of 90 days out of the log. Loop's thread only.
 */
#ifndef AQ_MANAGER_CALL_LOGIN_AUDIT_H
#define AQ_MANAGER_CALL_LOGIN_AUDIT_H

#include "manager/call/audit_trail.h"

enum login_outcome {
    LOGIN_OK,
    LOGIN_FAILED,
    LOGIN_BLOCKED, /* too many had failed: the password was not looked at */
    LOGIN_OUTCOMES
};

struct login_audit;

/* The trail must outlive it. */
struct login_audit *login_audit_new(struct audit_trail *trail);
void login_audit_free(struct login_audit *audit);
AQ_DEFINE_CLEANUP(struct login_audit, login_audit_free)

/* A login, now. 'entry' has all but outcome, times and detail; its texts are copied. */
void login_audit_add(struct login_audit *audit, enum login_outcome outcome,
                     const struct audit_entry *entry, int64_t now_usec);

/* Once a second or so, unless it is idle: write what is due. 'now_usec' is monotonic. */
void login_audit_tick(struct login_audit *audit, int64_t now_usec);
bool login_audit_is_idle(const struct login_audit *audit);

/* Write all that was counted. */
void login_audit_finish(struct login_audit *audit);

#endif
