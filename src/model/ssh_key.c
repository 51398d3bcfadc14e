/* SPDX-License-Identifier: Apache-2.0 */
/* ssh_key.c - the forms of Ed25519 and ECDSA keys */
#include <string.h>

#include "base/cleanup.h"
#include "model/ssh_key.h"

#define TYPE "ssh-ed25519"
#define TYPE_ECDSA "ecdsa-sha2-nistp256"
#define BLOCK 8 /* what the private part is padded to */
#define LINE 70 /* of base64 in OpenSSH's form */

/* ---- the forms: strings are a length of four bytes and their bytes ---- */

static void ssh_key_put_number(struct strbuf *out, size_t n)
{
    const unsigned char bytes[] = { (unsigned char)(n >> 24), (unsigned char)(n >> 16),
                                    (unsigned char)(n >> 8), (unsigned char)n };

    strbuf_add(out, (const char *)bytes, sizeof(bytes));
}

static void ssh_key_put(struct strbuf *out, const void *bytes, size_t len)
{
    ssh_key_put_number(out, len);
    strbuf_add(out, bytes, len);
}

static void ssh_key_put_text(struct strbuf *out, const char *text)
{
    ssh_key_put(out, text, strlen(text));
}

/* Secret and public half as one string. */
static void ssh_key_put_pair(struct strbuf *out, const struct ssh_key *key)
{
    ssh_key_put_number(out, sizeof(key->secret) + sizeof(key->open));
    strbuf_add(out, (const char *)key->secret, sizeof(key->secret));
    strbuf_add(out, (const char *)key->open, sizeof(key->open));
}

static void ssh_key_put_public(struct strbuf *out, const struct ssh_key *key)
{
    ssh_key_put_text(out, TYPE);
    ssh_key_put(out, key->open, sizeof(key->open));
}

/* In lines of 'line' characters; 0 = all in one, without a newline. */
static void ssh_key_add_base64(struct strbuf *out, const struct strbuf *bytes, size_t line)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = (const unsigned char *)bytes->data;
    size_t column = 0;

    for (size_t left = bytes->len; left; at += 3) {
        unsigned bits = at[0] << 16 | (left > 1 ? at[1] << 8 : 0) | (left > 2 ? at[2] : 0);

        for (size_t i = 0; i < 4; i++) {
            strbuf_addc(out, i <= left ? digits[bits >> (18 - 6 * i) & 63] : '=');
            if (line && ++column % line == 0)
                strbuf_addc(out, '\n');
        }
        left -= AQ_MIN(left, 3);
    }
    if (line && column % line)
        strbuf_addc(out, '\n');
}

void ssh_key_add_public(const struct ssh_key *key, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf blob = STRBUF_INIT;

    ssh_key_put_public(&blob, key);
    strbuf_adds(out, TYPE " ");
    ssh_key_add_base64(out, &blob, 0);
}

static void ssh_key_put_private_part(struct strbuf *out, const struct ssh_key *key,
                                     const char *comment)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf part = STRBUF_INIT;

    ssh_key_put_number(&part, 0); /* twice the same: proof that it was decrypted */
    ssh_key_put_number(&part, 0);
    ssh_key_put_public(&part, key);
    ssh_key_put_pair(&part, key);
    ssh_key_put_text(&part, comment);
    for (char pad = 1; part.len % BLOCK; pad++)
        strbuf_addc(&part, pad);
    ssh_key_put(out, part.data, part.len);
}

void ssh_key_add_openssh(const struct ssh_key *key, const char *comment, struct strbuf *out)
{
    static const char magic[] = "openssh-key-v1"; /* with its zero byte */
    AQ_CLEANUP(strbuf_donep) struct strbuf blob = STRBUF_INIT, open = STRBUF_INIT;

    strbuf_add(&blob, magic, sizeof(magic));
    ssh_key_put_text(&blob, "none"); /* no cipher, no passphrase */
    ssh_key_put_text(&blob, "none");
    ssh_key_put_text(&blob, "");
    ssh_key_put_number(&blob, 1);
    ssh_key_put_public(&open, key);
    ssh_key_put(&blob, open.data, open.len);
    ssh_key_put_private_part(&blob, key, comment);
    strbuf_adds(out, "-----BEGIN OPENSSH PRIVATE KEY-----\n");
    ssh_key_add_base64(out, &blob, LINE);
    strbuf_adds(out, "-----END OPENSSH PRIVATE KEY-----\n");
}

void ssh_key_add_dropbear(const struct ssh_key *key, struct strbuf *out)
{
    ssh_key_put_text(out, TYPE);
    ssh_key_put_pair(out, key);
}

static void ssh_ecdsa_put_public(struct strbuf *out, const struct ssh_ecdsa_key *key)
{
    ssh_key_put_text(out, TYPE_ECDSA);
    ssh_key_put_text(out, "nistp256");
    ssh_key_put(out, key->open, sizeof(key->open));
}

void ssh_ecdsa_add_public(const struct ssh_ecdsa_key *key, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf blob = STRBUF_INIT;

    ssh_ecdsa_put_public(&blob, key);
    strbuf_adds(out, TYPE_ECDSA " ");
    ssh_key_add_base64(out, &blob, 0);
}

/* The secret is a number: without zeros before it, but for one that keeps it positive. */
void ssh_ecdsa_add_dropbear(const struct ssh_ecdsa_key *key, struct strbuf *out)
{
    const unsigned char *at = key->secret, *end = key->secret + sizeof(key->secret);

    while (at < end && *at == 0)
        at++;
    ssh_ecdsa_put_public(out, key);
    ssh_key_put_number(out, (size_t)(end - at) + (at < end && *at >= 0x80));
    if (at < end && *at >= 0x80)
        strbuf_addc(out, '\0');
    strbuf_add(out, (const char *)at, (size_t)(end - at));
}
