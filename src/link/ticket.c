/* SPDX-License-Identifier: Apache-2.0 */
/* ticket.c - see ticket.h */
#include "link/ticket.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/x509.h"

#define TITLE "aliquot-ticket 1"
#define LINES 10         /* without the signature */
#define SIGNATURE_MAX 80 /* bytes of an ECDSA signature over P-256, in DER */

struct ticket_key {
    EVP_PKEY *key;
};

/* ---- writing ---- */

static int ticket_check_word(const char *name, const char *text, size_t max, struct aq_error *err)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
            return aq_fail_field(err, EINVAL, name,
                                 "ticket: %s '%.64s' has a character that it "
                                 "must not have",
                                 name, text);
    if (len == 0 || len > max)
        return aq_fail_field(err, EINVAL, name,
                             "ticket: %s has %zu characters; 1 to %zu are "
                             "allowed",
                             name, len, max);
    return 0;
}

static int ticket_check(const struct ticket *t, struct aq_error *err)
{
    int r = ticket_check_word("proxy", t->proxy, AGENT_ID_MAX, err);

    if (r == 0)
        r = ticket_check_word("agent", t->agent, AGENT_ID_MAX, err);
    if (r == 0)
        r = ticket_check_word("app", t->app, SERVICE_NAME_MAX, err);
    if (r == 0)
        r = ticket_check_word("access_key", t->access_key, TICKET_KEY_MAX - 1, err);
    if (r == 0 && (t->port == 0 || t->expires_usec <= 0))
        r = aq_fail(err, EINVAL, "ticket: port and expiry must be above 0");
    return r;
}

int ticket_write(const struct pki_ca *ca, const struct ticket *ticket, struct strbuf *out,
                 struct aq_error *err)
{
    char id[UUID_TEXT_MAX], session[UUID_TEXT_MAX], kernel[UUID_TEXT_MAX];
    unsigned char signature[SIGNATURE_MAX];
    size_t begin = out->len, len = sizeof(signature);
    int r = ticket_check(ticket, err);

    if (r < 0)
        return r;
    strbuf_addf(out, TITLE "\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%u\n%" PRId64 "\n",
                uuid_format(&ticket->id, id), uuid_format(&ticket->session_id, session),
                uuid_format(&ticket->kernel_id, kernel), ticket->proxy, ticket->agent, ticket->app,
                ticket->access_key, (unsigned)ticket->port, ticket->expires_usec);
    r = pki_sign(ca, out->data + begin, out->len - begin, signature, &len, err);
    if (r < 0) {
        strbuf_truncate(out, begin);
        return r;
    }
    for (size_t i = 0; i < len; i++)
        strbuf_addf(out, "%02x", signature[i]);
    return 0;
}

/* ---- reading ---- */

int ticket_key_new(const char *ca_cert, struct ticket_key **ret, struct aq_error *err)
{
    AQ_CLEANUP(x509_freep) X509 *cert = NULL;
    struct ticket_key *key;
    EVP_PKEY *public_key;
    int r = x509_read(ca_cert, &cert, err);

    if (r < 0)
        return r;
    public_key = X509_get_pubkey(cert);
    if (!public_key)
        return aq_fail(err, EINVAL, "the cluster's CA certificate has an unusable key");
    key = aq_alloc(sizeof(*key));
    key->key = public_key;
    *ret = key;
    return 0;
}

void ticket_key_free(struct ticket_key *key)
{
    if (!key)
        return;
    EVP_PKEY_free(key->key);
    free(key);
}

static int ticket_hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int ticket_check_signature(const struct ticket_key *key, const char *text, size_t len,
                                  const char *hex, size_t hex_len, struct aq_error *err)
{
    unsigned char signature[SIGNATURE_MAX];
    EVP_MD_CTX *md;
    bool is_good;

    if (hex_len % 2 || hex_len / 2 > sizeof(signature))
        return aq_fail_kind(err, EINVAL, "bad-ticket", "the ticket's signature is malformed");
    for (size_t i = 0; i < hex_len / 2; i++) {
        int high = ticket_hex(hex[2 * i]), low = ticket_hex(hex[2 * i + 1]);

        if (high < 0 || low < 0)
            return aq_fail_kind(err, EINVAL, "bad-ticket", "the ticket's signature is malformed");
        signature[i] = (unsigned char)(high << 4 | low);
    }
    md = EVP_MD_CTX_new();
    is_good = md && EVP_DigestVerifyInit(md, NULL, EVP_sha256(), NULL, key->key) == 1
              && EVP_DigestVerify(md, signature, hex_len / 2, (const unsigned char *)text, len)
                     == 1;
    EVP_MD_CTX_free(md);
    return is_good ? 0
                   : aq_fail_kind(err, EACCES, "bad-ticket",
                                  "the ticket was not signed by this cluster's manager");
}

static bool ticket_take_word(char *ret, size_t size, const char *line)
{
    size_t len = strlen(line);

    if (len == 0 || len >= size)
        return false;
    memcpy(ret, line, len + 1);
    return true;
}

static bool ticket_take_lines(char *const lines[LINES], struct ticket *ret)
{
    char *end;
    unsigned long port = strtoul(lines[8], &end, 10);
    bool is_good = strcmp(lines[0], TITLE) == 0 && *end == '\0' && port > 0 && port <= UINT16_MAX;

    ret->port = (uint16_t)port;
    ret->expires_usec = strtoll(lines[9], &end, 10);
    return is_good && *end == '\0' && uuid_parse(lines[1], &ret->id) == 0
           && uuid_parse(lines[2], &ret->session_id) == 0
           && uuid_parse(lines[3], &ret->kernel_id) == 0
           && ticket_take_word(ret->proxy, sizeof(ret->proxy), lines[4])
           && ticket_take_word(ret->agent, sizeof(ret->agent), lines[5])
           && ticket_take_word(ret->app, sizeof(ret->app), lines[6])
           && ticket_take_word(ret->access_key, sizeof(ret->access_key), lines[7]);
}

int ticket_read(const struct ticket_key *key, const char *text, size_t len, int64_t now_usec,
                struct ticket *ret, struct aq_error *err)
{
    char room[TICKET_MAX + 1], *lines[LINES], *at = room;
    struct ticket ticket;
    size_t signed_len;
    int r;

    if (len > TICKET_MAX)
        return aq_fail_kind(err, EINVAL, "bad-ticket",
                            "the ticket has %zu bytes; at most %d are "
                            "allowed",
                            len, TICKET_MAX);
    memcpy(room, text, len);
    room[len] = '\0';
    for (size_t i = 0; i < LINES; i++) {
        lines[i] = at;
        at = strchr(at, '\n');
        if (!at)
            return aq_fail_kind(err, EINVAL, "bad-ticket", "the ticket has %zu lines, not %d", i,
                                LINES + 1);
        *at++ = '\0';
    }
    signed_len = (size_t)(at - room);
    if (memchr(text, '\0', len) || !ticket_take_lines(lines, &ticket))
        return aq_fail_kind(err, EINVAL, "bad-ticket", "the ticket is malformed");
    r = ticket_check_signature(key, text, signed_len, text + signed_len, len - signed_len, err);
    if (r < 0)
        return r;
    if (now_usec >= ticket.expires_usec)
        return aq_fail_kind(err, ETIME, "expired-ticket", "the ticket has expired");
    *ret = ticket;
    return 0;
}

char *ticket_socket_name(const char *ca_cert, const char *agent_id,
                         char buf[TICKET_SOCKET_NAME_MAX])
{
    AQ_CLEANUP(aq_freep) char *of = aq_format("%s\n%s", ca_cert, agent_id);
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    (void)EVP_Digest(of, strlen(of), hash, &len, EVP_sha256(), NULL);
    for (size_t i = 0; i < 8; i++)
        (void)snprintf(buf + 2 * i, 3, "%02x", hash[i]);
    memcpy(buf + 16, ".sock", 6);
    return buf;
}
