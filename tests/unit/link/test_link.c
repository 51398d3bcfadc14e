/* Both ends over loopback TLS: order, resumption after a cut, refusals, fencing, streams, joining. */
#include "testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "link/server.h"

#define MANY 500

static char folder[] = "/tmp/aliquot-link-XXXXXX";
static struct pki_ca *ca;

/* Everything both sides saw, in one place. */
struct scene {
    uv_loop_t loop;
    struct link_server *server;
    struct link_client *client;
    char *key, *cert;
    struct uuid incarnation;
    int connects, disconnects, orderly, hellos;
    int64_t refuse_retry_usec;
    bool refuse;
    /* messages: the attempt of each counts up */
    int64_t at_client, at_server;
    uint64_t last_seq;
    bool no_ack, was_disordered;
    char refused_kind[32], refused_text[320];
    /* streams */
    struct msg_stream_open opened;
    char opened_key[64];
    bool was_opened, auto_stream;
    bool is_old; /* an agent that knows plain streams alone */
    struct link_stream *server_stream, *client_stream;
    struct strbuf at_server_bytes, at_client_bytes;
    int stream_opens, stream_closes, drains;
    int stream_error;
};

static struct uuid id_of(int n)
{
    struct uuid id = { .bytes = { 1, (uint8_t)(n >> 8), (uint8_t)n } };

    return id;
}

/* ---- the manager's callbacks ---- */

static int on_hello(void *data, const struct msg_hello *hello, struct msg_welcome *welcome,
                    int64_t *retry_usec, struct aq_error *err)
{
    struct scene *s = data;

    s->hellos++;
    welcome->heartbeat_usec = 7;
    assert_string_equal(hello->agent_id, "node-1");
    *retry_usec = s->refuse_retry_usec;
    return s->refuse ? aq_fail(err, EACCES, "not today") : 0;
}

static void on_server_connected(void *data, const char *agent_id, const struct uuid *incarnation)
{
    struct scene *s = data;

    assert_string_equal(agent_id, "node-1");
    assert_false(uuid_is_nil(incarnation));
    s->connects++;
}

static void on_server_message(void *data, const char *agent_id, const struct message *msg)
{
    struct scene *s = data;

    (void)agent_id;
    if (msg->type != MSG_KERNEL_STATUS)
        return;
    s->was_disordered = s->was_disordered || msg->kernel_status.attempt != s->at_server + 1;
    s->at_server = msg->kernel_status.attempt;
}

static void on_server_disconnected(void *data, const char *agent_id,
                                   const struct uuid *incarnation, bool orderly, const char *why)
{
    struct scene *s = data;

    (void)agent_id;
    (void)incarnation;
    assert_non_null(why);
    s->disconnects++;
    s->orderly += orderly;
}

static void on_join(void *data, struct link_join *join, const struct msg_join *msg)
{
    AQ_CLEANUP(aq_freep) char *cert = NULL;
    struct aq_error err = { 0 };

    (void)data;
    if (strcmp(msg->secret, "right") != 0)
        link_join_refuse(join, "token", "the token is used up");
    else if (pki_issue_agent(ca, msg->csr, msg->agent_id, PKI_AGENT_DAYS, &cert, NULL, &err) < 0)
        link_join_refuse(join, "refused", err.text);
    else
        link_join_accept(join, cert);
}

static const struct link_server_ops server_ops = {
    .on_hello = on_hello,
    .on_connected = on_server_connected,
    .on_message = on_server_message,
    .on_disconnected = on_server_disconnected,
    .on_join = on_join,
};

/* ---- streams ---- */

static void on_stream_open(void *data, struct link_stream *stream)
{
    struct scene *s = data;

    (void)stream;
    s->stream_opens++;
}

static void on_stream_data(void *data, struct link_stream *stream, const char *bytes, size_t len)
{
    struct scene *s = data;

    strbuf_add(stream == s->server_stream ? &s->at_server_bytes : &s->at_client_bytes, bytes, len);
}

static void on_stream_drain(void *data, struct link_stream *stream)
{
    struct scene *s = data;

    (void)stream;
    s->drains++;
}

static void on_stream_close(void *data, struct link_stream *stream, const struct aq_error *err)
{
    struct scene *s = data;

    s->stream_closes++;
    s->stream_error = err ? err->code : 0;
    if (stream == s->server_stream)
        s->server_stream = NULL;
    else
        s->client_stream = NULL;
}

static const struct link_stream_ops stream_ops = {
    .on_open = on_stream_open,
    .on_data = on_stream_data,
    .on_drain = on_stream_drain,
    .on_close = on_stream_close,
};

/* ---- the agent's callbacks ---- */

static void on_greet(void *data, struct msg_hello *hello)
{
    (void)data;
    hello->slots = "{\"cpu\":[\"count\",\"4\"]}";
}

static void on_client_message(void *data, uint64_t seq, const struct message *msg)
{
    struct scene *s = data;
    struct aq_error err = { 0 };

    if (msg->type == MSG_KERNEL_FORGET) {
        s->was_disordered = s->was_disordered || msg->kernel_forget.attempt != s->at_client + 1;
        s->at_client = msg->kernel_forget.attempt;
    }
    if (msg->type == MSG_STREAM_OPEN) {
        s->was_opened = true;
        s->opened = msg->stream_open;
        assert_string_equal(s->opened.kind, "logs");
        s->opened.kind = NULL; /* borrowed */
        (void)snprintf(s->opened_key, sizeof(s->opened_key), "%s", msg->stream_open.key);
        s->opened.key = s->opened_key;
        s->opened.reuse = s->opened.reuse && !s->is_old;
        if (s->auto_stream)
            assert_int_equal(link_client_open_stream(s->client, &s->opened, &stream_ops, s,
                                                     &s->client_stream, &err), 0);
    }
    if (seq && !s->no_ack)
        link_client_ack(s->client, seq);
    s->last_seq = seq ? seq : s->last_seq;
}

static void on_refused(void *data, const char *kind, const char *text)
{
    struct scene *s = data;

    (void)snprintf(s->refused_kind, sizeof(s->refused_kind), "%s", kind);
    (void)snprintf(s->refused_text, sizeof(s->refused_text), "%s", text);
}

static const struct link_client_ops client_ops = {
    .on_greet = on_greet,
    .on_message = on_client_message,
    .on_refused = on_refused,
};

/* ---- the stage ---- */

static void start_server(struct scene *s, uint16_t port)
{
    AQ_CLEANUP(aq_freep) char *key = NULL;
    AQ_CLEANUP(aq_freep) char *cert = NULL;
    struct aq_error err = { 0 };

    assert_int_equal(pki_issue_server(ca, NULL, 0, 30, &cert, &key, &err), 0);
    assert_row(link_server_new(&(struct link_server_conf){ .loop = &s->loop, .host = "127.0.0.1",
                                                           .port = port, .ca = ca, .cert = cert,
                                                           .key = key,
                                                           .incarnation = uuid_random() },
                               &server_ops, s, &s->server, &err) == 0, "%s", err.text);
}

static struct link_client *start_client(struct scene *s, const char *id,
                                        const struct link_client_ops *ops, void *data)
{
    struct link_client *client = NULL;
    struct aq_error err = { 0 };

    assert_row(link_client_new(&(struct link_client_conf){ .loop = &s->loop, .host = "127.0.0.1",
                                                           .port = link_server_port(s->server),
                                                           .ca = pki_ca_cert(ca), .cert = s->cert,
                                                           .key = s->key, .agent_id = id,
                                                           .incarnation = s->incarnation,
                                                           .retry_min_usec = 2000,
                                                           .retry_max_usec = 20000 },
                               ops, data, &client, &err) == 0, "%s", err.text);
    return client;
}

static void make_identity(struct scene *s, struct pki_ca *authority, const char *id, int days)
{
    AQ_CLEANUP(aq_freep) char *csr = NULL;
    struct aq_error err = { 0 };

    assert_int_equal(pki_request_new(id, &s->key, &csr, &err), 0);
    assert_int_equal(pki_issue_agent(authority, csr, id, days, &s->cert, NULL, &err), 0);
}

static void scene_init(struct scene *s)
{
    *s = (struct scene){ .incarnation = uuid_random() };
    strbuf_init(&s->at_server_bytes);
    strbuf_init(&s->at_client_bytes);
    assert_int_equal(uv_loop_init(&s->loop), 0);
    make_identity(s, ca, "node-1", 10);
    start_server(s, 0);
}

static void scene_done(struct scene *s)
{
    link_client_free(s->client);
    link_server_free(s->server);
    assert_int_equal(uv_run(&s->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    strbuf_done(&s->at_server_bytes);
    strbuf_done(&s->at_client_bytes);
    free(s->key);
    free(s->cert);
}

/* Run the loop until 'condition'; a test that hangs is ended by its runner. */
#define RUN_UNTIL(s, condition)                                                                    \
    while (!(condition))                                                                           \
    assert_true(uv_run(&(s)->loop, UV_RUN_ONCE) || (condition))

static void send_forget(struct scene *s, int n)
{
    struct message msg = { .type = MSG_KERNEL_FORGET,
                           .kernel_forget = { .kernel_id = id_of(n), .attempt = n } };
    struct aq_error err = { 0 };

    assert_row(link_server_send(s->server, "node-1", &msg, &err) == 0, "%s", err.text);
}

static void send_status(struct scene *s, int n)
{
    struct message msg = { .type = MSG_KERNEL_STATUS,
                           .kernel_status = { .kernel_id = id_of(n), .attempt = n,
                                              .state = MSG_KERNEL_RUNNING } };
    struct aq_error err = { 0 };

    assert_row(link_client_send(s->client, &msg, &err) == 0, "%s", err.text);
}

/* ---- tests ---- */

static void test_messages_flow_in_order(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    s.client = start_client(&s, "node-1", &client_ops, &s);
    for (int i = 1; i <= 3; i++)
        send_status(&s, i); /* before there is a connection */
    RUN_UNTIL(&s, s.at_server == 3);
    for (int i = 1; i <= MANY; i++)
        send_forget(&s, i);
    for (int i = 4; i <= MANY; i++)
        send_status(&s, i);
    RUN_UNTIL(&s, s.at_client == MANY && s.at_server == MANY);
    assert_false(s.was_disordered);
    assert_int_equal(s.connects, 1);
    assert_true(link_server_is_connected(s.server, "node-1"));
    assert_int_equal(link_server_connection_count(s.server), 1);
    link_client_free(AQ_TAKE(s.client));
    RUN_UNTIL(&s, s.disconnects == 1);
    assert_int_equal(s.orderly, 1);
    scene_done(&s);
}

/* A manager that goes away and comes back is another one: both begin anew. */
static void test_new_manager_begins_anew(void **state)
{
    struct scene s;
    uint16_t port;

    (void)state;
    scene_init(&s);
    port = link_server_port(s.server);
    s.client = start_client(&s, "node-1", &client_ops, &s);
    RUN_UNTIL(&s, s.connects == 1);
    send_status(&s, 1);
    send_forget(&s, 1);
    RUN_UNTIL(&s, s.at_client == 1 && s.at_server == 1);
    link_server_free(s.server);
    start_server(&s, port);
    RUN_UNTIL(&s, s.connects == 2);
    send_status(&s, 2);
    send_forget(&s, 2);
    RUN_UNTIL(&s, s.at_client == 2 && s.at_server == 2);
    assert_int_equal(s.last_seq, 1);
    assert_false(s.was_disordered);
    scene_done(&s);
}

/* A relay between both ends that the test can cut. */
struct relay {
    int listener;
    uint16_t port, target;
    pthread_t thread;
    volatile int cut_after; /* bytes of the manager's answers per connection; 0 = no cut */
};

static void pump(int a, int b, long *left)
{
    char bytes[512];
    ssize_t n = recv(a, bytes, sizeof(bytes), 0);

    if (n <= 0 || (*left > 0 && (*left -= n) <= 0) || send(b, bytes, (size_t)n, MSG_NOSIGNAL) != n)
        *left = -1;
}

static void *relay_run(void *data)
{
    struct relay *relay = data;

    for (;;) {
        struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(relay->target),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int in = accept(relay->listener, NULL, NULL);
        int out = socket(AF_INET, SOCK_STREAM, 0);
        struct pollfd fds[2] = { { in, POLLIN, 0 }, { out, POLLIN, 0 } };
        long up = 0, down = relay->cut_after;

        if (in < 0) {
            close(out);
            return NULL;
        }
        if (connect(out, (struct sockaddr *)&to, sizeof(to)) < 0)
            down = -1;
        while (up >= 0 && down >= 0 && poll(fds, 2, -1) > 0) {
            if (fds[0].revents)
                pump(in, out, &up);
            if (fds[1].revents && down >= 0)
                pump(out, in, &down);
        }
        close(in);
        close(out);
    }
}

static void relay_start(struct relay *relay, uint16_t target)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(at);

    *relay = (struct relay){ .listener = socket(AF_INET, SOCK_STREAM, 0), .target = target };
    assert_int_equal(bind(relay->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(relay->listener, 8), 0);
    assert_int_equal(getsockname(relay->listener, (struct sockaddr *)&at, &len), 0);
    relay->port = ntohs(at.sin_port);
}

/* Connections that break every few kilobytes: still each message once, in order. */
static void test_cuts_lose_and_repeat_nothing(void **state)
{
    struct scene s;
    struct relay relay;
    struct aq_error err = { 0 };

    (void)state;
    scene_init(&s);
    relay_start(&relay, link_server_port(s.server));
    relay.cut_after = 40000; /* more than a TLS record, so that each connection gets on */
    assert_int_equal(pthread_create(&relay.thread, NULL, relay_run, &relay), 0);
    assert_int_equal(link_client_new(&(struct link_client_conf){
                                         .loop = &s.loop, .host = "127.0.0.1", .port = relay.port,
                                         .ca = pki_ca_cert(ca), .cert = s.cert, .key = s.key,
                                         .agent_id = "node-1", .incarnation = s.incarnation,
                                         .retry_min_usec = 2000, .retry_max_usec = 5000 },
                                     &client_ops, &s, &s.client, &err), 0);
    RUN_UNTIL(&s, s.connects == 1);
    for (int i = 1; i <= 4 * MANY; i++) {
        send_status(&s, i);
        send_forget(&s, i);
    }
    RUN_UNTIL(&s, s.at_client == 4 * MANY && s.at_server == 4 * MANY);
    assert_false(s.was_disordered);
    assert_true(s.connects > 3);
    scene_done(&s); /* ends the connections, without which the relay does not look up */
    (void)shutdown(relay.listener, SHUT_RDWR);
    assert_int_equal(pthread_join(relay.thread, NULL), 0);
    close(relay.listener);
}

/* What the agent has not acknowledged comes again to its next process only by
 * the inventory, to the same process not at all.
 */
static void test_unacknowledged_is_kept_but_not_repeated(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    s.no_ack = true;
    s.client = start_client(&s, "node-1", &client_ops, &s);
    RUN_UNTIL(&s, s.connects == 1);
    send_forget(&s, 1);
    send_forget(&s, 2);
    RUN_UNTIL(&s, s.at_client == 2);
    link_client_ack(s.client, 1);
    link_client_ack(s.client, 99); /* never delivered: ignored */
    send_forget(&s, 3);
    RUN_UNTIL(&s, s.at_client == 3);
    assert_false(s.was_disordered);
    scene_done(&s);
}

static void test_hello_may_be_refused(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    s.refuse = true;
    s.refuse_retry_usec = 1000;
    s.client = start_client(&s, "node-1", &client_ops, &s);
    RUN_UNTIL(&s, s.hellos == 3); /* it tries again */
    s.refuse_retry_usec = 0;
    RUN_UNTIL(&s, s.refused_kind[0]);
    assert_string_equal(s.refused_kind, "refused");
    assert_string_equal(s.refused_text, "not today");
    assert_int_equal(s.connects, 0);
    scene_done(&s);
}

static void test_identity_is_the_certificate(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    s.client = start_client(&s, "node-2", &client_ops, &s);
    RUN_UNTIL(&s, s.refused_kind[0]);
    assert_string_equal(s.refused_kind, "identity");
    assert_int_equal(s.hellos, 0);
    scene_done(&s);
}

static void test_revoked_is_refused(void **state)
{
    struct scene s;
    struct pki_cert cert;
    struct aq_error err = { 0 };

    (void)state;
    scene_init(&s);
    assert_int_equal(pki_cert_read(s.cert, &cert, &err), 0);
    assert_int_equal(pki_revoke(ca, cert.serial, &err), 0);
    s.client = start_client(&s, "node-1", &client_ops, &s);
    RUN_UNTIL(&s, s.refused_kind[0]);
    assert_string_equal(s.refused_kind, "revoked");
    scene_done(&s);
}

static int tries;

static void on_try(void *data, const char *why)
{
    (void)data;
    assert_non_null(why);
    tries++;
}

/* Foreign and expired certificates do not get past the handshake. */
static void test_foreign_and_expired_are_refused(void **state)
{
    static const struct link_client_ops ops = {
        .on_message = on_client_message,
        .on_disconnected = on_try,
        .on_refused = on_refused,
    };
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/foreign", folder);
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *foreign = NULL;
    struct scene s;

    (void)state;
    assert_int_equal(pki_ca_open(path, &foreign, NULL), 0);
    for (int round = 0; round < 2; round++) {
        scene_init(&s);
        free(s.key);
        free(s.cert);
        make_identity(&s, round ? ca : foreign, "node-1", round ? -1 : 10);
        tries = 0;
        s.client = start_client(&s, "node-1", &ops, &s);
        RUN_UNTIL(&s, tries >= 2);
        assert_int_equal(s.hellos, 0);
        scene_done(&s);
    }
}

static int64_t wall_shift;

static int64_t shifted_wall(void *data)
{
    struct timespec now;

    (void)data;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * USEC_PER_SEC + now.tv_nsec / 1000 + wall_shift;
}

static int64_t plain_monotonic(void *data)
{
    struct timespec now;

    (void)data;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * USEC_PER_SEC + now.tv_nsec / 1000;
}

/* A certificate of ten days is good on the ninth and not on the eleventh, by our clock. */
static void test_certificate_expires(void **state)
{
    static const struct clock clock = { shifted_wall, plain_monotonic, NULL };
    static const struct link_client_ops ops = {
        .on_greet = on_greet,
        .on_message = on_client_message,
        .on_disconnected = on_try,
        .on_refused = on_refused,
    };
    struct scene s;

    (void)state;
    for (int day = 9; day <= 11; day += 2) {
        scene_init(&s);
        wall_shift = day * 86400 * USEC_PER_SEC;
        clock_set(&clock);
        tries = 0;
        s.client = start_client(&s, "node-1", &ops, &s);
        RUN_UNTIL(&s, s.hellos || tries >= 2);
        assert_row((s.hellos > 0) == (day == 9), "day %d", day);
        scene_done(&s);
        clock_set(NULL);
    }
}

/* ---- fencing ---- */

static void test_newer_process_fences_the_older(void **state)
{
    struct scene s, other = { .incarnation = { .bytes = { 9 } } };
    struct link_client *younger;
    struct uuid older = { .bytes = { 0 } };

    (void)state;
    scene_init(&s);
    s.client = start_client(&s, "node-1", &client_ops, &s);
    RUN_UNTIL(&s, s.connects == 1);
    older = s.incarnation;
    s.incarnation = other.incarnation;
    younger = start_client(&s, "node-1", &client_ops, &other);
    RUN_UNTIL(&s, s.refused_kind[0] && s.connects == 2);
    assert_string_equal(s.refused_kind, "fenced");
    assert_int_equal(other.refused_kind[0], 0);
    assert_int_equal(link_server_connection_count(s.server), 1);

    /* the older one comes back: still fenced, the younger is left alone */
    link_client_free(s.client);
    s.refused_kind[0] = '\0';
    s.incarnation = older;
    s.client = start_client(&s, "node-1", &client_ops, &s);
    RUN_UNTIL(&s, s.refused_kind[0]);
    assert_string_equal(s.refused_kind, "fenced");
    assert_true(link_client_is_connected(younger));
    assert_int_equal(s.disconnects, 0);
    link_client_free(younger);
    scene_done(&s);
}

/* ---- streams ---- */

static void open_stream(struct scene *s)
{
    struct msg_stream_open open = { .kind = "logs", .kernel_id = id_of(1), .follow = true };
    struct aq_error err = { 0 };

    s->client = start_client(s, "node-1", &client_ops, s);
    RUN_UNTIL(s, s->connects == 1);
    assert_row(link_server_open_stream(s->server, "node-1", &open, &stream_ops, s,
                                       &s->server_stream, &err) == 0, "%s", err.text);
}

static void carry_bytes_both_ways(bool is_old)
{
    static char big[3 << 20];
    struct scene s;
    size_t sent = 0;

    memset(big, 'x', sizeof(big));
    scene_init(&s);
    s.auto_stream = true;
    s.is_old = is_old;
    open_stream(&s);
    assert_int_equal(link_stream_write(s.server_stream, "early", 5), -ENOTCONN);
    RUN_UNTIL(&s, s.stream_opens == 2);
    assert_int_equal(link_stream_write(s.server_stream, "hello", 5), 0);
    RUN_UNTIL(&s, s.at_client_bytes.len == 5);
    assert_string_equal(s.at_client_bytes.data, "hello");

    /* a reader that pauses holds the writer back */
    link_stream_pause(s.server_stream, true);
    while (sent < sizeof(big) / 2) {
        int r = link_stream_write(s.client_stream, big + sent, 65536);

        assert_true(r >= 0);
        sent += 65536;
        if (r == 1)
            break;
    }
    while (link_stream_write(s.client_stream, big, 65536) == 0 || sent < sizeof(big))
        sent += 65536;
    sent += 65536;
    link_stream_pause(s.server_stream, false);
    RUN_UNTIL(&s, s.at_server_bytes.len == sent && s.drains);
    link_stream_close(AQ_TAKE(s.client_stream));
    RUN_UNTIL(&s, s.stream_closes == 1);
    assert_int_equal(s.stream_error, 0);
    scene_done(&s);
}

static void test_stream_carries_bytes_both_ways(void **state)
{
    (void)state;
    carry_bytes_both_ways(false);
    carry_bytes_both_ways(true);
}

/* What was written before the close arrives, all of it. */
static void test_stream_close_sends_all(void **state)
{
    static char big[1 << 20];
    struct scene s;

    (void)state;
    memset(big, 'y', sizeof(big));
    scene_init(&s);
    s.auto_stream = true;
    open_stream(&s);
    RUN_UNTIL(&s, s.stream_opens == 2);
    assert_true(link_stream_write(s.client_stream, big, sizeof(big)) >= 0);
    link_stream_close(AQ_TAKE(s.client_stream));
    RUN_UNTIL(&s, s.stream_closes == 1);
    assert_int_equal(s.at_server_bytes.len, sizeof(big));
    assert_int_equal(s.stream_error, 0);
    scene_done(&s);
}

static void open_next(struct scene *s, int opens)
{
    struct msg_stream_open open = { .kind = "logs", .kernel_id = id_of(1) };

    strbuf_clear(&s->at_server_bytes);
    strbuf_clear(&s->at_client_bytes);
    assert_int_equal(link_server_open_stream(s->server, "node-1", &open, &stream_ops, s,
                                             &s->server_stream, NULL), 0);
    RUN_UNTIL(s, s->stream_opens == opens);
}

/* One connection for three streams: the first is ended by the agent, the
 * second by the manager under the agent's bytes, the third by both at once.
 */
static void test_streams_take_over_connections(void **state)
{
    static char big[1 << 20];
    struct scene s;

    (void)state;
    memset(big, 'z', sizeof(big));
    scene_init(&s);
    s.auto_stream = true;
    open_stream(&s);
    RUN_UNTIL(&s, s.stream_opens == 2);
    assert_int_equal(link_stream_write(s.client_stream, "one", 3), 0);
    link_stream_close(AQ_TAKE(s.client_stream));
    RUN_UNTIL(&s, s.stream_closes == 1 && s.server->idle_count == 1);
    assert_string_equal(s.at_server_bytes.data, "one");

    open_next(&s, 4);
    assert_int_equal(s.server->idle_count, 0); /* it was taken: nothing else was there */
    assert_true(link_stream_write(s.client_stream, big, sizeof(big)) >= 0);
    link_stream_close(AQ_TAKE(s.server_stream));
    RUN_UNTIL(&s, s.stream_closes == 2 && s.server->idle_count == 1);
    assert_int_equal(s.stream_error, 0);
    assert_int_equal(s.at_server_bytes.len, 0);

    open_next(&s, 6);
    assert_int_equal(s.server->idle_count, 0);
    assert_int_equal(link_stream_write(s.client_stream, "three", 5), 0);
    RUN_UNTIL(&s, s.at_server_bytes.len == 5);
    assert_string_equal(s.at_server_bytes.data, "three");
    link_stream_close(AQ_TAKE(s.server_stream));
    link_stream_close(AQ_TAKE(s.client_stream));
    RUN_UNTIL(&s, s.server->idle_count == 1);
    assert_int_equal(s.stream_closes, 2);
    assert_int_equal(s.server->guest_count, 0);

    link_client_free(AQ_TAKE(s.client)); /* its idle connections go with it */
    RUN_UNTIL(&s, s.server->idle_count == 0);
    scene_done(&s);
}

/* An agent whose certificate was revoked since gets no further stream. */
static void test_idle_connection_is_looked_at_again(void **state)
{
    struct msg_stream_open open = { .kind = "logs", .kernel_id = id_of(1) };
    struct pki_cert cert;
    struct scene s;

    (void)state;
    scene_init(&s);
    s.auto_stream = true;
    open_stream(&s);
    RUN_UNTIL(&s, s.stream_opens == 2);
    link_stream_close(AQ_TAKE(s.client_stream));
    RUN_UNTIL(&s, s.stream_closes == 1 && s.server->idle_count == 1);
    assert_int_equal(pki_cert_read(s.cert, &cert, NULL), 0);
    assert_int_equal(pki_revoke(ca, cert.serial, NULL), 0);
    assert_int_equal(link_server_open_stream(s.server, "node-1", &open, &stream_ops, &s,
                                             &s.server_stream, NULL), 0);
    RUN_UNTIL(&s, s.stream_closes == 2);
    assert_null(s.client_stream);
    assert_int_equal(s.stream_opens, 3); /* at the agent alone */
    assert_int_equal(s.server->idle_count, 0);
    scene_done(&s);
}

static void test_stream_may_be_refused(void **state)
{
    struct scene s;
    struct message msg = { .type = MSG_STREAM_REFUSED };
    struct aq_error err = { 0 };

    (void)state;
    scene_init(&s);
    open_stream(&s);
    RUN_UNTIL(&s, s.was_opened);
    msg.stream_refused = (struct msg_stream_refused){ .stream_id = s.opened.stream_id,
                                                      .kind = "not-found", .text = "no kernel" };
    assert_int_equal(link_client_send(s.client, &msg, &err), 0);
    RUN_UNTIL(&s, s.stream_closes == 1);
    assert_int_equal(s.stream_error, ENOENT);
    scene_done(&s);
}

static void test_stream_key_must_be_right(void **state)
{
    struct scene s;
    struct aq_error err = { 0 };

    (void)state;
    scene_init(&s);
    open_stream(&s);
    RUN_UNTIL(&s, s.was_opened);
    s.opened_key[0] = s.opened_key[0] == 'a' ? 'b' : 'a';
    assert_int_equal(link_client_open_stream(s.client, &s.opened, &stream_ops, &s,
                                             &s.client_stream, &err), 0);
    RUN_UNTIL(&s, s.stream_closes == 1);
    assert_null(s.client_stream);
    assert_non_null(s.server_stream);
    scene_done(&s);
}

static void test_stream_ends_with_its_agent(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    open_stream(&s);
    RUN_UNTIL(&s, s.was_opened);
    link_client_free(AQ_TAKE(s.client));
    RUN_UNTIL(&s, s.stream_closes == 1);
    assert_int_equal(s.stream_error, ENOTCONN);
    scene_done(&s);
}

static void test_sending_to_strangers_fails(void **state)
{
    struct scene s;
    struct message msg = { .type = MSG_DRAIN, .drain = { .on = true } };
    struct aq_error err = { 0 };

    (void)state;
    scene_init(&s);
    assert_int_equal(link_server_send(s.server, "node-1", &msg, &err), -ENOTCONN);
    s.client = start_client(&s, "node-1", &client_ops, &s);
    msg = (struct message){ .type = MSG_BYE };
    assert_int_equal(link_client_send(s.client, &msg, &err), -ENOTCONN);
    RUN_UNTIL(&s, s.connects == 1);
    link_server_drop(s.server, "node-1", "you were removed");
    RUN_UNTIL(&s, s.refused_kind[0]);
    assert_string_equal(s.refused_text, "you were removed");
    scene_done(&s);
}

/* ---- joining ---- */

struct joining {
    uint16_t port;
    struct pki_token token;
    const char *secret;
    int r;
    char *cert, *ca, *csr, *key;
    struct aq_error err;
    uv_async_t *done;
};

static void *join_run(void *data)
{
    struct joining *j = data;
    struct msg_join msg = { .secret = j->secret, .agent_id = "node-7", .csr = j->csr };

    j->r = link_join_request("127.0.0.1", j->port, &j->token, &msg, 10 * USEC_PER_SEC, &j->cert,
                             &j->ca, &j->err);
    (void)uv_async_send(j->done);
    return NULL;
}

static void on_join_done(uv_async_t *async)
{
    uv_close((uv_handle_t *)async, NULL);
}

static void join_in_thread(struct scene *s, struct joining *j)
{
    uv_async_t done;
    pthread_t thread;

    assert_int_equal(pki_request_new("ignored", &j->key, &j->csr, NULL), 0);
    j->port = link_server_port(s->server);
    j->done = &done;
    assert_int_equal(uv_async_init(&s->loop, &done, on_join_done), 0);
    assert_int_equal(pthread_create(&thread, NULL, join_run, j), 0);
    RUN_UNTIL(s, uv_is_closing((uv_handle_t *)&done));
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void joining_done(struct joining *j)
{
    free(j->cert);
    free(j->ca);
    free(j->csr);
    free(j->key);
}

static void test_join(void **state)
{
    struct scene s;
    struct joining good = { .token = pki_token_new(ca, 0), .secret = "right" };
    struct joining used = { .token = good.token, .secret = "wrong" };
    struct joining spoofed = { .token = good.token, .secret = "right" };
    struct pki_cert cert;

    (void)state;
    scene_init(&s);
    join_in_thread(&s, &good);
    assert_row(good.r == 0, "%s", good.err.text);
    assert_string_equal(good.ca, pki_ca_cert(ca));
    assert_int_equal(pki_verify_agent(ca, good.cert, clock_realtime_usec(), &cert, NULL), 0);
    assert_string_equal(cert.common_name, "node-7");

    join_in_thread(&s, &used);
    assert_int_equal(used.r, -EACCES);
    assert_non_null(strstr(used.err.text, "used up"));

    spoofed.token.ca_fingerprint[0] ^= 1;
    join_in_thread(&s, &spoofed);
    assert_int_equal(spoofed.r, -ECONNABORTED);
    joining_done(&good);
    joining_done(&used);
    joining_done(&spoofed);
    scene_done(&s);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? pki_ca_open(folder, &ca, NULL) : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    pki_ca_free(ca);
    return fs_remove_tree(AT_FDCWD, folder, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_flow_in_order),
        cmocka_unit_test(test_new_manager_begins_anew),
        cmocka_unit_test(test_cuts_lose_and_repeat_nothing),
        cmocka_unit_test(test_unacknowledged_is_kept_but_not_repeated),
        cmocka_unit_test(test_hello_may_be_refused),
        cmocka_unit_test(test_identity_is_the_certificate),
        cmocka_unit_test(test_revoked_is_refused),
        cmocka_unit_test(test_certificate_expires),
        cmocka_unit_test(test_foreign_and_expired_are_refused),
        cmocka_unit_test(test_newer_process_fences_the_older),
        cmocka_unit_test(test_stream_carries_bytes_both_ways),
        cmocka_unit_test(test_stream_close_sends_all),
        cmocka_unit_test(test_streams_take_over_connections),
        cmocka_unit_test(test_idle_connection_is_looked_at_again),
        cmocka_unit_test(test_stream_may_be_refused),
        cmocka_unit_test(test_stream_key_must_be_right),
        cmocka_unit_test(test_stream_ends_with_its_agent),
        cmocka_unit_test(test_sending_to_strangers_fails),
        cmocka_unit_test(test_join),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
