/* SPDX-License-Identifier: Apache-2.0 */
/* One TLS connection between bytes that come and bytes that go: inner part of stream.c. */
#include "http/tls_session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/tls_context.h"

struct tls_session {
    struct tls_context *ctx;
    SSL *ssl;
    const char *next; /* to be decrypted: borrowed, or in 'kept' */
    size_t left;
    struct strbuf kept;
    tls_send_fn *send;
    void *data;
};

/* ---- both directions, as the library sees them ---- */

static int tls_session_bio_read(BIO *bio, char *bytes, int size)
{
    struct tls_session *s = BIO_get_data(bio);
    size_t n = AQ_MIN(s->left, (size_t)size);

    BIO_clear_retry_flags(bio);
    if (!n) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(bytes, s->next, n);
    s->next += n;
    s->left -= n;
    if (!s->left)
        strbuf_done(&s->kept);
    return (int)n;
}

static int tls_session_bio_write(BIO *bio, const char *bytes, int len)
{
    struct tls_session *s = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    s->send(s->data, bytes, (size_t)len);
    return len;
}

static long tls_session_bio_ctrl(BIO *bio, int command, long number, void *data)
{
    (void)bio;
    (void)number;
    (void)data;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method; /* kept until the process ends */

static void tls_session_make_bio_method(void)
{
    bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "session");
    if (bio_method) {
        BIO_meth_set_read(bio_method, tls_session_bio_read);
        BIO_meth_set_write(bio_method, tls_session_bio_write);
        BIO_meth_set_ctrl(bio_method, tls_session_bio_ctrl);
    }
}

static BIO *tls_session_new_bio(struct tls_session *s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    BIO *bio;

    (void)pthread_once(&once, tls_session_make_bio_method);
    bio = bio_method ? BIO_new(bio_method) : NULL;
    if (bio) {
        BIO_set_data(bio, s);
        BIO_set_init(bio, 1);
    }
    return bio;
}

/* ---- life ---- */

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
    strbuf_done(&s->kept);
    free(s);
}

static int tls_session_set_up(struct tls_session *s, const char *server_name, struct aq_error *err)
{
    BIO *bio = tls_session_new_bio(s);

    s->ssl = SSL_new(tls_context_get(s->ctx));
    if (!s->ssl || !bio) {
        BIO_free(bio);
        return tls_fail(err, ENOMEM, "out of memory");
    }
    SSL_set_bio(s->ssl, bio, bio);
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

int tls_session_new(struct tls_context *ctx, const char *server_name, tls_send_fn *send, void *data,
                    struct tls_session **ret, struct aq_error *err)
{
    struct tls_session *s = aq_alloc(sizeof(*s));
    int r;

    s->ctx = tls_context_ref(ctx);
    s->send = send;
    s->data = data;
    strbuf_init(&s->kept);
    r = tls_session_set_up(s, server_name, err);
    if (r < 0) {
        tls_session_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

/* ---- bytes ---- */

static void tls_session_add_kept(struct tls_session *s, const char *bytes, size_t len)
{
    strbuf_consume(&s->kept, s->kept.len - AQ_MIN(s->left, s->kept.len));
    strbuf_add(&s->kept, bytes, len);
    s->next = s->kept.data;
    s->left = s->kept.len;
}

void tls_session_feed(struct tls_session *s, const char *bytes, size_t len)
{
    if (s->left) {
        tls_session_add_kept(s, bytes, len);
        return;
    }
    s->next = bytes;
    s->left = len;
}

void tls_session_keep(struct tls_session *s)
{
    if (s->left && !s->kept.len)
        tls_session_add_kept(s, s->next, s->left);
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
        return tls_fail(err, EPROTO, what);
    }
}

/* Of what the peer has shown only its own certificate is asked for later. */
static void tls_session_drop_chain(struct tls_session *s)
{
    STACK_OF(X509) *chain = SSL_get_peer_cert_chain(s->ssl);

    while (sk_X509_num(chain) > 0)
        X509_free(sk_X509_pop(chain));
}

int tls_session_handshake(struct tls_session *s, struct aq_error *err)
{
    struct tls_verdict verdict = { .err = { .code = 0 } };
    int r;

    SSL_set_app_data(s->ssl, &verdict);
    r = SSL_do_handshake(s->ssl);
    SSL_set_app_data(s->ssl, NULL);
    if (r == 1) {
        tls_session_drop_chain(s);
        return 1;
    }
    r = tls_session_explain(s, r, "TLS handshake failed", err);
    if (r < 0 && verdict.err.code)
        return aq_fail_kind(err, EPROTO, verdict.err.kind, "%s", verdict.err.text);
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

        /* send() takes everything, so there is nothing to wait for. */
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
