/* SPDX-License-Identifier: Apache-2.0 */
/* The SSH keys of a session, all Ed25519 and made from one seed. Of this library only manager and
 * agent use it, who have libcrypto.
 */
#include "model/ssh_key.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

int ssh_seed_parse(const char *text, unsigned char ret[SSH_KEY_SIZE])
{
    if (strlen(text) != SSH_SEED_TEXT || strspn(text, "0123456789abcdef") != SSH_SEED_TEXT)
        return -EINVAL;
    for (size_t i = 0; i < SSH_KEY_SIZE; i++)
        (void)sscanf(text + 2 * i, "%2hhx", &ret[i]);
    return 0;
}

int ssh_key_derive(const unsigned char seed[SSH_KEY_SIZE], const char *label, struct ssh_key *ret,
                   struct aq_error *err)
{
    unsigned int len = SSH_KEY_SIZE;
    size_t open_len = SSH_KEY_SIZE;
    struct ssh_key key;
    EVP_PKEY *pkey = NULL;
    bool ok = HMAC(EVP_sha256(), seed, SSH_KEY_SIZE, (const unsigned char *)label, strlen(label),
                   key.secret, &len)
              != NULL;

    if (ok)
        pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key.secret, SSH_KEY_SIZE);
    ok = pkey && EVP_PKEY_get_raw_public_key(pkey, key.open, &open_len) == 1;
    EVP_PKEY_free(pkey);
    if (!ok)
        return aq_fail(err, EIO, "the crypto library makes no key for SSH");
    *ret = key;
    return 0;
}
