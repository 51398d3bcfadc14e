/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of servers that answer as they should, and of those that do not. */
#include "testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/probe/probes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "http/defer.h"
#include "http/listener.h"

#define GUESTS_MAX 4096

static uv_loop_t loop;

/* A server that says 'says' to whoever connects, again and again as long as 'repeats', then closes
 * or waits.
 */
struct server {
    struct listener *listener;
    const char *says;
    bool repeats, closes, resets, waits_for_request;
    struct guest *guests[GUESTS_MAX];
    size_t count, open, open_most;
};

struct guest {
    struct server *of;
    struct stream *stream;
    struct defer *later;
    bool is_open;
    char request[512];
    size_t len;
};

static void guest_end(struct guest *g)
{
    if (!g->is_open)
        return;
    g->is_open = false;
    g->of->open--;
    defer_cancel(AQ_TAKE(g->later));
    stream_close(AQ_TAKE(g->stream));
}

static void guest_say(void *data)
{
    struct guest *g = data;

    g->later = NULL;
    if (g->of->says && stream_queued(g->stream) < 65536)
        (void)stream_write(g->stream, g->of->says, strlen(g->of->says));
    if (g->of->repeats)
        g->later = defer_call(&loop, 1, guest_say, g);
    else if (g->of->closes)
        stream_shutdown(g->stream);
}

static void guest_on_read(void *data, const char *bytes, size_t len)
{
    struct guest *g = data;

    assert_true(g->len + len < sizeof(g->request));
    memcpy(g->request + g->len, bytes, len);
    g->len += len;
    if (g->of->waits_for_request && !g->later)
        guest_say(g);
}

static void guest_on_end(void *data, const struct aq_error *err)
{
    (void)err;
    guest_end(data);
}

static void server_on_waiting(struct listener *listener, void *data)
{
    static const struct stream_ops ops = { .on_read = guest_on_read, .on_end = guest_on_end };
    struct server *s = data;
    struct guest *g = aq_alloc(sizeof(*g));

    assert_true(s->count < GUESTS_MAX);
    g->of = s;
    g->is_open = true;
    assert_int_equal(listener_accept(listener, &ops, g, &g->stream, NULL), 0);
    s->guests[s->count++] = g;
    s->open++;
    s->open_most = AQ_MAX(s->open_most, s->open);
    if (s->resets)
        guest_end(g); /* with the request unread that is a reset */
    else if (!s->waits_for_request)
        guest_say(g);
}

static void server_begin(struct server *s)
{
    const struct listener_options options = { .address = "127.0.0.1:0" };

    assert_int_equal(listener_new(&loop, &options, server_on_waiting, s, &s->listener, NULL), 0);
}

static void server_end(struct server *s)
{
    listener_close(s->listener);
    for (size_t i = 0; i < s->count; i++) {
        guest_end(s->guests[i]);
        free(s->guests[i]);
    }
}

/* ---- what probes find ---- */

struct found {
    int count;
    enum probe_health health;
    char text[400];
    bool is_good;
};

static int open_own(void *data, int *ret, struct aq_error *err)
{
    (void)data;
    (void)err;
    *ret = -1;
    return 0;
}

static void on_finding(void *data, const struct probe_finding *finding)
{
    struct found *f = data;

    f->count++;
    f->health = finding->health;
    f->is_good = !finding->text;
    (void)snprintf(f->text, sizeof(f->text), "%s", finding->text ? finding->text : "");
}

static const struct probe_ops ops = { .open_network = open_own, .on_finding = on_finding };

static struct probe_spec spec_of(uint16_t port, const char *path)
{
    return (struct probe_spec){ { port, path, 200, 15 * USEC_PER_SEC }, { 10 * USEC_PER_SEC, 10 } };
}

#define RUN_UNTIL(condition) \
    while (!(condition))     \
    assert_true(uv_run(&loop, UV_RUN_ONCE) || (condition))

static int up(void **data)
{
    (void)data;
    return uv_loop_init(&loop);
}

static int down(void **data)
{
    (void)data;
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}

/* The first finding of a probe. */
static struct found find(const struct probe_spec *spec)
{
    struct probes *probes = probes_new(&loop);
    struct found found = { .count = 0 };
    struct probe *probe = probe_new(probes, spec, 0, &ops, &found);

    RUN_UNTIL(found.count);
    probe_free(probe);
    probes_free(probes);
    return found;
}

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"

#define INTERIM \
    "HTTP/1.1 100 Continue\r\nA: " SIXTY_FOUR SIXTY_FOUR SIXTY_FOUR SIXTY_FOUR "\r\n\r\n"
#define SIXTY_FOUR "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char long_head[(16 << 10) + 512];

static void answers(void **data)
{
    static const struct {
        struct server server;
        const char *text; /* NULL = ready; else what the text begins with */
        const char *path;
    } rows[] = {
        { { .says = OK_HEAD "ok", .waits_for_request = true }, NULL, "/health" },
        { { .says = OK_HEAD "o", .waits_for_request = true }, NULL, "/health" }, /* cut short */
        { { .says = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", .waits_for_request = true },
          NULL,
          "/" },
        { { .says = "HTTP/1.0 200 OK\r\n\r\nhello", .waits_for_request = true, .closes = true },
          NULL,
          "/" },
        { { .says = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" OK_HEAD "ok",
            .waits_for_request = true },
          NULL,
          "/" },
        { { .says = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz",
            .waits_for_request = true },
          NULL,
          "/" },
        { { .says = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
            .waits_for_request = true },
          "GET /health: 503 instead of 200",
          "/health" },
        { { .says = "HTTP/1.1 302 Found\r\nLocation: /health/\r\nContent-Length: 0\r\n\r\n",
            .waits_for_request = true },
          "GET /health: 302 instead of 200, a redirect to '/health/'",
          "/health" },
        { { .says = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            .waits_for_request = true },
          "GET /: 101 instead of 200",
          "/" },
        { { .says = "SSH-2.0-OpenSSH_9.2\r\n\r\n" }, "GET /: cannot read the answer: ", "/" },
        { { .says = "HTTP/1.1 200 OK\r\nContent-Le", .closes = true, .waits_for_request = true },
          "GET /: the connection was closed within the answer",
          "/" },
        { { .closes = true, .waits_for_request = true },
          "GET /: the connection was closed without an answer",
          "/" },
        { { .resets = true }, "GET /: the connection was ", "/" },
        { { .says = long_head, .waits_for_request = true },
          "GET /: cannot read the answer: ",
          "/" },
        { { .says = INTERIM INTERIM INTERIM INTERIM, .repeats = true, .waits_for_request = true },
          "GET /: the head of the answer is longer than 16 KiB",
          "/" },
        { { .says = OK_HEAD "ok", .waits_for_request = true }, NULL, NULL }, /* it only listens */
        { { .says = "220 mail\r\n" }, NULL, NULL },
        { { .closes = true }, "port 0: the connection was closed at once", NULL },
    };

    (void)data;
    (void)snprintf(long_head, sizeof(long_head), "HTTP/1.1 200 OK\r\nA: %0*d", (16 << 10) + 256, 1);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct server server = rows[i].server;
        struct probe_spec spec;
        struct found found;
        char *port;

        server_begin(&server);
        spec = spec_of(listener_get_port(server.listener), rows[i].path);
        found = find(&spec);
        port = strstr(found.text, "port ");
        if (port) /* as in the table */
            (void)snprintf(port, 60, "port 0%s", strdupa(strchr(port, ':')));
        assert_row(
            found.health == (rows[i].text ? PROBE_STARTING : PROBE_READY)
                && found.is_good == !rows[i].text
                && (!rows[i].text || strncmp(found.text, rows[i].text, strlen(rows[i].text)) == 0),
            "%zu: %s", i, found.text);
        server_end(&server);
    }
}

static void the_request_is_as_small_clients_send_it(void **data)
{
    struct server server = { .says = OK_HEAD "ok", .waits_for_request = true };
    struct probe_spec spec;
    char expected[200];

    (void)data;
    server_begin(&server);
    spec = spec_of(listener_get_port(server.listener), "/v1/models?a=b");
    assert_true(find(&spec).is_good);
    (void)snprintf(expected, sizeof(expected),
                   "GET /v1/models?a=b HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n",
                   (unsigned)spec.target.port);
    assert_memory_equal(server.guests[0]->request, expected, strlen(expected));
    server_end(&server);
}

/* A server that ignores "Connection: close" does not delay an answer whose end is known: turns of the
 * loop that wait for nothing find it, long before the time is over that the body of an answer has.
 */
static void a_complete_answer_ends_the_connection(void **data)
{
    struct server server = { .says = OK_HEAD "ok", .waits_for_request = true };
    struct probes *probes = probes_new(&loop);
    struct found found = { .count = 0 };
    struct probe_spec spec;
    struct probe *probe;

    (void)data;
    server_begin(&server);
    spec = spec_of(listener_get_port(server.listener), "/health");
    probe = probe_new(probes, &spec, 0, &ops, &found);
    RUN_UNTIL(server.count && server.guests[0]->len);
    for (int turns = 0; !found.count && turns < 10000; turns++)
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(found.health, PROBE_READY);
    probe_free(probe);
    probes_free(probes);
    server_end(&server);
}

static void another_status_may_be_expected(void **data)
{
    struct server server = { .says = "HTTP/1.1 204 No Content\r\n\r\n", .waits_for_request = true };
    struct probe_spec spec;

    (void)data;
    server_begin(&server);
    spec = spec_of(listener_get_port(server.listener), "/");
    spec.target.status = 204;
    assert_true(find(&spec).is_good);
    server_end(&server);
}

static void nobody_listens(void **data)
{
    struct probe_spec spec = spec_of(1, "/");
    struct found found = find(&spec);

    (void)data;
    assert_int_equal(found.health, PROBE_STARTING);
    assert_string_equal(found.text, "nobody listens on port 1");
}

static void silence_ends_after_the_timeout(void **data)
{
    struct server server = { .says = NULL };
    struct probe_spec spec;
    struct found found;

    (void)data;
    server_begin(&server);
    spec = spec_of(listener_get_port(server.listener), "/health");
    spec.target.timeout_usec = 50 * USEC_PER_MSEC;
    found = find(&spec);
    assert_string_equal(found.text, "GET /health: no answer within 0.05 s");
    server_end(&server);
}

static void a_head_without_end_ends_after_the_timeout(void **data)
{
    struct server server = { .says = "HTTP/1.1 200 OK\r\nA: b", .waits_for_request = true };
    struct probe_spec spec;
    struct found found;

    (void)data;
    server_begin(&server);
    spec = spec_of(listener_get_port(server.listener), "/");
    spec.target.timeout_usec = 50 * USEC_PER_MSEC;
    found = find(&spec);
    assert_string_equal(found.text, "GET /: no complete answer within 0.05 s");
    server_end(&server);
}

static int open_none(void *data, int *ret, struct aq_error *err)
{
    (void)data;
    (void)ret;
    return aq_fail_kind(err, ESRCH, "not-found", "the container has ended");
}

static void what_the_node_lacks_says_nothing_of_the_program(void **data)
{
    static const struct probe_ops none = { .open_network = open_none, .on_finding = on_finding };
    struct probes *probes = probes_new(&loop);
    struct probe_spec spec = spec_of(1, "/");
    struct found found = { .count = 0 };
    struct probe *probe;

    (void)data;
    spec.rule = (struct probe_rule){ .interval_usec = USEC_PER_MSEC, .retries = 1 };
    probe = probe_new(probes, &spec, 1, &none, &found);
    RUN_UNTIL(found.count);
    assert_int_equal(found.health, PROBE_READY);
    assert_string_equal(found.text, "the container has ended");
    probe_free(probe);
    probes_free(probes);
}

/* ---- over time ---- */

static void it_becomes_ready_then_unhealthy_then_ready(void **data)
{
    struct server server = { .says = "HTTP/1.1 503 Loading\r\nContent-Length: 0\r\n\r\n",
                             .waits_for_request = true };
    struct probes *probes = probes_new(&loop);
    struct found found = { .count = 0 };
    struct probe_spec spec;
    struct probe *probe;
    struct probe_finding finding;

    (void)data;
    server_begin(&server);
    spec = spec_of(listener_get_port(server.listener), "/health");
    spec.rule = (struct probe_rule){ .interval_usec = 20 * USEC_PER_MSEC, .retries = 3 };
    probe = probe_new(probes, &spec, 0, &ops, &found);
    RUN_UNTIL(found.count == 1);
    assert_int_equal(found.health, PROBE_STARTING);
    server.says = OK_HEAD "ok";
    RUN_UNTIL(found.health == PROBE_READY);
    finding = probe_get_finding(probe);
    assert_null(finding.text);
    assert_true(finding.at_usec > 0 && finding.at_usec <= clock_realtime_usec());
    server.says = "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n";
    RUN_UNTIL(found.health == PROBE_UNHEALTHY);
    assert_string_equal(found.text, "GET /health: 500 instead of 200");
    server.says = OK_HEAD "ok";
    RUN_UNTIL(found.health == PROBE_READY);
    assert_true(found.is_good);
    probe_free(probe);
    probes_free(probes);
    server_end(&server);
}

/* Of a former process of the agent: no failure of one probe takes it out of use. */
static void one_that_was_ready_is_ready_from_the_start(void **data)
{
    struct probes *probes = probes_new(&loop);
    struct found found = { .count = 0 };
    struct probe_spec spec = spec_of(1, "/");
    struct probe *probe = probe_new(probes, &spec, 1234567, &ops, &found);

    (void)data;
    assert_int_equal(probe_get_finding(probe).health, PROBE_READY);
    assert_int_equal(probe_get_finding(probe).at_usec, 1234567);
    RUN_UNTIL(found.count);
    assert_int_equal(found.health, PROBE_READY);
    assert_string_equal(found.text, "nobody listens on port 1");
    RUN_UNTIL(found.health == PROBE_UNHEALTHY); /* after three refusals, long before 10 s */
    probe_free(probe);
    probes_free(probes);
}

#define MANY 200

/* Many that hang take half of the places at most once that is known, and others are probed. */
static void some_that_hang_delay_nobody(void **data)
{
    struct server hangs = { .says = NULL },
                  works = { .says = OK_HEAD "ok", .waits_for_request = true };
    struct probes *probes = probes_new(&loop);
    static struct found found[MANY];
    struct found other = { .count = 0 };
    struct probe *all[MANY], *probe;
    struct probe_spec spec;
    size_t known = 0, before;

    (void)data;
    server_begin(&hangs);
    server_begin(&works);
    spec = spec_of(listener_get_port(hangs.listener), "/");
    spec.target.timeout_usec = 1100 * USEC_PER_MSEC;
    for (size_t i = 0; i < MANY; i++)
        all[i] = probe_new(probes, &spec, 0, &ops, &found[i]);
    while (known < MANY) {
        RUN_UNTIL(found[known].count);
        known++;
    }
    /* the server may see the end of those before later than the begin of the next */
    assert_true(hangs.open_most >= PROBES_AT_ONCE && hangs.open_most <= 2 * PROBES_AT_ONCE);
    before = hangs.count;
    spec = spec_of(listener_get_port(works.listener), "/");
    probe = probe_new(probes, &spec, 0, &ops, &other);
    RUN_UNTIL(other.count);
    assert_int_equal(other.health, PROBE_READY);
    assert_true(hangs.count - before < PROBES_AT_ONCE); /* it did not wait for all of them */
    probe_free(probe);
    for (size_t i = 0; i < MANY; i++)
        probe_free(all[i]);
    probes_free(probes);
    server_end(&hangs);
    server_end(&works);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
    static const struct CMUnitTest tests[] = {
        TEST(answers),
        TEST(the_request_is_as_small_clients_send_it),
        TEST(a_complete_answer_ends_the_connection),
        TEST(another_status_may_be_expected),
        TEST(nobody_listens),
        TEST(silence_ends_after_the_timeout),
        TEST(a_head_without_end_ends_after_the_timeout),
        TEST(what_the_node_lacks_says_nothing_of_the_program),
        TEST(it_becomes_ready_then_unhealthy_then_ready),
        TEST(one_that_was_ready_is_ready_from_the_start),
        TEST(some_that_hang_delay_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
