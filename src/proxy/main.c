/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-proxy - leads browsers to the apps of sessions */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "http/defer.h"
#include "http/exposition.h"
#include "proxy/check.h"
#include "proxy/port.h"

#define EXIT_USAGE 2
#define EXIT_REFUSED 3 /* revoked: restarting would not help */
#define TOKEN_LINE_MAX 512
#define DRAIN_MSEC 10000

static const char usage[] =
    "usage: aliquot-proxy [--config FILE] [--state FOLDER] [--listen ADDRESS] [run]\n"
    "       aliquot-proxy [--config FILE] [--state FOLDER] join MANAGER[:PORT] TOKEN\n"
    "       aliquot-proxy [--config FILE] [--state FOLDER] check [PART]\n"
    "       aliquot-proxy --print-config | --version | --help\n"
    "\n"
    "join gets this proxy's certificate with a one-time token ('aliquot agent token\n"
    "--proxy NAME'); - reads it from standard input, where other users of the machine do\n"
    "not see it. run (the default) connects to the manager and leads browsers to apps.\n"
    "check is what 'aliquot doctor' runs; its one part is proxy.\n";

struct proxy_options {
    const char *config, *state, *listen;
    const char *verb;
    char **args;
    int arg_count;
};

struct proxy_program {
    uv_loop_t loop;
    uv_signal_t terminated, interrupted, hangup;
    uv_timer_t watchdog;
    struct proxy proxy;
    struct metrics_server *metrics;
    struct defer *grace; /* while draining */
    bool is_stopping;
    int status;
};

static void main_close(void *data)
{
    struct proxy_program *program = data;

    program->grace = NULL;
    metrics_close(AQ_TAKE(program->metrics));
    proxy_close(&program->proxy);
    uv_close((uv_handle_t *)&program->terminated, NULL);
    uv_close((uv_handle_t *)&program->interrupted, NULL);
    uv_close((uv_handle_t *)&program->hangup, NULL);
    uv_close((uv_handle_t *)&program->watchdog, NULL);
}

static void main_on_drained(void *data)
{
    struct proxy_program *program = data;

    defer_cancel(program->grace);
    program->grace = defer_call(&program->loop, 0, main_close, program);
}

static void main_stop(struct proxy_program *program)
{
    if (program->is_stopping)
        return;
    program->is_stopping = true;
    notify_send("STOPPING=1");
    program->grace = defer_call(&program->loop, DRAIN_MSEC, main_close, program);
    proxy_drain(&program->proxy, main_on_drained, program);
}

static void main_on_signal(uv_signal_t *handle, int signum)
{
    struct proxy_program *program = handle->data;

    if (signum == SIGHUP) {
        proxy_reload(&program->proxy);
        return;
    }
    if (!program->is_stopping)
        log_info("signal %d: no more connections are taken", signum);
    main_stop(program);
}

static void main_on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    notify_send("WATCHDOG=1");
}

static void main_on_connected(void *data)
{
    (void)data;
    notify_send("READY=1");
}

static void main_on_refused(void *data, const char *kind, const char *text)
{
    struct proxy_program *program = data;

    log_error("the manager refuses this proxy (%s): %s", kind, text);
    program->status = EXIT_REFUSED;
    main_stop(program);
}

static void main_on_denied(void *data, const struct uuid *request_id, const char *text)
{
    struct proxy_program *program = data;

    ports_on_denied(&program->proxy, request_id, text);
}

static int main_serve_metrics(struct proxy_program *program, const struct settings *s,
                              struct aq_error *err)
{
    const struct metrics_conf conf = { .address = s->metrics_listen,
                                       .tls_cert = s->metrics_tls_cert,
                                       .tls_key = s->metrics_tls_key,
                                       .insecure = s->metrics_insecure,
                                       .write = proxy_write_metrics,
                                       .data = &program->proxy };
    int r = metrics_listen(&program->loop, &conf, &program->metrics, err);

    if (r == -EADDRINUSE)
        log_warning("/metrics is not served: %s; [metrics] listen can be another address or off",
                    err->text);
    return r == -EADDRINUSE ? 0 : r;
}

static void main_watch(struct proxy_program *program, uv_signal_t *handle, int signum)
{
    (void)uv_signal_init(&program->loop, handle);
    handle->data = program;
    (void)uv_signal_start(handle, main_on_signal, signum);
}

static int main_run(const struct settings *settings, struct aq_error *err)
{
    static const struct manager_events events = { .on_connected = main_on_connected,
                                                  .on_refused = main_on_refused,
                                                  .on_denied = main_on_denied };
    uint64_t watchdog_msec = (uint64_t)(notify_watchdog_usec() / USEC_PER_MSEC);
    struct proxy_program program = { .status = 0 };
    struct link_identity identity;
    int r = identity_load(settings, &identity, err);

    if (r < 0)
        return r;
    if (uv_loop_init(&program.loop) < 0) {
        link_identity_done(&identity);
        return aq_fail_oom(err);
    }
    main_watch(&program, &program.terminated, SIGTERM);
    main_watch(&program, &program.interrupted, SIGINT);
    main_watch(&program, &program.hangup, SIGHUP);
    (void)uv_timer_init(&program.loop, &program.watchdog);
    if (watchdog_msec)
        (void)uv_timer_start(&program.watchdog, main_on_watchdog, watchdog_msec, watchdog_msec);
    r = proxy_open(&program.proxy, &program.loop, settings, &identity, &events, &program, err);
    if (r == 0)
        r = main_serve_metrics(&program, settings, err);
    if (r < 0)
        main_close(&program);
    link_identity_done(&identity);
    (void)uv_run(&program.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&program.loop);
    return r < 0 ? r : program.status;
}

/* '-' is on standard input: arguments are shown to every user of the machine. */
static int main_join(const char *address, const char *token, const struct settings *settings,
                     struct aq_error *err)
{
    char line[TOKEN_LINE_MAX];
    int r;

    if (strcmp(token, "-") == 0) {
        if (!fgets(line, sizeof(line), stdin))
            return aq_fail(err, EINVAL, "standard input has no token");
        line[strcspn(line, "\r\n")] = '\0';
        token = line;
    }
    r = identity_join(settings, address, token, err);
    if (r == 0)
        log_info("joined as proxy '%s'; certificates are in %s", settings->name, settings->state);
    return r;
}

/* 0, or the status to exit with (-1 = success, but nothing more to do). */
static int main_parse_options(int argc, char **argv, struct proxy_options *ret)
{
    int i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        const char **place = strcmp(argv[i], "--config") == 0   ? &ret->config
                             : strcmp(argv[i], "--state") == 0  ? &ret->state
                             : strcmp(argv[i], "--listen") == 0 ? &ret->listen
                                                                : NULL;

        if (strcmp(argv[i], "--version") == 0)
            return printf("aliquot-proxy %s\n", ALIQUOT_VERSION) < 0 ? EXIT_FAILURE : -1;
        if (strcmp(argv[i], "--help") == 0)
            return fputs(usage, stdout) < 0 ? EXIT_FAILURE : -1;
        if (strcmp(argv[i], "--print-config") == 0) {
            AQ_CLEANUP(strbuf_donep) struct strbuf sample = STRBUF_INIT;

            conf_write_sample(settings_items, &sample);
            return fputs(sample.data, stdout) < 0 ? EXIT_FAILURE : -1;
        }
        if (!place || i + 1 >= argc) {
            (void)fprintf(stderr, "aliquot-proxy: what is '%s'?\n%s", argv[i], usage);
            return EXIT_USAGE;
        }
        *place = argv[++i];
    }
    ret->verb = i < argc ? argv[i++] : "run";
    ret->args = argv + i;
    ret->arg_count = argc - i;
    return 0;
}

static int main_act(const struct proxy_options *options, const struct settings *settings,
                    struct aq_error *err)
{
    int level = log_parse_level(settings->log_level);

    if (level < 0)
        return aq_fail(err, EINVAL, "log-level '%s' is none of error, warning, info, debug",
                       settings->log_level);
    log_init("proxy", (enum log_level)level);
    if (strcmp(options->verb, "check") == 0)
        return proxy_check(settings, options->args, options->arg_count, err);
    return strcmp(options->verb, "join") == 0
               ? main_join(options->args[0], options->args[1], settings, err)
               : main_run(settings, err);
}

int main(int argc, char **argv)
{
    struct proxy_options options = { .config = NULL };
    struct settings settings;
    struct aq_error err = { 0 };
    int r = main_parse_options(argc, argv, &options);

    if (r != 0)
        return r < 0 ? 0 : r;
    if (!(strcmp(options.verb, "run") == 0 && options.arg_count == 0)
        && !(strcmp(options.verb, "check") == 0 && options.arg_count <= 1)
        && !(strcmp(options.verb, "join") == 0 && options.arg_count == 2)) {
        (void)fputs(usage, stderr);
        return EXIT_USAGE;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(077);
    log_init("proxy", LOG_LEVEL_INFO);
    r = settings_load(options.config, options.state, options.listen, &settings, &err);
    if (r == 0) {
        r = main_act(&options, &settings, &err);
        settings_done(&settings);
    }
    if (r < 0)
        log_error("%s", err.text);
    return r < 0 ? 1 : r;
}
