/* SPDX-License-Identifier: Apache-2.0 */
/* password.h - password hashes: argon2id, two passes over 19 MiB
 *
 * Takes tens of milliseconds and 19 MiB: on a worker thread (inside
 * store_read() or store_write()), never on a loop's.
 */
#ifndef AQ_STORE_PASSWORD_H
#define AQ_STORE_PASSWORD_H

#include <stdbool.h>

#include "base/error.h"

#define PASSWORD_HASH_MAX 128

/* -ENOMEM; -EINVAL for more than 1024 bytes. */
int password_hash(const char *password, char ret_hash[PASSWORD_HASH_MAX], struct aq_error *err);

/* Is it a hash by crypt(3) that another program made and password_verify() knows: bcrypt
 * ("$2b$12$...", cost 4 to 14) or SHA-crypt ("$6$...", "$5$...", up to 1,000,000 rounds)?
 */
bool password_is_foreign(const char *hash) AQ_UNTRUSTED;

/* A NULL or empty hash (no such user) takes as long as one of password_hash(), and is false. */
bool password_verify(const char *hash, const char *password);

#endif
