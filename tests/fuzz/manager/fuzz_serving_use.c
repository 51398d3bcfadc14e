/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of proxies about model services, with a real core: whatever they say, no figure becomes
 * negative, and figures of services, replicas, revisions and tokens that do not exist are not kept.
 *
 * The input is lines of JSON, each a message of a proxy; its first byte chooses the proxy. In a line
 * % is the id of a service, @0 to @2 are its replicas, and $ is its token. The core is kept from one
 * input to the next, the figures are not.
 */
#include <stdint.h>
#include <string.h>

#include "manager/service_world.h"

#include "manager/serving/serving_use.h"

#define REPLICAS 3
#define LINES_MAX 64
#define PROXIES 3

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct scene {
    struct uuid service_id, token_id, replica_ids[REPLICAS];
    struct serving_use *use;
} scene;

static void must(bool is_so)
{
    if (!is_so)
        __builtin_trap();
}

static void remove_folder(void)
{
    (void)fs_remove_tree(AT_FDCWD, world.dir, NULL);
}

/* Not within the time of the first input: making a database takes seconds on a busy machine. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct model_service_token token = { .label = strdup("bench") };
    const struct model_service *s;
    struct answer a = { 0 };

    (void)argc;
    (void)argv;
    (void)world_begin(NULL);
    (void)atexit(remove_folder);
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", REPLICAS);
    memset(token.hash, 'a', sizeof(token.hash) - 1);
    core_add_service_token(world.core, &s->id, &token, &asker, on_answer, &a);
    scene.token_id = token.id;
    settle();
    must(a.came && a.r == 0);
    scene.service_id = s->id;
    for (size_t i = 0; i < REPLICAS; i++)
        scene.replica_ids[i] = replica_of(s, i)->id;
    return 0;
}

static void expand(const char *line, size_t len, struct strbuf *out)
{
    char id[UUID_TEXT_MAX];

    for (size_t i = 0; i < len; i++) {
        if (line[i] == '%')
            strbuf_adds(out, uuid_format(&scene.service_id, id));
        else if (line[i] == '$')
            strbuf_adds(out, uuid_format(&scene.token_id, id));
        else if (line[i] == '@' && i + 1 < len && line[i + 1] >= '0'
                 && line[i + 1] < '0' + REPLICAS)
            strbuf_adds(out, uuid_format(&scene.replica_ids[line[++i] - '0'], id));
        else
            strbuf_addc(out, line[i]);
    }
}

static void take_line(const char *line, size_t len)
{
    static const char *const proxies[PROXIES] = { "p-0", "p-1", "p-2" };
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    const char *proxy = proxies[(unsigned char)line[0] % PROXIES];
    struct message msg;

    expand(line + 1, len - 1, &body);
    if (message_decode(body.data, body.len, &msg, NULL) < 0)
        return;
    if (msg.type == MSG_SERVING_USE)
        serving_use_take(scene.use, proxy, &msg.serving_use);
    else if (msg.type == MSG_SERVING_DONE)
        serving_use_lose(scene.use, proxy);
    message_done(&msg);
}

static void check_figures(const struct serving_figures *f)
{
    must(f->in_flight >= 0 && f->queued >= 0 && f->arrived >= 0 && f->refused >= 0 && f->waited >= 0
         && f->queue_usec >= 0 && f->requests >= 0 && f->failures >= 0 && f->ok >= 0
         && f->client_errors >= 0 && f->server_errors >= 0 && f->broken >= 0
         && f->duration_usec >= 0 && f->first_byte_usec >= 0 && f->prompt_tokens >= 0
         && f->completion_tokens >= 0 && f->cached_tokens >= 0);
    for (size_t i = 0; i < LATENCY_BUCKETS; i++)
        must(f->durations[i] >= 0 && f->first_bytes[i] >= 0);
}

static void check_summary(const struct serving_summary *sum)
{
    check_figures(&sum->all);
    check_figures(&sum->recent);
    must(sum->per_second >= 0 && sum->tokens_per_second >= 0);
}

static void check_use(void)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf page = STRBUF_INIT;
    const struct uuid nobody = { .bytes = { 1 } };
    struct serving_token_figures of_token;
    struct serving_summary sum;

    serving_use_look(scene.use, &scene.service_id);
    (void)serving_use_tick(scene.use);
    serving_use_sum(scene.use, &scene.service_id, &sum);
    check_summary(&sum);
    serving_use_sum_revision(scene.use, &scene.service_id, 1, &sum);
    check_summary(&sum);
    serving_use_sum_revision(scene.use, &scene.service_id, 2, &sum);
    must(sum.all.requests == 0);
    for (size_t i = 0; i < REPLICAS; i++) {
        serving_use_sum_replica(scene.use, &scene.service_id, &scene.replica_ids[i], &sum);
        check_summary(&sum);
    }
    serving_use_sum_replica(scene.use, &scene.service_id, &nobody, &sum);
    must(sum.all.requests == 0);
    of_token = serving_use_get_token(scene.use, &scene.service_id, &scene.token_id);
    must(of_token.requests >= 0 && of_token.ok >= 0 && of_token.client_errors >= 0
         && of_token.server_errors >= 0 && of_token.refused >= 0 && of_token.prompt_tokens >= 0
         && of_token.cached_tokens >= 0 && of_token.completion_tokens >= 0);
    serving_use_write_metrics(scene.use, world.core, &page);
    must(page.len == 0 || page.data[page.len - 1] == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *line = (const char *)data, *end = line + size, *next;

    scene.use = serving_use_new(world.core);
    for (unsigned i = 0; i < LINES_MAX && line < end; i++, line = next + 1) {
        next = memchr(line, '\n', (size_t)(end - line));
        next = next ? next : end;
        if (next > line)
            take_line(line, (size_t)(next - line));
        if (next == end)
            break;
    }
    check_use();
    serving_use_free(scene.use);
    settle();
    return 0;
}
