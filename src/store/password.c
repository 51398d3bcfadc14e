/* SPDX-License-Identifier: Apache-2.0 */
/* Password hashes: argon2id, two passes over 19 MiB. */
#include "store/password.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#define PASSES 2
#define MEMORY_BYTES (19u << 20)
#define PASSWORD_MAX 1024

_Static_assert(PASSWORD_HASH_MAX >= crypto_pwhash_STRBYTES, "room for libsodium's text");

int password_hash(const char *password, char ret_hash[PASSWORD_HASH_MAX], struct aq_error *err)
{
    char hash[crypto_pwhash_STRBYTES];
    size_t len = strlen(password);

    if (len > PASSWORD_MAX)
        return aq_fail_field(err, EINVAL, "password", "the password is longer than %d bytes",
                             PASSWORD_MAX);
    if (sodium_init() < 0
        || crypto_pwhash_str_alg(hash, password, len, PASSES, MEMORY_BYTES,
                                 crypto_pwhash_ALG_ARGON2ID13)
               != 0)
        return aq_fail_oom(err);
    memcpy(ret_hash, hash, sizeof(hash));
    return 0;
}

bool password_verify(const char *hash, const char *password)
{
    size_t len = strnlen(password, PASSWORD_MAX + 1);
    char scratch[PASSWORD_HASH_MAX];

    if (len > PASSWORD_MAX || sodium_init() < 0)
        return false;
    if (hash && hash[0])
        return crypto_pwhash_str_verify(hash, password, len) == 0;
    (void)password_hash(password, scratch, NULL); /* as slow as a user who exists */
    return false;
}
