/* SPDX-License-Identifier: Apache-2.0 */
/* app_token.h - what lets a browser into an app of a session, once
 *
 * For functions given to store_write(); app_token_find() also to store_read(). A token is stored as
 * its SHA-256, never in clear.
 */
#ifndef AQ_STORE_APP_TOKEN_H
#define AQ_STORE_APP_TOKEN_H

#include "base/uuid.h"
#include "model/accounts.h"
#include "model/service_port.h"
#include "store/store.h"

#define APP_TOKEN_HASH_SIZE 32

struct app_token {
    struct uuid session_id;
    char app[SERVICE_NAME_MAX + 1];
    char access_key[ACCESS_KEY_MAX];
    int64_t expires_usec;
};

/* Those that have expired by 'now_usec' go. */
int app_token_create(struct store_tx *tx, const unsigned char hash[APP_TOKEN_HASH_SIZE],
                     const struct app_token *token, int64_t now_usec, struct aq_error *err);

/* 1, or 0 if it is unknown, used or expired. */
int app_token_find(struct store_tx *tx, const unsigned char hash[APP_TOKEN_HASH_SIZE],
                   int64_t now_usec, struct app_token *ret, struct aq_error *err);

/* The same, and use it up. */
int app_token_use(struct store_tx *tx, const unsigned char hash[APP_TOKEN_HASH_SIZE],
                  int64_t now_usec, struct app_token *ret, struct aq_error *err);

#endif
