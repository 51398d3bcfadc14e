/* SPDX-License-Identifier: Apache-2.0 */
/* kept_answers.h - what bounds the answers that are kept for requests sent again
 *
 * Which keys were used lately, so that most new requests need no look into the store,
 * and the removal of rows: after a day, and of each keypair all but the last 100,000
 * (and up to 10,000 more). Loop's thread only.
 */
#ifndef AQ_MANAGER_CALL_KEPT_ANSWERS_H
#define AQ_MANAGER_CALL_KEPT_ANSWERS_H

#include <stdbool.h>

#include "store/store.h"

struct kept_answers;

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
