/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - see program.h */
#include "front/program.h"

#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "front/identity.h"
#include "http/defer.h"
#include "http/exposition.h"
#include "http/tls.h"

#define EXIT_USAGE 2
#define EXIT_REFUSED 3 /* revoked: restarting would not help */
#define TOKEN_LINE_MAX 512
#define DRAIN_MSEC 10000

struct front_options {
    const char *config, *state, *listen, *own;
    const char *verb;
    char **args;
    int arg_count;
};

static void front_write_usage(const struct front_type *type, FILE *out)
{
    (void)fprintf(
        out,
        "usage: aliquot-%s [--config FILE] [--state FOLDER] [--listen ADDRESS]%s%s%s [run]\n"
        "       aliquot-%s [--config FILE] [--state FOLDER] join MANAGER[:PORT] TOKEN\n"
        "       aliquot-%s [--config FILE] [--state FOLDER] check [PART]\n"
        "       aliquot-%s --print-config | --version | --help\n"
        "\n"
        "join gets this %s's certificate with a one-time token ('aliquot agent token\n"
        "--%s NAME'); - reads it from standard input, where other users of the machine do\n"
        "not see it. run (the default) connects to the manager and %s.\n"
        "check is what 'aliquot doctor' runs; its one part is %s.\n",
        type->name, type->option ? " [--" : "", type->option ? type->option : "",
        type->option ? " VALUE]" : "", type->name, type->name, type->name, type->name, type->name,
        type->purpose, type->name);
}

/* ---- the end ---- */

static void front_close(void *data)
{
    struct front *front = data;

    front->grace = NULL;
    metrics_close(AQ_TAKE(front->metrics));
    front->type->close(front->self);
    link_client_free(AQ_TAKE(front->link));
    uv_close((uv_handle_t *)&front->terminated, NULL);
    uv_close((uv_handle_t *)&front->interrupted, NULL);
    uv_close((uv_handle_t *)&front->hangup, NULL);
    uv_close((uv_handle_t *)&front->watchdog, NULL);
}

void front_drained(struct front *front)
{
    defer_cancel(front->grace);
    front->grace = defer_call(&front->loop, 0, front_close, front);
}

static void front_stop(struct front *front)
{
    if (front->is_stopping)
        return;
    front->is_stopping = true;
    notify_send("STOPPING=1");
    front->grace = defer_call(&front->loop, DRAIN_MSEC, front_close, front);
    front->type->drain(front->self);
}

static void front_reload(struct front *front)
{
    struct aq_error err = { 0 };

    if (!front->tls)
        return;
    if (tls_context_reload(front->tls, &err) < 0)
        log_error("the certificate stays as it was: %s", err.text);
    else
        log_info("the certificate was read again");
}

static void front_on_signal(uv_signal_t *handle, int signum)
{
    struct front *front = handle->data;

    if (signum == SIGHUP) {
        front_reload(front);
        return;
    }
    if (!front->is_stopping)
        log_info("signal %d: %s", signum, front->type->draining);
    front_stop(front);
}

static void front_on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    notify_send("WATCHDOG=1");
}

/* ---- the manager ---- */

static void front_on_greet(void *data, struct msg_hello *hello)
{
    const struct front *front = data;

    hello->addr = front->settings->public_url;
    if (front->type->on_greet)
        front->type->on_greet(front->self, hello);
}

static void front_on_connected(void *data, const struct msg_welcome *welcome)
{
    const struct front *front = data;

    (void)welcome;
    log_info("connected to the manager at %s", link_client_address(front->link));
    if (front->type->on_connected)
        front->type->on_connected(front->self);
    notify_send("READY=1");
}

static void front_on_message(void *data, uint64_t seq, const struct message *msg)
{
    const struct front *front = data;

    front->type->on_message(front->self, msg);
    if (seq)
        link_client_ack(front->link, seq);
}

static void front_on_disconnected(void *data, const char *why)
{
    const struct front *front = data;

    log_info("no connection to the manager: %s", why);
    front->type->on_disconnected(front->self);
}

static void front_on_refused(void *data, const char *kind, const char *text)
{
    struct front *front = data;

    log_error("the manager refuses this %s (%s): %s", front->type->name, kind, text);
    front->status = EXIT_REFUSED;
    front_stop(front);
}

bool front_is_connected(const struct front *front)
{
    return front->link && link_client_is_connected(front->link);
}

int front_send(const struct front *front, const struct message *msg, struct aq_error *err)
{
    return front_is_connected(front) ? link_client_send(front->link, msg, err)
                                     : aq_fail(err, ENOTCONN, "the manager is away; try again");
}

static int front_on_epoch(void *data, int64_t epoch)
{
    const struct front *front = data;
    struct aq_error err = { 0 };
    int r = front_identity_keep_epoch(front->settings, epoch, &err);

    if (r < 0)
        log_error("cannot record epoch %lld, whose manager is not followed: %s", (long long)epoch,
                  err.text);
    return r;
}

static void front_on_managers(void *data, const struct link_manager *list, size_t count)
{
    const struct front *front = data;
    struct aq_error err = { 0 };

    if (front_identity_keep_managers(front->settings, list, count, &err) < 0)
        log_warning("cannot record the managers of the cluster: %s", err.text);
}

static int front_connect(struct front *front, const struct link_identity *identity,
                         struct aq_error *err)
{
    static const struct link_client_ops ops = {
        .on_greet = front_on_greet,
        .on_epoch = front_on_epoch,
        .on_managers = front_on_managers,
        .on_connected = front_on_connected,
        .on_message = front_on_message,
        .on_disconnected = front_on_disconnected,
        .on_refused = front_on_refused,
    };
    const struct link_client_conf conf = {
        .loop = &front->loop,
        .addresses = (const char *const *)identity->addresses.items,
        .address_count = identity->addresses.count,
        .is_fixed = identity->is_fixed,
        .epoch = identity->epoch,
        .ca = identity->ca,
        .cert = identity->cert,
        .key = identity->key,
        .agent_id = identity->id,
        .incarnation = uuid_random(),
    };

    return link_client_new(&conf, &ops, front, &front->link, err);
}

/* ---- running ---- */

static int front_serve_metrics(struct front *front, struct aq_error *err)
{
    const struct front_settings *s = front->settings;
    const struct metrics_conf conf = { .address = s->metrics_listen,
                                       .tls_cert = s->metrics_tls_cert,
                                       .tls_key = s->metrics_tls_key,
                                       .insecure = s->metrics_insecure,
                                       .write = front->type->write_metrics,
                                       .data = front->self };
    int r = metrics_listen(&front->loop, &conf, &front->metrics, err);

    if (r == -EADDRINUSE)
        log_warning("/metrics is not served: %s; [metrics] listen can be another address or off",
                    err->text);
    return r == -EADDRINUSE ? 0 : r;
}

static void front_watch(struct front *front, uv_signal_t *handle, int signum)
{
    (void)uv_signal_init(&front->loop, handle);
    handle->data = front;
    (void)uv_signal_start(handle, front_on_signal, signum);
}

static int front_prepare(struct front *front, struct aq_error *err)
{
    const struct front_settings *s = front->settings;
    const struct tls_options tls = { .is_server = true,
                                     .cert_file = s->tls_cert,
                                     .key_file = s->tls_key };
    int r = sodium_init() < 0 ? aq_fail(err, EINVAL, "libsodium does not start") : 0;

    if (r == 0 && s->tls_cert)
        r = tls_context_new(&tls, &front->tls, err);
    if (r == 0) {
        r = uv_loop_init(&front->loop);
        if (r < 0)
            r = aq_fail(err, -r, "cannot make an event loop: %s", uv_strerror(r));
    }
    if (r < 0)
        tls_context_free(front->tls);
    return r;
}

static int front_open(struct front *front, const struct link_identity *identity,
                      struct aq_error *err)
{
    uint64_t watchdog_msec = (uint64_t)(notify_watchdog_usec() / USEC_PER_MSEC);
    int r;

    front_watch(front, &front->terminated, SIGTERM);
    front_watch(front, &front->interrupted, SIGINT);
    front_watch(front, &front->hangup, SIGHUP);
    (void)uv_timer_init(&front->loop, &front->watchdog);
    if (watchdog_msec)
        (void)uv_timer_start(&front->watchdog, front_on_watchdog, watchdog_msec, watchdog_msec);
    r = front->type->open(front->self, front, front->settings, identity, err);
    if (r == 0)
        r = front_connect(front, identity, err);
    if (r == 0)
        r = front_serve_metrics(front, err);
    if (r < 0)
        front_close(front);
    return r;
}

static int front_run(const struct front_type *type, void *self, const void *settings,
                     struct aq_error *err)
{
    struct front front = { .type = type, .self = self, .settings = settings };
    struct link_identity identity;
    int r = front_identity_load(front.settings, &identity, err);

    if (r < 0)
        return r;
    r = front_prepare(&front, err);
    if (r < 0) {
        link_identity_done(&identity);
        return r;
    }
    r = front_open(&front, &identity, err);
    link_identity_done(&identity);
    (void)uv_run(&front.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&front.loop);
    tls_context_free(front.tls);
    return r < 0 ? r : front.status;
}

/* ---- the command line ---- */

/* '-' is on standard input: arguments are shown to every user of the machine. */
static int front_join(const struct front_type *type, const char *address, const char *token,
                      const struct front_settings *settings, struct aq_error *err)
{
    char line[TOKEN_LINE_MAX];
    int r;

    if (strcmp(token, "-") == 0) {
        if (!fgets(line, sizeof(line), stdin))
            return aq_fail(err, EINVAL, "standard input has no token");
        line[strcspn(line, "\r\n")] = '\0';
        token = line;
    }
    r = front_identity_join(settings, address, token, err);
    if (r == 0)
        log_info("joined as %s '%s'; certificates are in %s", type->name, settings->name,
                 settings->state);
    return r;
}

/* 0, or the status to exit with (-1 = success, but nothing more to do). */
static int front_parse_options(const struct front_type *type, int argc, char **argv,
                               struct front_options *ret)
{
    int i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        const char **place = strcmp(argv[i], "--config") == 0   ? &ret->config
                             : strcmp(argv[i], "--state") == 0  ? &ret->state
                             : strcmp(argv[i], "--listen") == 0 ? &ret->listen
                             : type->option && strncmp(argv[i], "--", 2) == 0
                                     && strcmp(argv[i] + 2, type->option) == 0
                                 ? &ret->own
                                 : NULL;

        if (strcmp(argv[i], "--version") == 0)
            return printf("aliquot-%s %s\n", type->name, ALIQUOT_VERSION) < 0 ? EXIT_FAILURE : -1;
        if (strcmp(argv[i], "--help") == 0) {
            front_write_usage(type, stdout);
            return ferror(stdout) ? EXIT_FAILURE : -1;
        }
        if (strcmp(argv[i], "--print-config") == 0) {
            AQ_CLEANUP(strbuf_donep) struct strbuf sample = STRBUF_INIT;

            conf_write_sample(type->items, &sample);
            return fputs(sample.data, stdout) < 0 ? EXIT_FAILURE : -1;
        }
        if (!place || i + 1 >= argc) {
            (void)fprintf(stderr, "aliquot-%s: what is '%s'?\n", type->name, argv[i]);
            front_write_usage(type, stderr);
            return EXIT_USAGE;
        }
        *place = argv[++i];
    }
    ret->verb = i < argc ? argv[i++] : "run";
    ret->args = argv + i;
    ret->arg_count = argc - i;
    return 0;
}

static int front_act(const struct front_type *type, void *self, const struct front_options *options,
                     void *settings, struct aq_error *err)
{
    const struct front_settings *common = settings;
    int level = log_parse_level(common->log_level);

    if (level < 0)
        return aq_fail(err, EINVAL, "log-level '%s' is none of error, warning, info, debug",
                       common->log_level);
    log_init(type->name, (enum log_level)level);
    if (strcmp(options->verb, "check") == 0)
        return checks_run(type->checks, settings, options->args, options->arg_count, stdout, err);
    return strcmp(options->verb, "join") == 0
               ? front_join(type, options->args[0], options->args[1], common, err)
               : front_run(type, self, settings, err);
}

static int front_set_own(const struct front_type *type, const char *value, void *settings,
                         struct aq_error *err)
{
    const struct conf_item *item = type->items;

    while (strcmp(item->key, type->option) != 0)
        item++;
    return conf_set(item, value, settings, err);
}

int front_main(const struct front_type *type, void *self, void *settings, int argc, char **argv)
{
    struct front_options options = { .config = NULL };
    struct aq_error err = { 0 };
    int r = front_parse_options(type, argc, argv, &options);

    if (r != 0)
        return r < 0 ? 0 : r;
    if (!(strcmp(options.verb, "run") == 0 && options.arg_count == 0)
        && !(strcmp(options.verb, "check") == 0 && options.arg_count <= 1)
        && !(strcmp(options.verb, "join") == 0 && options.arg_count == 2)) {
        front_write_usage(type, stderr);
        return EXIT_USAGE;
    }
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* secret keys would be in a core */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(type->mask);
    log_init(type->name, LOG_LEVEL_INFO);
    r = front_settings_load(type->name, type->items, options.config, options.state, options.listen,
                            type->settings_size, settings, &err);
    if (r == 0) {
        if (options.own)
            r = front_set_own(type, options.own, settings, &err);
        if (r == 0)
            r = type->finish ? type->finish(settings, &err) : 0;
        if (r == 0)
            r = front_act(type, self, &options, settings, &err);
        conf_done(type->items, settings);
    }
    if (r < 0)
        log_error("%s", err.text);
    return r < 0 ? 1 : r;
}
