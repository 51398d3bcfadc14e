/* SPDX-License-Identifier: Apache-2.0 */
/* token.h - tokens by which an agent joins
 *
 * For functions given to store_write() (all) and store_read() (those that only look). A token is
 * stored as its SHA-256, never in clear.
 */
#ifndef AQ_STORE_TOKEN_H
#define AQ_STORE_TOKEN_H

#include "store/store.h"

#define TOKEN_HASH_SIZE 32

/* Remember a token that may be used once, by 'agent_id' only unless NULL. */
int token_create(struct store_tx *tx, const unsigned char hash[TOKEN_HASH_SIZE],
                 const char *agent_id, int64_t now_usec, int64_t expires_usec,
                 struct aq_error *err);

/* Use it up. 1, or 0 if it is unknown, used, expired or not made for 'bound', which is 'agent_id' or
 * the kind of it.
 */
int token_use(struct store_tx *tx, const unsigned char hash[TOKEN_HASH_SIZE], const char *agent_id,
              const char *bound, int64_t now_usec, struct aq_error *err);

/* Was a token made for one agent only? 1, or 0 (also for a token that is unknown). */
int token_is_bound(struct store_tx *tx, const unsigned char hash[TOKEN_HASH_SIZE],
                   struct aq_error *err);

#endif
