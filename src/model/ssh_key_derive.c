/* SPDX-License-Identifier: Apache-2.0 */
/* The SSH keys of a session, all made from one seed. Of this library only manager and
 * agent use it, who have libcrypto.
 */
#include "model/ssh_key.h"

#include <errno.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/obj_mac.h>
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

static bool ssh_key_hash(const unsigned char seed[SSH_KEY_SIZE], const char *label,
                         unsigned char ret[SSH_KEY_SIZE])
{
    unsigned int len = SSH_KEY_SIZE;

    return HMAC(EVP_sha256(), seed, SSH_KEY_SIZE, (const unsigned char *)label, strlen(label), ret,
                &len)
           != NULL;
}

int ssh_key_derive(const unsigned char seed[SSH_KEY_SIZE], const char *label, struct ssh_key *ret,
                   struct aq_error *err)
{
    size_t open_len = SSH_KEY_SIZE;
    struct ssh_key key;
    EVP_PKEY *pkey = NULL;
    bool ok = ssh_key_hash(seed, label, key.secret);

    if (ok)
        pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key.secret, SSH_KEY_SIZE);
    ok = pkey && EVP_PKEY_get_raw_public_key(pkey, key.open, &open_len) == 1;
    EVP_PKEY_free(pkey);
    if (!ok)
        return aq_fail(err, EIO, "the crypto library makes no key for SSH");
    *ret = key;
    return 0;
}

/* The hash as a number below the curve's order, and the point that it leads to. */
static bool ssh_ecdsa_find_point(EC_GROUP *curve, BIGNUM *secret, EC_POINT *point, BN_CTX *ctx,
                                 struct ssh_ecdsa_key *key)
{
    return BN_mod(secret, secret, EC_GROUP_get0_order(curve), ctx) == 1 && !BN_is_zero(secret)
           && BN_bn2binpad(secret, key->secret, SSH_KEY_SIZE) == SSH_KEY_SIZE
           && EC_POINT_mul(curve, point, secret, NULL, NULL, ctx) == 1
           && EC_POINT_point2oct(curve, point, POINT_CONVERSION_UNCOMPRESSED, key->open,
                                 SSH_ECDSA_OPEN, ctx)
                  == SSH_ECDSA_OPEN;
}

int ssh_ecdsa_derive(const unsigned char seed[SSH_KEY_SIZE], const char *label,
                     struct ssh_ecdsa_key *ret, struct aq_error *err)
{
    unsigned char hash[SSH_KEY_SIZE];
    struct ssh_ecdsa_key key;
    EC_GROUP *curve = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    EC_POINT *point = curve ? EC_POINT_new(curve) : NULL;
    BN_CTX *ctx = BN_CTX_new();
    BIGNUM *secret = ssh_key_hash(seed, label, hash) ? BN_bin2bn(hash, SSH_KEY_SIZE, NULL) : NULL;
    bool ok = point && ctx && secret && ssh_ecdsa_find_point(curve, secret, point, ctx, &key);

    BN_clear_free(secret);
    BN_CTX_free(ctx);
    EC_POINT_free(point);
    EC_GROUP_free(curve);
    if (!ok)
        return aq_fail(err, EIO, "the crypto library makes no key for SSH");
    *ret = key;
    return 0;
}
