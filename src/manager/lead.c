/* SPDX-License-Identifier: Apache-2.0 */
/* lead.c - see lead.h */
#include "manager/lead.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/notify.h"
#include "http/defer.h"
#include "http/exposition.h"
#include "manager/call/manager_health.h"
#include "manager/forward/forward.h"
#include "manager/http_api.h"
#include "manager/election.h"
#include "manager/leader.h"
#include "manager/standby.h"
#include "manager/lead_watch.h"
#include "manager/metrics.h"
#include "store/store.h"

/* For requests to finish before the lead is given up; those that last longer are cut, and their
 * clients reconnect.
 */
#define YIELD_GRACE_MSEC 300
/* After this leader_stop() ends requests whose clients have disconnected. */
#define YIELD_CUT_MSEC 500

enum lead_role { LEAD_WAITING, LEAD_STANDBY, LEAD_LEADER, LEAD_YIELDING };

struct lead {
    struct lead_conf conf;
    enum lead_role role;
    uint16_t link_port;
    struct leader *leader;       /* NULL = does not lead */
    struct address_list proxies; /* trusted */
    bool is_ready, is_lost, is_stopping;
    /* The members below are used only with the database on a server. */
    int lock_fd;
    struct manager_identity identity;
    struct router *router;        /* requests answered here while it does not lead */
    struct router *answered_once; /* the API's rows of API_ANSWERED_ONCE */
    struct forward *forward;
    struct standby *standby; /* NULL = it leads */
    struct lead_watch *watch;
    struct election election;
    struct leader_view view; /* the last one read */
    bool is_taking, is_seen, is_away;
    struct defer *later; /* of a change of role, or of on_lost() */
    struct defer *cut;   /* lead_on_cut() */
    struct aq_error lost;
};

static void lead_on_ready(struct lead *lead)
{
    if (!lead->is_ready)
        lead->conf.on_ready(lead->conf.data);
    lead->is_ready = true;
}

/* With a database in a file, the manager leads from lead_start() on, which must not call back. */
static void lead_on_ready_later(void *data)
{
    struct lead *lead = data;

    lead->later = NULL;
    lead_on_ready(lead);
}

static void lead_on_lost_later(void *data)
{
    struct lead *lead = data;

    lead->later = NULL;
    lead->conf.on_lost(lead->conf.data, &lead->lost);
}

/* The state in memory may differ from the database by now: a new process has to load it. */
static void lead_on_lost(void *data, const struct aq_error *err)
{
    struct lead *lead = data;

    if (lead->is_lost || lead->is_stopping)
        return;
    lead->is_lost = true;
    lead->lost = *err;
    defer_cancel(lead->later);
    lead->later = defer_call(lead->conf.loop, 0, lead_on_lost_later, lead);
}

/* ---- leading ---- */

static int lead_yield(void *data, const char *to, struct aq_error *err);

static void lead_on_http(void *data, struct stream *stream, struct strbuf *first, const char *peer)
{
    struct lead *lead = data;

    log_debug("accepted a connection for requests from '%s'", peer);
    server_adopt(lead->conf.server, stream, first->data, first->len);
}

static int lead_open_leader(struct lead *lead, int64_t epoch, struct aq_error *err)
{
    const struct leader_conf conf = {
        .loop = lead->conf.loop,
        .conf = lead->conf.conf,
        .claim = lead->conf.claim,
        .epoch = epoch,
        .ahead_usec = lead->view.ahead_usec,
        .proxies = &lead->proxies,
        .link_port = lead->link_port,
        .dev = lead->conf.dev,
        .lost = lead_on_lost,
        .on_http = lead_on_http,
        .yield = lead->watch ? lead_yield : NULL,
        .data = lead,
    };
    int r = leader_open(&conf, &lead->leader, err);

    if (r < 0)
        return r;
    lead->role = LEAD_LEADER;
    lead->link_port = core_link_port(leader_get_core(lead->leader));
    server_set_app(lead->conf.server, leader_get_app(lead->leader));
    return 0;
}

static void lead_begin(struct lead *lead, int64_t epoch)
{
    struct aq_error err = { 0 };
    int r;

    lead_watch_pause(lead->watch, true);
    standby_free(AQ_TAKE(lead->standby));
    notify_extend_watchdog(true);
    r = lead_open_leader(lead, epoch, &err);
    notify_extend_watchdog(false);
    if (r < 0) {
        lead_on_lost(lead, &err);
        return;
    }
    AQ_FAULT("lead.begun");
    forward_set_leader(lead->forward, NULL);
    forward_release(lead->forward);
    log_info("this manager, '%s', now leads; epoch %lld", lead->conf.claim->name,
             (long long)store_get_epoch(core_store(leader_get_core(lead->leader))));
    lead_on_ready(lead);
}

/* ---- standing by ---- */

static int lead_open_standby(struct lead *lead, struct aq_error *err)
{
    const struct standby_conf conf = {
        .loop = lead->conf.loop,
        .conf = lead->conf.conf,
        .identity = &lead->identity,
        .claim = lead->conf.claim,
        .link_port = lead->link_port,
        .on_refused = lead_on_lost,
        .data = lead,
    };
    int r = standby_open(&conf, &lead->standby, err);

    if (r == 0)
        lead->link_port = standby_get_link_port(lead->standby);
    return r;
}

/* Follow the leader of 'view', or wait if it has none. */
static void lead_follow(struct lead *lead, const struct leader_view *view)
{
    const char *link = view->is_held && view->holder.link[0] ? view->holder.link : NULL;

    standby_set_leader(lead->standby, link);
    forward_set_leader(lead->forward, link);
    lead->role = link ? LEAD_STANDBY : LEAD_WAITING;
    if (link)
        lead_on_ready(lead);
}

static void lead_on_view(void *data, const struct leader_view *view, bool is_new)
{
    struct lead *lead = data;
    int64_t now = clock_monotonic_usec();

    if (lead->is_away)
        log_info("the database can be reached again");
    lead->is_seen = true;
    lead->is_away = false;
    lead->view = *view;
    if (lead->is_taking || lead->is_lost || lead->is_stopping || !lead->standby)
        return;
    if (!election_see(&lead->election, view, is_new, now)) {
        if (election_note_held_up(&lead->election, view, now))
            log_warning("the leader '%s' at %s is silent and is not replaced: the database server "
                        "is at work on its transaction; it is slow, waits for a lock, or for a "
                        "standby of its own",
                        view->holder.name, view->holder.link);
        lead_follow(lead, view);
        return;
    }
    if (view->is_held)
        log_warning("the leader '%s' at %s has stopped committing; taking the lead",
                    view->holder.name, view->holder.link);
    lead->is_taking = true;
    lead->role = LEAD_WAITING;
    /* A leader that is only cut off from the database sees by this that it may be replaced. */
    standby_set_leader(lead->standby, NULL);
    forward_set_leader(lead->forward, NULL);
    lead_watch_take(lead->watch, view, lead->conf.claim);
}

static void lead_on_error(void *data, int r, const struct aq_error *err)
{
    struct lead *lead = data;

    if (lead->is_taking || lead->is_lost || lead->is_stopping || !lead->standby)
        return;
    if (r == -ENODATA && !lead->is_seen) {
        lead_begin(lead, 0); /* a new cluster */
    } else if (!lead->is_seen) {
        lead_on_lost(lead, err);
    } else if (!lead->is_away) {
        lead->is_away = true;
        log_warning("cannot read from the database which manager leads: %s", err->text);
    }
}

static void lead_on_taken(void *data, int r, int64_t epoch, const struct aq_error *err)
{
    struct lead *lead = data;

    lead->is_taking = false;
    if (lead->is_lost || lead->is_stopping)
        return;
    if (r == 0) {
        lead_begin(lead, epoch);
    } else if (r == -ESTALE || r == -EBUSY || r == -EHOSTDOWN || lead->is_ready) {
        if (election_refuse(&lead->election, -r, clock_monotonic_usec()))
            log_warning("cannot take the lead: %s", err->text);
    } else {
        lead_on_lost(lead, err); /* a permanent error */
    }
}

/* ---- giving the lead up ---- */

static void lead_on_drained(void *data)
{
    struct lead *lead = data;
    struct aq_error err = { 0 };

    defer_cancel(AQ_TAKE(lead->cut));
    if (lead->is_lost || lead->is_stopping)
        return;
    AQ_FAULT("lead.drained");
    notify_extend_watchdog(true);
    leader_stop(lead->leader);
    leader_free(AQ_TAKE(lead->leader));
    notify_extend_watchdog(false);
    AQ_FAULT("lead.yielded");
    log_info("this manager, '%s', has yielded the lead", lead->conf.claim->name);
    election_abstain(&lead->election, clock_monotonic_usec());
    lead->role = LEAD_WAITING;
    if (lead_open_standby(lead, &err) < 0)
        lead_on_lost(lead, &err);
    else
        lead_watch_pause(lead->watch, false);
}

/* Requests that wait for the core outlive their connections; stopping the core answers them. */
static void lead_on_cut(void *data)
{
    struct lead *lead = data;

    lead->cut = NULL;
    leader_stop(lead->leader);
}

/* Deferred, so that the request for it is answered first. */
static void lead_on_yield(void *data)
{
    struct lead *lead = data;

    lead->later = NULL;
    forward_set_leader(lead->forward, NULL);
    server_set_app(lead->conf.server, forward_get_app(lead->forward));
    server_drain(lead->conf.server, leader_get_app(lead->leader), YIELD_GRACE_MSEC, lead_on_drained,
                 lead);
    lead->cut = defer_call(lead->conf.loop, YIELD_CUT_MSEC, lead_on_cut, lead);
}

static int lead_yield(void *data, const char *to, struct aq_error *err)
{
    struct lead *lead = data;

    if (lead->role != LEAD_LEADER || lead->is_lost || lead->is_stopping)
        return aq_fail_kind(err, EBUSY, "conflict", "this manager is already yielding the lead");
    store_set_successor(core_store(leader_get_core(lead->leader)), to);
    lead->role = LEAD_YIELDING;
    lead->later = defer_call(lead->conf.loop, 0, lead_on_yield, lead);
    return 0;
}

/* ---- answers in any role ---- */

static void lead_on_health(struct request *req, void *data)
{
    const struct lead *lead = data;
    const struct manager_health health = {
        .name = lead->conf.claim->name,
        .role = lead->role == LEAD_STANDBY ? "standby" : "waiting",
        .leader = lead->role == LEAD_STANDBY ? &lead->view.holder : NULL,
        .epoch = lead->view.epoch,
    };

    manager_health_reply(req, &health);
}

static int lead_add_routes(struct lead *lead, struct aq_error *err)
{
    static const struct route route = { .method = METHOD_GET,
                                        .path = MANAGER_HEALTH_PATH,
                                        .handler = lead_on_health,
                                        .doc = "Role and health of this manager" };
    int r;

    lead->router = router_new();
    r = router_add(lead->router, &route, 1, lead, err);
    return r < 0 ? r : api_new_answered_once(&lead->answered_once, err);
}

/* ---- life ---- */

/* Replaces the addresses in the settings by their normal form, in which they are compared. */
static int lead_read_proxies(struct lead *lead, struct aq_error *err)
{
    const struct conf_list *list = &lead->conf.conf->trusted_proxies;

    for (size_t i = 0; i < list->count; i++) {
        char address[CLIENT_ADDRESS_MAX];

        if (address_normalize(list->items[i], strlen(list->items[i]), address) < 0)
            return aq_fail_field(err, EINVAL, "api.trusted-proxies", "'%.60s' is not an IP address",
                                 list->items[i]);
        free(list->items[i]);
        list->items[i] = aq_strdup(address);
    }
    lead->proxies = (struct address_list){ .items = list->items, .count = list->count };
    return 0;
}

/* A second manager on the same folder would have the same name. The folder itself is locked instead
 * of a file in it, as its disk may be full or read-only.
 */
static int lead_lock_folder(struct lead *lead, struct aq_error *err)
{
    const char *folder = lead->conf.conf->state_dir;
    int r = fs_mkdirs(folder, 0700, err);

    if (r < 0)
        return r;
    lead->lock_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lead->lock_fd < 0)
        return aq_fail_errno(err, "open '%s'", folder);
    if (flock(lead->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return aq_fail(err, EBUSY,
                       "another manager uses the state folder '%s'; stop it first, or let this "
                       "one join with a folder of its own (aliquot-manager join)",
                       folder);
    return 0;
}

/* A manager that could not lead must not stand by: that would be noticed only at a takeover. */
static int lead_try_database(struct lead *lead, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *key = aq_format("%s/aliquot.db.key", lead->conf.conf->state_dir);
    AQ_CLEANUP(leadership_closep) struct leadership *leadership = NULL;
    struct leader_view view;
    int r;

    if ((r = leadership_open(lead->conf.conf->database, &leadership, err)) < 0)
        return r;
    if ((r = leadership_read(leadership, &view, NULL, err)) < 0)
        return r == -ENODATA ? 0 : r;
    if ((r = leadership_check_key(leadership, key, err)) < 0 && view.holder.name[0])
        (void)aq_error_wrap(err,
                            "this manager has not joined the cluster of '%s' "
                            "(aliquot-manager join HOST TOKEN)",
                            view.holder.name);
    return r;
}

static int lead_start_watching(struct lead *lead, struct aq_error *err)
{
    static const struct lead_watch_ops ops = {
        .on_view = lead_on_view,
        .on_error = lead_on_error,
        .on_taken = lead_on_taken,
    };
    const struct manager_conf *conf = lead->conf.conf;
    struct forward_options options = { .loop = lead->conf.loop, .server = lead->conf.server };
    int r;

    if ((r = lead_lock_folder(lead, err)) < 0 || (r = lead_try_database(lead, err)) < 0
        || (r = manager_identity_open(conf->state_dir, lead->conf.claim->name, &lead->identity,
                                      err))
               < 0
        || (r = lead_add_routes(lead, err)) < 0)
        return r;
    options.tls = lead->identity.tls;
    options.router = lead->router;
    options.proxies = lead->proxies;
    options.answered_once = lead->answered_once;
    lead->forward = forward_new(&options);
    server_set_app(lead->conf.server, forward_get_app(lead->forward));
    if ((r = lead_open_standby(lead, err)) < 0)
        return r;
    return lead_watch_new(lead->conf.loop, conf->database, &ops, lead, &lead->watch, err);
}

static int lead_open(struct lead *lead, struct aq_error *err)
{
    const char *database = lead->conf.conf->database;
    int r = lead_read_proxies(lead, err);

    if (r < 0)
        return r;
    if (database && store_is_server(database))
        return lead_start_watching(lead, err);
    if ((r = lead_open_leader(lead, 0, err)) == 0)
        lead->later = defer_call(lead->conf.loop, 0, lead_on_ready_later, lead);
    return r;
}

int lead_start(const struct lead_conf *conf, struct lead **ret, struct aq_error *err)
{
    struct lead *lead = aq_alloc(sizeof(*lead));
    int r;

    lead->conf = *conf;
    lead->lock_fd = -1;
    lead->link_port = conf->conf->link.port;
    lead->election.self = conf->claim;
    if ((r = lead_open(lead, err)) < 0) {
        lead_free(lead);
        return r;
    }
    *ret = lead;
    return 0;
}

uint16_t lead_get_link_port(const struct lead *lead)
{
    return lead->link_port;
}

void lead_write_metrics(const struct lead *lead, double turn_sec, struct strbuf *out)
{
    static const char *const roles[] = { "waiting", "standby", "leader", "leader" };

    exposition_family(out, "aliquot_manager_role", "gauge", "Role of this manager");
    exposition_begin(out, "aliquot_manager_role");
    exposition_label(out, "role", roles[lead->role]);
    exposition_value(out, 1);
    if (lead->leader)
        leader_write_metrics(lead->leader, lead->conf.server, turn_sec, out);
    else
        metrics_write_process(lead->conf.server, turn_sec, out);
}

void lead_prepare_stop(struct lead *lead)
{
    lead->is_stopping = true;
    if (lead->watch)
        lead_watch_pause(lead->watch, true);
}

void lead_stop(struct lead *lead)
{
    lead_prepare_stop(lead);
    defer_cancel(AQ_TAKE(lead->later));
    defer_cancel(AQ_TAKE(lead->cut));
    forward_free(AQ_TAKE(lead->forward)); /* before its server is freed */
    if (lead->leader)
        leader_stop(lead->leader);
}

void lead_free(struct lead *lead)
{
    if (!lead)
        return;
    lead_watch_free(lead->watch);
    standby_free(lead->standby);
    forward_free(lead->forward);
    leader_free(lead->leader);
    defer_cancel(lead->later);
    defer_cancel(lead->cut);
    router_free(lead->router);
    router_free(lead->answered_once);
    manager_identity_done(&lead->identity);
    if (lead->lock_fd >= 0)
        (void)close(lead->lock_fd);
    free(lead);
}
