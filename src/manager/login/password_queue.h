/* SPDX-License-Identifier: Apache-2.0 */
/* password_queue.h - passwords that are checked on threads of their own
 *
 * A check takes tens of milliseconds and 19 MiB. Two threads do them, so that
 * neither the loop nor the store's readers wait for guesses. Addresses take
 * turns: who asks for many waits behind who asks for one. What waits is
 * bounded, for each address and for all.
 */
#ifndef AQ_MANAGER_LOGIN_PASSWORD_QUEUE_H
#define AQ_MANAGER_LOGIN_PASSWORD_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/error.h"
#include "base/list.h"
#include "store/password.h"

#define PASSWORD_QUEUE_MAX 256u
#define PASSWORD_QUEUE_ADDRESS_MAX 8u

struct password_queue;

/* One check; its owner's, who keeps it until 'done' is called, on the loop. */
struct password_check {
    const char *address, *password; /* NULL = a new one is hashed, nothing else */
    const char *new_password;       /* NULL, or to be hashed if 'password' is right */
    char hash[PASSWORD_HASH_MAX];   /* "" = of nobody; takes as long */
    void (*done)(struct password_check *check);

    int result; /* 0, -ECANCELED when the manager stops, -ENOMEM */
    bool is_right;
    char new_hash[PASSWORD_HASH_MAX];

    struct list link; /* the queue's */
    uint64_t round;
};

/* Threads are started by the first check. */
struct password_queue *password_queue_new(uv_loop_t *loop);

/* Queue one. -EAGAIN (rate-limit-exceeded) if too many wait, -ECANCELED after
 * password_queue_stop(), or no thread could be started: 'done' is not called then.
 * One that waits may be called with -EAGAIN as its result, to make room for an
 * address that has none.
 */
int password_queue_add(struct password_queue *queue, struct password_check *check,
                       struct aq_error *err);

/* The error of -EAGAIN; returns that. */
int password_queue_fail_busy(struct aq_error *err);

/* End all checks with -ECANCELED, and take no more. */
void password_queue_stop(struct password_queue *queue);

/* Stops it, too. Its handle is closed: the loop must run once more. */
void password_queue_free(struct password_queue *queue);
AQ_DEFINE_CLEANUP(struct password_queue, password_queue_free)

#endif
