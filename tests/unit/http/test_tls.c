/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and listeners over TLS: who is let in and who is not. */
#include "testing.h"

#include "certs.h"
#include "http/listener.h"
#include "http/stream.h"
#include "http/x509.h"

static struct cert ca, other_ca, server_cert, client_cert, expired, early, foreign, revoked;
static char ca_print[TLS_FINGERPRINT_MAX], other_print[TLS_FINGERPRINT_MAX];

static void print_cert(const struct cert *cert, char ret[TLS_FINGERPRINT_MAX])
{
    uint8_t bytes[X509_FINGERPRINT_BYTES];
    X509 *x = NULL;

    assert_int_equal(x509_read(cert->cert_pem, &x, NULL), 0);
    assert_int_equal(x509_fingerprint(x, bytes, NULL), 0);
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    X509_free(x);
}

static int make_certs(void **state)
{
    const long day = 86400;

    (void)state;
    ca = cert_make("Test CA", 1, NULL, -day, day);
    other_ca = cert_make("Other CA", 1, NULL, -day, day);
    server_cert = cert_make("server", 2, &ca, -day, day);
    client_cert = cert_make("agent-1", 0xabc, &ca, -day, day);
    expired = cert_make("agent-2", 4, &ca, -2 * day, -day);
    early = cert_make("agent-3", 5, &ca, day, 2 * day);
    foreign = cert_make("agent-4", 6, &other_ca, -day, day);
    revoked = cert_make("agent-5", 7, &ca, -day, day);
    print_cert(&ca, ca_print);
    print_cert(&other_ca, other_print);
    return 0;
}

static int free_certs(void **state)
{
    struct cert *all[] = { &ca,      &other_ca, &server_cert, &client_cert,
                           &expired, &early,    &foreign,     &revoked };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(all); i++)
        cert_done(all[i]);
    return 0;
}

/* One connection, seen from both ends. */
struct side {
    struct stream *stream;
    bool opened, ended;
    struct aq_error err;
    struct strbuf got;
    struct tls_peer peer;
    bool has_peer;
    const char *greet; /* sent when open */
};

struct pair {
    uv_loop_t loop;
    struct side server, client;
    struct listener *listener;
};

static char long_greet[300000]; /* many records */

static void on_open(void *data)
{
    struct side *side = data;

    side->opened = true;
    side->has_peer = stream_get_peer(side->stream, &side->peer);
    assert_int_equal(stream_write(side->stream, side->greet, strlen(side->greet)), 0);
}

/* It pauses with each piece, in the middle of what was read: the rest waits. */
static void on_read(void *data, const char *bytes, size_t len)
{
    struct side *side = data;

    strbuf_add(&side->got, bytes, len);
    stream_pause(side->stream);
}

static void on_end(void *data, const struct aq_error *err)
{
    struct side *side = data;

    assert_false(side->ended);
    side->ended = true;
    side->err = *err;
}

static const struct stream_ops side_ops = { on_open, on_read, on_end, NULL };

static void on_waiting(struct listener *listener, void *data)
{
    struct pair *pair = data;

    assert_int_equal(
        listener_accept(listener, &side_ops, &pair->server, &pair->server.stream, NULL), 0);
}

static bool is_settled(const struct side *side, const char *want)
{
    return side->ended || !strcmp(side->got.data, want);
}

static int check_peer(void *data, const struct tls_peer *peer, struct aq_error *err)
{
    (void)data;
    if (!strcmp(peer->serial, "7"))
        return aq_fail(err, EACCES, "certificate %s is revoked", peer->serial);
    return 0;
}

/* Connect with these; both sides are settled and closed afterwards. */
static void run_pair(struct pair *pair, const struct tls_options *server_tls,
                     const struct tls_options *client_tls, const char *server_name)
{
    struct tls_context *server_ctx = NULL, *client_ctx = NULL;
    struct listener_options listen = { .address = "127.0.0.1:0" };
    struct stream_options options = { .server_name = server_name };
    struct aq_error err = { .code = 0 };
    struct address to;
    char address[32];

    memset(pair, 0, sizeof(*pair));
    strbuf_init(&pair->server.got);
    strbuf_init(&pair->client.got);
    memset(long_greet, 'x', sizeof(long_greet) - 1);
    pair->server.greet = "from server";
    pair->client.greet = long_greet;
    assert_int_equal(uv_loop_init(&pair->loop), 0);
    if (tls_context_new(server_tls, &server_ctx, &err) < 0
        || tls_context_new(client_tls, &client_ctx, &err) < 0)
        fail_msg("%s", err.text);
    listen.tls = server_ctx;
    options.tls = client_ctx;
    assert_int_equal(listener_new(&pair->loop, &listen, on_waiting, pair, &pair->listener, NULL),
                     0);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", listener_get_port(pair->listener));
    assert_int_equal(address_parse(address, 0, &to, NULL), 0);
    assert_int_equal(stream_connect(&pair->loop, &to, &options, &side_ops, &pair->client,
                                    &pair->client.stream, NULL),
                     0);
    while (!is_settled(&pair->client, pair->server.greet)
           || !is_settled(&pair->server, pair->client.greet)) {
        (void)uv_run(&pair->loop, UV_RUN_NOWAIT);
        stream_resume(pair->client.stream);
        if (pair->server.stream)
            stream_resume(pair->server.stream);
    }
    stream_close(pair->client.stream);
    stream_close(pair->server.stream);
    listener_close(pair->listener);
    (void)uv_run(&pair->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&pair->loop), 0);
    tls_context_free(server_ctx);
    tls_context_free(client_ctx);
}

static void pair_done(struct pair *pair)
{
    strbuf_done(&pair->server.got);
    strbuf_done(&pair->client.got);
}

static void test_mutual(void **state)
{
    const struct {
        const char *what;
        const struct cert *cert; /* the client's */
        const char *ca_pem, *ca_fingerprint, *name;
        const char *server_error; /* part of it, or NULL if let in */
        const char *client_error;
    } rows[] = {
        { "good", &client_cert, ca.cert_pem, NULL, "127.0.0.1", NULL, NULL },
        { "good by name", &client_cert, ca.cert_pem, NULL, "localhost", NULL, NULL },
        { "good by fingerprint", &client_cert, NULL, ca_print, "localhost", NULL, NULL },
        { "no certificate", NULL, ca.cert_pem, NULL, "localhost", "certificate", "" },
        { "expired", &expired, ca.cert_pem, NULL, "localhost", "expired", "" },
        { "not yet valid", &early, ca.cert_pem, NULL, "localhost", "not yet valid", "" },
        { "of another CA", &foreign, ca.cert_pem, NULL, "localhost", "certificate refused", "" },
        { "revoked", &revoked, ca.cert_pem, NULL, "localhost", "certificate 7 is revoked", "" },
        { "server of another CA", &client_cert, other_ca.cert_pem, NULL, "localhost", "",
          "certificate refused" },
        { "server with another fingerprint", &client_cert, NULL, other_print, "localhost", "",
          "does not show the CA" },
        { "server with another name", &client_cert, ca.cert_pem, NULL, "example.com", "",
          "hostname mismatch" },
        { "server with another address", &client_cert, ca.cert_pem, NULL, "127.0.0.2", "",
          "IP address mismatch" },
    };
    struct tls_options server = {
        .is_server = true,
        .cert_pem = server_cert.cert_pem,
        .key_pem = server_cert.key_pem,
        .ca_pem = ca.cert_pem,
        .require_peer_cert = true,
        .tls13_only = true,
        .check_peer = check_peer,
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct tls_options client = {
            .ca_pem = rows[i].ca_pem,
            .ca_fingerprint = rows[i].ca_fingerprint,
            .tls13_only = true,
            .cert_pem = rows[i].cert ? rows[i].cert->cert_pem : NULL,
            .key_pem = rows[i].cert ? rows[i].cert->key_pem : NULL,
        };
        bool good = !rows[i].server_error;
        struct pair pair;

        run_pair(&pair, &server, &client, rows[i].name);
        assert_row(pair.server.opened == good, "%s: %s", rows[i].what, pair.server.err.text);
        if (good) {
            assert_row(pair.client.opened && !pair.client.ended, "%s: %s", rows[i].what,
                       pair.client.err.text);
            assert_string_equal(pair.server.got.data, long_greet);
            assert_true(pair.server.has_peer && pair.client.has_peer);
            assert_string_equal(pair.server.peer.common_name, "agent-1");
            assert_string_equal(pair.server.peer.serial, "abc");
            assert_int_equal(strlen(pair.server.peer.fingerprint), 64);
            assert_string_equal(pair.client.peer.common_name, "server");
        } else {
            assert_row(strstr(pair.server.err.text, rows[i].server_error), "%s: %s", rows[i].what,
                       pair.server.err.text);
            assert_row(pair.client.ended && pair.client.err.code
                           && strstr(pair.client.err.text, rows[i].client_error),
                       "%s: %s", rows[i].what, pair.client.err.text);
            assert_row(!pair.client.got.len, "%s: the server spoke", rows[i].what);
        }
        pair_done(&pair);
    }
}

/* A plain https server, and clients with other demands. */
static void test_versions(void **state)
{
    struct tls_options server = {
        .is_server = true,
        .cert_pem = server_cert.cert_pem,
        .key_pem = server_cert.key_pem,
    };
    struct tls_options client = { .skip_verify = true };
    struct pair pair;

    (void)state;
    run_pair(&pair, &server, &client, "whatever");
    assert_true(pair.client.opened && pair.server.opened);
    assert_false(pair.server.has_peer);
    pair_done(&pair);

    client = (struct tls_options){ .ca_pem = ca.cert_pem, .any_name = true };
    run_pair(&pair, &server, &client, "whatever");
    assert_true(pair.client.opened && pair.server.opened);
    pair_done(&pair);

    client = (struct tls_options){ .is_server = false }; /* the system knows no such CA */
    run_pair(&pair, &server, &client, "localhost");
    assert_false(pair.client.opened);
    pair_done(&pair);
}

static void test_bad_options(void **state)
{
    const struct {
        const char *what;
        struct tls_options options;
    } rows[] = {
        { "server without a certificate", { .is_server = true } },
        { "certificate without a key", { .cert_pem = ca.cert_pem } },
        { "another's key", { .cert_pem = ca.cert_pem, .key_pem = other_ca.key_pem } },
        { "not PEM", { .cert_pem = "x", .key_pem = "y" } },
        { "not a CA file", { .ca_pem = "x" } },
        { "no such file", { .ca_file = "/nonexistent" } },
        { "client certificates without a CA",
          { .is_server = true,
            .cert_pem = ca.cert_pem,
            .key_pem = ca.key_pem,
            .require_peer_cert = true } },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct tls_context *ctx = NULL;
        struct aq_error err = { .code = 0 };

        assert_row(tls_context_new(&rows[i].options, &ctx, &err) < 0, "%s", rows[i].what);
        assert_row(err.text[0] && !ctx, "%s", rows[i].what);
    }
}

/* Plain text from outside needs to be asked for. */
static void test_insecure(void **state)
{
    static const struct {
        const char *address;
        bool insecure;
        int want;
    } rows[] = {
        { "0.0.0.0:0", false, -EPERM },  { "0.0.0.0:0", true, 0 },
        { "127.0.0.1:0", false, 0 },     { "127.9.9.9:0", false, 0 },
        { "localhost:0", false, 0 },     { "10.0.0.1:0", false, -EPERM },
        { "[::]:0", false, -EPERM },     { "example.com:0", true, -EINVAL },
        { "127.0.0.1", false, -EINVAL }, { "nonsense::", false, -EINVAL },
    };
    uv_loop_t loop;

    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct listener_options options = { .address = rows[i].address,
                                            .insecure = rows[i].insecure };
        struct listener *listener = NULL;
        struct aq_error err = { .code = 0 };

        assert_row(listener_new(&loop, &options, on_waiting, NULL, &listener, &err) == rows[i].want,
                   "%s: %s", rows[i].address, err.text);
        listener_close(listener);
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutual),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_insecure),
    };

    return cmocka_run_group_tests(tests, make_certs, free_certs);
}
