/* SPDX-License-Identifier: Apache-2.0 */
/* core.c - making, starting and ending the core */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "link/pki.h"
#include "manager/core/accounts/access.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/booking/booking_step.h"
#include "manager/core/events/bus_internal.h"
#include "manager/core/state/lead_beat.h"
#include "manager/core/loop/loop_internal.h"
#include "manager/core/nodes/agents.h"
#include "manager/core/nodes/agent_service_internal.h"
#include "manager/core/nodes/images_internal.h"
#include "manager/core/nodes/inventory.h"
#include "manager/core/nodes/liveness.h"
#include "manager/core/nodes/lost_commits.h"
#include "manager/core/nodes/orphans.h"
#include "manager/core/nodes/fronts_internal.h"
#include "manager/core/nodes/managers_internal.h"
#include "manager/core/retention/retention_job.h"
#include "manager/core/scheduling/fair_share.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/scheduling/start_estimate.h"
#include "manager/core/session/array.h"
#include "manager/core/session/control.h"
#include "manager/core/session/dependency.h"
#include "manager/core/session/image_requirements.h"
#include "manager/core/session/lifecycle.h"
#include "manager/core/serving/service_step.h"
#include "manager/core/serving/service_token.h"
#include "manager/core/state/account.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/array_entry.h"
#include "manager/core/state/booking_entry.h"
#include "manager/core/state/clock_adjustment.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/durable.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/session_use.h"
#include "manager/core/state/state.h"
#include "manager/core/statistics/series.h"
#include "store/fixture.h"
#include "store/agent_cert.h"

#define TICK_USEC USEC_PER_SEC

static void core_on_wake(uv_async_t *async)
{
    struct core *core = async->data;

    if (core->store)
        store_dispatch(core->store);
}

static void core_wake_loop(void *data)
{
    struct core *core = data;

    (void)uv_async_send(&core->wake);
}

/* ---- begin ---- */

static int core_load_event(void *data, struct event *e, struct aq_error *err)
{
    (void)err;
    apply_event(data, e);
    return 0;
}

static char *core_state_path(const struct core *core, const char *name)
{
    return aq_format("%s/%s", core->conf.state_dir, name);
}

/* The database has the last word on what is revoked: the file that the link reads lacks what was
 * revoked just before a crash, when its disk was full, or by another manager that led. It is not
 * written for these, which a takeover would wait for; the next start has them from here again.
 */
static int core_revoke_again(void *data, const struct agent_cert *cert)
{
    pki_mark_revoked(data, cert->serial);
    return 0;
}

static int core_read_revoked(struct store_tx *tx, void *data, struct aq_error *err)
{
    return cert_list_revoked(tx, clock_realtime_usec(), core_revoke_again, data, err);
}

static int core_open_authority(struct core *core, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *folder = core_state_path(core, "ca");
    int r = pki_ca_open(folder, &core->ca, err);

    if (r == 0)
        r = store_call(core->store, core_read_revoked, core->ca, err);
    if (r == 0)
        r = orphans_load(core, err);
    if (r < 0)
        return r;
    return pki_issue_server(core->ca, core->conf.link_names, core->conf.link_name_count,
                            PKI_SERVER_DAYS, &core->link_cert, &core->link_key, err);
}

/* A state that was once served with --dev has users whose keys everybody knows. */
static void core_warn_of_published_keys(const struct core *core)
{
    for (size_t i = 0; i < core->keypairs.count && !core->conf.dev; i++) {
        const struct keypair *key = core->keypairs.entries[i].value;

        if (fixture_is_published_key(key->access_key))
            log_warning("keypair %s is one of --dev, which everybody knows: nobody is let in by "
                        "it without --dev. If there is no other administrator, stop this and run "
                        "'aliquot-manager init'; then 'aliquot admin keypair rm %s'",
                        key->access_key, key->access_key);
    }
}

/* Of struct store_conf. */
static void core_on_database_lost(void *data, const struct aq_error *err)
{
    struct core *core = data;

    lead_beat_lose(core);
    if (core->conf.lost)
        core->conf.lost(core->conf.lost_data, err);
    else
        log_error("%s", err->text);
}

static int core_open_state(struct core *core, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *db = core_state_path(core, "aliquot.db");
    AQ_CLEANUP(aq_freep) char *key = core_state_path(core, "aliquot.db.key");
    AQ_CLEANUP(aq_freep) char *times = core_state_path(core, "clock");
    struct store_conf conf = { .path = core->conf.database ? core->conf.database : db,
                               .key_path = key,
                               .address = core->conf.address,
                               .claim = core->conf.claim,
                               .epoch = core->conf.epoch,
                               .wake = core_wake_loop,
                               .lost = core_on_database_lost,
                               .wake_data = core };
    int r;

    if ((r = store_open(&conf, &core->store, err)) < 0
        || (r = clock_adjustment_begin(core, times, err)) < 0)
        return r;
    if (core->conf.dev && !store_is_frozen(core->store)
        && (r = store_init_dev(core->store, err)) < 0)
        return r;
    if ((r = store_load(core->store, core_load_event, core, err)) < 0
        || (r = store_call(core->store, store_read_last_event, &core->last_event, err)) < 0
        || (r = series_restore(core, err)) < 0 || (r = managers_load(core, err)) < 0
        || (r = lost_commits_load(core, err)) < 0)
        return r;
    core_warn_of_published_keys(core);
    return core->conf.link_host ? core_open_authority(core, err) : 0;
}

/* Who orders, and after which commit. */
static struct msg_stamp core_stamp(const struct core *core)
{
    return (struct msg_stamp){ .epoch = store_get_epoch(core->store),
                               .commit = store_get_beat(core->store) };
}

static int core_send_by_link(struct core *core, const char *agent_id, const struct message *msg,
                             struct aq_error *err)
{
    struct message stamped;

    if (!message_is_order(msg->type))
        return link_server_send(core->link, agent_id, msg, err);
    lead_beat_check(core);
    stamped = *msg;
    stamped.stamp = core_stamp(core);
    return link_server_send(core->link, agent_id, &stamped, err);
}

static void core_init_handles(struct core *core)
{
    uv_loop_t *loop = core->loop;

    (void)uv_async_init(loop, &core->wake, core_on_wake);
    (void)uv_idle_init(loop, &core->turn);
    (void)uv_timer_init(loop, &core->tick);
    (void)uv_timer_init(loop, &core->alarm);
    (void)uv_timer_init(loop, &core->beat);
    (void)uv_timer_init(loop, &core->retention.pause);
    core->wake.data = core->turn.data = core->tick.data = core->alarm.data = core;
    core->beat.data = core;
    core->retention.pause.data = core;
    core->open_handles = 6;
}

static void core_apply_defaults(struct core_conf *conf)
{
    if (!conf->heartbeat_usec)
        conf->heartbeat_usec = 3 * USEC_PER_SEC;
    if (!conf->agent_timeout_usec)
        conf->agent_timeout_usec = 10 * USEC_PER_SEC;
    conf->agent_timeout_usec = AQ_MAX(conf->agent_timeout_usec, 2 * conf->heartbeat_usec);
    if (!conf->kill_grace_usec)
        conf->kill_grace_usec = 10 * USEC_PER_SEC;
    if (!conf->attempts_age_usec)
        conf->attempts_age_usec = INT64_C(30) * 86400 * USEC_PER_SEC;
    if (!conf->attempts_sessions)
        conf->attempts_sessions = 100000;
    if (!conf->array_size_max)
        conf->array_size_max = ARRAY_SIZE_DEFAULT;
    if (!conf->session_bytes_max)
        conf->session_bytes_max = INT64_C(1) << 30;
    if (!conf->user_session_bytes_max)
        conf->user_session_bytes_max = INT64_C(256) << 20;
}

int core_new(const struct core_conf *conf, struct core **ret, struct aq_error *err)
{
    AQ_CLEANUP(core_freep) struct core *core = aq_alloc(sizeof(*core));
    int r;

    core->conf = *conf;
    core_apply_defaults(&core->conf);
    core->loop = conf->loop;
    core->thread = uv_thread_self();
    core->hooks = &queue_hooks;
    core->proposal_hooks = &turn_proposal_hooks;
    core->session_ops = &session_durable_ops;
    core->array_ops = &array_durable_ops;
    core->booking_ops = &booking_durable_ops;
    core->service_ops = &service_durable_ops;
    core->on_turn = turn_on_idle;
    core->incarnation = uuid_random();
    core->send = core_send_by_link;
    core->stand_by = managers_stand_by;
    idle_settings_defaults(&core->idle);
    list_init(&core->sessions);
    list_init(&core->arrays);
    list_init(&core->bookings);
    list_init(&core->booking_drafts);
    list_init(&core->services);
    list_init(&core->service_creations);
    list_init(&core->changed_services);
    list_init(&core->durables.touched);
    list_init(&core->durables.retired);
    list_init(&core->session_uses.unsaved);
    list_init(&core->deferred);
    list_init(&core->claims);
    list_init(&core->subscribers);
    list_init(&core->image_jobs);
    list_init(&core->service_jobs);
    core_init_handles(core);
    core->types = slot_types_new();
    if ((r = subnets_init(&core->subnets, conf->cluster_pool, err)) < 0
        || (r = core_open_state(core, err)) < 0)
        return r;
    *ret = AQ_TAKE(core);
    return 0;
}

int core_start(struct core *core, struct aq_error *err)
{
    struct link_server_conf conf = {
        .loop = core->loop,
        .host = core->conf.link_host,
        .port = core->conf.link_port,
        .ca = core->ca,
        .cert = core->link_cert,
        .key = core->link_key,
        .incarnation = core->incarnation,
        .ping_usec = core->conf.ping_usec,
        .dead_usec = core->conf.dead_usec,
        .epoch = core_stamp(core).epoch,
    };
    int r;

    AQ_FAULT("core.start.loaded");
    if (core->conf.link_host
        && (r = link_server_new(&conf, &inventory_link_ops, core, &core->link, err)) < 0)
        return r;
    lead_beat_start(core);
    managers_publish(core);
    core->is_started = true;
    core->ticked_usec = clock_monotonic_usec();
    liveness_forgive(core, core->ticked_usec);
    (void)uv_timer_start(&core->tick, turn_on_tick, TICK_USEC / USEC_PER_MSEC,
                         TICK_USEC / USEC_PER_MSEC);
    core_schedule_turn(core);
    return 0;
}

/* ---- end ---- */

void core_stop(struct core *core)
{
    if (core->is_stopping)
        return;
    proposal_commit(core);
    core->is_stopping = true;
    (void)uv_idle_stop(&core->turn);
    (void)uv_timer_stop(&core->tick);
    (void)uv_timer_stop(&core->alarm);
    (void)uv_timer_stop(&core->beat);
    (void)uv_timer_stop(&core->retention.pause);
    if (core->store) {
        series_stop(core);
        key_use_save(core);
        session_use_save(core);
        service_token_save(core);
    }
    if (core->store)
        store_flush(core->store); /* its callbacks may answer agents that join */
    link_server_free(AQ_TAKE(core->link));
    LIST_FOREACH(link, &core->sessions)
        waiters_fail(core, LIST_ENTRY(link, struct session_entry, all_link), -ECANCELED,
                     &(struct aq_error){ .code = ECANCELED, .text = "the manager is stopping" });
    array_fail_waiters(core);
    if (core->store)
        store_flush(core->store);
    deferred_run(core);
}

static void core_free_values(struct map *map, void (*free_value)(void *value))
{
    for (size_t i = 0; i < map->count; i++)
        free_value(map->entries[i].value);
    map_done(map);
}

static void core_free_account(void *value)
{
    account_free(value);
}

static void core_free_rgroup(void *value)
{
    struct resource_group_entry *g = value;

    start_estimate_done(g);
    sched_sync_done(g);
    fair_share_free(g->fair_share);
    resource_group_entry_free(g);
}

static void core_free_user(void *value)
{
    entity_done(&user_entity, value);
    free(value);
}

static void core_free_keypair(void *value)
{
    entity_done(&keypair_entity, value);
    free(value);
}

static void core_free_policy(void *value)
{
    entity_done(&keypair_policy_entity, value);
    free(value);
}

static void core_free_domain(void *value)
{
    entity_done(&domain_entity, value);
    free(value);
}

static void core_free_group(void *value)
{
    entity_done(&project_entity, value);
    free(value);
}

static void core_free_memory(struct core *core)
{
    while (!list_is_empty(&core->sessions)) /* the last first: they leave the end of the queue */
        session_entry_retire(core, LIST_ENTRY(core->sessions.prev, struct session_entry, all_link));
    while (!list_is_empty(&core->arrays))
        array_entry_retire(core, LIST_ENTRY(core->arrays.next, struct array_entry, all_link));
    while (!list_is_empty(&core->bookings))
        booking_entry_retire(core, LIST_ENTRY(core->bookings.next, struct booking_entry, all_link));
    while (!list_is_empty(&core->services))
        model_service_entry_retire(
            core, LIST_ENTRY(core->services.next, struct model_service_entry, all_link));
    durable_free_retired(core);
    while (core->agent_count > 0)
        agents_drop(core, core->agents_sorted[core->agent_count - 1]);
    free(core->agents_sorted);
    free(core->durables.heap);
    map_done(&core->sessions_by_id);
    map_done(&core->arrays_by_id);
    map_done(&core->kernels_by_id);
    map_done(&core->sessions_by_name);
    map_done(&core->agents);
    fronts_free(core);
    managers_free(core);
    orphans_done(core);
    dependency_free(core);
    access_forget(core);
    key_use_free(core);
    while (!list_is_empty(&core->session_uses.unsaved))
        session_use_free(
            LIST_ENTRY(core->session_uses.unsaved.next, struct session_use_entry, unsaved_link));
    free(core->session_uses.totals.items);
    core_free_values(&core->accounts, core_free_account);
    core_free_values(&core->resource_groups, core_free_rgroup);
    map_done(&core->users_by_email);
    map_done(&core->users_by_name);
    core_free_values(&core->users, core_free_user);
    core_free_values(&core->keypairs, core_free_keypair);
    core_free_values(&core->policies, core_free_policy);
    core_free_values(&core->domains, core_free_domain);
    core_free_values(&core->projects, core_free_group);
    free(core->logins);
}

static void core_on_handle_closed(uv_handle_t *handle)
{
    struct core *core = handle->data;

    if (--core->open_handles == 0)
        free(core);
}

void core_free(struct core *core)
{
    if (!core)
        return;
    core_stop(core);
    store_close(AQ_TAKE(core->store));
    core_free_memory(core);
    images_free_jobs(core);
    agent_service_free(core);
    image_requirements_free(core);
    series_free(core);
    bus_free(core);
    clock_adjustment_done(core);
    slot_types_unref(core->types);
    subnets_done(&core->subnets);
    pki_ca_free(core->ca);
    free(core->link_cert);
    free(core->link_key);
    arena_done(&core->scratch);
    uv_close((uv_handle_t *)&core->wake, core_on_handle_closed);
    uv_close((uv_handle_t *)&core->turn, core_on_handle_closed);
    uv_close((uv_handle_t *)&core->tick, core_on_handle_closed);
    uv_close((uv_handle_t *)&core->alarm, core_on_handle_closed);
    uv_close((uv_handle_t *)&core->beat, core_on_handle_closed);
    uv_close((uv_handle_t *)&core->retention.pause, core_on_handle_closed);
}

uint16_t core_link_port(const struct core *core)
{
    return core->link ? link_server_port(core->link) : 0;
}

const char *core_link_host(const struct core *core)
{
    const char *host = core->conf.link_host;

    return host && strcmp(host, "0.0.0.0") != 0 && strcmp(host, "::") != 0 ? host : NULL;
}

const struct leader_claim *core_self(const struct core *core)
{
    return core->conf.claim;
}

bool core_is_dev(const struct core *core)
{
    return core->conf.dev;
}

struct store *core_store(struct core *core)
{
    return core->store;
}

uv_loop_t *core_loop(struct core *core)
{
    return core->loop;
}

struct slot_types *core_slot_types(const struct core *core)
{
    return core->types;
}
