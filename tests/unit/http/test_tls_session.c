/* SPDX-License-Identifier: Apache-2.0 */
/* TLS between two queues: what a peer may say after the handshake, and what a connection keeps. */
#include "testing.h"

#include <errno.h>

#include <openssl/ssl.h>

#include "certs.h"
#include "http/tls_session.h"

static struct cert ca, one, two;

static int make_certs(void **state)
{
    (void)state;
    ca = cert_make("Test CA", 1, NULL, -60, 3600);
    one = cert_make("localhost", 0x11, &ca, -60, 3600);
    two = cert_make("localhost", 0x22, &ca, -60, 3600);
    return 0;
}

static int free_certs(void **state)
{
    (void)state;
    cert_done(&ca);
    cert_done(&one);
    cert_done(&two);
    return 0;
}

static struct tls_context *make_context(const struct cert *cert)
{
    struct tls_options options = { .is_server = cert, .ca_pem = cert ? NULL : ca.cert_pem };
    struct tls_context *ctx;
    struct aq_error err = { .code = 0 };

    if (cert) {
        options.cert_pem = cert->cert_pem;
        options.key_pem = cert->key_pem;
    }
    if (tls_context_new(&options, &ctx, &err) < 0)
        fail_msg("%s", err.text);
    return ctx;
}

static void send_to(void *data, const char *bytes, size_t len)
{
    strbuf_add(data, bytes, len);
}

/* ---- beside the library alone ---- */

struct talk {
    struct tls_session *ours;
    struct strbuf out, got; /* of ours */
    bool is_open, is_slow;  /* slow: it reads less than has come */
    int last;               /* of tls_session_read() */
    SSL_CTX *peer_ctx;
    SSL *peer;
    BIO *to_peer, *from_peer; /* owned by 'peer' */
    struct strbuf heard;      /* by the peer */
};

static void start_peer(struct talk *t, bool is_server, int version)
{
    t->peer_ctx = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    t->to_peer = BIO_new(BIO_s_mem());
    t->from_peer = BIO_new(BIO_s_mem());
    assert_true(t->peer_ctx && t->to_peer && t->from_peer);
    assert_true(SSL_CTX_set_max_proto_version(t->peer_ctx, version));
    if (is_server) {
        assert_true(SSL_CTX_use_certificate(t->peer_ctx, one.x509));
        assert_true(SSL_CTX_use_PrivateKey(t->peer_ctx, one.key));
    }
    t->peer = SSL_new(t->peer_ctx);
    assert_non_null(t->peer);
    SSL_set_bio(t->peer, t->to_peer, t->from_peer);
    if (is_server)
        SSL_set_accept_state(t->peer);
    else
        SSL_set_connect_state(t->peer);
}

static void read_ours(struct talk *t)
{
    char plain[1000];

    do {
        t->last = tls_session_read(t->ours, plain, sizeof(plain), NULL);
        if (t->last > 0)
            strbuf_add(&t->got, plain, (size_t)t->last);
    } while (t->last > 0 && !t->is_slow);
}

/* From memory that is lent for this call only. */
static void give_ours(struct talk *t, const char *bytes, size_t len)
{
    char *lent = malloc(len + 1);
    struct aq_error err = { .code = 0 };
    int r;

    memcpy(lent, bytes, len);
    tls_session_feed(t->ours, lent, len);
    if (!t->is_open) {
        r = tls_session_handshake(t->ours, &err);
        assert_row(r >= 0, "%s", err.text);
        t->is_open = r;
    }
    if (t->is_open)
        read_ours(t);
    tls_session_keep(t->ours);
    free(lent);
}

/* Until both have said all, in pieces of at most 'step' bytes. */
static void exchange(struct talk *t, size_t step)
{
    char bytes[20000];
    int n = 0;

    do {
        while ((n = SSL_read(t->peer, bytes, sizeof(bytes))) > 0)
            strbuf_add(&t->heard, bytes, (size_t)n);
        while ((n = BIO_read(t->from_peer, bytes, (int)step)) > 0)
            give_ours(t, bytes, (size_t)n);
        n = (int)t->out.len;
        if (n)
            assert_int_equal(BIO_write(t->to_peer, t->out.data, n), n);
        strbuf_done(&t->out);
    } while (n);
    while (t->is_open && t->last > 0)
        read_ours(t);
}

static void say_both(struct talk *t, size_t step)
{
    static char much[50000];

    memset(much, 'x', sizeof(much) - 1);
    strbuf_clear(&t->got);
    strbuf_clear(&t->heard);
    assert_int_equal(SSL_write(t->peer, much, sizeof(much) - 1), sizeof(much) - 1);
    assert_int_equal(tls_session_write(t->ours, much, sizeof(much) - 1, NULL), 0);
    exchange(t, step);
    assert_string_equal(t->got.data, much);
    assert_string_equal(t->heard.data, much);
}

/* A server of others sends tickets by itself; both may ask for new keys, and end. */
static void test_after_handshake(void **state)
{
    static const size_t steps[] = { 1, 1000, 20000 };
    static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };

    (void)state;
    for (unsigned i = 0; i < 2 * 2 * 2 * AQ_COUNT(steps); i++) {
        bool is_server = i & 1;
        int version = versions[i >> 2 & 1];
        size_t step = steps[i >> 3];
        struct tls_context *ctx = make_context(is_server ? &one : NULL);
        struct talk t = { .is_slow = i & 2 };

        strbuf_init(&t.out);
        strbuf_init(&t.got);
        strbuf_init(&t.heard);
        start_peer(&t, !is_server, version);
        assert_int_equal(tls_session_new(ctx, "localhost", send_to, &t.out, &t.ours, NULL), 0);
        give_ours(&t, "", 0);
        exchange(&t, step);
        assert_true(t.is_open && SSL_version(t.peer) == version);
        say_both(&t, step);
        if (version == TLS1_3_VERSION) {
            assert_true(SSL_key_update(t.peer, SSL_KEY_UPDATE_REQUESTED));
            say_both(&t, step);
            say_both(&t, step);
        }
        assert_int_equal(t.last, 0);
        (void)SSL_shutdown(t.peer);
        exchange(&t, step);
        assert_int_equal(t.last, -ENODATA);
        tls_session_shutdown(t.ours);
        exchange(&t, step);
        assert_int_equal(SSL_get_shutdown(t.peer), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        tls_session_free(t.ours);
        tls_context_free(ctx);
        SSL_free(t.peer);
        SSL_CTX_free(t.peer_ctx);
        strbuf_done(&t.out);
        strbuf_done(&t.got);
        strbuf_done(&t.heard);
    }
}

/* ---- what is kept ---- */

static size_t held; /* bytes, by the library */

static void *held_new(size_t size, const char *file, int line)
{
    size_t *room = malloc(size + 16);

    (void)file;
    (void)line;
    if (!room)
        return NULL;
    *room = size;
    held += size;
    return room + 2;
}

static void held_free(void *bytes, const char *file, int line)
{
    size_t *room = bytes;

    (void)file;
    (void)line;
    if (!room)
        return;
    held -= room[-2];
    free(room - 2);
}

static void *held_renew(void *bytes, size_t size, const char *file, int line)
{
    void *grown = size ? held_new(size, file, line) : NULL;

    if (bytes && grown)
        memcpy(grown, bytes, AQ_MIN(size, ((size_t *)bytes)[-2]));
    if (grown || !size)
        held_free(bytes, file, line);
    return grown;
}

/* The server's end is gone at once. The client's certificate of it has this serial number. */
static struct tls_session *join(struct tls_context *client_ctx, struct tls_context *server_ctx,
                                const char *serial)
{
    struct strbuf from_client = STRBUF_INIT, from_server = STRBUF_INIT;
    struct tls_session *client, *server;
    struct tls_peer peer;
    int r;

    assert_int_equal(tls_session_new(client_ctx, "localhost", send_to, &from_client, &client, NULL),
                     0);
    assert_int_equal(tls_session_new(server_ctx, NULL, send_to, &from_server, &server, NULL), 0);
    for (int i = 0; i < 2; i++) {
        r = tls_session_handshake(client, NULL);
        tls_session_feed(server, from_client.data, from_client.len);
        assert_int_equal(tls_session_handshake(server, NULL), i);
        strbuf_clear(&from_client);
        tls_session_feed(client, from_server.data, from_server.len);
    }
    assert_int_equal(r, 1);
    assert_true(tls_session_get_peer(client, &peer));
    assert_string_equal(peer.serial, serial);
    tls_session_free(server);
    strbuf_done(&from_client);
    strbuf_done(&from_server);
    return client;
}

static void test_kept(void **state)
{
    struct tls_context *client = make_context(NULL);
    struct tls_context *servers[] = { make_context(&one), make_context(&two) };
    const char *const serials[] = { "11", "22" };
    static const unsigned order[] = { 1, 0, 0, 1, 1, 0 };
    struct tls_session *all[AQ_COUNT(order)];
    size_t took[AQ_COUNT(order)];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(order); i++) {
        size_t before = held;

        all[i] = join(client, servers[order[i]], serials[order[i]]);
        took[i] = held - before;
    }
    assert_row(took[2] + 1500 < took[3], "the same server's: %zu, another's: %zu", took[2],
               took[3]);
    assert_row(took[4] + 1500 < took[5], "the same server's: %zu, another's: %zu", took[4],
               took[5]);
    for (size_t i = 0; i < AQ_COUNT(order); i++)
        tls_session_free(all[i]);
    for (size_t i = 0; i < AQ_COUNT(servers); i++)
        tls_context_free(servers[i]);
    tls_context_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_after_handshake),
        cmocka_unit_test(test_kept),
    };

    if (!CRYPTO_set_mem_functions(held_new, held_renew, held_free))
        return 1;
    return cmocka_run_group_tests(tests, make_certs, free_certs);
}
