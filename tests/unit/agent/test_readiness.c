/* SPDX-License-Identifier: Apache-2.0 */
/* An agent that probes kernels, and what its manager hears of them. The kernels are processes, whose
 * network is the test's: it listens for them.
 */
#include "scene.h"

#include "base/clock.h"
#include "http/listener.h"

struct server {
    struct listener *listener;
    uint16_t port;
};

static void on_read(void *data, const char *bytes, size_t len)
{
    (void)bytes;
    (void)len;
    (void)stream_write(data, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38);
}

static void on_end(void *data, const struct aq_error *err)
{
    (void)err;
    stream_close(data);
}

static void on_waiting(struct listener *listener, void *data)
{
    static const struct stream_ops ops = { .on_read = on_read, .on_end = on_end };
    struct stream *stream;

    (void)data;
    assert_int_equal(listener_accept(listener, &ops, NULL, &stream, NULL), 0);
    stream_set_ops(stream, &ops, stream);
}

/* Listen on the port that it had; the first time on a free one. */
static void server_open(struct scene *s, struct server *server)
{
    char address[40];

    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)server->port);
    assert_int_equal(listener_new(&s->loop, &(struct listener_options){ .address = address },
                                  on_waiting, NULL, &server->listener, NULL),
                     0);
    server->port = listener_get_port(server->listener);
}

static void server_close(struct server *server)
{
    listener_close(AQ_TAKE(server->listener));
}

static struct msg_kernel_create order_with_probe(const char *command, uint16_t port)
{
    struct msg_kernel_create create = scene_order(command);

    create.spec.probe_port = port;
    create.spec.probe_path = "/health";
    create.spec.probe_interval_usec = 100 * USEC_PER_MSEC;
    return create;
}

static struct seen *create_ready(struct scene *s, const struct server *server)
{
    struct msg_kernel_create create = order_with_probe("sleep 1000", server->port);
    struct seen *seen = scene_find(s, &create.kernel_id);

    scene_create(s, &create);
    RUN_UNTIL(s, strcmp(seen->health, "ready") == 0);
    return seen;
}

static void end(struct scene *s, struct seen *seen)
{
    scene_destroy(s, &seen->id, 0);
    RUN_UNTIL(s, scene_is_final(s, &seen->id));
}

static void each_change_is_told(void **state)
{
    struct scene *s = *state;
    struct server server = { .port = 0 };
    struct msg_kernel_create create, other = scene_order("sleep 1000");
    struct seen *seen;
    char nobody[60];
    int count;

    server_open(s, &server);
    server_close(&server);
    (void)snprintf(nobody, sizeof(nobody), "nobody listens on port %u", (unsigned)server.port);
    create = order_with_probe("sleep 1000", server.port);
    seen = scene_find(s, &create.kernel_id);
    scene_create(s, &create);
    scene_create(s, &other);
    RUN_UNTIL(s, seen->health_count);
    assert_int_equal(seen->state, MSG_KERNEL_RUNNING); /* not before */
    assert_string_equal(seen->health, "starting");
    assert_string_equal(seen->health_text, nobody);
    server_open(s, &server);
    RUN_UNTIL(s, strcmp(seen->health, "ready") == 0);
    assert_string_equal(seen->health_text, "");
    assert_true(seen->health_usec > 0 && seen->health_attempt == 1);
    server_close(&server);
    RUN_UNTIL(s, strcmp(seen->health, "unhealthy") == 0);
    assert_string_equal(seen->health_text, nobody);
    server_open(s, &server);
    RUN_UNTIL(s, strcmp(seen->health, "ready") == 0);
    end(s, seen);
    count = seen->health_count;
    server_close(&server); /* would be told */
    end(s, scene_find(s, &other.kernel_id));
    assert_int_equal(seen->health_count, count);
    assert_int_equal(scene_find(s, &other.kernel_id)->health_count, 0);
}

static void a_manager_that_connects_hears_of_all(void **state)
{
    struct scene *s = *state;
    struct server server = { .port = 0 };
    struct seen *seen;

    server_open(s, &server);
    seen = create_ready(s, &server);
    seen->health[0] = '\0';
    link_server_drop(s->server, "node", NULL);
    RUN_UNTIL(s, strcmp(seen->health, "ready") == 0);
    end(s, seen);
    server_close(&server);
}

/* What was ready goes on as such, or its requests would have nowhere to go. */
static void an_agent_that_starts_goes_on(void **state)
{
    struct scene *s = *state;
    struct server server = { .port = 0 };
    struct seen *seen;
    int64_t since;

    server_open(s, &server);
    seen = create_ready(s, &server);
    since = seen->health_usec;
    for (int is_gone = 0; is_gone < 2; is_gone++) {
        scene_stop_agent(s);
        if (is_gone)
            server_close(&server);
        seen->health[0] = '\0';
        seen->was_starting = false;
        scene_start_agent(s);
        RUN_UNTIL(s, strcmp(seen->health, "ready") == 0);
        assert_true(seen->health_usec >= since - USEC_PER_SEC
                    && seen->health_usec <= since + USEC_PER_SEC);
    }
    RUN_UNTIL(s, strcmp(seen->health, "unhealthy") == 0);
    assert_false(seen->was_starting);
    end(s, seen);
}

static void an_attempt_begins_anew(void **state)
{
    struct scene *s = *state;
    struct server server = { .port = 0 };
    struct seen *seen;
    struct message restart = { .type = MSG_KERNEL_RESTART };

    server_open(s, &server);
    seen = create_ready(s, &server);
    server_close(&server);
    restart.kernel_restart = (struct msg_kernel_restart){ .kernel_id = seen->id, .attempt = 2 };
    scene_send(s, &restart);
    RUN_UNTIL(s, seen->health_attempt == 2);
    assert_string_equal(seen->health, "starting");
    server_open(s, &server);
    RUN_UNTIL(s, strcmp(seen->health, "ready") == 0);
    assert_int_equal(seen->health_attempt, 2);
    end(s, seen);
    server_close(&server);
}

static void the_last_lines_of_what_fails_are_told(void **state)
{
    static const struct {
        const char *command, *lines;
        bool has_probe;
    } rows[] = {
        { "echo loading; echo '\033[31mno model\033[0m' >&2; exit 3", "loading\nno model", true },
        { "echo done", "done", true }, /* a server does not end */
        { "exit 1", "", true },
        { "echo quiet; exit 3", "", false },
    };
    struct scene *s = *state;

    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct msg_kernel_create create = order_with_probe(rows[i].command, 1);
        struct seen *seen = scene_find(s, &create.kernel_id);
        int heartbeats;

        create.spec.probe_port = rows[i].has_probe;
        scene_create(s, &create);
        RUN_UNTIL(s, scene_is_final(s, &create.kernel_id));
        assert_row(strcmp(seen->last_lines, rows[i].lines) == 0, "%zu: '%s'", i, seen->last_lines);
        seen->last_lines[0] = '\0';
        scene_stop_agent(s); /* the log says so to the next one, too */
        scene_start_agent(s);
        heartbeats = s->heartbeats;
        RUN_UNTIL(s, s->heartbeats > heartbeats + 1);
        assert_row(strcmp(seen->last_lines, rows[i].lines) == 0, "%zu: '%s'", i, seen->last_lines);
        scene_forget(s, &create.kernel_id, 1);
    }
}

static void lines_of_what_was_ended_are_not_told(void **state)
{
    struct scene *s = *state;
    struct msg_kernel_create create = order_with_probe("echo hello; sleep 1000", 1);

    scene_create(s, &create);
    RUN_UNTIL(s, scene_find(s, &create.kernel_id)->health_count);
    end(s, scene_find(s, &create.kernel_id));
    assert_string_equal(scene_find(s, &create.kernel_id)->last_lines, "");
}

static void wrong_probes_are_refused(void **state)
{
    static const struct {
        int64_t port, status, interval, timeout, retries;
        const char *path, *field;
    } rows[] = {
        { .port = 65536, .field = "probe_port" },
        { .port = 80, .status = 99, .field = "probe_status" },
        { .port = 80, .status = 600, .field = "probe_status" },
        { .port = 80, .interval = 99999, .field = "probe_interval_usec" },
        { .port = 80, .interval = 3600 * USEC_PER_SEC + 1, .field = "probe_interval_usec" },
        { .port = 80, .timeout = 9999, .field = "probe_timeout_usec" },
        { .port = 80, .retries = 1001, .field = "probe_retries" },
        { .port = 80, .path = "", .field = "probe_path" },
        { .port = 80, .path = "health", .field = "probe_path" },
        { .port = 80, .path = "/a b", .field = "probe_path" },
        { .port = 80, .path = "/a\r\nHost: b", .field = "probe_path" },
        { .port = 80, .path = "/caf\xc3\xa9", .field = "probe_path" },
    };
    struct scene *s = *state;

    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct msg_kernel_create create = scene_order("true");
        const struct seen *seen;

        create.spec.probe_port = rows[i].port;
        create.spec.probe_status = rows[i].status;
        create.spec.probe_interval_usec = rows[i].interval;
        create.spec.probe_timeout_usec = rows[i].timeout;
        create.spec.probe_retries = rows[i].retries;
        create.spec.probe_path = rows[i].path;
        scene_create(s, &create);
        RUN_UNTIL(s, scene_is_final(s, &create.kernel_id));
        seen = scene_find(s, &create.kernel_id);
        assert_row(strcmp(seen->field, rows[i].field) == 0, "%zu: %s", i, seen->field);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_init, scene_done)
    static const struct CMUnitTest tests[] = {
        TEST(each_change_is_told),
        TEST(a_manager_that_connects_hears_of_all),
        TEST(an_agent_that_starts_goes_on),
        TEST(an_attempt_begins_anew),
        TEST(the_last_lines_of_what_fails_are_told),
        TEST(lines_of_what_was_ended_are_not_told),
        TEST(wrong_probes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
