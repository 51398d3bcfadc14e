/* SPDX-License-Identifier: Apache-2.0 */
/* One TLS connection between two byte queues: inner part of stream.c. */
#include "http/tls_session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "http/tls_context.h"

struct tls_session {
    struct tls_context *ctx;
    SSL *ssl;
    BIO *in, *out; /* owned by ssl */
    struct tls_verdict verdict;
};

static bool tls_session_is_literal(const char *name)
{
    unsigned char room[16];

    return inet_pton(AF_INET, name, room) == 1 || inet_pton(AF_INET6, name, room) == 1;
}

/* What a client expects the server to be called. */
static bool tls_session_expect_name(struct tls_session *s, const char *name)
{
    bool any = tls_context_get_options(s->ctx)->any_name || !*name;

    if (tls_session_is_literal(name))
        return any || X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(s->ssl), name);
    return !*name
           || (SSL_set_tlsext_host_name(s->ssl, name) && (any || SSL_set1_host(s->ssl, name)));
}

void tls_session_free(struct tls_session *s)
{
    if (!s)
        return;
    SSL_free(s->ssl);
    tls_context_free(s->ctx);
    free(s);
}

static int tls_session_set_up(struct tls_session *s, const char *server_name, struct aq_error *err)
{
    s->ssl = SSL_new(tls_context_get(s->ctx));
    s->in = BIO_new(BIO_s_mem());
    s->out = BIO_new(BIO_s_mem());
    if (!s->ssl || !s->in || !s->out) {
        BIO_free(s->in);
        BIO_free(s->out);
        return tls_fail(err, ENOMEM, "out of memory");
    }
    SSL_set_bio(s->ssl, s->in, s->out);
    SSL_set_app_data(s->ssl, &s->verdict);
    /* certificates are valid by the one clock of the program */
    X509_VERIFY_PARAM_set_time(SSL_get0_param(s->ssl),
                               (time_t)(clock_realtime_usec() / USEC_PER_SEC));
    if (tls_context_get_options(s->ctx)->is_server)
        SSL_set_accept_state(s->ssl);
    else {
        SSL_set_connect_state(s->ssl);
        if (!tls_session_expect_name(s, server_name ? server_name : ""))
            return tls_fail(err, EINVAL, "the server's name cannot be verified");
    }
    return 0;
}

int tls_session_new(struct tls_context *ctx, const char *server_name, struct tls_session **ret,
                    struct aq_error *err)
{
    struct tls_session *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return aq_fail_oom(err);
    s->ctx = tls_context_ref(ctx);
    r = tls_session_set_up(s, server_name, err);
    if (r < 0) {
        tls_session_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

int tls_session_feed(struct tls_session *s, const char *bytes, size_t len, struct aq_error *err)
{
    if (len > INT_MAX || BIO_write(s->in, bytes, (int)len) != (int)len)
        return tls_fail(err, ENOMEM, "out of memory");
    return 0;
}

/* BIO_reset() would clear all the memory that it keeps. */
size_t tls_session_drain(struct tls_session *s, char *out, size_t size)
{
    int n = BIO_read(s->out, out, (int)AQ_MIN(size, (size_t)INT_MAX));

    return n > 0 ? (size_t)n : 0;
}

/* Why SSL_*() returned 'r' <= 0: 0 if it only waits for bytes. */
static int tls_session_explain(struct tls_session *s, int r, const char *what, struct aq_error *err)
{
    switch (SSL_get_error(s->ssl, r)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        return -ENODATA;
    default:
        break;
    }
    if (s->verdict.err.code) {
        ERR_clear_error();
        return aq_fail_kind(err, EPROTO, s->verdict.err.kind, "%s", s->verdict.err.text);
    }
    return tls_fail(err, EPROTO, what);
}

int tls_session_handshake(struct tls_session *s, struct aq_error *err)
{
    int r = SSL_do_handshake(s->ssl);

    if (r == 1)
        return 1;
    r = tls_session_explain(s, r, "TLS handshake failed", err);
    return r == -ENODATA ? aq_fail(err, EPROTO, "the peer ended the TLS handshake") : r;
}

int tls_session_read(struct tls_session *s, char *out, size_t size, struct aq_error *err)
{
    int n = SSL_read(s->ssl, out, (int)AQ_MIN(size, INT_MAX));

    return n > 0 ? n : tls_session_explain(s, n, "TLS failed", err);
}

int tls_session_write(struct tls_session *s, const char *bytes, size_t len, struct aq_error *err)
{
    while (len) {
        int part = (int)AQ_MIN(len, (size_t)1 << 30);
        int n = SSL_write(s->ssl, bytes, part);

        /* A memory BIO takes everything, so there is nothing to wait for. */
        if (n <= 0)
            return tls_fail(err, EPROTO, "TLS failed");
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

void tls_session_shutdown(struct tls_session *s)
{
    if (SSL_is_init_finished(s->ssl))
        (void)SSL_shutdown(s->ssl);
    ERR_clear_error();
}

bool tls_session_get_peer(const struct tls_session *s, struct tls_peer *ret)
{
    X509 *cert = SSL_get0_peer_certificate(s->ssl);

    return cert && SSL_is_init_finished(s->ssl) && tls_peer_from_cert(cert, ret);
}
