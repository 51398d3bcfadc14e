/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends over loopback TLS: order, resumption after a cut, refusals, fencing, joining. */
#include "scene.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"

#define MANY 500

static void test_messages_flow_in_order(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    s.client = scene_start_client(&s, "node-1", &scene_client_ops, &s);
    for (int i = 1; i <= 3; i++)
        scene_send_status(&s, i); /* before there is a connection */
    RUN_UNTIL(&s, s.at_server == 3);
    for (int i = 1; i <= MANY; i++)
        scene_send_forget(&s, i);
    for (int i = 4; i <= MANY; i++)
        scene_send_status(&s, i);
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

/* A manager that goes away and comes back is another one: both begin again. */
static void test_new_manager_begins_anew(void **state)
{
    struct scene s;
    uint16_t port;

    (void)state;
    scene_init(&s);
    port = link_server_port(s.server);
    s.client = scene_start_client(&s, "node-1", &scene_client_ops, &s);
    RUN_UNTIL(&s, s.connects == 1);
    scene_send_status(&s, 1);
    scene_send_forget(&s, 1);
    RUN_UNTIL(&s, s.at_client == 1 && s.at_server == 1);
    link_server_free(s.server);
    scene_start_server(&s, port);
    RUN_UNTIL(&s, s.connects == 2);
    scene_send_status(&s, 2);
    scene_send_forget(&s, 2);
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
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_port = htons(relay->target),
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
    char address[32];

    (void)state;
    scene_init(&s);
    relay_start(&relay, link_server_port(s.server));
    relay.cut_after = 40000; /* more than a TLS record, so that each connection gets on */
    assert_int_equal(pthread_create(&relay.thread, NULL, relay_run, &relay), 0);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", relay.port);
    s.addresses[0] = address;
    s.address_count = 1;
    s.client = scene_start_client(&s, "node-1", &scene_client_ops, &s);
    RUN_UNTIL(&s, s.connects == 1);
    for (int i = 1; i <= 4 * MANY; i++) {
        scene_send_status(&s, i);
        scene_send_forget(&s, i);
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
    s.client = scene_start_client(&s, "node-1", &scene_client_ops, &s);
    RUN_UNTIL(&s, s.connects == 1);
    scene_send_forget(&s, 1);
    scene_send_forget(&s, 2);
    RUN_UNTIL(&s, s.at_client == 2);
    link_client_ack(s.client, 1);
    link_client_ack(s.client, 99); /* never delivered: ignored */
    scene_send_forget(&s, 3);
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
    s.client = scene_start_client(&s, "node-1", &scene_client_ops, &s);
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
    s.client = scene_start_client(&s, "node-2", &scene_client_ops, &s);
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
    assert_int_equal(pki_revoke(scene_ca, cert.serial, &err), 0);
    s.client = scene_start_client(&s, "node-1", &scene_client_ops, &s);
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

static struct link_client_ops counting_ops(void)
{
    struct link_client_ops ops = scene_client_ops;

    ops.on_disconnected = on_try;
    return ops;
}

/* Foreign and expired certificates do not get past the handshake. */
static void test_foreign_and_expired_are_refused(void **state)
{
    const struct link_client_ops ops = counting_ops();
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/foreign", scene_folder);
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *foreign = NULL;
    struct scene s;

    (void)state;
    assert_int_equal(pki_ca_open(path, &foreign, NULL), 0);
    for (int round = 0; round < 2; round++) {
        scene_init(&s);
        free(s.key);
        free(s.cert);
        scene_make_identity(&s, round ? scene_ca : foreign, "node-1", round ? -1 : 10);
        tries = 0;
        s.client = scene_start_client(&s, "node-1", &ops, &s);
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
    const struct link_client_ops ops = counting_ops();
    struct scene s;

    (void)state;
    for (int day = 9; day <= 11; day += 2) {
        scene_init(&s);
        wall_shift = day * 86400 * USEC_PER_SEC;
        clock_set(&clock);
        tries = 0;
        s.client = scene_start_client(&s, "node-1", &ops, &s);
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
    s.client = scene_start_client(&s, "node-1", &scene_client_ops, &s);
    RUN_UNTIL(&s, s.connects == 1);
    older = s.incarnation;
    s.incarnation = other.incarnation;
    younger = scene_start_client(&s, "node-1", &scene_client_ops, &other);
    RUN_UNTIL(&s, s.refused_kind[0] && s.connects == 2);
    assert_string_equal(s.refused_kind, "fenced");
    assert_int_equal(other.refused_kind[0], 0);
    assert_int_equal(link_server_connection_count(s.server), 1);

    /* the older one comes back: still fenced, the younger is left alone */
    link_client_free(s.client);
    s.refused_kind[0] = '\0';
    s.incarnation = older;
    s.client = scene_start_client(&s, "node-1", &scene_client_ops, &s);
    RUN_UNTIL(&s, s.refused_kind[0]);
    assert_string_equal(s.refused_kind, "fenced");
    assert_true(link_client_is_connected(younger));
    assert_int_equal(s.disconnects, 0);
    link_client_free(younger);
    scene_done(&s);
}

/* ---- joining ---- */

struct joining {
    uint16_t port;
    struct pki_token token;
    const char *secret;
    int r;
    const char *link; /* of a manager */
    bool has_database;
    struct link_join_keys keys;
    char *cert, *ca, *address, *csr, *key;
    struct aq_error err;
    uv_async_t *done;
};

static void *join_run(void *data)
{
    struct joining *j = data;
    char address[32];
    struct msg_join msg = { .secret = j->secret, .agent_id = "node-7", .csr = j->csr };

    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", j->port);
    j->r = link_join_request(address, &j->token, &msg, 10 * USEC_PER_SEC, &j->cert, &j->ca,
                             &j->address, NULL, &j->err);
    (void)uv_async_send(j->done);
    return NULL;
}

static void on_join_done(uv_async_t *async)
{
    uv_close((uv_handle_t *)async, NULL);
}

static void join_in_thread(struct scene *s, void *(*run)(void *), struct joining *j)
{
    uv_async_t done;
    pthread_t thread;

    assert_int_equal(pki_request_new("ignored", &j->key, &j->csr, NULL), 0);
    j->port = link_server_port(s->server);
    j->done = &done;
    assert_int_equal(uv_async_init(&s->loop, &done, on_join_done), 0);
    assert_int_equal(pthread_create(&thread, NULL, run, j), 0);
    RUN_UNTIL(s, uv_is_closing((uv_handle_t *)&done));
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void joining_done(struct joining *j)
{
    free(j->cert);
    free(j->ca);
    free(j->address);
    link_join_keys_done(&j->keys);
    free(j->csr);
    free(j->key);
}

/* A manager asks without a request for a certificate, and gets keys. */
static void *join_manager_run(void *data)
{
    struct joining *j = data;
    char address[32];
    struct msg_join msg = { .secret = j->secret,
                            .agent_id = LINK_MANAGER_PREFIX "b",
                            .link = j->link,
                            .has_database = j->has_database };

    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", j->port);
    j->r = link_join_request(address, &j->token, &msg, 10 * USEC_PER_SEC, &j->cert, &j->ca,
                             &j->address, &j->keys, &j->err);
    (void)uv_async_send(j->done);
    return NULL;
}

static void test_join_manager(void **state)
{
    struct scene s;
    struct joining good = { .token = pki_token_new(scene_ca, 0), .secret = "right", .link = "b:1" };
    struct joining own = good, lacking = good, used = good;

    (void)state;
    scene_init(&s);
    own.has_database = true;
    lacking.link = NULL; /* the other side gives no key */
    used.secret = "wrong";
    join_in_thread(&s, join_manager_run, &good);
    assert_int_equal(good.r, 0);
    assert_null(good.cert);
    assert_string_equal(good.ca, pki_ca_cert(scene_ca));
    assert_string_equal(good.keys.ca_key, "key");
    assert_string_equal(good.keys.seal_key, "seal");
    assert_string_equal(good.keys.database, "uri");
    join_in_thread(&s, join_manager_run, &own);
    assert_int_equal(own.r, 0);
    assert_null(own.keys.database);
    join_in_thread(&s, join_manager_run, &lacking);
    assert_int_equal(lacking.r, -EPROTO);
    assert_null(lacking.keys.seal_key);
    join_in_thread(&s, join_manager_run, &used);
    assert_int_equal(used.r, -EACCES);
    joining_done(&good);
    joining_done(&own);
    joining_done(&lacking);
    joining_done(&used);
    scene_done(&s);
}

static void test_join(void **state)
{
    struct scene s;
    struct joining good = { .token = pki_token_new(scene_ca, 0), .secret = "right" };
    struct joining used = { .token = good.token, .secret = "wrong" };
    struct joining spoofed = { .token = good.token, .secret = "right" };
    struct pki_cert cert;

    (void)state;
    scene_init(&s);
    join_in_thread(&s, join_run, &good);
    assert_row(good.r == 0, "%s", good.err.text);
    assert_string_equal(good.ca, pki_ca_cert(scene_ca));
    assert_int_equal(pki_verify_agent(scene_ca, good.cert, clock_realtime_usec(), &cert, NULL), 0);
    assert_string_equal(cert.common_name, "node-7");

    join_in_thread(&s, join_run, &used);
    assert_int_equal(used.r, -EACCES);
    assert_non_null(strstr(used.err.text, "used up"));

    spoofed.token.ca_fingerprint[0] ^= 1;
    join_in_thread(&s, join_run, &spoofed);
    assert_int_equal(spoofed.r, -ECONNABORTED);
    joining_done(&good);
    joining_done(&used);
    joining_done(&spoofed);
    scene_done(&s);
}

/* A manager that does not lead sends who joins to the one that does; each has the same authority. */
static void test_join_at_a_standby(void **state)
{
    struct link_server *leader;
    struct joining joining = { .token = pki_token_new(scene_ca, 0), .secret = "right" };
    char address[32];
    struct scene s;

    (void)state;
    scene_init(&s);
    leader = s.server;
    scene_start_server(&s, 0);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", link_server_port(leader));
    link_server_redirect(s.server, address);
    join_in_thread(&s, join_run, &joining);
    assert_row(joining.r == 0, "%s", joining.err.text);
    assert_string_equal(joining.address, address);
    joining_done(&joining);
    link_server_free(leader);
    scene_done(&s);
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
        cmocka_unit_test(test_foreign_and_expired_are_refused),
        cmocka_unit_test(test_certificate_expires),
        cmocka_unit_test(test_newer_process_fences_the_older),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_join_manager),
        cmocka_unit_test(test_join_at_a_standby),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, scene_make_folder, scene_remove_folder);
}
