/* SPDX-License-Identifier: Apache-2.0 */
/* session_entry.c - sessions in memory: indexes, what they hold */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/core/state/account.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/array_entry.h"
#include "manager/core/state/booking_entry.h"
#include "manager/core/state/clock_adjustment.h"
#include "manager/core/state/idle_entry.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/session_use.h"
#include "manager/core/state/state.h"
#include "model/architecture.h"
#include "model/measured.h"

/* ---- what is held ---- */

static bool entry_holds_any(const struct session_entry *l)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (!list_is_empty(&l->kernels[i].agent_link))
            return true;
    return false;
}

/* Sessions of the system are nobody's use. */
static void entry_join_accounts(struct session_entry *l)
{
    if (l->is_in_usage || l->s.type == SESSION_SYSTEM)
        return;
    l->is_in_usage = true;
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++) {
        list_add(&l->accounts[kind]->members, &l->account_links[kind]);
        l->accounts[kind]->member_count++;
    }
}

static void entry_leave_accounts(struct session_entry *l)
{
    if (!l->is_in_usage)
        return;
    l->is_in_usage = false;
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++) {
        list_remove(&l->account_links[kind]);
        assert(l->accounts[kind]->member_count > 0);
        l->accounts[kind]->member_count--;
    }
}

void session_entry_hold(struct core *core, struct session_entry *l, size_t rank, int64_t at_usec)
{
    struct agent_entry *a = agent_entry_add(core, l->s.kernels[rank].agent_id);

    assert(list_is_empty(&l->kernels[rank].agent_link)); /* it holds once */
    list_add(&a->kernels, &l->kernels[rank].agent_link);
    l->network.version++;
    l->kernels[rank].held_usec = at_usec;
    a->kernel_count++;
    a->is_stale = a->devices_stale = true;
    entry_join_accounts(l);
    core->hooks->on_hold(core, l, a);
}

void session_entry_release(struct core *core, struct session_entry *l, size_t rank, int64_t at_usec)
{
    struct agent_entry *a = agent_entry_find(core, l->s.kernels[rank].agent_id);

    if (list_is_empty(&l->kernels[rank].agent_link))
        return;
    list_remove(&l->kernels[rank].agent_link);
    l->network.version++;
    assert(a->kernel_count > 0);
    a->kernel_count--;
    a->is_stale = a->devices_stale = true;
    if (!entry_holds_any(l))
        entry_leave_accounts(l);
    core->hooks->on_release(core, l, rank, a, at_usec);
}

void session_entry_forget_facts(struct kernel_entry *k)
{
    k->is_pulling = k->error_is_image = false;
    k->pulled_usec = 0;
    free(k->alloc);
    free(k->service_ports);
    free(k->error);
    free(k->pull_failure);
    free(k->limit_violations);
    free(k->outputs);
    *k = (struct kernel_entry){ .entry = k->entry,
                                .requested = k->requested,
                                .agent_link = k->agent_link,
                                .held_usec = k->held_usec,
                                .single = k->single,
                                .measured = k->measured,
                                .use = k->use };
    k->single.is_preempted = false;
}

/* ---- entering and leaving memory ---- */

#define NAME_KEY_MAX (sizeof(struct uuid) + SESSION_NAME_MAX)

static size_t entry_name_key(const struct uuid *user, const char *name, char key[NAME_KEY_MAX])
{
    size_t len = strnlen(name, SESSION_NAME_MAX);

    memcpy(key, user->bytes, sizeof(user->bytes));
    memcpy(key + sizeof(user->bytes), name, len);
    return sizeof(user->bytes) + len;
}

const struct session *core_find_session_named(const struct core *core, const struct uuid *user_id,
                                              const char *name)
{
    char key[NAME_KEY_MAX];

    return map_get(&core->sessions_by_name, key, entry_name_key(user_id, name, key));
}

struct session_entry *session_entry_find(const struct core *core, const struct uuid *id)
{
    return map_get(&core->sessions_by_id, id->bytes, sizeof(id->bytes));
}

void session_entry_rename(struct core *core, struct session_entry *l, const char *name)
{
    char key[NAME_KEY_MAX];

    map_set(&core->sessions_by_name, key, entry_name_key(&l->s.user_id, name, key), l);
    map_remove(&core->sessions_by_name, key, entry_name_key(&l->s.user_id, l->s.name, key));
    (void)snprintf(l->s.name, sizeof(l->s.name), "%s", name);
}

void session_entry_rename_domain(struct core *core, struct session_entry *l, const char *name)
{
    int64_t bytes = (int64_t)strlen(name) - (int64_t)strlen(l->s.domain);

    free(l->s.domain);
    l->s.domain = aq_strdup(name);
    l->bytes += bytes;
    session_bytes_add(core, l->accounts[SCHED_USER], bytes);
}

static void entry_find_accounts(struct core *core, struct session_entry *l)
{
    char user[UUID_TEXT_MAX], group[UUID_TEXT_MAX];

    l->accounts[SCHED_KEYPAIR] = account_get(core, SCHED_KEYPAIR, l->s.access_key);
    l->accounts[SCHED_USER] = account_get(core, SCHED_USER, uuid_format(&l->s.user_id, user));
    l->accounts[SCHED_PROJECT] = account_get(core, SCHED_PROJECT,
                                             uuid_format(&l->s.project_id, group));
    l->accounts[SCHED_DOMAIN] = account_get(core, SCHED_DOMAIN, l->s.domain ? l->s.domain : "");
    l->resource_group = resource_group_entry_get(core,
                                                 l->s.resource_group ? l->s.resource_group : "");
}

static void entry_index(struct core *core, struct session_entry *l)
{
    char key[NAME_KEY_MAX];

    map_set(&core->sessions_by_id, l->s.id.bytes, sizeof(l->s.id.bytes), l);
    for (size_t i = 0; i < l->s.kernel_count; i++)
        map_set(&core->kernels_by_id, l->s.kernels[i].id.bytes, sizeof(l->s.kernels[i].id.bytes),
                l);
    map_set(&core->sessions_by_name, key, entry_name_key(&l->s.user_id, l->s.name, key), l);
}

static void entry_list_by_row(struct core *core, struct session_entry *l)
{
    struct list *place = &core->sessions;

    while (place->prev != &core->sessions
           && LIST_ENTRY(place->prev, struct session_entry, all_link)->s.row > l->s.row)
        place = place->prev;
    list_add(place, &l->all_link);
}

struct session_entry *session_entry_new(struct core *core, struct session *s)
{
    struct session_entry *l = aq_alloc(sizeof(*l) + s->kernel_count * sizeof(l->kernels[0]));

    l->s = *s;
    *s = (struct session){ 0 };
    durable_init(&l->durable, core->session_ops);
    list_init(&l->all_link);
    list_init(&l->array_link);
    list_init(&l->booking_link);
    list_init(&l->queue.link);
    list_init(&l->queue.lacking_link);
    list_init(&l->sched.change_link);
    list_init(&l->commands.waiters);
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        list_init(&l->account_links[kind]);
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        l->s.kernels[i].session = &l->s;
        l->kernels[i].entry = l;
        l->kernels[i].requested = &l->s.kernels[i].requested;
        list_init(&l->kernels[i].agent_link);
    }
    l->since_usec = clock_adjustment_since(core, l->s.status_changed_usec);
    entry_find_accounts(core, l);
    return l;
}

struct session_entry *session_entry_add(struct core *core, struct session *s)
{
    struct session_entry *l = session_entry_new(core, s);

    if (!l->s.is_spec_short && session_spec_is_long(l->s.spec)) {
        struct session_spec *whole = l->s.spec;

        l->s.spec = session_spec_copy_short(whole);
        l->s.is_spec_short = true;
        free(whole);
    }
    entry_index(core, l);
    durable_add(core, &l->durable);
    l->bytes = session_bytes_of(&l->s);
    session_bytes_add(core, l->accounts[SCHED_USER], l->bytes);
    l->accounts[SCHED_KEYPAIR]->systems += l->s.type == SESSION_SYSTEM;
    entry_list_by_row(core, l);
    array_entry_join(core, l);
    booking_entry_join(core, l);
    replica_entry_join(core, l);
    return l;
}

void session_entry_retire(struct core *core, struct session_entry *l)
{
    char key[NAME_KEY_MAX];
    size_t len = entry_name_key(&l->s.user_id, l->s.name, key);

    for (size_t i = 0; i < l->s.kernel_count; i++)
        session_entry_release(core, l, i, 0);
    array_entry_leave(core, l);
    booking_entry_leave(core, l);
    replica_entry_leave(core, l);
    core->hooks->on_retire(core, l);
    session_entry_give_subnet(core, l);
    session_bytes_add(core, l->accounts[SCHED_USER], -l->bytes);
    l->accounts[SCHED_KEYPAIR]->systems -= l->s.type == SESSION_SYSTEM;
    map_remove(&core->sessions_by_id, l->s.id.bytes, sizeof(l->s.id.bytes));
    for (size_t i = 0; i < l->s.kernel_count; i++)
        map_remove(&core->kernels_by_id, l->s.kernels[i].id.bytes,
                   sizeof(l->s.kernels[i].id.bytes));
    if (map_get(&core->sessions_by_name, key, len) == l)
        map_remove(&core->sessions_by_name, key, len);
    list_remove(&l->all_link);
    durable_retire(core, &l->durable);
}

static void entry_free_measured(struct measured *m)
{
    if (m)
        measured_done(m);
    free(m);
}

void session_entry_forget_start(struct session_entry *l)
{
    free(AQ_TAKE(l->start.spec));
    free(AQ_TAKE(l->start.dotfiles));
    free(AQ_TAKE(l->start.bootstrap));
    free(AQ_TAKE(l->start.network));
    arena_done(&l->start.arena);
    l->start.roles = NULL;
    l->start.role_count = 0;
    l->start.is_read = false;
}

void session_entry_free(struct session_entry *l)
{
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        session_entry_forget_facts(&l->kernels[i]);
        entry_free_measured(l->kernels[i].measured);
    }
    session_entry_forget_start(l);
    free(l->retry.failed_agent);
    for (size_t k = 0; l->reservation.agents && k < l->s.kernel_count; k++)
        free(l->reservation.agents[k]);
    free(l->reservation.agents);
    session_use_release(l->use);
    idle_entry_free(l->idle);
    session_done(&l->s);
    free(l);
}

enum splitting session_entry_splitting(const struct session_entry *l)
{
    return l->s.spec->splitting ? l->s.spec->splitting : l->resource_group->scheduling.splitting;
}

/* The hosts of its folders without duplicates, and entries for SFTP, the host network and RDMA. */
static void entry_describe_volumes(struct core *core, const struct session *s,
                                   struct sched_session *ret)
{
    const struct folder_mounts *mounts = &s->spec->mounts;
    bool needs_sftp = s->type == SESSION_SYSTEM;
    bool needs_host = session_spec_uses_host_network(s->spec);
    const char **volumes;

    if (!mounts->count && !needs_sftp && !needs_host && !s->spec->needs_rdma)
        return;
    volumes = arena_array(&core->scratch, mounts->count + 3, sizeof(*volumes));
    for (size_t i = 0; i < mounts->count; i++) {
        size_t k = 0;

        while (k < ret->volume_count && strcmp(volumes[k], mounts->items[i].host) != 0)
            k++;
        if (k == ret->volume_count)
            volumes[ret->volume_count++] = mounts->items[i].host;
    }
    if (needs_sftp)
        volumes[ret->volume_count++] = SCHED_SFTP;
    if (needs_host)
        volumes[ret->volume_count++] = SCHED_HOST_NETWORK;
    if (s->spec->needs_rdma)
        volumes[ret->volume_count++] = SCHED_RDMA;
    ret->volumes = volumes;
}

/* Which agents the request named or prefers, and how its session group is to be placed. */
static void entry_describe_constraints(struct core *core, const struct session *session,
                                       struct sched_session *ret)
{
    const struct session_spec *spec = session->spec;
    char text[UUID_TEXT_MAX + SESSION_GROUP_NAME_MAX + 2];
    char user[UUID_TEXT_MAX];

    ret->designated = spec->agents.items; /* NULL if there are none */
    ret->designated_count = spec->agents.count;
    ret->designated_strict = !spec->agents_preferred;
    ret->job_priority = (int)spec->job_priority;
    ret->is_preemptible = spec->is_preemptible;
    ret->is_movable = spec->is_movable;
    if (!spec->session_group)
        return;
    (void)snprintf(text, sizeof(text), "%s:%s", uuid_format(&session->user_id, user),
                   spec->session_group);
    ret->group = arena_strdup(&core->scratch, text);
    ret->grouping = spec->packs ? SCHED_PACK : SCHED_SPREAD;
    ret->grouping_strict = spec->group_is_strict;
}

int64_t session_entry_starts_usec(const struct session_entry *l)
{
    return AQ_MAX(l->s.starts_usec, l->booking ? l->booking->b.starts_usec : 0);
}

void session_entry_describe(struct core *core, struct session_entry *l, bool holding,
                            struct sched_session *ret)
{
    const struct slots **kernels = arena_array(&core->scratch, l->s.kernel_count, sizeof(*kernels));

    *ret = (struct sched_session){
        .id = l->s.id,
        .row = l->s.row,
        .type = l->s.type,
        .priority = l->s.priority,
        .starts_usec = l->s.starts_usec,
        .architecture = architecture_of_machine(l->s.spec->architecture),
        .single_node = !l->s.is_multi_node,
        .needs_network = session_entry_needs_network(l),
        .kernels = kernels,
        .dependencies = l->s.dependencies,
        .dependency_count = l->s.dependency_count,
        .may_split = session_entry_splitting(l) == SPLITTING_ALLOWED,
        .failed_agent = l->retry.failed_agent,
        .lifetime_usec = l->s.spec->batch_timeout_usec,
        .may_be_cut = l->s.spec->signal != NULL || l->s.spec->checkpoint_signal != NULL,
        .eligible_usec = AQ_MAX(l->s.status_changed_usec,
                                AQ_MAX(l->queue.eligible_usec, l->s.starts_usec)),
        /* of a booking that is over it runs on as an ordinary session, and starts no more */
        .booking = uuid_is_nil(&l->s.booking_id) || (holding && !l->booking) ? NULL
                                                                             : &l->s.booking_id,
    };
    for (size_t k = 0; k < l->s.kernel_count && ret->kernel_count < session_least_kernels(&l->s);
         k++)
        if (!holding || !list_is_empty(&l->kernels[k].agent_link))
            kernels[ret->kernel_count++] = &l->s.kernels[k].requested;
    entry_describe_volumes(core, &l->s, ret);
    entry_describe_constraints(core, &l->s, ret);
}

/* ---- what sessions take of the manager's memory, and how much they may ---- */

/* What is elsewhere: indexes, placement constraints, the scheduler's copy, what the allocator adds.
 * The sum is what was measured of sessions with 1 and 64 kernels, rounded up. */
#define SESSION_BESIDE 768
#define KERNEL_BESIDE 256
#define DEPENDENCY_BESIDE 64

static int64_t session_bytes_of_text(const char *text)
{
    return text ? (int64_t)strlen(text) + 1 : 0;
}

int64_t session_bytes_of(const struct session *s)
{
    int64_t bytes = (int64_t)sizeof(struct session_entry) + SESSION_BESIDE
                    + session_bytes_of_text(s->domain) + session_bytes_of_text(s->resource_group)
                    + AQ_MIN((int64_t)session_spec_size(s->spec), SESSION_SPEC_KEPT_MAX)
                    + session_bytes_of_text(s->image) + session_bytes_of_text(s->tag);

    for (size_t i = 0; i < s->kernel_count; i++)
        bytes += (int64_t)(sizeof(struct kernel) + sizeof(struct kernel_entry) + KERNEL_BESIDE
                           + 2 * s->kernels[i].requested.count * sizeof(struct slot));
    return bytes
           + (int64_t)(s->dependency_count
                       * (sizeof(struct session_dependency) + DEPENDENCY_BESIDE));
}

int session_bytes_check(const struct core *core, const struct account *user, int64_t bytes,
                        struct aq_error *err)
{
    const struct core_conf *conf = &core->conf;
    char most[AMOUNT_TEXT_MAX];

    if (user->session_bytes + bytes > conf->user_session_bytes_max)
        return aq_fail(err, EDQUOT,
                       "Your sessions may take %s of the manager's memory ([sessions] "
                       "max-memory-per-user): wait until some of them have ended, or end some.",
                       slot_amount_humanize(conf->user_session_bytes_max, SLOT_BYTES, most));
    if (core->session_bytes + bytes > conf->session_bytes_max)
        return aq_fail(err, EDQUOT,
                       "All sessions together may take %s of the manager's memory ([sessions] "
                       "max-memory): try again when some have ended, or end some of yours.",
                       slot_amount_humanize(conf->session_bytes_max, SLOT_BYTES, most));
    return 0;
}

void session_bytes_add(struct core *core, struct account *user, int64_t bytes)
{
    user->session_bytes += bytes;
    core->session_bytes += bytes;
    assert(user->session_bytes >= 0 && core->session_bytes >= user->session_bytes);
}
