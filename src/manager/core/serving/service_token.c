/* SPDX-License-Identifier: Apache-2.0 */
/* service_token.c - tokens that let clients use a model service */
#include "manager/core/serving/service_token.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "base/sum.h"
#include "base/vec.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/services.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/state.h"

#define WRITE_USEC (5 * USEC_PER_SEC)  /* uses are written after so long */
#define CHECK_USEC (30 * USEC_PER_SEC) /* the wall clock can be set: look at expiry now and then */

static int service_fail_unknown(const char *what, struct aq_error *err)
{
    return aq_fail_kind(err, ENOENT, "object-not-found", "No such %s.", what);
}

/* ---- commands ---- */

static void service_token_write_audit(const struct model_service_token *token, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);
    char id[UUID_TEXT_MAX], time[CLOCK_ISO_MAX];

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "token", uuid_format(&token->id, id));
    jsonw_member_str(&w, "label", token->label);
    jsonw_key(&w, "paths");
    model_service_token_write_paths(token, &w);
    if (token->expires_usec)
        jsonw_member_str(&w, "expires_at", clock_format_iso(token->expires_usec, time));
    jsonw_member_int(&w, "budget", token->budget);
    jsonw_object_end(&w);
}

static void service_token_commit(struct core *core, const struct model_service *s,
                                 struct event_batch *batch, const char *action, const char *before,
                                 const char *after, const struct audit_who *by, core_done_fn done,
                                 void *data)
{
    char id[UUID_TEXT_MAX];
    const struct audit_change change = { .action = action,
                                         .object_kind = "model-service",
                                         .object_id = uuid_format(&s->id, id),
                                         .object_name = s->name,
                                         .object_domain = s->domain,
                                         .before = before,
                                         .after = after };

    AQ_FAULT("core.serving.token.proposed");
    proposal_commit_audited(core, batch, by, &change, done, data);
}

/* A new token on its way to the store. */
struct service_token_addition {
    struct core *core;
    struct uuid service_id;
    core_done_fn done;
    void *data;
};

/* core_done_fn */
static void service_token_on_added(void *data, int r, const struct aq_error *err)
{
    struct service_token_addition *addition = data;
    struct model_service_entry *entry = model_service_entry_find(addition->core,
                                                                 &addition->service_id);

    if (entry)
        entry->tokens_coming--;
    addition->done(addition->data, r, err);
    free(addition);
}

void core_add_service_token(struct core *core, const struct uuid *service_id,
                            struct model_service_token *token, const struct audit_who *by,
                            core_done_fn done, void *data)
{
    struct model_service_entry *entry = model_service_entry_find(core, service_id);
    AQ_CLEANUP(strbuf_donep) struct strbuf after = STRBUF_INIT;
    struct service_token_addition *addition;
    int64_t now = clock_realtime_usec();
    struct event_batch *batch;
    struct aq_error err;
    struct event *e;
    int r = entry ? model_service_token_check(token, now, &err)
                  : service_fail_unknown("model service", &err);

    if (r == 0 && entry->s.token_count + entry->tokens_coming >= MODEL_SERVICE_TOKENS_MAX)
        r = aq_fail_kind(&err, EDQUOT, "quota-exceeded",
                         "the model service '%s' has %d tokens already; revoke some that are not "
                         "needed",
                         entry->s.name, MODEL_SERVICE_TOKENS_MAX);
    if (r < 0) {
        model_service_token_done(token);
        core_defer(core, done, data, r, &err);
        return;
    }
    token->id = uuid_random();
    token->created_usec = now;
    token->used = token->requests = token->used_usec = 0;
    if (by)
        token->creator_id = by->user_id;
    service_token_write_audit(token, &after);
    batch = event_batch_new();
    e = event_batch_add(batch, EVENT_SERVICE_TOKEN_ADDED, now);
    e->service_token.service_id = *service_id;
    model_service_token_copy(&e->service_token.token, token);
    model_service_token_done(token);
    token->id = e->service_token.token.id;
    token->created_usec = now;
    addition = aq_alloc(sizeof(*addition));
    *addition = (struct service_token_addition){ core, *service_id, done, data };
    entry->tokens_coming++;
    service_token_commit(core, &entry->s, batch, "create-service-token", NULL, after.data, by,
                         service_token_on_added, addition);
}

void core_revoke_service_token(struct core *core, const struct uuid *service_id,
                               const struct uuid *token_id, const struct audit_who *by,
                               core_done_fn done, void *data)
{
    const struct model_service_entry *entry = model_service_entry_find(core, service_id);
    const struct model_service_token *token = entry ? model_service_find_token(&entry->s, token_id)
                                                    : NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf before = STRBUF_INIT;
    struct event_batch *batch;
    struct aq_error err;
    struct event *e;

    if (!token) {
        core_defer(core, done, data, service_fail_unknown("token", &err), &err);
        return;
    }
    service_token_write_audit(token, &before);
    batch = event_batch_new();
    e = event_batch_add(batch, EVENT_SERVICE_TOKEN_REMOVED, clock_realtime_usec());
    e->service_token.service_id = *service_id;
    e->service_token.token.id = *token_id;
    service_token_commit(core, &entry->s, batch, "revoke-service-token", before.data, NULL, by,
                         done, data);
}

/* ---- what was done with them ---- */

static void service_token_keep(struct core *core, struct model_service_entry *entry,
                               const struct service_token_use *more)
{
    struct service_token_use *use = NULL;

    for (size_t i = 0; i < entry->uses.count && !use; i++)
        if (uuid_equals(&entry->uses.items[i].token_id, &more->token_id))
            use = &entry->uses.items[i];
    if (!use) {
        vec_grow(&entry->uses.items, &entry->uses.cap, entry->uses.count + 1, sizeof(*use));
        use = &entry->uses.items[entry->uses.count++];
        *use = (struct service_token_use){ .token_id = more->token_id };
    }
    use->requests = sum_add(use->requests, more->requests);
    use->spent = sum_add(use->spent, more->spent);
    if (!entry->uses.due_usec)
        entry->uses.due_usec = clock_monotonic_usec() + WRITE_USEC;
    durable_wake_at(core, &entry->durable, entry->uses.due_usec);
}

void core_note_token_use(struct core *core, const struct uuid *service_id,
                         const struct uuid *token_id, int64_t requests, int64_t spent)
{
    struct model_service_entry *entry = model_service_entry_find(core, service_id);
    const struct service_token_use more = { *token_id, requests, spent };

    if (entry && model_service_find_token(&entry->s, token_id) && requests >= 0 && spent >= 0)
        service_token_keep(core, entry, &more);
}

void service_token_returned(struct core *core, struct model_service_entry *entry, int result)
{
    struct service_token_use *items = AQ_TAKE(entry->uses.writing);

    for (size_t i = 0; result < 0 && i < entry->uses.writing_count; i++)
        service_token_keep(core, entry, &items[i]);
    entry->uses.writing_count = 0;
    free(items);
}

/* Sums stay below what a row can hold. */
static int64_t service_token_add(int64_t have, int64_t more)
{
    return AQ_MIN(more, INT64_MAX - have);
}

static void service_token_fill_use(const struct model_service_entry *entry,
                                   const struct service_token_use *use, struct event *e)
{
    const struct model_service_token *token = model_service_find_token(&entry->s, &use->token_id);

    e->service_token.service_id = entry->s.id;
    e->service_token.token.id = use->token_id;
    e->service_token.requests = token ? service_token_add(token->requests, use->requests) : 0;
    e->service_token.spent = token ? service_token_add(token->used, use->spent) : 0;
}

void service_token_step(struct core *core, struct model_service_entry *entry)
{
    int64_t now = clock_monotonic_usec(), wall = clock_realtime_usec(), next = INT64_MAX;

    if (entry->uses.due_usec && now >= entry->uses.due_usec) {
        for (size_t i = 0; i < entry->uses.count; i++)
            service_token_fill_use(entry, &entry->uses.items[i],
                                   proposal_add(core, &entry->durable, EVENT_SERVICE_TOKEN_USED));
        entry->uses.writing = AQ_TAKE(entry->uses.items);
        entry->uses.writing_count = entry->uses.count;
        entry->uses.count = entry->uses.cap = 0;
        entry->uses.due_usec = 0;
    } else if (entry->uses.due_usec) {
        durable_wake_at(core, &entry->durable, entry->uses.due_usec);
    }
    for (size_t i = 0; i < entry->s.token_count; i++) {
        const struct model_service_token *token = &entry->s.tokens[i];
        struct event *e;

        if (!token->expires_usec || wall < token->expires_usec) {
            next = token->expires_usec ? AQ_MIN(next, token->expires_usec) : next;
            continue;
        }
        e = proposal_add(core, &entry->durable, EVENT_SERVICE_TOKEN_REMOVED);
        e->service_token.service_id = entry->s.id;
        e->service_token.token.id = token->id;
    }
    if (next < INT64_MAX)
        durable_wake_at(core, &entry->durable, now + AQ_MIN(next - wall, CHECK_USEC));
}

void service_token_save(struct core *core)
{
    struct event_batch *batch = event_batch_new();

    LIST_FOREACH(link, &core->services) {
        struct model_service_entry *entry = LIST_ENTRY(link, struct model_service_entry, all_link);

        for (size_t i = 0; i < entry->uses.count; i++)
            service_token_fill_use(
                entry, &entry->uses.items[i],
                event_batch_add(batch, EVENT_SERVICE_TOKEN_USED, clock_realtime_usec()));
        entry->uses.count = 0;
    }
    if (batch->count)
        proposal_commit_command(core, batch, NULL, NULL);
    else
        event_batch_free(batch);
}

/* ---- what is durable ---- */

void service_token_apply(struct core *core, struct event *e)
{
    struct model_service_entry *entry = model_service_entry_find(core,
                                                                 &e->service_token.service_id);
    const struct uuid id = e->service_token.token.id;
    struct model_service_token *token;

    if (!entry)
        return;
    if (e->kind == EVENT_SERVICE_TOKEN_ADDED) /* takes the token out of the event */
        model_service_entry_add_token(entry, &e->service_token.token);
    token = (struct model_service_token *)(uintptr_t)model_service_find_token(&entry->s, &id);
    if (!token)
        return;
    if (e->kind != EVENT_SERVICE_TOKEN_USED || token->budget) /* proxies know what is left */
        model_service_entry_note_change(core, entry);
    if (e->kind == EVENT_SERVICE_TOKEN_USED) {
        token->requests += e->service_token.requests;
        token->used += e->service_token.spent;
        token->used_usec = e->at_usec;
    } else if (e->kind == EVENT_SERVICE_TOKEN_REMOVED) {
        size_t at = (size_t)(token - entry->s.tokens);

        model_service_token_done(token);
        memmove(token, token + 1, (--entry->s.token_count - at) * sizeof(*token));
    }
}
