/* SPDX-License-Identifier: Apache-2.0 */
/* key.c - the SSH keys of a session, all Ed25519 and made from one seed */
#include "agent/ssh/key.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#define TYPE "ssh-ed25519"
#define BLOCK 8      /* what the private part is padded to */
#define LINE 70      /* of base64 in OpenSSH's form */
#define BLOB_MAX 512 /* of any of the forms, before base64 */

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

/* ---- the forms: strings are a length of four bytes and their bytes ---- */

static void key_put_number(struct strbuf *out, size_t n)
{
    const unsigned char bytes[] = { (unsigned char)(n >> 24), (unsigned char)(n >> 16),
                                    (unsigned char)(n >> 8), (unsigned char)n };

    strbuf_add(out, (const char *)bytes, sizeof(bytes));
}

static void key_put(struct strbuf *out, const void *bytes, size_t len)
{
    key_put_number(out, len);
    strbuf_add(out, bytes, len);
}

static void key_put_text(struct strbuf *out, const char *text)
{
    key_put(out, text, strlen(text));
}

/* Secret and public half as one string. */
static void key_put_pair(struct strbuf *out, const struct ssh_key *key)
{
    key_put_number(out, sizeof(key->secret) + sizeof(key->open));
    strbuf_add(out, (const char *)key->secret, sizeof(key->secret));
    strbuf_add(out, (const char *)key->open, sizeof(key->open));
}

static void key_put_public(struct strbuf *out, const struct ssh_key *key)
{
    key_put_text(out, TYPE);
    key_put(out, key->open, sizeof(key->open));
}

/* In lines of 'line' characters; 0 = all in one, without a newline. */
static void key_add_base64(struct strbuf *out, const struct strbuf *bytes, int line)
{
    unsigned char text[BLOB_MAX / 3 * 4 + 8];
    int len;

    if (!strbuf_ok(bytes) || bytes->len > BLOB_MAX)
        return;
    len = EVP_EncodeBlock(text, (const unsigned char *)bytes->data, (int)bytes->len);
    for (int at = 0; at < len; at += line ? line : len)
        strbuf_addf(out, "%.*s%s", line ? AQ_MIN(line, len - at) : len, (const char *)text + at,
                    line ? "\n" : "");
}

void ssh_key_add_public(const struct ssh_key *key, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf blob = STRBUF_INIT;

    key_put_public(&blob, key);
    strbuf_adds(out, TYPE " ");
    key_add_base64(out, &blob, 0);
}

static void key_put_private_part(struct strbuf *out, const struct ssh_key *key, const char *comment)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf part = STRBUF_INIT;

    key_put_number(&part, 0); /* twice the same: proof that it was decrypted */
    key_put_number(&part, 0);
    key_put_public(&part, key);
    key_put_pair(&part, key);
    key_put_text(&part, comment);
    for (char pad = 1; part.len % BLOCK; pad++)
        strbuf_addc(&part, pad);
    key_put(out, part.data, part.len);
}

void ssh_key_add_openssh(const struct ssh_key *key, const char *comment, struct strbuf *out)
{
    static const char magic[] = "openssh-key-v1"; /* with its zero byte */
    AQ_CLEANUP(strbuf_donep) struct strbuf blob = STRBUF_INIT, open = STRBUF_INIT;

    strbuf_add(&blob, magic, sizeof(magic));
    key_put_text(&blob, "none"); /* no cipher, no passphrase */
    key_put_text(&blob, "none");
    key_put_text(&blob, "");
    key_put_number(&blob, 1);
    key_put_public(&open, key);
    key_put(&blob, open.data, open.len);
    key_put_private_part(&blob, key, comment);
    strbuf_adds(out, "-----BEGIN OPENSSH PRIVATE KEY-----\n");
    key_add_base64(out, &blob, LINE);
    strbuf_adds(out, "-----END OPENSSH PRIVATE KEY-----\n");
}

void ssh_key_add_dropbear(const struct ssh_key *key, struct strbuf *out)
{
    key_put_text(out, TYPE);
    key_put_pair(out, key);
}
