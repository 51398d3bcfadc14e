/* load.c - create sessions over keep-alive connections, as fast as they are answered
 *
 *     load PORT CLIENTS COUNT [COMMAND [PREFIX]]
 *
 * Each of CLIENTS threads has one connection and one request under way, and
 * composes the next one meanwhile.
 * Prints one JSON object: sessions per second and latencies of the answers,
 * each of which is a durable 201. Uses the development superadmin's keypair.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
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

#define ACCESS_KEY "AKIAIOSFODNN7EXAMPLE"
#define SECRET_KEY "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

static struct {
    uint16_t port;
    int clients, count;
    const char *command, *prefix;
    atomic_int next, failed;
    int64_t *latency_usec; /* by session */
} load;

static int connect_to_manager(void)
{
    const struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(load.port),
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        perror("load: connect");
        exit(1);
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

/* A signature covers date, method and path, and counts once: requests of
 * different clients differ in the last digits of their date, those of one
 * client in the others.
 */
static int64_t sign_time(int client)
{
    static __thread int64_t last;

    last = AQ_MAX(clock_realtime_usec() / 64, last + 1);
    return last * 64 + client;
}

static void write_request(int client, int number, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    struct aq_error err = { 0 };
    char host[32];
    const struct sign_input input = { .method = "POST", .target = "/session", .host = host,
                                      .content_type = "application/json",
                                      .version = "v6.20220615" };

    (void)snprintf(host, sizeof(host), "127.0.0.1:%u", load.port);
    strbuf_addf(&body,
                "{\"name\":\"%s%d\",\"image\":\"host\",\"type\":\"batch\",\"startupCommand\":\"%s\","
                "\"enqueueOnly\":true,\"config\":{\"resources\":{\"cpu\":\"1\",\"mem\":\"64m\"}}}",
                load.prefix, number, load.command);
    strbuf_clear(out);
    strbuf_addf(out, "POST /session HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\n", host, body.len);
    if (sign_write_headers(&input, ACCESS_KEY, SECRET_KEY, sign_time(client), out, &err) < 0) {
        (void)fprintf(stderr, "load: %s\n", err.text);
        exit(1);
    }
    strbuf_adds(out, "\r\n");
    strbuf_add(out, body.data, body.len);
}

/* Read one answer with a Content-Length; returns its status or 0. */
static int read_answer(int fd, struct strbuf *in)
{
    char *end, *length;
    size_t need;

    strbuf_clear(in);
    for (;;) {
        ssize_t got;

        end = strstr(in->data, "\r\n\r\n");
        if (end) {
            length = strcasestr(in->data, "content-length:");
            need = (size_t)(end + 4 - in->data) + (length ? strtoul(length + 15, NULL, 10) : 0);
            if (in->len >= need)
                return atoi(in->data + strlen("HTTP/1.1 "));
        }
        if (!strbuf_reserve(in, 4096))
            return 0;
        got = read(fd, in->data + in->len, in->cap - in->len - 1);
        if (got <= 0)
            return 0;
        strbuf_truncate(in, in->len + (size_t)got);
    }
}

static void *run_client(void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf request = STRBUF_INIT, answer = STRBUF_INIT;
    AQ_CLEANUP(aq_closep) int fd = connect_to_manager();
    int client = (int)(intptr_t)data, number = atomic_fetch_add(&load.next, 1), status;

    write_request(client, number, &request);
    for (int next; number < load.count; number = next) {
        int64_t started = clock_monotonic_usec();
        bool sent = fs_write_all(fd, request.data, request.len) == 0;

        next = atomic_fetch_add(&load.next, 1);
        write_request(client, next, &request); /* while the manager works */
        status = sent ? read_answer(fd, &answer) : 0;
        load.latency_usec[number] = clock_monotonic_usec() - started;
        if (status == 201)
            continue;
        if (atomic_fetch_add(&load.failed, 1) == 0)
            (void)fprintf(stderr, "load: %s\n", answer.data);
        if (status == 0)
            break;
    }
    return NULL;
}

static int compare_usec(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    pthread_t threads[64];
    int64_t started, took;

    if (argc < 4 || atoi(argv[2]) < 1 || atoi(argv[2]) > 64 || atoi(argv[3]) < 1) {
        (void)fprintf(stderr, "usage: load PORT CLIENTS COUNT [COMMAND [PREFIX]]\n");
        return 2;
    }
    load.port = (uint16_t)atoi(argv[1]);
    load.clients = atoi(argv[2]);
    load.count = atoi(argv[3]);
    load.command = argc > 4 ? argv[4] : "true";
    load.prefix = argc > 5 ? argv[5] : "load-";
    load.latency_usec = calloc((size_t)load.count, sizeof(*load.latency_usec));
    if (!load.latency_usec)
        return 1;
    started = clock_monotonic_usec();
    for (int i = 0; i < load.clients; i++)
        if (pthread_create(&threads[i], NULL, run_client, (void *)(intptr_t)i) != 0)
            return 1;
    for (int i = 0; i < load.clients; i++)
        (void)pthread_join(threads[i], NULL);
    took = clock_monotonic_usec() - started;
    qsort(load.latency_usec, (size_t)load.count, sizeof(*load.latency_usec), compare_usec);
    (void)printf("{\"created\":%d,\"failed\":%d,\"seconds\":%.3f,\"per_s\":%.0f,\"p50_us\":%lld,"
                 "\"p99_us\":%lld}\n",
                 load.count - load.failed, load.failed, (double)took / 1e6,
                 load.count * 1e6 / (double)took, (long long)load.latency_usec[load.count / 2],
                 (long long)load.latency_usec[(int64_t)load.count * 99 / 100]);
    free(load.latency_usec);
    return load.failed ? 1 : 0;
}
