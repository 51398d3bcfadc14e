/* SPDX-License-Identifier: Apache-2.0 */
/* repeat.h - requests that are sent again because their answer was lost
 *
 * Of routes with API_ANSWERED_ONCE the answer is written with the change. A request
 * is known again by its Idempotency-Key, or by its signature if it has none, and if
 * keypair, method, target and body are the same it gets the first answer. How long answers
 * are kept is said below. Loop's thread only.
 *
 * What was asked for is looked up only where it may be there: if the signature was
 * seen, the key was used lately, or the request fails. Else the commit finds out.
 */
#ifndef AQ_MANAGER_CALL_REPEAT_H
#define AQ_MANAGER_CALL_REPEAT_H

#include <stdbool.h>

#include "http/sign.h"
#include "manager/call/api.h"
#include "store/request_answer.h"
#include "store/store.h"

struct kept_answers;

#define REPEAT_KEY_MAX 128

/* The value of an Idempotency-Key: a string of structured fields (RFC 8941), or without its
 * quotes as most send it. -EINVAL names the header.
 */
int repeat_read_key(const char *header, char ret[REPEAT_KEY_MAX + 1],
                    struct aq_error *err) AQ_UNTRUSTED;

/* For the guard: take the request's key from its head into its principal. -EINVAL names a
 * header that is malformed, or that the route does not take.
 */
int repeat_admit(struct request *req, const struct route *route, struct principal *who,
                 struct aq_error *err);
/* The same of its signature, which was verified; 'seen' is what replay_check() says. -EEXIST
 * of a request whose answer is not kept, or was given again too often.
 */
int repeat_admit_signature(const struct api *api, struct request *req, struct principal *who,
                           const struct sign_claim *claim, int seen);

/* How a route handles its requests. */
struct repeat_handler {
    void (*make)(struct request *req, void *data); /* what was not made before */
    /* This was, and is answered with repeat_reply(), in the end. NULL = at once. */
    void (*again)(struct request *req, void *data, const struct request_answer *answer);
};

/* With the whole request: make it, or answer it again. */
void repeat_start(struct api *api, struct request *req, const struct repeat_handler *handler);
/* For core_create_sessions(). */
void repeat_fill(struct request *req, struct core_answered *ret);
/* For functions given to store_write(): keep the answer with what they made. 'body' is of the
 * request's arena. -EALREADY: repeat_fail() gives the answer that was kept.
 */
int repeat_keep(struct store_tx *tx, struct request *req, int status, const char *body,
                struct aq_error *err);
/* Its answer is durable. */
void repeat_note_answered(struct api *api, struct request *req);
/* It failed, unless it was made before; 'data' as of request_fail_data(). */
void repeat_fail(struct api *api, struct request *req, const struct aq_error *err,
                 const char *data);
/* Nothing was made, as what it asks for is there: perhaps made by this very request before, at
 * another manager, which is answered as it was then.
 */
void repeat_reply_unmade(struct api *api, struct request *req, int status,
                         const struct strbuf *json);
void repeat_reply(struct request *req, const struct request_answer *answer);
/* The same with a body that says how things are now. */
void repeat_mark(struct request *req);

/* ---- the answers that are kept ----
 *
 * Which keys were used lately, so that most new requests need no look into the store, and the
 * removal of rows: after a day, and of each keypair all but the last 100,000 (and up to 10,000
 * more).
 */

/* The store must have run all callbacks before the end. */
struct kept_answers *kept_answers_new(struct store *store);
void kept_answers_free(struct kept_answers *kept);

/* An answer is durable under this key. */
void kept_answers_add(struct kept_answers *kept, const char *access_key, const char *request_key);
/* May there be one, of the last some thousands of this process? */
bool kept_answers_know(const struct kept_answers *kept, const char *access_key,
                       const char *request_key);

/* A signature is seen again: may its request be answered again, or was it often enough? So
 * an overheard request cannot be repeated without end.
 */
bool kept_answers_may_repeat(struct kept_answers *kept, const uint8_t signature[32]);

/* Each second: remove some. */
void kept_answers_tick(struct kept_answers *kept, int64_t now_usec);

#endif
