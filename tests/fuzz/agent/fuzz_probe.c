/* SPDX-License-Identifier: Apache-2.0 */
/* A program in a container answers the agent's probe, and its reading of a page of metrics, with the
 * input: the first byte says in which pieces. Each ends once, with a text that can be shown or
 * without, and a page has the same sums however it is cut.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/probe/page_read.h"
#include "agent/probe/probe_attempt.h"
#include "base/memory.h"
#include "base/utf8.h"

#define INPUT_MAX 32768 /* bytes that a socket takes at once */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct scene {
    uv_loop_t loop;
    int listener;
    uint16_t port;
} scene = { .listener = -1 };

struct ending {
    unsigned times;
    enum probe_outcome outcome;
    struct exposition_sum sum;
    char *text; /* NULL = none */
};

static void must(bool is_so)
{
    if (!is_so)
        abort();
}

static void set_scene(void)
{
    struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(addr);

    must(uv_loop_init(&scene.loop) == 0);
    scene.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    must(bind(scene.listener, (struct sockaddr *)&addr, sizeof(addr)) == 0);
    must(listen(scene.listener, 1) == 0);
    must(getsockname(scene.listener, (struct sockaddr *)&addr, &len) == 0);
    scene.port = ntohs(addr.sin_port);
}

static void end(struct ending *ending, const char *text)
{
    ending->times++;
    must(ending->times == 1);
    must(!text || (*text && utf8_is_valid(text, strlen(text)) && !strchr(text, '\n')));
    ending->text = text ? aq_strdup(text) : NULL;
}

static void on_probe(void *data, enum probe_outcome outcome, const char *text)
{
    struct ending *ending = data;

    must(!text == (outcome == PROBE_GOOD));
    ending->outcome = outcome;
    end(ending, text);
}

static void on_page(void *data, const struct exposition_sum *sums, const char *text)
{
    struct ending *ending = data;

    must(!text == !!sums);
    if (sums)
        ending->sum = *sums;
    end(ending, text);
}

/* The agent has connected; a request is read before the answer, whose connection would be reset else. */
static int accept_request(const struct ending *ending, bool has_request)
{
    struct pollfd wait = { .events = POLLIN };
    char request[1024];

    while ((wait.fd = accept4(scene.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0
           && !ending->times)
        (void)uv_run(&scene.loop, UV_RUN_NOWAIT);
    while (has_request && wait.fd >= 0 && !ending->times && poll(&wait, 1, 0) == 0)
        (void)uv_run(&scene.loop, UV_RUN_NOWAIT);
    if (wait.fd >= 0)
        (void)!recv(wait.fd, request, sizeof(request), 0);
    return wait.fd;
}

static void answer(const struct ending *ending, bool has_request, const char *bytes, size_t len,
                   size_t piece)
{
    static const struct linger at_once = { .l_onoff = 1 }; /* leaves no port waiting */
    int fd = accept_request(ending, has_request);

    for (size_t at = 0; at < len && !ending->times; at += piece) {
        (void)!send(fd, bytes + at, AQ_MIN(piece, len - at), MSG_NOSIGNAL);
        (void)uv_run(&scene.loop, UV_RUN_NOWAIT);
    }
    (void)shutdown(fd, SHUT_WR);
    while (!ending->times)
        (void)uv_run(&scene.loop, UV_RUN_ONCE);
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    (void)close(fd);
    while (uv_run(&scene.loop, UV_RUN_NOWAIT)) /* what was closed */
        ;
}

static void probe(const char *path, const char *bytes, size_t len, size_t piece)
{
    const struct probe_target target = {
        .port = scene.port, .path = path, .status = 200, .timeout_usec = USEC_PER_SEC
    };
    struct ending ending = { .times = 0 };
    struct probe_attempt *attempt;

    must(probe_attempt_start(&scene.loop, -1, &target, on_probe, &ending, &attempt, NULL) == 0);
    answer(&ending, path, bytes, len, piece);
    free(ending.text);
}

static struct ending read_page(const char *bytes, size_t len, size_t piece)
{
    static const struct exposition_selector selector = { .name = "depth" };
    const struct page_target target = { scene.port, "/metrics", &selector, 1 };
    struct ending ending = { .times = 0 };
    struct page_read *page;

    must(page_read_start(&scene.loop, -1, &target, on_page, &ending, &page, NULL) == 0);
    answer(&ending, true, bytes, len, piece);
    return ending;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data + 1;
    struct ending whole, cut;
    size_t piece;

    if (size < 2 || size > INPUT_MAX)
        return 0;
    if (scene.listener < 0)
        set_scene();
    piece = AQ_MAX((size_t)data[0] % 128 + 1, size / 64); /* at most 64 of them */
    probe(data[0] & 128 ? "/health" : NULL, bytes, size - 1, piece);
    whole = read_page(bytes, size - 1, size);
    cut = read_page(bytes, size - 1, piece);
    must(!whole.text == !cut.text && whole.sum.series == cut.sum.series
         && whole.sum.broken == cut.sum.broken);
    free(whole.text);
    free(cut.text);
    return 0;
}
