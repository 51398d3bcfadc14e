/* SPDX-License-Identifier: Apache-2.0 */
/* leader.c - see leader.h */
#include "manager/leader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_port.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/network.h"
#include "manager/account/account.h"
#include "manager/backup/plain_copy.h"
#include "manager/cluster/cluster.h"
#include "manager/etcd/etcd.h"
#include "manager/http_api.h"
#include "manager/login/login.h"
#include "manager/manager_identity.h"
#include "manager/metrics.h"
#include "manager/notification/notification.h"
#include "manager/redis/redis.h"
#include "manager/serving/serving.h"
#include "sched/plugin.h"

struct leader {
    const struct manager_conf *conf;
    struct core *core;
    struct api *api;
    struct server_app app;
    struct network *networks; /* that callbacks may reach, of conf */
    struct link_names names;
    bool is_stopped;
};

static int leader_open_core(struct leader *l, const struct leader_conf *lc, struct aq_error *err)
{
    const struct manager_conf *c = lc->conf;
    char address[HOST_PORT_MAX];
    struct core_conf conf = {
        .loop = lc->loop,
        .state_dir = c->state_dir,
        .database = c->database,
        .address = host_port_write(c->listen.host, c->listen.port, address),
        .claim = lc->claim,
        .epoch = lc->epoch,
        .ahead_usec = lc->ahead_usec,
        .lost = lc->lost,
        .on_http = lc->on_http,
        .on_http_data = lc->data,
        .lost_data = lc->data,
        .link_host = c->link.host,
        .link_port = lc->link_port,
        .heartbeat_usec = c->heartbeat_usec,
        .agent_timeout_usec = c->agent_timeout_usec,
        .cluster_pool = c->cluster_pool,
        .kill_grace_usec = c->kill_grace_usec,
        .attempts_age_usec = c->attempts_age_usec,
        .attempts_sessions = c->attempts_sessions,
        .session_bytes_max = c->session_bytes_max,
        .user_session_bytes_max = c->user_session_bytes_max,
        .array_size_max = c->array_size_max,
        .dev = lc->dev,
    };
    int r;

    link_names_split(c->link_names, &l->names);
    memcpy(conf.retention_usec, c->retention_usec, sizeof(conf.retention_usec));
    sched_plugin_set_folder(c->scheduler_plugins);
    conf.link_names = l->names.list;
    conf.link_name_count = l->names.count;
    if ((r = core_new(&conf, &l->core, err)) == 0)
        plain_copy_remove_leftovers(c->state_dir);
    return r < 0 ? r : core_start(l->core, err);
}

static int leader_read_networks(struct leader *l, struct aq_error *err)
{
    const struct conf_list *list = &l->conf->callback_networks;

    l->networks = aq_alloc_array(list->count + 1, sizeof(*l->networks));
    for (size_t i = 0; i < list->count; i++)
        if (network_parse(list->items[i], &l->networks[i]) < 0)
            return aq_fail_field(err, EINVAL, "api.callback-networks",
                                 "'%.60s' is not a network such as 10.20.0.0/16", list->items[i]);
    return 0;
}

static int leader_open_api(struct leader *l, const struct leader_conf *lc, struct aq_error *err)
{
    const struct manager_conf *c = lc->conf;
    const struct origin_rules origins = { .allowed = c->allow_origins.items,
                                          .count = c->allow_origins.count,
                                          .is_local = core_is_dev(l->core) };
    int r;

    if ((r = leader_read_networks(l, err)) < 0 || (r = api_new(l->core, &l->api, err)) < 0
        || (r = login_open_signup(l->api, &c->signup, err)) < 0
        || (r = serving_set_prometheus(l->api, &c->prometheus, err)) < 0)
        return r;
    /* Before Redis, from which the signatures of earlier requests are loaded. */
    api_set_remembered(l->api, (size_t)c->remembered_requests);
    if ((r = redis_open(l->api, &c->redis, err)) < 0 || (r = etcd_open(l->api, &c->etcd, err)) < 0)
        return r;
    api_set_proxies(l->api, lc->proxies);
    api_set_yield(l->api, lc->yield, lc->data);
    account_set_password_rules(l->api, &c->passwords);
    stream_set_transfer_limits(l->api, &c->transfer_limits);
    stream_set_ticket_lifetime(l->api, c->ticket_lifetime_usec);
    stream_set_execution_timeout(l->api, c->execution_timeout_usec);
    notification_allow(l->api, l->networks, c->callback_networks.count);
    if (origins.is_local && origins.count)
        log_warning(
            "ignoring [api] allow-origins with --dev: its keypairs are public, so web pages of "
            "other origins are refused");
    l->app = (struct server_app){ .router = api_get_router(l->api),
                                  .guard = api_guard,
                                  .recheck = api_guard_again,
                                  .name_peer = api_name_peer,
                                  .guard_data = l->api,
                                  .origins = cluster_set_origins(l->api, &origins) };
    return 0;
}

int leader_open(const struct leader_conf *conf, struct leader **ret, struct aq_error *err)
{
    struct leader *l = aq_alloc(sizeof(*l));
    int r;

    l->conf = conf->conf;
    if ((r = leader_open_core(l, conf, err)) == 0)
        r = leader_open_api(l, conf, err);
    if (r < 0) {
        leader_free(l);
        return r;
    }
    *ret = l;
    return 0;
}

const struct server_app *leader_get_app(const struct leader *l)
{
    return &l->app;
}

struct core *leader_get_core(const struct leader *l)
{
    return l->core;
}

void leader_write_metrics(const struct leader *l, const struct server *server, double turn_sec,
                          struct strbuf *out)
{
    metrics_write(l->api, server, turn_sec, out);
}

void leader_stop(struct leader *l)
{
    if (l->is_stopped)
        return;
    l->is_stopped = true;
    api_stop(l->api);
    core_stop(l->core);
    api_end_requests(l->api);
}

void leader_free(struct leader *l)
{
    if (!l)
        return;
    api_free(l->api);
    core_free(l->core);
    free(l->networks);
    link_names_done(&l->names);
    free(l);
}
