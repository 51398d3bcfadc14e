/* SPDX-License-Identifier: Apache-2.0 */
/* The manager as a service: its loop, signals, HTTP server and /metrics; lead.h has the rest. */
#include "manager/daemon.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <uv.h>

#include "base/fault.h"
#include "base/host_port.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/notify.h"
#include "base/trim.h"
#include "http/exposition.h"
#include "http/tls.h"
#include "manager/claim.h"
#include "manager/lead.h"

#define BODY_MAX (512 << 10) /* of routes that say nothing else: it is parsed in one turn */
#define STOP_GRACE_MSEC 5000
#define TRIM_MSEC 60000
#define TRIM_FIRST_MSEC 10000 /* when agents have come back */

struct daemon {
    const struct manager_conf *conf;
    uv_loop_t loop;
    uv_signal_t interrupted, terminated;
    uv_timer_t watchdog, trim;
    uv_check_t turn;
    uint64_t turn_began, turn_longest; /* processor time of the loop's thread, ns */
    struct leader_claim claim;         /* as others see this manager */
    struct lead *lead;
    struct server *server;
    struct tls_context *tls;
    struct metrics_server *metrics; /* NULL = not served */
    bool is_stopping;
    struct aq_error lost; /* why this manager may not go on */
};

/* ---- the end ---- */

static void daemon_close_handles(struct daemon *d)
{
    uv_close((uv_handle_t *)&d->interrupted, NULL);
    uv_close((uv_handle_t *)&d->terminated, NULL);
    uv_close((uv_handle_t *)&d->watchdog, NULL);
    uv_close((uv_handle_t *)&d->trim, NULL);
    uv_close((uv_handle_t *)&d->turn, NULL);
}

static void daemon_on_server_stopped(void *data)
{
    struct daemon *d = data;

    AQ_FAULT("manager.stop.drained");
    metrics_close(AQ_TAKE(d->metrics));
    lead_stop(d->lead);
    daemon_close_handles(d);
    uv_stop(&d->loop);
}

static void daemon_on_lost(void *data, const struct aq_error *err)
{
    struct daemon *d = data;

    d->lost = *err;
    if (d->is_stopping)
        return;
    d->is_stopping = true;
    if (err->code != ERESTART)
        notify_send("STOPPING=1");
    lead_prepare_stop(d->lead);
    server_stop(d->server, STOP_GRACE_MSEC, daemon_on_server_stopped, d);
}

static void daemon_on_signal(uv_signal_t *handle, int number)
{
    struct daemon *d = handle->data;

    if (d->is_stopping)
        return;
    d->is_stopping = true;
    log_info("stopping on signal %d", number);
    notify_send("STOPPING=1");
    lead_prepare_stop(d->lead);
    server_stop(d->server, STOP_GRACE_MSEC, daemon_on_server_stopped, d);
}

static void daemon_on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    notify_send("WATCHDOG=1");
}

/* What bursts of requests and the start itself leave behind goes back. */
static void daemon_on_trim(uv_timer_t *timer)
{
    (void)timer;
    memory_trim();
}

static void daemon_on_turn(uv_check_t *check)
{
    struct daemon *d = check->data;
    struct timespec now = { 0 };
    uint64_t ns;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    if (d->turn_began)
        d->turn_longest = AQ_MAX(d->turn_longest, ns - d->turn_began);
    d->turn_began = ns;
}

/* ---- the beginning ---- */

static void daemon_on_ready(void *data)
{
    struct daemon *d = data;

    AQ_FAULT("manager.start.ready");
    notify_send("READY=1");
    (void)uv_timer_start(&d->trim, daemon_on_trim, TRIM_FIRST_MSEC, TRIM_MSEC);
}

static int daemon_open_tls(struct daemon *d, struct aq_error *err)
{
    const struct tls_options options = { .is_server = true,
                                         .cert_file = d->conf->tls_cert,
                                         .key_file = d->conf->tls_key };

    if (!d->conf->tls_cert && !d->conf->tls_key)
        return 0;
    if (!d->conf->tls_cert || !d->conf->tls_key)
        return aq_fail_field(err, EINVAL, "manager.tls-cert",
                             "tls-cert and tls-key belong together: set both or neither");
    return tls_context_new(&options, &d->tls, err);
}

static int daemon_listen(struct daemon *d, struct aq_error *err)
{
    const char *host = d->conf->listen.host;
    char address[HOST_PORT_MAX], link[HOST_PORT_MAX];
    const struct listener_options listen = {
        .address = host_port_write(host, d->conf->listen.port, address),
        .insecure = d->conf->insecure,
        .tls = d->tls,
    };
    struct listener *listener;
    int r = server_listen(d->server, &listen, &listener, err);

    if (r < 0)
        return r;
    log_info("serving %s://%s, agents at %s", d->tls ? "https" : "http",
             host_port_write(host, listener_get_port(listener), address),
             host_port_write(d->conf->link.host, lead_get_link_port(d->lead), link));
    return 0;
}

static int daemon_open_server(struct daemon *d, bool dev, struct aq_error *err)
{
    struct server_options options = { .limits.message = message_limits_default };
    struct lead_conf conf = { .loop = &d->loop,
                              .conf = d->conf,
                              .claim = &d->claim,
                              .dev = dev,
                              .on_ready = daemon_on_ready,
                              .on_lost = daemon_on_lost,
                              .data = d };
    int r;

    if ((r = daemon_open_tls(d, err)) < 0 || (r = manager_claim_make(d->conf, &d->claim, err)) < 0)
        return r;
    options.limits.message.body_max = BODY_MAX;
    conf.server = d->server = server_new(&d->loop, &options);
    if ((r = lead_start(&conf, &d->lead, err)) < 0)
        return r;
    return daemon_listen(d, err);
}

static void daemon_write_metrics(void *data, struct strbuf *out)
{
    struct daemon *d = data;
    uint64_t longest = d->turn_longest;

    d->turn_longest = 0;
    lead_write_metrics(d->lead, (double)longest / 1e9, out);
}

/* An address in use is no reason not to serve sessions. */
static int daemon_open_metrics(struct daemon *d, struct aq_error *err)
{
    const struct metrics_conf conf = {
        .address = d->conf->metrics_listen,
        .tls_cert = d->conf->metrics_tls_cert,
        .tls_key = d->conf->metrics_tls_key,
        .insecure = d->conf->metrics_insecure,
        .write = daemon_write_metrics,
        .data = d,
    };
    int r = metrics_listen(&d->loop, &conf, &d->metrics, err);

    if (r == -EADDRINUSE) {
        log_warning("/metrics is not served: %s; [metrics] listen can be another address or off",
                    err->text);
        return 0;
    }
    if (r == 0 && d->metrics)
        log_info("serving /metrics on port %u", (unsigned)metrics_port(d->metrics));
    return r;
}

static void daemon_init_handles(struct daemon *d)
{
    int64_t watchdog = notify_watchdog_usec() / 1000;

    (void)uv_signal_init(&d->loop, &d->interrupted);
    (void)uv_signal_init(&d->loop, &d->terminated);
    (void)uv_timer_init(&d->loop, &d->watchdog);
    (void)uv_timer_init(&d->loop, &d->trim);
    (void)uv_check_init(&d->loop, &d->turn);
    d->turn.data = d;
    (void)uv_check_start(&d->turn, daemon_on_turn);
    uv_unref((uv_handle_t *)&d->turn);
    d->interrupted.data = d->terminated.data = d;
    (void)uv_signal_start(&d->interrupted, daemon_on_signal, SIGINT);
    (void)uv_signal_start(&d->terminated, daemon_on_signal, SIGTERM);
    if (watchdog > 0)
        (void)uv_timer_start(&d->watchdog, daemon_on_watchdog, 0, (uint64_t)watchdog);
}

static void daemon_close_all(struct daemon *d)
{
    if (!d->is_stopping)
        daemon_close_handles(d);
    metrics_close(AQ_TAKE(d->metrics));
    server_free(d->server);
    lead_free(d->lead);
    tls_context_free(d->tls);
    (void)uv_run(&d->loop, UV_RUN_DEFAULT); /* close the handles */
}

int daemon_run(const struct manager_conf *conf, bool dev, struct aq_error *err)
{
    struct daemon d = { .conf = conf };
    int r;

    (void)signal(SIGPIPE, SIG_IGN);
    if (uv_loop_init(&d.loop) < 0)
        return aq_fail_oom(err);
    daemon_init_handles(&d);
    r = daemon_open_server(&d, dev, err);
    if (r == 0)
        r = daemon_open_metrics(&d, err);
    if (r == 0) {
        (void)uv_run(&d.loop, UV_RUN_DEFAULT);
        log_info("stopped");
        if (d.lost.code) {
            *err = d.lost;
            r = -err->code;
        }
    }
    daemon_close_all(&d);
    (void)uv_loop_close(&d.loop);
    return r;
}
