/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - create sessions over keep-alive connections, as fast as they are answered
 *
 *     load [ADDRESS:]PORT CLIENTS COUNT [COMMAND [PREFIX [CPUS]]]
 *
 * Each of CLIENTS has one connection and one request under way. The requests
 * are signed before the clock starts, and one thread serves all clients, so that
 * they take as little as can be of the machine that they share with the manager.
 * Prints one JSON object: sessions per second and latencies of the answers,
 * each of which is a durable 201. Uses the keypair of ALIQUOT_ACCESS_KEY and
 * ALIQUOT_SECRET_KEY, else that of the development superadmin.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "http/sign.h"

#define CLIENTS_MAX 64
#define ACCESS_KEY "AKIAIOSFODNN7EXAMPLE"
#define SECRET_KEY "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

static struct {
    struct sockaddr_in address;
    char host[32]; /* as requests name it */
    int clients, count;
    const char *command, *prefix, *cpus, *access_key, *secret_key;
    struct strbuf *requests; /* by session */
    int next, failed;
    int64_t *latency_usec; /* by session */
} load;

struct client {
    int fd, number; /* of the session that it asked for */
    int64_t started_usec;
    struct strbuf answer;
};

static int connect_to_manager(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (fd < 0 || connect(fd, (const struct sockaddr *)&load.address, sizeof(load.address)) < 0) {
        perror("load: connect");
        exit(1);
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

/* A signature covers date, method and path, and counts once: no two requests
 * have the same date.
 */
static void write_request(int number, int64_t date_usec, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    struct aq_error err = { 0 };
    const struct sign_input input = { .method = "POST",
                                      .target = "/session",
                                      .host = load.host,
                                      .content_type = "application/json",
                                      .version = "v6.20220615" };

    strbuf_addf(
        &body,
        "{\"name\":\"%s%d\",\"image\":\"host\",\"type\":\"batch\",\"startupCommand\":\"%s\","
        "\"enqueueOnly\":true,\"config\":{\"resources\":{\"cpu\":\"%s\",\"mem\":\"64m\"}}}",
        load.prefix, number, load.command, load.cpus);
    strbuf_addf(out,
                "POST /session HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                "Content-Length: %zu\r\n",
                load.host, body.len);
    if (sign_write_headers(&input, load.access_key, load.secret_key, date_usec, 0, out, &err) < 0) {
        (void)fprintf(stderr, "load: %s\n", err.text);
        exit(1);
    }
    strbuf_adds(out, "\r\n");
    strbuf_add(out, body.data, body.len);
}

static void write_requests(void)
{
    int64_t now = clock_realtime_usec();

    for (int i = 0; i < load.count; i++) {
        strbuf_init(&load.requests[i]);
        write_request(i, now + i, &load.requests[i]);
    }
}

/* Send the client's next request, if there is one. */
static void ask(struct client *c)
{
    const struct strbuf *request;

    c->number = load.next++;
    strbuf_clear(&c->answer);
    if (c->number >= load.count) {
        aq_closep(&c->fd);
        return;
    }
    request = &load.requests[c->number];
    c->started_usec = clock_monotonic_usec();
    if (fs_write_all(c->fd, request->data, request->len) < 0) {
        perror("load: write");
        exit(1);
    }
}

/* The status of an answer with a Content-Length, 0 as long as it is not whole. */
static int answer_status(const struct strbuf *answer)
{
    const char *end = strstr(answer->data, "\r\n\r\n");
    const char *length = end ? strcasestr(answer->data, "content-length:") : NULL;
    size_t need = end ? (size_t)(end + 4 - answer->data) : SIZE_MAX;

    if (length)
        need += strtoul(length + 15, NULL, 10);
    return answer->len >= need ? atoi(answer->data + strlen("HTTP/1.1 ")) : 0;
}

static void on_readable(struct client *c)
{
    ssize_t got = strbuf_reserve(&c->answer, 4096) ? read(c->fd, c->answer.data + c->answer.len,
                                                          c->answer.cap - c->answer.len - 1)
                                                   : -1;
    int status;

    if (got <= 0) {
        (void)fprintf(stderr, "load: the connection ended\n");
        exit(1);
    }
    strbuf_truncate(&c->answer, c->answer.len + (size_t)got);
    if ((status = answer_status(&c->answer)) == 0)
        return;
    load.latency_usec[c->number] = clock_monotonic_usec() - c->started_usec;
    if (status != 201 && load.failed++ == 0)
        (void)fprintf(stderr, "load: %s\n", c->answer.data);
    ask(c);
}

static void run_clients(struct client *clients)
{
    struct pollfd polls[CLIENTS_MAX];
    int left;

    for (int i = 0; i < load.clients; i++)
        ask(&clients[i]);
    do {
        left = 0;
        for (int i = 0; i < load.clients; i++) {
            polls[i] = (struct pollfd){ .fd = clients[i].fd, .events = POLLIN };
            left += clients[i].fd >= 0;
        }
        if (left && poll(polls, (nfds_t)load.clients, -1) < 0)
            return;
        for (int i = 0; i < load.clients && left; i++)
            if (polls[i].revents)
                on_readable(&clients[i]);
    } while (left);
}

static int compare_usec(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* "PORT" of the loopback or "ADDRESS:PORT". */
static void read_address(const char *text)
{
    const char *colon = strrchr(text, ':');
    int len = colon ? (int)(colon - text) : 0;
    char address[INET_ADDRSTRLEN];

    (void)snprintf(address, sizeof(address), "%.*s", colon ? len : 9, colon ? text : "127.0.0.1");
    load.address.sin_family = AF_INET;
    load.address.sin_port = htons((uint16_t)atoi(colon ? colon + 1 : text));
    if (inet_pton(AF_INET, address, &load.address.sin_addr) != 1) {
        (void)fprintf(stderr, "load: '%s' is not an IPv4 address\n", address);
        exit(2);
    }
    (void)snprintf(load.host, sizeof(load.host), "%s:%u", address, ntohs(load.address.sin_port));
}

int main(int argc, char **argv)
{
    struct client clients[CLIENTS_MAX] = { 0 };
    int64_t started, took;

    if (argc < 4 || atoi(argv[2]) < 1 || atoi(argv[2]) > CLIENTS_MAX || atoi(argv[3]) < 1) {
        (void)fprintf(stderr,
                      "usage: load [ADDRESS:]PORT CLIENTS COUNT [COMMAND [PREFIX [CPUS]]]\n");
        return 2;
    }
    read_address(argv[1]);
    load.access_key = getenv("ALIQUOT_ACCESS_KEY");
    load.secret_key = getenv("ALIQUOT_SECRET_KEY");
    if (!load.access_key || !load.secret_key) {
        load.access_key = ACCESS_KEY;
        load.secret_key = SECRET_KEY;
    }
    load.clients = atoi(argv[2]);
    load.count = atoi(argv[3]);
    load.command = argc > 4 ? argv[4] : "true";
    load.prefix = argc > 5 ? argv[5] : "load-";
    load.cpus = argc > 6 ? argv[6] : "1";
    load.latency_usec = calloc((size_t)load.count, sizeof(*load.latency_usec));
    load.requests = calloc((size_t)load.count, sizeof(*load.requests));
    if (!load.latency_usec || !load.requests)
        return 1;
    write_requests();
    for (int i = 0; i < load.clients; i++) {
        clients[i].fd = connect_to_manager();
        strbuf_init(&clients[i].answer);
    }
    started = clock_monotonic_usec();
    run_clients(clients);
    took = clock_monotonic_usec() - started;
    qsort(load.latency_usec, (size_t)load.count, sizeof(*load.latency_usec), compare_usec);
    (void)printf("{\"created\":%d,\"failed\":%d,\"seconds\":%.3f,\"per_s\":%.0f,\"p50_us\":%lld,"
                 "\"p99_us\":%lld}\n",
                 load.count - load.failed, load.failed, (double)took / 1e6,
                 load.count * 1e6 / (double)took, (long long)load.latency_usec[load.count / 2],
                 (long long)load.latency_usec[(int64_t)load.count * 99 / 100]);
    for (int i = 0; i < load.count; i++)
        strbuf_done(&load.requests[i]);
    for (int i = 0; i < load.clients; i++)
        strbuf_done(&clients[i].answer);
    free(load.requests);
    free(load.latency_usec);
    return load.failed ? 1 : 0;
}
