/* SPDX-License-Identifier: Apache-2.0 */
/* ssh_public_key.c - is this line somebody's public SSH key? */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "model/ssh_key.h"

#define BLANKS " \t\r\n"
#define RSA_MIN 257 /* 2048 bits, and a byte that says that it is positive */

/* What the blob holds after the name of its type: strings, one of which is the key itself. */
static const struct ssh_public_type {
    const char *name;
    unsigned strings, key; /* how many; which */
    uint32_t min, max;     /* bytes of that one */
} ssh_public_types[] = {
    { "ssh-ed25519", 1, 0, 32, 32 },
    { "ssh-rsa", 2, 1, RSA_MIN, 2049 }, /* exponent, modulus */
    { "ecdsa-sha2-nistp256", 2, 1, 65, 65 },
    { "ecdsa-sha2-nistp384", 2, 1, 97, 97 },
    { "ecdsa-sha2-nistp521", 2, 1, 133, 133 },
    { "sk-ssh-ed25519@openssh.com", 2, 0, 32, 32 },
    { "sk-ecdsa-sha2-nistp256@openssh.com", 3, 1, 65, 65 },
};

static int ssh_public_fail(struct aq_error *err, const char *why)
{
    return aq_fail_field(err, EINVAL, "pubkey", "%s", why);
}

static const struct ssh_public_type *ssh_public_find_type(const char *name, size_t len)
{
    for (size_t i = 0; i < AQ_COUNT(ssh_public_types); i++)
        if (strlen(ssh_public_types[i].name) == len
            && memcmp(ssh_public_types[i].name, name, len) == 0)
            return &ssh_public_types[i];
    return NULL;
}

static int ssh_public_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

/* How many bytes, or -1. One text for a key: no line ends, full padding, no bits left over. */
static int ssh_public_decode(const char *text, size_t len, unsigned char *ret)
{
    size_t pad = len && text[len - 1] == '=' ? 1 + (len > 1 && text[len - 2] == '=') : 0, n = 0;
    uint32_t bits = 0;

    if (len % 4)
        return -1;
    for (size_t i = 0; i < len; i++) {
        int digit = i < len - pad ? ssh_public_digit(text[i]) : 0;

        if (digit < 0)
            return -1;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 != 3)
            continue;
        for (int shift = 16; shift >= 0; shift -= 8)
            ret[n++] = (unsigned char)(bits >> shift);
        bits = 0;
    }
    for (size_t i = 0; i < pad; i++)
        if (ret[n - 1 - i])
            return -1;
    return (int)(n - pad);
}

/* The next string of a blob; NULL if there is none. */
static const unsigned char *ssh_public_next(const unsigned char **at, const unsigned char *end,
                                            uint32_t *ret_len)
{
    const unsigned char *text = *at + 4;
    uint32_t len;

    if (end - *at < 4)
        return NULL;
    len = (uint32_t)(*at)[0] << 24 | (uint32_t)(*at)[1] << 16 | (uint32_t)(*at)[2] << 8 | (*at)[3];
    if (len > (size_t)(end - text))
        return NULL;
    *ret_len = len;
    *at = text + len;
    return text;
}

static bool ssh_public_is_key(const struct ssh_public_type *type, const unsigned char *at,
                              const unsigned char *end)
{
    uint32_t len;
    const unsigned char *text = ssh_public_next(&at, end, &len);

    if (!text || len != strlen(type->name) || memcmp(text, type->name, len) != 0)
        return false;
    for (unsigned i = 0; i < type->strings; i++) {
        if (!ssh_public_next(&at, end, &len))
            return false;
        if (i == type->key && (len < type->min || len > type->max))
            return false;
    }
    return at == end;
}

int ssh_public_key_parse(const char *text, char ret[SSH_PUBLIC_KEY_MAX], struct aq_error *err)
{
    unsigned char blob[SSH_PUBLIC_KEY_MAX];
    const char *name = text + strspn(text, BLANKS), *data = name + strcspn(name, BLANKS), *rest;
    const char *line_end = name + strcspn(name, "\r\n");
    const struct ssh_public_type *type = ssh_public_find_type(name, (size_t)(data - name));
    int len;

    if (strncmp(name, "-----BEGIN", 10) == 0)
        return ssh_public_fail(err, "is a private key; give the public one, a file *.pub");
    if (!type)
        return ssh_public_fail(err,
                               "must be a line such as \"ssh-ed25519 AAAA...\", with a type of "
                               "ssh-ed25519, ssh-rsa, ecdsa-sha2-nistp256, -384, -521 or sk-");
    data += strspn(data, " \t");
    rest = data + strcspn(data, BLANKS);
    if (line_end[strspn(line_end, BLANKS)])
        return ssh_public_fail(err, "is more than one line; give one key");
    if (strlen(type->name) + 2 + (size_t)(rest - data) > SSH_PUBLIC_KEY_MAX
        || (len = ssh_public_decode(data, (size_t)(rest - data), blob)) < 0
        || !ssh_public_is_key(type, blob, blob + len))
        return aq_fail_field(err, EINVAL, "pubkey", "is no key of the type %s%s", type->name,
                             type->min == RSA_MIN ? " with at least 2048 bits" : "");
    (void)snprintf(ret, SSH_PUBLIC_KEY_MAX, "%s %.*s", type->name, (int)(rest - data), data);
    return 0;
}
