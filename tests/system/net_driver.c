/* SPDX-License-Identifier: Apache-2.0 */
/* net-driver RUN IDENTITY POOL [deny=A] [allow=A] [dns=A] [rest=USEC] [ports=MIN-MAX]
 *            [cluster=MODE,AGENT,ADDRESS,PORT,STATE]
 *
 * Lines on standard input:  open KERNEL SESSION HOSTNAME [PORT...]
 *                           adopt KERNEL | sweep | close KERNEL | deny HOST | end
 *                           join KERNEL SESSION HOSTNAME NETWORK | rejoin (the same) |
 *                           leave KERNEL | session SESSION NETWORK | peers NETWORK
 * One JSON line on standard output for each, when it is done. At the end of
 * the input it ends without cleaning up, as if it was killed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/net/cluster.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/strbuf.h"

#define KERNELS_MAX 512

struct kernel {
    struct uuid id;
    struct net_endpoint *endpoint;
    struct cluster_member *member;
};

static uv_loop_t loop;
static struct net *net;
static struct cluster_networks *cluster;
static struct kernel kernels[KERNELS_MAX];
static uv_pipe_t input;
static struct strbuf line = STRBUF_INIT;
static unsigned waiting; /* answers to come */
static bool is_at_end;
static char *cluster_words;

static void print(struct strbuf *out)
{
    (void)printf("%s\n", out->data);
    (void)fflush(stdout);
    strbuf_done(out);
}

static void answer(const char *verb, const struct kernel *k, const struct aq_error *err)
{
    struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    char id[UUID_TEXT_MAX];

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "did", verb);
    if (k)
        jsonw_member_str(&w, "kernel", uuid_format(&k->id, id));
    if (err && err->code)
        jsonw_member_str(&w, "error", err->text);
    if (k && k->endpoint && !(err && err->code)) {
        const struct net_info *info = net_get_info(k->endpoint);

        jsonw_member_str(&w, "address", info->address);
        jsonw_member_str(&w, "ns", info->namespace_path);
        jsonw_member_str(&w, "hosts", info->hosts_path);
        jsonw_member_str(&w, "resolv", info->resolv_path);
        jsonw_key(&w, "ports");
        jsonw_object_begin(&w);
        for (size_t i = 0; i < info->port_count; i++) {
            char inside[8];

            (void)snprintf(inside, sizeof(inside), "%u", info->ports[i].inside);
            jsonw_member_int(&w, inside, info->ports[i].outside);
        }
        jsonw_object_end(&w);
    }
    jsonw_object_end(&w);
    print(&out);
}

static void leave_at_end(void)
{
    if (is_at_end && waiting == 0)
        _exit(0);
}

static void on_open(void *data, const struct aq_error *err)
{
    answer("open", data, err);
    waiting--;
    leave_at_end();
}

static void on_close(void *data, const struct aq_error *err)
{
    answer("close", data, err);
    waiting--;
    leave_at_end();
}

static struct kernel *find(const struct uuid *id)
{
    for (size_t i = 0; i < KERNELS_MAX; i++)
        if (uuid_equals(&kernels[i].id, id))
            return &kernels[i];
    for (size_t i = 0; i < KERNELS_MAX; i++)
        if (!kernels[i].endpoint) {
            kernels[i].id = *id;
            return &kernels[i];
        }
    abort();
}

static void open_kernel(char *words)
{
    struct net_request request = { .port_count = 0 };
    uint16_t ports[NET_PORTS_MAX + 1];
    struct aq_error err = { 0 };
    struct kernel *k;
    char *word;

    (void)uuid_parse(strtok(words, " "), &request.kernel_id);
    (void)uuid_parse(strtok(NULL, " "), &request.session_id);
    request.hostname = strtok(NULL, " ");
    while ((word = strtok(NULL, " ")))
        ports[request.port_count++] = (uint16_t)atoi(word);
    request.ports = ports;
    k = find(&request.kernel_id);
    if (net_open(net, &request, on_open, k, &k->endpoint, &err) < 0)
        answer("open", k, &err);
    else
        waiting++;
}

/* ---- the network between nodes ---- */

static void on_join(void *data, const struct aq_error *err)
{
    answer("join", data, err);
    waiting--;
    leave_at_end();
}

static void join(char *words, bool is_found)
{
    struct cluster_request request = { .is_found = is_found };
    struct aq_error err = { 0 };
    struct uuid id;
    struct kernel *k;

    (void)uuid_parse(strtok(words, " "), &id);
    (void)uuid_parse(strtok(NULL, " "), &request.session_id);
    request.hostname = strtok(NULL, " ");
    request.network = strtok(NULL, "");
    k = find(&id);
    if (cluster_open(cluster, &request, &k->member, &err) < 0) {
        answer("join", k, &err);
    } else if (is_found) {
        cluster_adopt(k->member, k->endpoint);
        answer("join", k, NULL);
    } else {
        waiting++;
        cluster_join(k->member, k->endpoint, on_join, k);
    }
}

static void set_session(char *words)
{
    struct aq_error err = { 0 };
    struct uuid id;

    (void)uuid_parse(strtok(words, " "), &id);
    (void)cluster_set_session(cluster, &id, strtok(NULL, ""), &err);
    answer("session", NULL, &err);
}

static void on_reach(void *data)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct str_list lists[2];
    struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    (void)data;
    cluster_list_reach(cluster, &arena, &lists[0], &lists[1]);
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "did", "reach");
    for (int i = 0; i < 2; i++) {
        jsonw_key(&w, i ? "unreachable" : "reachable");
        jsonw_array_begin(&w);
        for (size_t j = 0; j < lists[i].count; j++)
            jsonw_str(&w, lists[i].items[j]);
        jsonw_array_end(&w);
    }
    jsonw_object_end(&w);
    print(&out);
}

static void start_cluster(char *words)
{
    struct cluster_settings settings = { .mode = strtok(words, ",") };
    struct aq_error err = { 0 };

    settings.id = strtok(NULL, ",");
    settings.address = strtok(NULL, ",");
    settings.port = (uint16_t)atoi(strtok(NULL, ","));
    settings.state = strtok(NULL, ",");
    if (cluster_new(net, &settings, on_reach, NULL, &cluster, &err) < 0)
        answer("cluster", NULL, &err);
    else
        (void)printf("{\"did\":\"cluster\",\"offer\":%s}\n", cluster_get_offer(cluster));
    (void)fflush(stdout);
}

static bool handle_cluster(const char *verb, char *rest)
{
    struct aq_error err = { 0 };

    if (strcmp(verb, "join") == 0 || strcmp(verb, "rejoin") == 0) {
        join(rest, verb[0] == 'r');
    } else if (strcmp(verb, "session") == 0) {
        set_session(rest);
    } else if (strcmp(verb, "peers") == 0) {
        (void)cluster_set_peers(cluster, rest, &err);
        answer(verb, NULL, &err);
    } else {
        return false;
    }
    return true;
}

static void end(void)
{
    cluster_free(cluster);
    net_free(net);
    net = NULL;
    uv_close((uv_handle_t *)&input, NULL);
}

static void handle(char *text)
{
    char *space = strchr(text, ' '), *rest = space ? space + 1 : text + strlen(text);
    struct aq_error err = { 0 };
    struct kernel *k;
    struct uuid id;

    if (space)
        *space = '\0';
    if (handle_cluster(text, rest))
        return;
    if (strcmp(text, "open") == 0) {
        open_kernel(rest);
    } else if (strcmp(text, "sweep") == 0) {
        net_sweep(net);
        if (cluster)
            cluster_sweep(cluster);
        answer(text, NULL, NULL);
    } else if (strcmp(text, "deny") == 0) {
        net_deny(net, rest);
        answer(text, NULL, NULL);
    } else if (strcmp(text, "admit") == 0) {
        char *colon = strchr(rest, ':');

        *colon = '\0';
        net_admit_registry(net, rest, (uint16_t)atoi(colon + 1));
        answer(text, NULL, NULL);
    } else if (strcmp(text, "end") == 0) {
        end();
    } else if (uuid_parse(rest, &id) == 0) {
        k = find(&id);
        if (strcmp(text, "adopt") == 0) {
            (void)net_adopt(net, &id, &k->endpoint, &err);
            answer(text, k, &err);
        } else if (strcmp(text, "leave") == 0) {
            cluster_close(k->member);
            k->member = NULL;
            answer(text, k, NULL);
        } else if (strcmp(text, "close") == 0) {
            waiting++;
            net_close(k->endpoint, on_close, k);
            k->endpoint = NULL;
        }
    }
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    static char bytes[65536];

    (void)handle;
    (void)size;
    *buf = uv_buf_init(bytes, sizeof(bytes));
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    char *newline;

    (void)stream;
    if (got < 0) {
        is_at_end = true;
        (void)uv_read_stop(stream);
        leave_at_end();
        return;
    }
    strbuf_add(&line, buf->base, (size_t)got);
    while (net && (newline = strchr(line.data, '\n'))) {
        size_t len = (size_t)(newline - line.data);
        char *text = strndup(line.data, len);

        strbuf_consume(&line, len + 1);
        handle(text);
        free(text);
    }
}

int main(int argc, char **argv)
{
    const char *denied[] = { NULL, NULL }, *allowed[] = { NULL, NULL }, *dns[] = { NULL, NULL };
    struct net_settings settings = {
        .denied = denied,
        .allowed = allowed,
        .dns = dns,
        .port_min = NET_PORT_MIN,
        .port_max = NET_PORT_MAX,
        .port_rest_usec = NET_PORT_REST_USEC,
        .tunnel_port = NET_TUNNEL_PORT,
    };
    struct aq_error err = { 0 };

    if (argc < 4)
        return 2;
    log_init("net-driver", LOG_LEVEL_DEBUG);
    settings.run_dir = argv[1];
    settings.identity = argv[2];
    settings.pool = argv[3];
    for (int i = 4; i < argc; i++) {
        const char *value = strchr(argv[i], '=') + 1;

        if (argv[i][0] == 'd' && argv[i][1] == 'e')
            denied[0] = value;
        else if (argv[i][0] == 'd')
            dns[0] = value;
        else if (argv[i][0] == 'c')
            cluster_words = strchr(argv[i], '=') + 1;
        else if (argv[i][0] == 'a')
            allowed[0] = value;
        else if (argv[i][0] == 'm')
            settings.connections_max = atoll(value);
        else if (argv[i][0] == 'r')
            settings.port_rest_usec = atoll(value);
        else
            (void)sscanf(value, "%" SCNu16 "-%" SCNu16, &settings.port_min, &settings.port_max);
    }
    (void)uv_loop_init(&loop);
    if (net_new(&loop, &settings, &net, &err) < 0) {
        answer("start", NULL, &err);
        return 1;
    }
    (void)printf("{\"did\":\"start\",\"note\":\"%s\",\"pull_group\":%" PRIu32 "}\n",
                 net_get_note(net), net_get_pull_group(net));
    (void)fflush(stdout);
    if (cluster_words)
        start_cluster(cluster_words);
    (void)uv_pipe_init(&loop, &input, 0);
    (void)uv_pipe_open(&input, STDIN_FILENO);
    (void)uv_read_start((uv_stream_t *)&input, on_alloc, on_read);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    strbuf_done(&line);
    return 0;
}
