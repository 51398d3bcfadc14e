/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - how agents, front daemons and managers come and go for good: tokens, certificates,
 * removal
 *
 * What the store must remember is durable before anybody hears of it: a token
 * before it is shown, its use before the certificate leaves, a revocation
 * before the answer.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/vec.h"
#include "link/pki.h"
#include "store/audit_log.h"
#include "store/agent_cert.h"
#include "store/token.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/nodes/connection.h"
#include "manager/core/nodes/join.h"
#include "manager/core/nodes/fronts_internal.h"
#include "manager/core/nodes/managers_internal.h"
#include "manager/core/nodes/orphans.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/state.h"

#define DAY_USEC (24 * 3600 * USEC_PER_SEC)

/* The store has the hash as bytes. */
static void join_hash_secret(const char *secret, unsigned char hash[TOKEN_HASH_SIZE])
{
    char text[PKI_HASH_TEXT_MAX];
    unsigned byte;

    pki_token_hash(secret, text);
    for (size_t i = 0; i < TOKEN_HASH_SIZE; i++) {
        (void)sscanf(text + 2 * i, "%2x", &byte);
        hash[i] = (unsigned char)byte;
    }
}

static bool join_is_manager(const char *id)
{
    return strncmp(id, LINK_MANAGER_PREFIX, sizeof(LINK_MANAGER_PREFIX) - 1) == 0;
}

/* Of an agent or a front daemon. */
static int join_check_id(const char *id, struct aq_error *err)
{
    return core_is_front(id) ? fronts_check_id(id, err) : agent_id_check(id, err);
}

/* A token may be for one manager of any name. */
static int join_check_token_id(const char *id, struct aq_error *err)
{
    return strcmp(id, LINK_MANAGER_PREFIX) == 0 ? 0 : join_check_id(id, err);
}

/* ---- tokens ---- */

struct token_making {
    struct core *core;
    unsigned char hash[TOKEN_HASH_SIZE];
    char agent_id[AGENT_ID_MAX + 1]; /* "" = any */
    int64_t expires_usec;
    char text[PKI_TOKEN_MAX];
    struct audit_by by;
    core_token_fn done;
    void *data;
    struct aq_error err;
};

static int join_audit_token(struct store_tx *tx, const struct token_making *t, struct aq_error *err)
{
    char iso[CLOCK_ISO_MAX], after[CLOCK_ISO_MAX + 32];

    if (!t->by.is_some)
        return 0;
    (void)snprintf(after, sizeof(after), "{\"expires_at\":\"%s\"}",
                   clock_format_iso(t->expires_usec, iso));
    return audit_log_add_change(tx, &t->by.who,
                                &(struct audit_change){
                                    .action = "create-join-token",
                                    .object_kind = "join-token",
                                    .object_name = t->agent_id[0] ? t->agent_id : NULL,
                                    .after = after,
                                },
                                err);
}

static int join_write_token(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct token_making *t = data;
    int r = token_create(tx, t->hash, t->agent_id[0] ? t->agent_id : NULL, clock_realtime_usec(),
                         t->expires_usec, err);

    return r < 0 ? r : join_audit_token(tx, t, err);
}

static void join_on_token(void *data, int r, const struct aq_error *err)
{
    struct token_making *t = data;

    AQ_FAULT("core.token.stored");
    t->done(t->data, r, err, r < 0 ? NULL : t->text);
    free(t);
}

void core_make_token(struct core *core, const char *agent_id, int64_t ttl_usec,
                     const struct audit_who *by, core_token_fn done, void *data)
{
    struct token_making *t = aq_alloc(sizeof(*t));
    struct pki_token token;
    char secret[PKI_SECRET_TEXT_MAX];
    int r = 0;

    *t = (struct token_making){ .core = core, .by = audit_by_copy(by), .done = done, .data = data };
    if (agent_id && (r = join_check_token_id(agent_id, &t->err)) == 0)
        memcpy(t->agent_id, agent_id, strlen(agent_id) + 1);
    if (r == 0 && !core->ca)
        r = aq_fail(&t->err, ENOTSUP, "this manager listens to no agents");
    if (r == 0 && join_is_manager(t->agent_id))
        r = managers_check_token(core, ttl_usec, &t->err);
    if (r == 0 && (ttl_usec <= 0 || ttl_usec > 30 * DAY_USEC))
        r = aq_fail_field(&t->err, EINVAL, "expires_sec", "a token lives for up to 30 days");
    if (r == 0) {
        t->expires_usec = clock_realtime_usec() + ttl_usec;
        token = pki_token_new(core->ca, t->expires_usec);
        pki_token_format(&token, t->text);
        join_hash_secret(pki_token_secret(&token, secret), t->hash);
        explicit_bzero(secret, sizeof(secret));
        explicit_bzero(&token, sizeof(token));
        store_write(core->store, join_write_token, join_on_token, t);
    } else {
        core_defer(core, join_on_token, t, r, &t->err);
    }
}

/* ---- revoked serials ---- */

struct serials {
    const char *agent_id;
    char (*items)[CERT_SERIAL_MAX];
    size_t count, cap;
};

static int join_note_serial(void *data, const struct agent_cert *cert)
{
    struct serials *serials = data;

    if (strcmp(cert->agent_id, serials->agent_id) != 0)
        return 0;
    vec_grow(&serials->items, &serials->cap, serials->count + 1, sizeof(*serials->items));
    memcpy(serials->items[serials->count++], cert->serial, CERT_SERIAL_MAX);
    return 0;
}

/* Revoke an agent's certificates in the database; 'ret' gets all that ever were. */
static int join_revoke_rows(struct store_tx *tx, const char *agent_id, int64_t now,
                            struct serials *ret, struct aq_error *err)
{
    int r = cert_revoke_agent(tx, agent_id, now, err);

    ret->agent_id = agent_id;
    ret->count = 0; /* a transaction may be run again */
    return r < 0 ? r : cert_list_revoked(tx, now, join_note_serial, ret, err);
}

/* The link's turn, once the database has it: no certificate of these gets in,
 * and who is in is told 'text' and put out.
 */
static void join_publish_revocation(struct core *core, const struct serials *serials,
                                    const char *text)
{
    struct agent_entry *a = agent_entry_find(core, serials->agent_id);
    struct aq_error err;
    int r = 0;

    for (size_t i = 0; i < serials->count && core->ca; i++)
        r = AQ_MIN(r, pki_revoke(core->ca, serials->items[i], &err));
    if (r < 0)
        log_warning("agent '%s': %s; its certificates are revoked, the database has them",
                    serials->agent_id, err.text);
    AQ_FAULT("core.revoke.published");
    if (core->link)
        link_server_drop(core->link, serials->agent_id, text);
    fronts_forget(core, serials->agent_id);
    orphans_drop_agent(core, serials->agent_id);
    if (a && a->is_connected)
        connection_lost(core, a);
}

/* ---- joining ---- */

struct joining {
    struct core *core;
    struct link_join *join;
    unsigned char hash[TOKEN_HASH_SIZE];
    char *request, *cert; /* to be signed, signed */
    struct agent_cert row;
    bool is_taken; /* there is an agent of this name, whether it is connected or not */
    bool is_any;   /* a manager's token is for one of any name */
    struct serials former;
    struct manager_row manager; /* of a manager, unless it is refused for ... */
    struct aq_error refusal;
    bool has_database;
    struct link_join_keys keys;
};

static void joining_free(struct joining *j)
{
    free(j->request);
    free(j->cert);
    free(j->former.items);
    link_join_keys_done(&j->keys);
    free(j);
}

/* The name is another machine's, with its sessions: only a token that an
 * administrator made for this name hands it over.
 */
static int join_check_name(struct store_tx *tx, const struct joining *j, struct aq_error *err)
{
    bool is_front = core_is_front(j->row.agent_id);
    int r = j->is_taken || is_front ? token_is_bound(tx, j->hash, err) : 1;

    if (r != 0)
        return AQ_MIN(r, 0);
    if (is_front)
        return fronts_fail_token(j->row.agent_id, err);
    return aq_fail(err, EEXIST,
                   "there is an agent called '%s': give this one another name (id in agent.toml, "
                   "or the variable ALIQUOT_ID). If this machine is to take its place, join with "
                   "a token of 'aliquot agent token --agent %s'",
                   j->row.agent_id, j->row.agent_id);
}

/* A token for any name gives the keys of the cluster. The place of a manager that there is already is
 * given only by a token that was made for its name.
 */
static int join_check_manager(struct store_tx *tx, const struct joining *j, struct aq_error *err)
{
    int r = j->is_any ? manager_row_exists(tx, j->manager.name, err) : 0;

    if (r <= 0)
        return r;
    return aq_fail_field(err, EEXIST, "name",
                         "there is a manager called '%s': give this one another name (--name, or "
                         "name in [manager] of manager.toml). If this machine is to take its "
                         "place, join with a token of 'aliquot admin manager token --name %s'",
                         j->manager.name, j->manager.name);
}

/* It gets the keys of the cluster instead of a certificate. They are read for a good token only. */
static int join_write_manager(struct store_tx *tx, struct joining *j, struct aq_error *err)
{
    int r;

    if (j->refusal.code) {
        *err = j->refusal;
        return -err->code;
    }
    if ((r = join_check_manager(tx, j, err)) < 0)
        return r;
    link_join_keys_done(&j->keys); /* a transaction may be run again */
    r = managers_export_keys(j->core, j->has_database, &j->keys, err);
    return r < 0 ? r : manager_row_join(tx, &j->manager, err);
}

/* A token of a manager is for its name or, with an empty one, for any manager. */
static int join_use_token(struct store_tx *tx, struct joining *j, struct aq_error *err)
{
    const char *id = j->row.agent_id;
    bool is_manager = join_is_manager(id);
    int r = token_use(tx, j->hash, id, id, j->row.issued_usec, err);

    j->is_any = r == 0 && is_manager;
    if (j->is_any)
        r = token_use(tx, j->hash, id, LINK_MANAGER_PREFIX, j->row.issued_usec, err);
    if (r == 0)
        return aq_fail_kind(err, EACCES, "invalid-token",
                            "the join token is unknown, used, expired or made for another name; "
                            "make a new one with '%s'",
                            is_manager ? "aliquot admin manager token" : "aliquot agent token");
    return AQ_MIN(r, 0);
}

/* Who has no token is not told which agents there are. A refusal leaves the
 * token unused. A name has one certificate: those before it are revoked.
 */
static int join_write_join(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct joining *j = data;
    int r = join_use_token(tx, j, err);

    if (r == 0)
        r = join_check_name(tx, j, err);
    if (r == 0 && join_is_manager(j->row.agent_id))
        return join_write_manager(tx, j, err);
    if (r == 0) /* nobody has us sign without a token */
        r = pki_issue_agent(j->core->ca, j->request, j->row.agent_id, PKI_AGENT_DAYS, &j->cert,
                            j->row.serial, err);
    if (r == 0)
        r = join_revoke_rows(tx, j->row.agent_id, j->row.issued_usec, &j->former, err);
    return r < 0 ? r : cert_save(tx, &j->row, err);
}

static void join_retire_former(struct joining *j)
{
    join_publish_revocation(j->core, &j->former,
                            "a machine has joined by this name with a token made for it; this "
                            "one's certificate is revoked");
    log_warning("agent '%s' has joined again: its former certificates are revoked",
                j->row.agent_id);
}

static void join_accept_manager(struct joining *j)
{
    struct core *core = j->core;

    if (core->link && link_server_is_connected(core->link, j->row.agent_id))
        link_server_drop(core->link, j->row.agent_id,
                         "a machine has joined by this name with a token made for it");
    managers_take(core, &j->manager);
    log_warning("manager '%s' has joined, and has the keys of the cluster", j->manager.name);
    link_join_accept(j->join, NULL, &j->keys, NULL);
}

static void join_on_join_written(void *data, int r, const struct aq_error *err)
{
    struct joining *j = data;

    AQ_FAULT("core.join.stored");
    if (r == 0 && join_is_manager(j->row.agent_id)) {
        join_accept_manager(j);
    } else if (r == 0) {
        if (j->former.count)
            join_retire_former(j);
        log_info("agent '%s' has joined (certificate %s)", j->row.agent_id, j->row.serial);
        link_join_accept(j->join, j->cert, NULL,
                         j->is_taken ? "this machine takes the place of an agent of this name, "
                                       "whose certificate is revoked"
                                     : NULL);
    } else {
        log_limited(&j->core->join_log, LOG_LEVEL_WARNING, "agent '%s' may not join: %s",
                    j->row.agent_id, err->text);
        link_join_refuse(j->join, r == -EACCES ? "token" : "refused", err->text);
    }
    joining_free(j);
}

static int join_prepare(struct core *core, struct joining *j, const struct msg_join *msg,
                        struct aq_error *err)
{
    const struct agent_entry *same = agent_entry_find(core, msg->agent_id);
    bool is_manager = join_is_manager(msg->agent_id);
    int r = join_check_id(msg->agent_id, err);

    if (r == 0 && !is_manager && !msg->csr)
        r = aq_fail_field(err, EINVAL, "csr", "an agent asks for a certificate: csr is missing");
    if (r < 0)
        return r;
    if (is_manager)
        (void)managers_read_join(core, msg, link_join_is_local(j->join), &j->manager, &j->refusal);
    j->has_database = msg->has_database;
    j->request = aq_strdup(msg->csr);
    join_hash_secret(msg->secret, j->hash);
    memcpy(j->row.agent_id, msg->agent_id, strlen(msg->agent_id) + 1);
    j->row.issued_usec = clock_realtime_usec();
    j->row.expires_usec = j->row.issued_usec + PKI_AGENT_DAYS * DAY_USEC;
    j->is_taken = same
                  && (same->is_connected || (same->is_known && same->a.status != AGENT_TERMINATED));
    return 0;
}

void join_request(void *data, struct link_join *join, const struct msg_join *msg)
{
    struct core *core = data;
    struct joining *j = aq_alloc(sizeof(*j));
    struct aq_error err = { 0 };
    int r;

    j->core = core;
    j->join = join;
    r = join_prepare(core, j, msg, &err);
    AQ_FAULT("core.join.asked");
    if (r == 0) {
        store_write(core->store, join_write_join, join_on_join_written, j);
    } else {
        link_join_refuse(join, "refused", err.text);
        joining_free(j);
    }
}

/* ---- revocation and removal ---- */

struct revocation {
    struct core *core;
    char agent_id[AGENT_ID_MAX + 1];
    bool and_remove;
    struct serials serials;
    struct audit_by by;
    core_done_fn done;
    void *data;
};

static struct audit_change join_audit_change(const struct revocation *v, const char *action)
{
    return (struct audit_change){ .action = action,
                                  .object_kind = "agent",
                                  .object_id = v->agent_id,
                                  .object_name = v->agent_id };
}

static int join_write_revocation(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct revocation *v = data;
    const struct audit_change change = join_audit_change(v, "revoke-agent");
    int r = join_revoke_rows(tx, v->agent_id, clock_realtime_usec(), &v->serials, err);

    return r < 0 || !v->by.is_some ? r : audit_log_add_change(tx, &v->by.who, &change, err);
}

static void join_finish_revocation(void *data, int r, const struct aq_error *err)
{
    struct revocation *v = data;

    v->done(v->data, r, err);
    free(v->serials.items);
    free(v);
}

static void join_remove_row(struct revocation *v)
{
    struct core *core = v->core;
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_AGENT_REMOVED, clock_realtime_usec());
    struct audit_change change;

    memcpy(e->agent_status.id, v->agent_id, sizeof(v->agent_id));
    e->agent_status.to = AGENT_TERMINATED;
    e->agent_status.reason = REASON_USER_REQUESTED;
    change = join_audit_change(v, "remove-agent");
    proposal_commit_audited(core, batch, audit_by_get(&v->by), &change, join_finish_revocation, v);
}

static void join_on_revoked(void *data, int r, const struct aq_error *err)
{
    struct revocation *v = data;

    AQ_FAULT("core.revoke.stored");
    if (r == 0)
        join_publish_revocation(v->core, &v->serials, "the certificate is revoked");
    if (r == 0 && v->and_remove)
        join_remove_row(v);
    else
        join_finish_revocation(v, r, err);
}

static void join_begin_revocation(struct core *core, const char *id, bool and_remove,
                                  const struct audit_who *by, core_done_fn done, void *data)
{
    struct agent_entry *a = agent_entry_find(core, id);
    struct revocation *v = aq_alloc(sizeof(*v));
    struct aq_error err;
    int r = 0;

    *v = (struct revocation){
        .core = core, .and_remove = and_remove, .by = audit_by_copy(by), .done = done, .data = data
    };
    if (join_is_manager(id)) /* it has the authority's key, and makes its certificates */
        r = aq_fail_kind(
            &err, EBUSY, "conflict",
            "'%.64s' is a manager; remove it from the cluster: aliquot manager rm NAME", id);
    else if (join_check_id(id, NULL) < 0 || (and_remove && (!a || !a->is_known)))
        r = aq_fail(&err, ENOENT, "there is no agent '%.64s'", id);
    else if (and_remove && !list_is_empty(&a->kernels))
        r = aq_fail(&err, EBUSY, "%u kernels are on agent '%s'; drain it and end them first",
                    (unsigned)a->kernel_count, id);
    else
        memcpy(v->agent_id, id, strlen(id) + 1);
    if (r == 0)
        store_write(core->store, join_write_revocation, join_on_revoked, v);
    else
        core_defer(core, join_finish_revocation, v, r, &err);
}

void core_revoke_agent(struct core *core, const char *id, const struct audit_who *by,
                       core_done_fn done, void *data)
{
    join_begin_revocation(core, id, false, by, done, data);
}

void core_remove_agent(struct core *core, const char *id, const struct audit_who *by,
                       core_done_fn done, void *data)
{
    join_begin_revocation(core, id, true, by, done, data);
}
