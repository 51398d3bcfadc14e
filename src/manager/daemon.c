/* SPDX-License-Identifier: Apache-2.0 */
/* The manager as a service: core and HTTP server on one loop. */
#include "manager/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "base/fault.h"
#include "base/host_port.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/notify.h"
#include "base/trim.h"
#include "base/vec.h"
#include "http/exposition.h"
#include "http/network.h"
#include "http/tls.h"
#include "manager/account/account.h"
#include "manager/backup/plain_copy.h"
#include "manager/cluster/cluster.h"
#include "manager/core/core.h"
#include "manager/metrics.h"
#include "manager/http_api.h"
#include "manager/claim.h"
#include "manager/login/login.h"
#include "manager/notification/notification.h"
#include "manager/serving/serving.h"
#include "sched/plugin.h"

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
    struct core *core;
    struct api *api;
    struct server *server;
    struct tls_context *tls;
    struct metrics_server *metrics; /* NULL = not served */
    struct address_list proxies;
    struct network *networks; /* that callbacks may reach, as in conf */
    char *names;              /* link_names, cut at its commas */
    const char **name_list;
    size_t name_count, name_cap;
    bool is_stopping;
    struct leader_claim claim; /* name and addresses of this manager */
    struct aq_error lost;      /* why the database is not ours any more */
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
    api_stop(d->api);
    core_stop(d->core);
    api_end_requests(d->api);
    daemon_close_handles(d);
    uv_stop(&d->loop);
}

/* What others do in the database now is not known here: to be loaded again. */
static void daemon_on_database_lost(void *data, const struct aq_error *err)
{
    struct daemon *d = data;

    d->lost = *err;
    if (d->is_stopping)
        return;
    d->is_stopping = true;
    if (err->code != ERESTART)
        notify_send("STOPPING=1");
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

static void daemon_split_names(struct daemon *d)
{
    char *rest = NULL;

    d->names = aq_strdup(d->conf->link_names);
    for (char *name = d->names ? strtok_r(d->names, ", ", &rest) : NULL; name;
         name = strtok_r(NULL, ", ", &rest)) {
        vec_grow(&d->name_list, &d->name_cap, d->name_count + 1, sizeof(char *));
        d->name_list[d->name_count++] = name;
    }
}

static int daemon_open_core(struct daemon *d, bool dev, struct aq_error *err)
{
    const struct conf_listen *listen = &d->conf->listen;
    char address[HOST_PORT_MAX];
    struct core_conf conf = {
        .loop = &d->loop,
        .state_dir = d->conf->state_dir,
        .database = d->conf->database,
        .address = address,
        .lost = daemon_on_database_lost,
        .lost_data = d,
        .link_host = d->conf->link.host,
        .link_port = d->conf->link.port,
        .heartbeat_usec = d->conf->heartbeat_usec,
        .agent_timeout_usec = d->conf->agent_timeout_usec,
        .cluster_pool = d->conf->cluster_pool,
        .kill_grace_usec = d->conf->kill_grace_usec,
        .attempts_age_usec = d->conf->attempts_age_usec,
        .attempts_sessions = d->conf->attempts_sessions,
        .session_bytes_max = d->conf->session_bytes_max,
        .user_session_bytes_max = d->conf->user_session_bytes_max,
        .array_size_max = d->conf->array_size_max,
        .dev = dev,
        .claim = &d->claim,
    };
    int r = manager_claim_make(d->conf, &d->claim, err);

    if (r < 0)
        return r;
    daemon_split_names(d);
    memcpy(conf.retention_usec, d->conf->retention_usec, sizeof(conf.retention_usec));
    (void)host_port_write(listen->host, listen->port, address);
    sched_plugin_set_folder(d->conf->scheduler_plugins);
    conf.link_names = d->name_list;
    conf.link_name_count = d->name_count;
    if ((r = core_new(&conf, &d->core, err)) == 0)
        plain_copy_remove_leftovers(d->conf->state_dir);
    return r < 0 ? r : core_start(d->core, err);
}

/* In the settings, in the form in which they are compared. */
static int daemon_read_proxies(struct daemon *d, struct aq_error *err)
{
    const struct conf_list *list = &d->conf->trusted_proxies;

    for (size_t i = 0; i < list->count; i++) {
        char address[CLIENT_ADDRESS_MAX];

        if (address_normalize(list->items[i], strlen(list->items[i]), address) < 0)
            return aq_fail_field(err, EINVAL, "api.trusted-proxies",
                                 "'%.60s' is no address of a machine", list->items[i]);
        free(list->items[i]);
        list->items[i] = aq_strdup(address);
    }
    d->proxies = (struct address_list){ .items = list->items, .count = list->count };
    return 0;
}

static int daemon_read_networks(struct daemon *d, struct aq_error *err)
{
    const struct conf_list *list = &d->conf->callback_networks;

    d->networks = aq_alloc_array(list->count + 1, sizeof(*d->networks));
    for (size_t i = 0; i < list->count; i++)
        if (network_parse(list->items[i], &d->networks[i]) < 0)
            return aq_fail_field(err, EINVAL, "api.callback-networks",
                                 "'%.60s' is no network such as 10.20.0.0/16", list->items[i]);
    return 0;
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

static int daemon_open_server(struct daemon *d, struct aq_error *err)
{
    const char *host = d->conf->listen.host;
    char address[HOST_PORT_MAX], link[HOST_PORT_MAX];
    struct server_options options = {
        .app = { .guard = api_guard, .recheck = api_guard_again, .name_peer = api_name_peer }
    };
    struct listener_options listen = { .address = host_port_write(host, d->conf->listen.port,
                                                                  address),
                                       .insecure = d->conf->insecure };
    const struct origin_rules origins = { .allowed = d->conf->allow_origins.items,
                                          .count = d->conf->allow_origins.count,
                                          .is_local = core_is_dev(d->core) };
    struct listener *listener;
    int r = daemon_open_tls(d, err);

    if (r < 0 || (r = daemon_read_proxies(d, err)) < 0 || (r = daemon_read_networks(d, err)) < 0
        || (r = api_new(d->core, &d->api, err)) < 0
        || (r = login_open_signup(d->api, &d->conf->signup, err)) < 0
        || (r = serving_set_prometheus(d->api, &d->conf->prometheus, err)) < 0)
        return r;
    api_set_proxies(d->api, &d->proxies);
    account_set_password_rules(d->api, &d->conf->passwords);
    stream_set_transfer_limits(d->api, &d->conf->transfer_limits);
    stream_set_ticket_lifetime(d->api, d->conf->ticket_lifetime_usec);
    stream_set_execution_timeout(d->api, d->conf->execution_timeout_usec);
    notification_allow(d->api, d->networks, d->conf->callback_networks.count);
    api_set_remembered(d->api, (size_t)d->conf->remembered_requests);
    options.app.router = api_get_router(d->api);
    options.limits.message = message_limits_default;
    options.limits.message.body_max = BODY_MAX;
    options.app.origins = cluster_set_origins(d->api, &origins);
    if (origins.is_local && origins.count)
        log_warning("[api] allow-origins is not looked at with --dev: no web page may use keys "
                    "that everybody knows");
    options.app.guard_data = d->api;
    listen.tls = d->tls;
    d->server = server_new(&d->loop, &options);
    if ((r = server_listen(d->server, &listen, &listener, err)) < 0)
        return r;
    log_info("serving %s://%s, agents at %s", d->tls ? "https" : "http",
             host_port_write(host, listener_get_port(listener), address),
             host_port_write(d->conf->link.host, core_link_port(d->core), link));
    return 0;
}

static void daemon_write_metrics(void *data, struct strbuf *out)
{
    struct daemon *d = data;
    uint64_t longest = d->turn_longest;

    d->turn_longest = 0;
    metrics_write(d->api, d->server, (double)longest / 1e9, out);
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
    api_free(d->api);
    core_free(d->core);
    tls_context_free(d->tls);
    (void)uv_run(&d->loop, UV_RUN_DEFAULT); /* close the handles */
    free(d->networks);
    free(d->names);
    free(d->name_list);
}

int daemon_run(const struct manager_conf *conf, bool dev, struct aq_error *err)
{
    struct daemon d = { .conf = conf };
    int r;

    (void)signal(SIGPIPE, SIG_IGN);
    if (uv_loop_init(&d.loop) < 0)
        return aq_fail_oom(err);
    daemon_init_handles(&d);
    r = daemon_open_core(&d, dev, err);
    if (r == 0)
        r = daemon_open_server(&d, err);
    if (r == 0)
        r = daemon_open_metrics(&d, err);
    if (r == 0) {
        AQ_FAULT("manager.start.ready");
        notify_send("READY=1");
        (void)uv_timer_start(&d.trim, daemon_on_trim, TRIM_FIRST_MSEC, TRIM_MSEC);
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
