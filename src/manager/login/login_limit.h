/* SPDX-License-Identifier: Apache-2.0 */
/* login_limit.h - how soon the next password may be tried
 *
 * Failures are counted three ways, and each count asks for a growing delay:
 * of an account from one address (grows fast, up to 15 minutes), of an account
 * from everywhere (slowly, up to a minute), of an address whatever the account
 * (slowly, up to five minutes). An address from which the account was logged
 * in to in the last 30 days knows only its own count, so that nobody locks a
 * user out from where they work. Counts are forgotten after an hour without a
 * failure. So does a browser that has a mark of such a login. An account need not exist. Memory is
 * bounded: the counts that were idle for longest make room. A restart forgets all. Loop's thread
 * only.
 */
#ifndef AQ_MANAGER_LOGIN_LOGIN_LIMIT_H
#define AQ_MANAGER_LOGIN_LOGIN_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct login_limits;

struct login_limits *login_limits_new(void);
void login_limits_free(struct login_limits *limits);
AQ_DEFINE_CLEANUP(struct login_limits, login_limits_free)

/* A try, as the calls below know it: kept by the caller, as are its texts. */
struct login_try {
    const char *account, *address;
    bool is_device; /* in place of an address, it is a browser that the account has logged in by */
    int64_t now_usec; /* monotonic */
    bool is_known;    /* set: the account was logged in to from there lately */
};

/* May it be made? 0 counts it as failed already, so that many at one time are
 * many; else how many microseconds to wait.
 */
int64_t login_limits_begin(struct login_limits *limits, struct login_try *attempt);

/* The password was right. What was tried in vain since the last login from
 * anywhere: how often, and how long ago the last time was (0 = never).
 */
struct login_failures {
    uint32_t count;
    int64_t ago_usec;
};
void login_limits_succeed(struct login_limits *limits, const struct login_try *attempt,
                          struct login_failures *ret);

/* It was not found out whether it was right. */
void login_limits_cancel(struct login_limits *limits, const struct login_try *attempt);

#endif
