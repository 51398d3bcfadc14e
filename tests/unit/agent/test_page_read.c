/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of metrics of servers that answer as they should, and of those that do not. */
#include "testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/probe/page_read.h"
#include "base/memory.h"

#define OK "HTTP/1.1 200 OK\r\n"

static uv_loop_t loop;

/* A thread that answers one connection with 'says', or with 'filler' many times after it, and leaves
 * the end of the connection to the client if it 'waits'.
 */
struct server {
    int fd;
    uint16_t port;
    const char *says;
    size_t fillers;
    bool waits;
    pthread_t thread;
};

static void *server_run(void *data)
{
    static const char filler[] =
        "some_other_metric{label=\"value\"} 12345678901234567890123456789\n";
    struct server *server = data;
    char request[4096];
    int fd = accept(server->fd, NULL, NULL);
    size_t len = 0;

    while (!memmem(request, len, "\r\n\r\n", 4)) {
        ssize_t got = recv(fd, request + len, sizeof(request) - len, 0);

        if (got <= 0)
            break;
        len += (size_t)got;
    }
    (void)!send(fd, server->says, strlen(server->says), MSG_NOSIGNAL);
    for (size_t i = 0; i < server->fillers; i++)
        if (send(fd, filler, sizeof(filler) - 1, MSG_NOSIGNAL) < 0)
            break;
    while (server->waits && recv(fd, request, sizeof(request), 0) > 0)
        continue;
    close(fd);
    return NULL;
}

static void server_start(struct server *server)
{
    struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(addr);

    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(server->fd, 1), 0);
    assert_int_equal(getsockname(server->fd, (struct sockaddr *)&addr, &len), 0);
    server->port = ntohs(addr.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, server_run, server), 0);
}

static void server_end(struct server *server)
{
    assert_int_equal(pthread_join(server->thread, NULL), 0);
    close(server->fd);
}

struct reading {
    bool is_over;
    double value; /* -1 = none */
    char text[200];
};

static void take(void *data, const struct exposition_sum *sums, const char *text)
{
    struct reading *reading = data;

    reading->is_over = true;
    reading->value = sums && sums[0].series ? sums[0].value : -1;
    (void)snprintf(reading->text, sizeof(reading->text), "%s", text ? text : "");
}

static struct reading read_page(uint16_t port)
{
    static const struct exposition_selector selector = { .name = "depth" };
    const struct page_target target = { port, "/metrics", &selector, 1 };
    struct reading reading = { .is_over = false };
    struct page_read *page;
    struct aq_error err = { 0 };

    assert_int_equal(page_read_start(&loop, -1, &target, take, &reading, &page, &err), 0);
    while (!reading.is_over)
        (void)uv_run(&loop, UV_RUN_ONCE);
    return reading;
}

static void test_answers(void **state)
{
    static const struct {
        const char *says;
        size_t fillers;
        double value;
        const char *text;
    } cases[] = {
        { OK "Content-Length: 8\r\n\r\ndepth 3\n", 0, 3, "" },
        { OK "\r\ndepth 3\ndepth{a=\"b\"} 4", 0, 7, "" },
        { OK "Transfer-Encoding: chunked\r\n\r\n3\r\ndep\r\n4\r\nth 5\r\n0\r\n\r\n", 0, 5, "" },
        { "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" OK "Content-Length: 8\r\n\r\ndepth 6\n", 0, 6,
          "" },
        { "HTTP/1.0 200 OK\r\n\r\ndepth 2\n", 1000, 2, "" },
        { OK "\r\ndepth 2\n", 200000, -1, "the page is longer than 4 MiB" },
        { OK "Content-Length: 100\r\n\r\ndepth 3\n", 0, -1, "closed within the answer" },
        { OK "Content-Encoding: gzip\r\n\r\nx", 0, -1, "encoded as 'gzip'" },
        { "HTTP/1.1 404 Not Found\r\n\r\ndepth 3\n", 0, -1, "404 instead of 200" },
        { "HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", 0, -1, "302 instead of 200" },
        { "depth 3\n", 0, -1, "cannot read the answer" },
        { "", 0, -1, "closed without an answer" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        struct server server = { .says = cases[i].says, .fillers = cases[i].fillers };
        struct reading reading;

        server_start(&server);
        reading = read_page(server.port);
        server_end(&server);
        assert_row(reading.value == cases[i].value && strstr(reading.text, cases[i].text),
                   "%.30s: %g '%s'", cases[i].says, reading.value, reading.text);
    }
}

/* A server that ignores "Connection: close" does not delay a page whose end is known. */
static void test_a_complete_page_ends_the_connection(void **state)
{
    static const char *const pages[] = {
        OK "Content-Length: 8\r\n\r\ndepth 3\n",
        OK "Transfer-Encoding: chunked\r\n\r\n8\r\ndepth 3\n\r\n0\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(pages); i++) {
        struct server server = { .says = pages[i], .waits = true };
        struct reading reading;

        server_start(&server);
        reading = read_page(server.port);
        server_end(&server);
        assert_row(reading.value == 3, "%.60s: '%s'", pages[i], reading.text);
    }
}

static void test_a_port_where_nobody_listens(void **state)
{
    struct server server = { .says = "" };
    struct reading reading;

    (void)state;
    server_start(&server);
    (void)read_page(server.port);
    server_end(&server);
    reading = read_page(server.port);
    assert_true(reading.value == -1);
    assert_non_null(strstr(reading.text, "GET /metrics on port"));
}

static int set_up(void **state)
{
    (void)state;
    return uv_loop_init(&loop);
}

static int tear_down(void **state)
{
    (void)state;
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_a_complete_page_ends_the_connection),
        cmocka_unit_test(test_a_port_where_nobody_listens),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
