/* SPDX-License-Identifier: Apache-2.0 */
/* agent_command.c - what agents are told
 *
 * Orders to an agent that is not connected, or whose inventory is not known
 * yet, are not sent: the next heartbeat has the session looked at again.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/core/scheduling/rejection.h"
#include "manager/core/session/agent_command.h"
#include "manager/core/session/array.h"
#include "manager/core/session/kernel_lease.h"
#include "manager/core/session/mounts.h"
#include "manager/core/session/session_network.h"
#include "manager/core/session/termination.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "store/dotfile.h"
#include "store/query.h"

#define REREAD_USEC USEC_PER_SEC /* after a read that failed */

/* NULL if it is told nothing now. */
static struct agent_entry *agent_command_find_agent(const struct core *core, const char *agent_id)
{
    struct agent_entry *a = agent_entry_find(core, agent_id);

    return a && a->is_connected && a->is_synced ? a : NULL;
}

static bool agent_command_send(struct core *core, const char *agent_id, const struct message *msg)
{
    struct agent_entry *a = agent_command_find_agent(core, agent_id);
    struct aq_error err = { 0 };

    if (!a)
        return false;
    if (core->send(core, agent_id, msg, &err) == 0)
        return true;
    log_limited(&a->log, LOG_LEVEL_WARNING, "%s to agent '%s': %s", message_type_name(msg->type),
                agent_id, err.text);
    return false;
}

/* ---- kernel.create ---- */

/* "main:1,sub:2" and "main1,sub1,sub2" */
static void agent_command_fill_cluster(struct core *core, const struct session *s,
                                       struct kernel_spec *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf hosts = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf replicas = STRBUF_INIT;
    char name[KERNEL_HOSTNAME_MAX];

    for (size_t i = 0; i < s->kernel_count; i++) {
        const struct kernel *k = &s->kernels[i];

        strbuf_addf(&hosts, "%s%s", i ? "," : "", kernel_hostname(k, name));
        if (i + 1 == s->kernel_count || strcmp(k->role, k[1].role) != 0) /* the last of its role */
            strbuf_addf(&replicas, "%s%s:%u", replicas.len ? "," : "", k->role, (unsigned)k->index);
    }
    ret->cluster_size = (int64_t)s->kernel_count;
    ret->is_held = s->kernel_count > 1;
    ret->hosts = arena_strdup(&core->scratch, hosts.data);
    ret->replicas = arena_strdup(&core->scratch, replicas.data);
}

int core_derive_ssh_seed(const struct core *core, const struct session *session, char ret[65],
                         struct aq_error *err)
{
    char id[UUID_TEXT_MAX], purpose[UUID_TEXT_MAX + 8];

    if (session->type == SESSION_BATCH && session->kernel_count == 1)
        return aq_fail(err, ENOENT, "a batch session has no SSH keys");
    (void)snprintf(purpose, sizeof(purpose), "ssh %s", uuid_format(&session->id, id));
    return store_derive(core->store, purpose, ret, err);
}

/* NULL for a session without SSH */
static const char *agent_command_make_ssh_seed(struct core *core, const struct session *s)
{
    struct aq_error err = { 0 };
    char seed[65];
    int r = core_derive_ssh_seed(core, s, seed, &err);

    if (r < 0 && r != -ENOENT)
        log_warning("a session gets no SSH keys: %s", err.text);
    return r < 0 ? NULL : arena_strdup(&core->scratch, seed);
}

/* The roles are parsed once for all kernels of a start. */
static int agent_command_apply_role(struct session_entry *l, const struct kernel *k,
                                    struct session_spec *ret)
{
    int r = 0;

    if (ret->roles && !l->start.roles)
        r = cluster_roles_parse(ret->roles, &l->start.arena, &l->start.roles, &l->start.role_count,
                                NULL);
    if (r == 0)
        cluster_role_apply(l->start.roles, l->start.role_count, k->role, ret);
    return r;
}

/* As the session says; what it does not, as its resource group, its keypair and the kernel's role
 * say. Of several kernels the first one has the input.
 */
static int agent_command_fill_session(struct core *core, struct session_entry *l,
                                      const struct session_spec *whole, const struct kernel *k,
                                      struct session_spec *ret)
{
    int r;

    *ret = *whole;
    ret->splitting = session_entry_splitting(l);
    ret->input = k->rank == 0 ? ret->input : NULL;
    termination_limit_grace(l, ret);
    if (l->s.rerun && ret->resume_command) /* a role with a command of its own keeps that */
        ret->command = ret->resume_command;
    if (!ret->bootstrap && l->s.type == SESSION_INTERACTIVE)
        ret->bootstrap = l->start.bootstrap;
    r = agent_command_apply_role(l, k, ret);
    array_add_environ(core, l, &ret->environ);
    return r;
}

/* How the agent finds out whether a replica of a model service is ready. */
static void agent_command_fill_probe(const struct session_entry *l, struct kernel_spec *ret)
{
    const struct model_service_revision *revision = l->replica ? model_service_find_revision(
                                                        &l->replica->service->s,
                                                        l->s.replica->revision)
                                                               : NULL;

    if (!revision || ret->rank > 0)
        return;
    ret->probe_port = revision->spec->port;
    ret->probe_path = revision->spec->health_path;
    ret->probe_status = revision->spec->health_status;
    ret->probe_interval_usec = revision->spec->health_interval_usec;
    ret->probe_timeout_usec = revision->spec->health_timeout_usec;
    ret->probe_retries = revision->spec->health_retries;
}

static int agent_command_fill_spec(struct core *core, struct session_entry *l,
                                   const struct session_spec *spec, const struct kernel *k,
                                   const char *network, struct kernel_spec *ret)
{
    const struct user *owner = core_find_user(core, &l->s.user_id);
    const struct keypair *key = core_find_keypair(core, l->s.access_key);
    AQ_CLEANUP(strbuf_donep) struct strbuf slots = STRBUF_INIT;
    struct jsonw w = jsonw_make(&slots);
    struct kernel_lease lease = kernel_lease_give(core, agent_entry_find(core, k->agent_id), l);
    char text[UUID_TEXT_MAX], hostname[KERNEL_HOSTNAME_MAX];

    slots_write_json(&k->requested, core->types, &w);
    *ret = (struct kernel_spec){
        .session_name = l->s.name,
        .session_type = session_type_name(l->s.type),
        .role = k->role,
        .index = k->index,
        .rank = k->rank,
        .hostname = arena_strdup(&core->scratch, kernel_hostname(k, hostname)),
        .access_key = l->s.access_key,
        .user_id = arena_strdup(&core->scratch, uuid_format(&l->s.user_id, text)),
        .group_id = arena_strdup(&core->scratch, uuid_format(&l->s.project_id, text)),
        .resource_group = l->s.resource_group,
        .lease_usec = lease.usec,
        .lease_grace_usec = lease.grace_usec,
        .job_number = l->s.row,
        .attempts = l->s.rerun ? l->s.rerun->attempts : 0,
        .user_email = owner ? owner->email : NULL,
        .user_name = owner ? owner->username : NULL,
        .slots = arena_strdup(&core->scratch, slots.data),
        .devices = k->alloc,
        .network = network,
        .ssh_public_key = key ? key->ssh_public_key : NULL,
        .dotfiles = l->start.dotfiles,
        .ssh_seed = agent_command_make_ssh_seed(core, &l->s),
    };
    agent_command_fill_cluster(core, &l->s, ret);
    agent_command_fill_probe(l, ret);
    return agent_command_fill_session(core, l, spec, k, &ret->session);
}

/* What memory has not of a session that starts, on its way from the store; and whether the folders
 * that it mounts are still there.
 */
struct agent_command_reading {
    struct core *core;
    struct uuid id;
    uint32_t version; /* of the session that asks */
    bool wants_spec;  /* memory has a part of it, or it mounts folders */
    struct mounts_owner *owner;
    char project[UUID_TEXT_MAX], access_key[ACCESS_KEY_MAX];
    char *domain;
    struct session_spec *spec;
    char *dotfiles, *bootstrap;
};

static void agent_command_reading_free(struct agent_command_reading *reading)
{
    free(reading->owner);
    free(reading->domain);
    free(reading->spec);
    free(reading->dotfiles);
    free(reading->bootstrap);
    free(reading);
}

static int agent_command_read_spec(struct store_tx *tx, struct agent_command_reading *reading,
                                   struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct store_query query = { .ids = &reading->id, .id_count = 1, .limit = 1 };
    int r = store_list_sessions(tx, &query, &page, err);

    if (r < 0)
        return r;
    if (page->count == 0 || !page->sessions[0].session.spec)
        return aq_fail(err, ENOENT, "the database does not have it");
    reading->spec = session_spec_copy(page->sessions[0].session.spec);
    return mounts_check_again(tx, reading->owner, &reading->spec->mounts, err);
}

/* A folder that it mounts stands in the way, or it finds no addresses: as if its agent had said so
 * of a kernel.
 */
static void agent_command_refuse_start(struct session_entry *l, const char *kind,
                                       const struct aq_error *err)
{
    const struct msg_kernel_status words = { .error_kind = kind,
                                             .error_field = err->field,
                                             .error_text = err->text };
    size_t rank = 0;

    while (rank < l->s.kernel_count
           && (l->kernels[rank].fact != FACT_NONE || !kernel_is_holding(l->s.kernels[rank].status)))
        rank++;
    if (rank == l->s.kernel_count)
        return; /* all of them have begun */
    free(l->kernels[rank].error);
    l->kernels[rank].error = rejection_json(NULL, &words);
    l->kernels[rank].error_is_transient = err->code == ENOSPC;
    l->kernels[rank].error_is_image = false;
    l->kernels[rank].fact = FACT_ERROR;
}

/* Of domain, project and keypair: what comes later counts. */
static int agent_command_read_dotfiles(struct store_tx *tx, struct agent_command_reading *reading,
                                       struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const struct dotfile_owner owners[] = { { DOTFILE_DOMAIN, reading->domain },
                                            { DOTFILE_PROJECT, reading->project },
                                            { DOTFILE_KEYPAIR, reading->access_key } };
    struct dotfile *all = arena_array(&arena, AQ_COUNT(owners) * DOTFILES_MAX, sizeof(*all));
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    size_t count = 0;

    for (size_t i = 0; i < AQ_COUNT(owners); i++) {
        struct dotfile *files;
        int n = dotfile_list(tx, &owners[i], &arena, &files, err);

        if (n < 0)
            return n;
        memcpy(all + count, files, (size_t)n * sizeof(*files));
        count += (size_t)n;
    }
    dotfiles_write(all, count, &w);
    if (count)
        reading->dotfiles = strbuf_steal(&text);
    return 0;
}

static int agent_command_read_bootstrap(struct store_tx *tx, struct agent_command_reading *reading,
                                        struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const struct dotfile_owner owner = { DOTFILE_BOOTSTRAP, reading->access_key };
    struct dotfile *files;
    int n = dotfile_list(tx, &owner, &arena, &files, err);

    if (n > 0)
        reading->bootstrap = aq_strdup(files[0].data);
    return AQ_MIN(n, 0);
}

static int agent_command_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct agent_command_reading *reading = data;
    int r = reading->wants_spec ? agent_command_read_spec(tx, reading, err) : 0;

    if (r == 0)
        r = agent_command_read_dotfiles(tx, reading, err);
    return r < 0 ? r : agent_command_read_bootstrap(tx, reading, err);
}

/* lifecycle.c asks for the kernels again. */
static void agent_command_on_read(void *data, int r, const struct aq_error *err)
{
    struct agent_command_reading *reading = data;
    struct session_entry *l = session_entry_find(reading->core, &reading->id);

    if (l) {
        l->start.is_reading = false;
        if (r == -ESTALE) {
            if (l->s.version == reading->version)
                agent_command_refuse_start(l, "folder-unusable", err);
            durable_touch(reading->core, &l->durable);
        } else if (r < 0) {
            if (r != -EHOSTDOWN)
                log_warning("session '%s' is not started yet: reading what it runs: %s", l->s.name,
                            err->text);
            durable_wake_at(reading->core, &l->durable, clock_monotonic_usec() + REREAD_USEC);
        } else {
            if (l->s.version == reading->version) {
                session_entry_forget_start(l);
                l->start.spec = AQ_TAKE(reading->spec);
                l->start.dotfiles = AQ_TAKE(reading->dotfiles);
                l->start.bootstrap = AQ_TAKE(reading->bootstrap);
                l->start.is_read = true;
            }
            durable_touch(reading->core, &l->durable);
        }
    }
    agent_command_reading_free(reading);
}

static void agent_command_start_reading(struct core *core, struct session_entry *l)
{
    struct agent_command_reading *reading = aq_alloc(sizeof(*reading));

    reading->core = core;
    reading->id = l->s.id;
    reading->version = l->s.version;
    reading->wants_spec = l->s.is_spec_short || l->s.spec->mounts.count;
    reading->owner = mounts_owner_new(core, &l->s);
    reading->domain = aq_strdup(l->s.domain);
    uuid_format(&l->s.project_id, reading->project);
    memcpy(reading->access_key, l->s.access_key, sizeof(reading->access_key));
    l->start.is_reading = true;
    store_read(core->store, agent_command_read, agent_command_on_read, reading);
}

/* All of it; NULL if it is not in memory, its folders were not looked at, or its owners' dotfiles
 * not read, but will be.
 */
static const struct session_spec *agent_command_get_spec(struct core *core, struct session_entry *l)
{
    if (!l->start.is_read
        && (l->s.is_spec_short || l->s.spec->mounts.count || store_has_dotfiles(core->store))) {
        if (!l->start.is_reading)
            agent_command_start_reading(core, l);
        return NULL;
    }
    return l->start.spec ? l->start.spec : l->s.spec;
}

void agent_command_create(struct core *core, struct session_entry *l, size_t rank)
{
    const struct kernel *k = &l->s.kernels[rank];
    struct message msg = { .type = MSG_KERNEL_CREATE,
                           .kernel_create = { k->id, l->s.id, k->attempt } };
    const struct session_spec *spec = agent_command_find_agent(core, k->agent_id)
                                          ? agent_command_get_spec(core, l)
                                          : NULL;
    struct aq_error err = { 0 };
    const char *network;

    if (!spec)
        return;
    AQ_FAULT("core.kernel.create.sending");
    if (session_network_make(core, l, &network, &err) < 0) {
        agent_command_refuse_start(l, "no-address", &err);
        durable_touch(core, &l->durable);
    } else if (agent_command_fill_spec(core, l, spec, k, network, &msg.kernel_create.spec) == 0
               && agent_command_send(core, k->agent_id, &msg)) {
        l->kernels[rank].sent_usec = clock_monotonic_usec();
        l->kernels[rank].network_version = l->network.version;
        AQ_FAULT("core.kernel.create.sent");
    }
    arena_clear(&core->scratch, 1 << 16);
}

/* ---- the others ---- */

bool agent_command_network(struct core *core, const char *agent_id, const struct message *msg)
{
    return agent_command_send(core, agent_id, msg);
}

bool agent_command_watch_metrics(struct core *core, const char *agent_id,
                                 const struct msg_metrics_watch *watch)
{
    struct message msg = { .type = MSG_METRICS_WATCH, .metrics_watch = *watch };

    return agent_command_send(core, agent_id, &msg);
}

void agent_command_release(struct core *core, struct session_entry *l, size_t rank)
{
    const struct kernel *k = &l->s.kernels[rank];
    struct message msg = { .type = MSG_KERNEL_RELEASE, .kernel_release = { k->id, k->attempt } };

    if (agent_command_send(core, k->agent_id, &msg)) {
        l->kernels[rank].release_usec = clock_monotonic_usec();
        AQ_FAULT("core.kernel.release.sent");
    }
}

void agent_command_restart(struct core *core, struct session_entry *l, size_t rank)
{
    const struct kernel *k = &l->s.kernels[rank];
    struct message msg = { .type = MSG_KERNEL_RESTART,
                           .kernel_restart = { k->id, k->attempt, core->conf.kill_grace_usec } };

    if (agent_command_send(core, k->agent_id, &msg)) {
        l->kernels[rank].sent_usec = clock_monotonic_usec();
        AQ_FAULT("core.kernel.restart.sent");
    }
}

void agent_command_destroy(struct core *core, struct session_entry *l, size_t rank,
                           int64_t notice_usec, int64_t grace_usec, const char *reason)
{
    const struct kernel *k = &l->s.kernels[rank];
    struct message msg = { .type = MSG_KERNEL_DESTROY,
                           .kernel_destroy = { k->id, k->attempt, grace_usec, notice_usec,
                                               reason } };

    if (!agent_command_send(core, k->agent_id, &msg))
        return;
    l->kernels[rank].destroy_sent = true;
    l->kernels[rank].kill_sent |= grace_usec == 0;
    AQ_FAULT("core.kernel.destroy.sent");
}

void agent_command_end_orphan(struct core *core, const char *agent_id, const struct uuid *kernel_id,
                              int64_t attempt)
{
    struct message msg = { .type = MSG_KERNEL_DESTROY,
                           .kernel_destroy = { *kernel_id, attempt, 0, 0,
                                               REASON_NOT_FOUND_IN_MANAGER } };

    (void)agent_command_send(core, agent_id, &msg);
}

void agent_command_forget(struct core *core, const char *agent_id, const struct uuid *kernel_id,
                          int64_t attempt)
{
    struct message msg = { .type = MSG_KERNEL_FORGET, .kernel_forget = { *kernel_id, attempt } };

    if (agent_command_send(core, agent_id, &msg))
        AQ_FAULT("core.kernel.forget.sent");
}

void agent_command_describe(struct core *core, const char *agent_id, const struct uuid *kernel_id)
{
    struct message msg = { .type = MSG_KERNEL_DESCRIBE, .kernel_describe = { *kernel_id } };

    (void)agent_command_send(core, agent_id, &msg);
}

void agent_command_logins(struct core *core, const char *agent_id)
{
    struct message msg = { .type = MSG_IMAGE_LOGINS, .image_logins = { core->logins } };

    (void)agent_command_send(core, agent_id, &msg);
}

void agent_command_drain(struct core *core, const char *agent_id, bool on)
{
    struct message msg = { .type = MSG_DRAIN, .drain = { on } };

    (void)agent_command_send(core, agent_id, &msg);
}
