/* SPDX-License-Identifier: Apache-2.0 */
/* Password hashes: argon2id, two passes over 19 MiB; and of other programs, by crypt(3). */
#include "store/password.h"

#include <crypt.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

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

/* ---- hashes of other programs ---- */

#define CRYPT_LETTERS "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define BCRYPT_COST_MAX 14 /* a second or two */
#define SHA_ROUNDS_MAX 1000000
#define SHA_SALT_MAX 16

/* "$2b$12$" and 53 letters. */
static bool password_is_bcrypt(const char *hash)
{
    long cost;

    if (strncmp(hash, "$2", 2) != 0 || !strchr("aby", hash[2]) || !hash[2] || hash[3] != '$'
        || strspn(hash + 4, "0123456789") != 2 || hash[6] != '$')
        return false;
    cost = strtol(hash + 4, NULL, 10);
    return cost >= 4 && cost <= BCRYPT_COST_MAX && strlen(hash + 7) == 53
           && strspn(hash + 7, CRYPT_LETTERS) == 53;
}

/* "$6$rounds=5000$SALT$" and 86 letters, or "$5$..." and 43; the rounds may be missing. */
static bool password_is_sha_crypt(const char *hash)
{
    size_t len, salt;
    const char *at;

    if (strncmp(hash, "$6$", 3) != 0 && strncmp(hash, "$5$", 3) != 0)
        return false;
    len = hash[1] == '6' ? 86 : 43;
    at = hash + 3;
    if (strncmp(at, "rounds=", 7) == 0) {
        size_t digits = strspn(at + 7, "0123456789");

        if (!digits || digits > 7 || strtol(at + 7, NULL, 10) > SHA_ROUNDS_MAX
            || at[7 + digits] != '$')
            return false;
        at += 8 + digits;
    }
    salt = strspn(at, CRYPT_LETTERS);
    return salt <= SHA_SALT_MAX && at[salt] == '$' && strlen(at + salt + 1) == len
           && strspn(at + salt + 1, CRYPT_LETTERS) == len;
}

bool password_is_foreign(const char *hash)
{
    return password_is_bcrypt(hash) || password_is_sha_crypt(hash);
}

static bool password_verify_foreign(const char *hash, const char *password)
{
    struct crypt_data *data = aq_alloc(sizeof(*data));
    const char *made = crypt_rn(password, hash, data, (int)sizeof(*data));
    bool is_right = made && strlen(made) == strlen(hash)
                    && sodium_memcmp(made, hash, strlen(hash)) == 0;

    sodium_memzero(data, sizeof(*data));
    free(data);
    return is_right;
}

bool password_verify(const char *hash, const char *password)
{
    size_t len = strnlen(password, PASSWORD_MAX + 1);
    char scratch[PASSWORD_HASH_MAX];

    if (len > PASSWORD_MAX || sodium_init() < 0)
        return false;
    if (hash && password_is_foreign(hash))
        return password_verify_foreign(hash, password);
    if (hash && hash[0])
        return crypto_pwhash_str_verify(hash, password, len) == 0;
    (void)password_hash(password, scratch, NULL); /* as slow as a user who exists */
    return false;
}
