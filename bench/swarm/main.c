/* SPDX-License-Identifier: Apache-2.0 */
/* swarm - a thousand agents in one process
 *
 *     swarm --ca FOLDER --manager HOST:PORT [--manager HOST:PORT ...] [--nodes N] [--cores N]
 *           [--gpus N] [--prefix TEXT] [--start-msec N] [--journal FILE]
 *
 * FOLDER is the authority of the cluster (STATE/ca of its manager), which signs a certificate for
 * each node. Commands come as lines on standard input; each is answered by one line of JSON:
 *
 *     status            counts (struct swarm_counts)
 *     kernels           all kernels: [node, kernel, session, attempt, state]
 *     break N|all       cut so many connections, which nodes make again
 *     restart N|all     so many nodes are other processes from now on, with their kernels
 *     fail N            the next N kernels are rejected
 *     mute on|off       kernels are accepted and not started
 *     quit              end; so does the end of the input
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "swarm.h"

#define LINE_MAX_BYTES 4096
#define LEASE_CHECK_MSEC 1000

static struct swarm swarm;
static uv_timer_t lease_timer;
static uv_poll_t input;
static char line[LINE_MAX_BYTES];
static size_t line_len;

static _Noreturn void die(const char *what, const struct aq_error *err)
{
    (void)fprintf(stderr, "swarm: %s: %s\n", what, err->text);
    exit(1);
}

static _Noreturn void usage(void)
{
    (void)fputs("usage: swarm --ca FOLDER --manager HOST:PORT [--manager HOST:PORT ...] "
                "[--nodes N] [--cores N] [--gpus N] [--prefix TEXT] [--start-msec N] "
                "[--journal FILE]\n",
                stderr);
    exit(2);
}

/* ---- commands ---- */

static void answer_status(void)
{
    const struct swarm_counts *c = &swarm.counts;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    jsonw_object_begin(&w);
    jsonw_member_int(&w, "nodes", (int64_t)swarm.options.nodes);
    jsonw_member_int(&w, "connected", (int64_t)c->connected);
    jsonw_member_int(&w, "creating", (int64_t)c->creating);
    jsonw_member_int(&w, "running", (int64_t)c->running);
    jsonw_member_int(&w, "ending", (int64_t)c->ending);
    jsonw_member_int(&w, "ended", (int64_t)c->ended);
    jsonw_member_int(&w, "welcomes", (int64_t)c->welcomes);
    jsonw_member_int(&w, "losses", (int64_t)c->losses);
    jsonw_member_int(&w, "refusals", (int64_t)c->refusals);
    jsonw_member_int(&w, "starts", (int64_t)c->starts);
    jsonw_member_int(&w, "ends", (int64_t)c->ends);
    jsonw_member_int(&w, "repeats", (int64_t)c->repeats);
    jsonw_member_int(&w, "overlaps", (int64_t)c->overlaps);
    jsonw_member_int(&w, "rejected", (int64_t)c->rejected);
    jsonw_member_int(&w, "leases_over", (int64_t)c->leases_over);
    jsonw_member_str(&w, "refusal", swarm.refusal[0] ? swarm.refusal : NULL);
    jsonw_object_end(&w);
    (void)puts(text.data);
}

static void answer_kernels(void)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct msg_kernel_status status;
    char id[UUID_TEXT_MAX];

    jsonw_array_begin(&w);
    for (size_t n = 0; n < swarm.options.nodes; n++)
        for (size_t i = 0; i < swarm.nodes[n].kernels.count; i++) {
            swarm_kernel_describe(swarm.nodes[n].kernels.entries[i].value, &status);
            jsonw_array_begin(&w);
            jsonw_str(&w, swarm.nodes[n].id);
            jsonw_str(&w, uuid_format(&status.kernel_id, id));
            jsonw_str(&w, uuid_format(&status.session_id, id));
            jsonw_int(&w, status.attempt);
            jsonw_str(&w, msg_kernel_state_name(status.state));
            jsonw_array_end(&w);
        }
    jsonw_array_end(&w);
    (void)puts(text.data);
}

/* As a reset by the network would: neither side hears of it in good order. */
static size_t break_connections(size_t count)
{
    struct sockaddr_storage peer;
    struct rlimit files;
    size_t broken = 0;

    (void)getrlimit(RLIMIT_NOFILE, &files);
    for (int fd = 3; fd < (int)files.rlim_cur && broken < count; fd++) {
        socklen_t len = sizeof(peer);

        if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0
            && (peer.ss_family == AF_INET || peer.ss_family == AF_INET6))
            broken += shutdown(fd, SHUT_RDWR) == 0;
    }
    return broken;
}

static size_t restart_nodes(size_t count)
{
    struct aq_error err = { 0 };

    for (size_t i = 0; i < count; i++)
        if (node_restart(&swarm.nodes[i], &err) < 0)
            die("restarting a node", &err);
    return count;
}

static void set_mute(bool is_mute)
{
    swarm.is_mute = is_mute;
    for (size_t i = 0; i < swarm.options.nodes && !is_mute; i++)
        swarm_kernel_step_all(&swarm.nodes[i]);
}

static void handle_command(const char *text)
{
    const char *argument = strchr(text, ' ') ? strchr(text, ' ') + 1 : "";
    size_t len = strcspn(text, " ");
    size_t count = strcmp(argument, "all") == 0 ? swarm.options.nodes
                                                : strtoull(argument, NULL, 10);

    if (strcmp(text, "status") == 0) {
        answer_status();
    } else if (strcmp(text, "kernels") == 0) {
        answer_kernels();
    } else if (strcmp(text, "quit") == 0) {
        uv_stop(&swarm.loop);
    } else if (strncmp(text, "break", len) == 0) {
        (void)printf("%zu\n", break_connections(count));
    } else if (strncmp(text, "restart", len) == 0) {
        (void)printf("%zu\n", restart_nodes(AQ_MIN(count, swarm.options.nodes)));
    } else if (strncmp(text, "fail", len) == 0) {
        swarm.to_fail = (unsigned)count;
        (void)printf("%zu\n", count);
    } else if (strncmp(text, "mute", len) == 0) {
        set_mute(strcmp(argument, "on") == 0);
        (void)puts("true");
    } else {
        (void)fprintf(stderr, "swarm: unknown command '%s'\n", text);
        (void)puts("null");
    }
    (void)fflush(stdout);
}

static void on_input(uv_poll_t *poll, int status, int events)
{
    ssize_t n = status < 0 ? 0 : read(STDIN_FILENO, line + line_len, sizeof(line) - line_len - 1);
    char *end;

    (void)poll;
    (void)events;
    if (n <= 0) {
        uv_stop(&swarm.loop);
        return;
    }
    line_len += (size_t)n;
    line[line_len] = '\0';
    while ((end = strchr(line, '\n'))) {
        *end = '\0';
        handle_command(line);
        line_len -= (size_t)(end + 1 - line);
        memmove(line, end + 1, line_len + 1);
    }
    if (line_len == sizeof(line) - 1)
        line_len = 0; /* no command is so long */
}

static void on_lease_timer(uv_timer_t *timer)
{
    (void)timer;
    for (size_t i = 0; i < swarm.options.nodes; i++)
        swarm_kernel_check_leases(&swarm.nodes[i]);
}

/* ---- start ---- */

static size_t read_count(const char *text, size_t max)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*end || end == text || value > max)
        usage();
    return value;
}

static void read_options(int argc, char **argv, struct swarm_options *ret)
{
    static const struct option known[] = {
        { "ca", required_argument, NULL, 'c' },
        { "manager", required_argument, NULL, 'm' },
        { "nodes", required_argument, NULL, 'n' },
        { "cores", required_argument, NULL, 'p' },
        { "gpus", required_argument, NULL, 'g' },
        { "prefix", required_argument, NULL, 'x' },
        { "start-msec", required_argument, NULL, 's' },
        { "journal", required_argument, NULL, 'j' },
        { NULL, 0, NULL, 0 },
    };
    static const char *managers[16];
    int option;

    *ret = (struct swarm_options){ .nodes = 1000, .cores = 16, .prefix = "swarm-" };
    ret->managers = managers;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'c')
            ret->ca = optarg;
        else if (option == 'm' && strchr(optarg, ':') && ret->manager_count < AQ_COUNT(managers))
            managers[ret->manager_count++] = optarg;
        else if (option == 'n')
            ret->nodes = read_count(optarg, SWARM_NODES_MAX);
        else if (option == 'p')
            ret->cores = read_count(optarg, 1024);
        else if (option == 'g')
            ret->gpus = read_count(optarg, 64);
        else if (option == 'x' && strlen(optarg) < 32)
            ret->prefix = optarg;
        else if (option == 's')
            ret->start_usec = (int64_t)read_count(optarg, 3600000) * USEC_PER_MSEC;
        else if (option != 'j' || !(ret->journal = fopen(optarg, "ae")))
            usage();
    }
    if (!ret->ca || !ret->manager_count || !ret->nodes || !ret->cores || optind != argc)
        usage();
}

static void start(void)
{
    AQ_CLEANUP(pki_ca_freep) struct pki_ca *ca = NULL;
    struct slot_types *types = slot_types_new();
    struct aq_error err = { 0 };

    if (pki_ca_open(swarm.options.ca, &ca, &err) < 0)
        die("the authority", &err);
    swarm.ca_cert = aq_strdup(pki_ca_cert(ca));
    swarm.types = slot_types_merge(types, "cuda.shares", SLOT_COUNT, &err);
    slot_types_unref(types);
    swarm.nodes = aq_alloc_array(swarm.options.nodes, sizeof(*swarm.nodes));
    for (size_t i = 0; i < swarm.options.nodes; i++)
        if (node_init(&swarm.nodes[i], &swarm, i, ca, &err) < 0)
            die("a node", &err);
    (void)uv_timer_init(&swarm.loop, &lease_timer);
    (void)uv_timer_start(&lease_timer, on_lease_timer, LEASE_CHECK_MSEC, LEASE_CHECK_MSEC);
    (void)uv_poll_init(&swarm.loop, &input, STDIN_FILENO);
    (void)uv_poll_start(&input, UV_READABLE, on_input);
}

static void raise_file_limit(void)
{
    struct rlimit files;

    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

int main(int argc, char **argv)
{
    read_options(argc, argv, &swarm.options);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody can ask it any more */
    (void)signal(SIGPIPE, SIG_IGN);
    raise_file_limit();
    (void)uv_loop_init(&swarm.loop);
    start();
    (void)puts("\"ready\"");
    (void)fflush(stdout);
    (void)uv_run(&swarm.loop, UV_RUN_DEFAULT);
    for (size_t i = 0; i < swarm.options.nodes; i++)
        node_done(&swarm.nodes[i]);
    uv_close((uv_handle_t *)&lease_timer, NULL);
    uv_close((uv_handle_t *)&input, NULL);
    (void)uv_run(&swarm.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&swarm.loop);
    map_done(&swarm.running);
    map_done(&swarm.started);
    slot_types_unref(swarm.types);
    free(swarm.nodes);
    free(swarm.ca_cert);
    if (swarm.options.journal)
        (void)fclose(swarm.options.journal);
    return 0;
}
