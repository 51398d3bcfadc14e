/* SPDX-License-Identifier: Apache-2.0 */
/* request_answer.h - what requests were answered
 *
 * A row is written with the change that the request made (EVENT_REQUEST_ANSWERED),
 * so that there is never one without the other. Rows go when they are old, and the
 * oldest of a keypair that has many. For functions given to store_read() and, those
 * that remove, store_write().
 */
#ifndef AQ_STORE_REQUEST_ANSWER_H
#define AQ_STORE_REQUEST_ANSWER_H

#include "model/event.h"
#include "store/store.h"

struct request_answer {
    char *digest;
    int status;
    char *body;
};
void request_answer_done(struct request_answer *answer);

/* What the request that a keypair made under this key was answered: 1, or 0 if it made none. */
int request_answer_find(struct store_tx *tx, const char *access_key, const char *request_key,
                        struct request_answer *ret, struct aq_error *err);

/* Write EVENT_REQUEST_ANSWERED in the transaction of the change that it belongs to; 'e' must
 * outlive the transaction. -EALREADY (request-repeated) if the keypair has already used this
 * request key.
 */
int request_answer_add(struct store_tx *tx, const struct event *e, struct aq_error *err);

/* Remove what is older than that, 'max' rows at most. How many. */
int request_answers_prune(struct store_tx *tx, int64_t before_usec, int max, struct aq_error *err);

/* Remove the oldest of more than 'keep' rows of a keypair, 'max' at most. How many. */
int request_answers_trim(struct store_tx *tx, const char *access_key, int64_t keep, int max,
                         struct aq_error *err);

#endif
