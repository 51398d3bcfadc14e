/* SPDX-License-Identifier: Apache-2.0 */
/* The client against a server that is played: in order, hostile, too small, replaced. */
#include "testing.h"

#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "base/memory.h"
#include "redis/redis_client.h"

/* What it answers each command with; NULL: as a server does. */
struct played {
    uv_loop_t *loop;
    uv_tcp_t listener;
    uv_tcp_t *client; /* the last one */
    unsigned port;
    struct strbuf in;
    const char *answer;   /* to all commands after the greeting's last */
    const char *greeting; /* to all of the greeting */
    const char *oom;      /* to SET */
    const char *role;
    char master[128];   /* to SENTINEL */
    struct strbuf said; /* "DB:WORD WORD\n" of each command that is not of the greeting */
    unsigned db, connections;
};

static void played_on_closed(uv_handle_t *handle)
{
    free(handle);
}

static void played_hang_up(struct played *p)
{
    if (p->client)
        uv_close((uv_handle_t *)p->client, played_on_closed);
    p->client = NULL;
    strbuf_clear(&p->in);
}

static void played_on_written(uv_write_t *write, int status)
{
    (void)status;
    free(write->data);
    free(write);
}

static void played_say(struct played *p, const char *text)
{
    uv_write_t *write = aq_alloc(sizeof(*write));
    char *copy = aq_strdup(text);
    uv_buf_t buf = uv_buf_init(copy, (unsigned)strlen(copy));

    write->data = copy;
    (void)uv_write(write, (uv_stream_t *)p->client, &buf, 1, played_on_written);
}

static const char *played_answer(struct played *p, const struct redis_reply *command)
{
    static const char *const greeting[] = { "AUTH", "CLIENT", "PING", "ROLE", "SELECT" };
    const char *word = command->items[0].text;

    if (strcmp(word, "SELECT") == 0)
        p->db = (unsigned)atoi(command->items[1].text);
    if (strcmp(word, "ROLE") == 0)
        return p->role;
    for (size_t i = 0; i < AQ_COUNT(greeting); i++)
        if (strcmp(word, greeting[i]) == 0)
            return p->greeting ? p->greeting : "+OK\r\n";
    if (strcmp(word, "SENTINEL") == 0)
        return p->master;
    if (p->answer)
        return p->answer;
    if (strcmp(word, "GET") == 0)
        return "$-1\r\n";
    if (strcmp(word, "SET") == 0)
        return p->oom ? p->oom : "+OK\r\n";
    strbuf_addf(&p->said, "%u:%s %s\n", p->db, word,
                command->count > 1 ? command->items[1].text : "");
    return "+OK\r\n";
}

static void played_on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
    struct played *p = stream->data;
    struct redis_reply command;

    if (len > 0)
        strbuf_add(&p->in, buf->base, (size_t)len);
    free(buf->base);
    if (len < 0 && (uv_stream_t *)p->client == stream)
        played_hang_up(p);
    while (p->in.len) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        ssize_t used = redis_reply_read(p->in.data, p->in.len, &arena, &command, NULL);
        const char *answer;

        assert_true(used >= 0);
        if (!used)
            break;
        strbuf_consume(&p->in, (size_t)used);
        answer = played_answer(p, &command);
        if (!*answer) {
            played_hang_up(p);
            break;
        }
        played_say(p, answer);
    }
}

static void played_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    (void)handle;
    *buf = uv_buf_init(aq_alloc(size), (unsigned)size);
}

static void played_on_connection(uv_stream_t *listener, int status)
{
    struct played *p = listener->data;

    assert_int_equal(status, 0);
    played_hang_up(p);
    p->connections++;
    p->client = aq_alloc(sizeof(*p->client));
    (void)uv_tcp_init(p->loop, p->client);
    p->client->data = p;
    assert_int_equal(uv_accept(listener, (uv_stream_t *)p->client), 0);
    (void)uv_read_start((uv_stream_t *)p->client, played_alloc, played_on_read);
}

static void played_up(struct played *p, uv_loop_t *loop)
{
    struct sockaddr_in address;
    struct sockaddr_storage bound;
    int len = sizeof(bound);

    *p = (struct played){ .loop = loop,
                          .in = STRBUF_INIT,
                          .said = STRBUF_INIT,
                          .role = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n" };
    (void)uv_tcp_init(loop, &p->listener);
    p->listener.data = p;
    assert_int_equal(uv_ip4_addr("127.0.0.1", 0, &address), 0);
    assert_int_equal(uv_tcp_bind(&p->listener, (const struct sockaddr *)&address, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&p->listener, 8, played_on_connection), 0);
    assert_int_equal(uv_tcp_getsockname(&p->listener, (struct sockaddr *)&bound, &len), 0);
    p->port = ntohs(((struct sockaddr_in *)&bound)->sin_port);
}

static void played_down(struct played *p)
{
    played_hang_up(p);
    uv_close((uv_handle_t *)&p->listener, NULL);
}

struct scene {
    uv_loop_t loop;
    struct played server, sentinel;
    struct redis_settings settings;
    char uri[200];
    struct redis_client *client;
    struct redis_status status;
    unsigned fresh, replies, lost;
};

static void scene_on_fresh(void *data)
{
    ((struct scene *)data)->fresh++;
}

static void scene_on_reply(void *data, const struct redis_reply *reply)
{
    struct scene *s = data;

    if (reply)
        s->replies++;
    else
        s->lost++;
}

/* Two Sentinels, which are one, are named where 'path' is a service. */
static void scene_begin(struct scene *s, const char *path)
{
    struct aq_error err = { 0 };
    struct redis_client_options options = { .loop = &s->loop,
                                            .settings = &s->settings,
                                            .on_fresh = scene_on_fresh,
                                            .data = s,
                                            .mark = "mark",
                                            .mark_db = 1,
                                            .is_quiet = true };
    bool has_sentinel = strcmp(path, "/0") != 0;

    if (has_sentinel)
        (void)snprintf(s->uri, sizeof(s->uri), "redis+sentinel://127.0.0.1:%u,127.0.0.1:%u%s",
                       s->sentinel.port, s->sentinel.port, path);
    else
        (void)snprintf(s->uri, sizeof(s->uri), "redis://127.0.0.1:%u%s", s->server.port, path);
    s->settings.uri = s->uri;
    assert_int_equal(redis_client_new(&options, &s->client, &err), 0);
}

static int scene_up(void **state)
{
    struct scene *s = *state = aq_alloc(sizeof(*s));

    (void)uv_loop_init(&s->loop);
    played_up(&s->server, &s->loop);
    played_up(&s->sentinel, &s->loop);
    return 0;
}

static int scene_down(void **state)
{
    struct scene *s = *state;

    redis_client_free(s->client);
    played_down(&s->server);
    played_down(&s->sentinel);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    strbuf_done(&s->server.in);
    strbuf_done(&s->server.said);
    strbuf_done(&s->sentinel.in);
    strbuf_done(&s->sentinel.said);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    free(s);
    return 0;
}

static const struct redis_status *scene_look(struct scene *s)
{
    redis_client_get_status(s->client, &s->status);
    return &s->status;
}

#define RUN_UNTIL(s, cond)                         \
    do {                                           \
        while (!(cond))                            \
            (void)uv_run(&(s)->loop, UV_RUN_ONCE); \
    } while (0)

static void scene_say(struct scene *s, unsigned db, const char *word, const char *key)
{
    struct redis_command command = REDIS_COMMAND_INIT;

    redis_command_adds(&command, word);
    redis_command_adds(&command, key);
    redis_client_send(s->client, db, &command, scene_on_reply, s);
}

static void test_commands_go_to_their_databases_in_order(void **state)
{
    struct scene *s = *state;

    scene_begin(s, "/0");
    scene_say(s, 0, "A", "1"); /* before there is a connection */
    scene_say(s, 4, "B", "2");
    RUN_UNTIL(s, s->replies == 2);
    scene_say(s, 4, "C", "3");
    scene_say(s, 0, "D", "4");
    RUN_UNTIL(s, s->replies == 4);
    assert_string_equal(s->server.said.data, "0:A 1\n4:B 2\n4:C 3\n0:D 4\n");
    assert_true(scene_look(s)->is_ready);
    assert_int_equal(s->status.away_usec, 0);
    RUN_UNTIL(s, s->fresh == 1);
}

/* None of it is believed, all of it ends the connection, and the next one works. */
static void test_a_hostile_server(void **state)
{
    static const char *const rows[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "$9223372036854775807\r\n",
        "$99999999\r\nabc",
        "*2147483647\r\n",
        "*-5\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
        ":x\r\n",
        "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n",
        "-READONLY You can't write against a read only replica.\r\n",
        "-NOAUTH Authentication required.\r\n",
        "", /* hangs up */
    };
    struct scene *s = *state;

    scene_begin(s, "/0");
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        unsigned connections;

        RUN_UNTIL(s, scene_look(s)->is_ready);
        connections = s->server.connections;
        s->server.answer = rows[i];
        scene_say(s, 0, "A", "1");
        RUN_UNTIL(s, !scene_look(s)->is_ready);
        assert_row(s->status.problem[0] && s->status.away_usec, "%s", rows[i]);
        s->server.answer = NULL;
        RUN_UNTIL(s, scene_look(s)->is_ready);
        assert_row(s->server.connections > connections, "%s", rows[i]);
        assert_string_equal(s->status.problem, "");
    }
    RUN_UNTIL(s, s->replies + s->lost == AQ_COUNT(rows));
}

static void test_a_greeting_that_is_refused(void **state)
{
    struct scene *s = *state;

    s->server.greeting =
        "-WRONGPASS invalid username-password pair\x1b[1m or user is disabled.\r\n";
    scene_begin(s, "/0");
    RUN_UNTIL(s, scene_look(s)->failures >= 2);
    assert_false(s->status.is_ready);
    assert_non_null(strstr(s->status.problem, "WRONGPASS"));
    assert_null(strchr(s->status.problem, '\x1b'));
    scene_say(s, 0, "A", "1");
    assert_int_equal(scene_look(s)->queued, 1);
    s->server.greeting = NULL;
    RUN_UNTIL(s, s->replies == 1);
}

static void test_a_password_of_two_lines(void **state)
{
    struct scene *s = *state;
    char path[] = "/tmp/test_redis_XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0 && write(fd, "SECRET\nother\n", 13) == 13);
    assert_int_equal(close(fd), 0);
    s->settings.password_file = path;
    scene_begin(s, "/0");
    RUN_UNTIL(s, scene_look(s)->failures);
    assert_int_equal(s->server.connections, 0);
    assert_non_null(strstr(s->status.problem, "must hold one line"));
    assert_null(strstr(s->status.problem, "SECRET"));
    assert_int_equal(unlink(path), 0);
}

static void test_a_server_that_is_full(void **state)
{
    struct scene *s = *state;
    unsigned fresh;

    s->server.oom = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    scene_begin(s, "/0");
    RUN_UNTIL(s, strstr(scene_look(s)->problem, "OOM"));
    assert_false(s->status.is_ready);
    assert_true(s->status.refused > 0);
    fresh = s->fresh;
    s->server.oom = NULL;
    RUN_UNTIL(s, scene_look(s)->is_ready);
    assert_true(s->fresh > fresh); /* what was refused is written again */
    assert_int_equal(s->server.connections, 1);
}

/* It accepts connections, and is not called ready for that. */
static void test_a_server_that_is_read_only(void **state)
{
    struct scene *s = *state;
    int64_t away_usec;

    s->server.oom = "-READONLY You can't write against a read only replica.\r\n";
    scene_begin(s, "/0");
    away_usec = scene_look(s)->away_usec;
    while (scene_look(s)->connects < 4) {
        (void)uv_run(&s->loop, UV_RUN_ONCE);
        assert_false(scene_look(s)->is_ready);
        assert_int_equal(s->status.away_usec, away_usec);
        assert_true(!s->status.refused || strstr(s->status.problem, "READONLY"));
    }
    s->server.oom = NULL;
    RUN_UNTIL(s, scene_look(s)->is_ready);
    assert_string_equal(s->status.problem, "");
}

/* The oldest commands are dropped, each with its callback. */
static void test_a_queue_that_is_full(void **state)
{
    struct scene *s = *state;
    char *key = aq_alloc(100001);
    unsigned i;

    memset(key, 'k', 100000);
    s->server.greeting = "-LOADING Redis is loading the dataset in memory\r\n";
    scene_begin(s, "/0");
    for (i = 0; i < 100; i++)
        scene_say(s, 0, "A", key);
    assert_int_equal(scene_look(s)->queued + s->status.dropped, 100);
    assert_int_equal(s->lost, s->status.dropped);
    assert_in_range(s->status.queued, 40, 41);
    scene_say(s, 0, "LAST", "1");
    s->server.greeting = NULL;
    RUN_UNTIL(s, s->replies + s->lost == 101);
    assert_non_null(strstr(s->server.said.data, "0:LAST 1\n"));
    free(key);
}

static void scene_name_master(struct scene *s, unsigned port)
{
    char text[8];

    (void)snprintf(text, sizeof(text), "%u", port);
    (void)snprintf(s->sentinel.master, sizeof(s->sentinel.master),
                   "*2\r\n$9\r\n127.0.0.1\r\n$%zu\r\n%s\r\n", strlen(text), text);
}

static void test_sentinel(void **state)
{
    static const struct {
        const char *answer, *problem;
    } rows[] = {
        { "*-1\r\n", "does not know the service 'main'" },
        { "*1\r\n$1\r\na\r\n", "names no address" },
        { "*2\r\n$1\r\n/\r\n$4\r\n6379\r\n", "names no address" },
        { "*2\r\n$1\r\na\r\n$5\r\n65536\r\n", "names no address" },
        { "*2\r\n:1\r\n:2\r\n", "names no address" },
        { "-ERR no\r\n", "the Sentinel refuses: ERR no" },
        { "-ERR \x1b[1m\xff no\r\n", "the Sentinel refuses: ERR ?[1m? no" },
    };
    struct scene *s = *state;

    (void)snprintf(s->sentinel.master, sizeof(s->sentinel.master), "%s", rows[0].answer);
    scene_begin(s, "/main?db=2");
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        (void)snprintf(s->sentinel.master, sizeof(s->sentinel.master), "%s", rows[i].answer);
        RUN_UNTIL(s, strstr(scene_look(s)->problem, rows[i].problem));
    }
    s->server.role = "*1\r\n$5\r\nslave\r\n";
    scene_name_master(s, s->server.port);
    RUN_UNTIL(s, strstr(scene_look(s)->problem, "it is a replica"));
    s->server.role = "*1\r\n$6\r\nmaster\r\n";
    RUN_UNTIL(s, scene_look(s)->is_ready);
    scene_say(s, 4, "A", "1");
    RUN_UNTIL(s, s->replies == 1);
    assert_string_equal(s->server.said.data, "6:A 1\n");
    assert_int_equal(s->sentinel.said.len, 0);
}

/* It is asked again after a pause, not at once by way of the other Sentinel. */
static void test_a_server_that_accepts_and_ends(void **state)
{
    struct scene *s = *state;

    scene_name_master(s, s->server.port);
    scene_begin(s, "/main?db=2");
    for (unsigned i = 1; i <= 3; i++) {
        s->server.answer = NULL;
        RUN_UNTIL(s, scene_look(s)->is_ready);
        s->server.answer = "+OK\r\n+OK\r\n+OK\r\n";
        scene_say(s, 0, "A", "1");
        RUN_UNTIL(s, !scene_look(s)->is_ready);
        assert_int_equal(scene_look(s)->failures, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_commands_go_to_their_databases_in_order, scene_up,
                                        scene_down),
        cmocka_unit_test_setup_teardown(test_a_hostile_server, scene_up, scene_down),
        cmocka_unit_test_setup_teardown(test_a_greeting_that_is_refused, scene_up, scene_down),
        cmocka_unit_test_setup_teardown(test_a_password_of_two_lines, scene_up, scene_down),
        cmocka_unit_test_setup_teardown(test_a_server_that_is_full, scene_up, scene_down),
        cmocka_unit_test_setup_teardown(test_a_server_that_is_read_only, scene_up, scene_down),
        cmocka_unit_test_setup_teardown(test_a_queue_that_is_full, scene_up, scene_down),
        cmocka_unit_test_setup_teardown(test_sentinel, scene_up, scene_down),
        cmocka_unit_test_setup_teardown(test_a_server_that_accepts_and_ends, scene_up, scene_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
