/* SPDX-License-Identifier: Apache-2.0 */
/* Several managers: an agent finds the one that leads, follows it when it changes, and follows none
 * that has been replaced. A leader in doubt sends nothing.
 */
#include "scene.h"

#include <errno.h>
#include <pthread.h>

#include "base/clock.h"
#include "http/stream.h"
#include "link/address_walk.h"

#define ADDRESS_MAX 32

/* "127.0.0.1:PORT" */
static const char *address_of(const struct link_server *server, char ret[ADDRESS_MAX])
{
    (void)snprintf(ret, ADDRESS_MAX, "127.0.0.1:%u", link_server_port(server));
    return ret;
}

/* A further manager, whose callbacks get the same scene. */
static struct link_server *add_server(struct scene *s, int64_t epoch)
{
    struct link_server *first = s->server, *ret;

    s->server_epoch = epoch;
    scene_start_server(s, 0);
    ret = s->server;
    s->server = first;
    return ret;
}

static void start_client(struct scene *s)
{
    s->client = scene_start_client(s, "node-1", &scene_client_ops, s);
}

/* ---- the order of addresses ---- */

static void test_a_round_tries_each_address_once(void **state)
{
    static const char *const given[] = { "a:1", "b:1", "a:1", "c:1" };
    struct link_manager named[] = { { "m1", "c:1", NULL }, { "m2", "d:1", "http://d" } };
    struct address_walk *walk = address_walk_new(given, AQ_COUNT(given), false);
    int first_of[4] = { 0 };

    (void)state;
    assert_non_null(address_walk_name(walk, named, AQ_COUNT(named)));
    assert_null(address_walk_name(walk, named, AQ_COUNT(named)));
    for (int round = 0; round < 200; round++) {
        int seen[4] = { 0 };
        const char *address;

        address_walk_begin(walk, round == 0 ? "d:1" : NULL);
        for (int i = 0; (address = address_walk_next(walk)); i++) {
            assert_true(address[0] >= 'a' && address[0] <= 'd');
            seen[address[0] - 'a']++;
            if (i == 0)
                first_of[address[0] - 'a']++;
            assert_true(round > 0 || i > 0 || address[0] == 'd');
        }
        for (int i = 0; i < 4; i++)
            assert_int_equal(seen[i], 1);
    }
    for (int i = 0; i < 4; i++) /* by chance none: once in 10^24 */
        assert_true(first_of[i] > 0);
    address_walk_begin(walk, "elsewhere:1");
    assert_string_equal(address_walk_next(walk), "elsewhere:1");
    address_walk_free(walk);
}

static void test_fixed_addresses_are_the_only_ones(void **state)
{
    static const char *const given[] = { "a:1" };
    struct link_manager named[] = { { "m1", "b:1", NULL } };
    struct address_walk *walk = address_walk_new(given, 1, true);

    (void)state;
    assert_non_null(address_walk_name(walk, named, 1)); /* they are kept all the same */
    address_walk_begin(walk, NULL);
    assert_string_equal(address_walk_next(walk), "a:1");
    assert_null(address_walk_next(walk));
    address_walk_free(walk);
}

/* ---- who leads ---- */

static void test_the_leader_is_found(void **state)
{
    char standby[ADDRESS_MAX], leading[ADDRESS_MAX];
    struct link_server *leader;
    struct scene s;

    (void)state;
    scene_init(&s);
    leader = add_server(&s, 3);
    link_server_redirect(s.server, NULL);
    s.addresses[0] = "127.0.0.1:1"; /* nobody listens */
    s.addresses[1] = address_of(s.server, standby);
    s.addresses[2] = address_of(leader, leading);
    s.address_count = 3;
    start_client(&s);
    RUN_UNTIL(&s, s.welcomes == 1);
    assert_true(link_server_is_connected(leader, "node-1"));
    assert_string_equal(link_client_address(s.client), leading);
    assert_int_equal(s.epoch, 3);
    link_server_free(leader);
    scene_done(&s);
}

/* Its only address is a standby's, which names the leader. */
static void test_a_refusal_leads_to_the_leader(void **state)
{
    char standby[ADDRESS_MAX], leading[ADDRESS_MAX];
    struct link_server *leader;
    struct scene s;

    (void)state;
    scene_init(&s);
    leader = add_server(&s, 1);
    link_server_redirect(s.server, address_of(leader, leading));
    s.addresses[0] = address_of(s.server, standby);
    s.address_count = 1;
    s.is_fixed = true;
    start_client(&s);
    RUN_UNTIL(&s, s.welcomes == 1);
    assert_int_equal(s.losses, 1);
    assert_true(strstr(s.lost_why, leading) != NULL);
    assert_true(link_server_is_connected(leader, "node-1"));
    link_server_free(leader);
    scene_done(&s);
}

/* Two standbys that name each other are asked again and again, with pauses, until one leads. */
static void test_standbys_may_name_each_other(void **state)
{
    char one[ADDRESS_MAX], other[ADDRESS_MAX];
    struct link_server *second;
    uint16_t port;
    struct scene s;

    (void)state;
    scene_init(&s);
    second = add_server(&s, 0);
    link_server_redirect(s.server, address_of(second, other));
    link_server_redirect(second, address_of(s.server, one));
    s.addresses[0] = one;
    s.addresses[1] = other;
    s.address_count = 2;
    start_client(&s);
    RUN_UNTIL(&s, s.losses == 4);
    port = link_server_port(second);
    link_server_free(second);
    link_server_free(s.server);
    s.server_epoch = 2;
    scene_start_server(&s, port); /* the second leads, the first is gone */
    RUN_UNTIL(&s, s.welcomes == 1);
    assert_int_equal(s.epoch, 2);
    scene_done(&s);
}

/* A leader that hands over tells its agents; what was not acknowledged goes to the next one. */
static void test_agents_move_with_the_lead(void **state)
{
    char leading[ADDRESS_MAX];
    struct link_server *next;
    struct scene s;

    (void)state;
    scene_init(&s);
    next = add_server(&s, 7);
    start_client(&s);
    RUN_UNTIL(&s, s.welcomes == 1);
    link_server_redirect(s.server, address_of(next, leading));
    assert_int_equal(s.disconnects, 1);
    assert_int_equal(link_server_connection_count(s.server), 0);
    scene_send_status(&s, 1);
    RUN_UNTIL(&s, s.at_server == 1);
    assert_true(link_server_is_connected(next, "node-1"));
    assert_int_equal(s.epoch, 7);
    link_server_free(next);
    scene_done(&s);
}

static void test_named_managers_are_tried(void **state)
{
    char first[ADDRESS_MAX], second[ADDRESS_MAX], both[2 * ADDRESS_MAX + 8];
    struct link_server *next;
    struct scene s;

    (void)state;
    scene_init(&s);
    next = add_server(&s, 2);
    start_client(&s);
    RUN_UNTIL(&s, s.welcomes == 1);
    assert_string_equal(s.named, "");
    (void)snprintf(both, sizeof(both), "%s %s ", address_of(s.server, first),
                   address_of(next, second));
    link_server_set_managers(
        s.server,
        (const struct link_manager[]){ { "one", first, NULL }, { "two", second, "http://two" } },
        2);
    RUN_UNTIL(&s, s.named[0]);
    assert_string_equal(s.named, both);
    link_server_free(AQ_TAKE(s.server));
    RUN_UNTIL(&s, s.welcomes == 2);
    assert_true(link_server_is_connected(next, "node-1"));
    link_server_free(next);
    scene_done(&s);
}

/* A list that is wrong changes nothing. */
static void test_list_needs_names_and_addresses(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    link_server_set_managers(s.server, (const struct link_manager[]){ { "one", "a:1", NULL } }, 1);
    link_server_set_managers(s.server, (const struct link_manager[]){ { "two", NULL, NULL } }, 1);
    start_client(&s);
    RUN_UNTIL(&s, s.named[0]);
    assert_string_equal(s.named, "a:1 ");
    scene_done(&s);
}

/* ---- epochs ---- */

static void test_lower_epoch_is_not_followed(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    s.epoch = 5;
    s.welcome_epoch = 4; /* a leader that does not look at what the agent has followed */
    start_client(&s);
    RUN_UNTIL(&s, s.losses == 2);
    assert_true(strstr(s.lost_why, "leads epoch 4, and epoch 5 has begun") != NULL);
    assert_int_equal(s.welcomes, 0);
    assert_int_equal(s.epoch, 5);
    s.welcome_epoch = 6;
    RUN_UNTIL(&s, s.welcomes == 1);
    assert_int_equal(s.epoch, 6);
    scene_done(&s);
}

/* A leader that has been replaced finds out by the agents that come from the next one. */
static void test_replaced_leader_refuses(void **state)
{
    const char *agent_id;
    struct scene s;

    (void)state;
    scene_init(&s);
    assert_int_equal(link_server_get_ahead(s.server, &agent_id), 0);
    link_server_free(AQ_TAKE(s.server));
    s.server_epoch = 4;
    scene_start_server(&s, 0);
    s.epoch = 5;
    start_client(&s);
    RUN_UNTIL(&s, s.losses == 1);
    assert_true(strstr(s.lost_why, "'node-1' has followed epoch 5") != NULL);
    assert_int_equal(link_server_get_ahead(s.server, &agent_id), 5);
    assert_string_equal(agent_id, "node-1");
    assert_int_equal(s.hellos, 0);
    scene_done(&s);
}

/* A manager without epochs is followed, and does not lower what is known. */
static void test_no_epoch_is_followed(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    s.epoch = 5;
    start_client(&s);
    RUN_UNTIL(&s, s.welcomes == 1);
    assert_int_equal(s.epoch, 5);
    scene_done(&s);
}

static void test_epoch_that_cannot_be_recorded_is_not_followed(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    s.welcome_epoch = 9;
    s.is_epoch_refused = true;
    start_client(&s);
    RUN_UNTIL(&s, s.losses == 2);
    assert_int_equal(s.welcomes, 0);
    s.is_epoch_refused = false;
    RUN_UNTIL(&s, s.welcomes == 1);
    assert_int_equal(s.epoch, 9);
    scene_done(&s);
}

static void test_order_of_a_lower_epoch_is_skipped(void **state)
{
    struct message msg = { .type = MSG_KERNEL_FORGET, .stamp = { .epoch = 2, .commit = 70 } };
    struct aq_error err = { 0 };
    struct scene s;

    (void)state;
    scene_init(&s);
    s.welcome_epoch = 3;
    start_client(&s);
    RUN_UNTIL(&s, s.welcomes == 1);
    msg.kernel_forget = (struct msg_kernel_forget){ .kernel_id = scene_id_of(1), .attempt = 1 };
    assert_int_equal(link_server_send(s.server, "node-1", &msg, &err), 0);
    RUN_UNTIL(&s, s.last_seq == 1); /* acknowledged, or it would come again */
    assert_int_equal(s.unknowns, 1);
    assert_int_equal(s.at_client, 0);
    msg.stamp = (struct msg_stamp){ .epoch = 3, .commit = 60 };
    assert_int_equal(link_server_send(s.server, "node-1", &msg, &err), 0);
    RUN_UNTIL(&s, s.at_client == 1);
    /* The next leader learns the highest commit of the epoch that is followed. */
    assert_int_equal(s.hello_commit, 0);
    link_server_drop(s.server, "node-1", NULL);
    RUN_UNTIL(&s, s.welcomes == 2);
    assert_int_equal(s.hello_commit, 60);
    scene_done(&s);
}

/* ---- a leader in doubt ---- */

static void test_held_server_queues(void **state)
{
    const struct message order = { .type = MSG_IMAGE_COMMAND };
    struct aq_error err = { 0 };
    struct scene s;

    (void)state;
    scene_init(&s);
    start_client(&s);
    RUN_UNTIL(&s, s.welcomes == 1);
    link_server_hold(s.server, true);
    scene_send_forget(&s, 1);
    assert_int_equal(link_server_send(s.server, "node-1", &order, &err), -ENOTCONN);
    scene_send_status(&s, 1);
    RUN_UNTIL(&s, s.at_server == 1); /* it is still heard */
    link_client_free(AQ_TAKE(s.client));
    s.incarnation = uuid_random();
    start_client(&s);
    RUN_UNTIL(&s, s.welcomes == 2);
    scene_send_forget(&s, 1); /* to the next process: what waited for the former is dropped */
    scene_send_status(&s, 2);
    RUN_UNTIL(&s, s.at_server == 2);
    assert_int_equal(s.at_client, 0);
    link_server_hold(s.server, false);
    RUN_UNTIL(&s, s.at_client == 1);
    assert_false(s.was_disordered);
    scene_done(&s);
}

/* ---- requests of another manager ---- */

struct request {
    struct stream *stream;
    bool is_ended;
};

static void request_on_open(void *data)
{
    struct request *request = data;

    (void)stream_write(request->stream, "GET /x HTTP/1.1\r\n", 17);
}

static void request_on_read(void *data, const char *bytes, size_t len)
{
    (void)data;
    (void)bytes;
    (void)len;
}

static void request_on_end(void *data, const struct aq_error *err)
{
    (void)err;
    ((struct request *)data)->is_ended = true;
}

static void send_request(struct scene *s, const char *name)
{
    static const struct stream_ops ops = { .on_open = request_on_open,
                                           .on_read = request_on_read,
                                           .on_end = request_on_end };
    AQ_CLEANUP(tls_context_freep) struct tls_context *tls = NULL;
    struct address address = { .port = link_server_port(s->server), .host = "127.0.0.1" };
    struct tls_options options = { .ca_pem = pki_ca_cert(scene_ca),
                                   .tls13_only = true,
                                   .any_name = true };
    struct stream_options how = { .server_name = "aliquot-manager" };
    struct request request = { .stream = NULL };
    struct aq_error err = { 0 };

    free(s->key);
    free(s->cert);
    scene_make_identity(s, scene_ca, name, 10);
    options.cert_pem = s->cert;
    options.key_pem = s->key;
    assert_row(tls_context_new(&options, &tls, &err) == 0, "%s", err.text);
    how.tls = tls;
    assert_int_equal(
        stream_connect(&s->loop, &address, &how, &ops, &request, &request.stream, &err), 0);
    RUN_UNTIL(s, request.is_ended);
    stream_close(request.stream);
}

static void test_http_is_a_managers(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s);
    send_request(&s, "node-1");
    assert_int_equal(s.https, 0);
    send_request(&s, "manager:two");
    assert_int_equal(s.https, 1);
    assert_string_equal(s.http_peer, "manager:two");
    assert_string_equal(s.http_first, "GET /x HTTP/1.1\r\n");
    scene_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_round_tries_each_address_once),
        cmocka_unit_test(test_fixed_addresses_are_the_only_ones),
        cmocka_unit_test(test_the_leader_is_found),
        cmocka_unit_test(test_a_refusal_leads_to_the_leader),
        cmocka_unit_test(test_standbys_may_name_each_other),
        cmocka_unit_test(test_agents_move_with_the_lead),
        cmocka_unit_test(test_named_managers_are_tried),
        cmocka_unit_test(test_list_needs_names_and_addresses),
        cmocka_unit_test(test_lower_epoch_is_not_followed),
        cmocka_unit_test(test_replaced_leader_refuses),
        cmocka_unit_test(test_no_epoch_is_followed),
        cmocka_unit_test(test_epoch_that_cannot_be_recorded_is_not_followed),
        cmocka_unit_test(test_order_of_a_lower_epoch_is_skipped),
        cmocka_unit_test(test_held_server_queues),
        cmocka_unit_test(test_http_is_a_managers),
    };

    return cmocka_run_group_tests(tests, scene_make_folder, scene_remove_folder);
}
