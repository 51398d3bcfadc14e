/* SPDX-License-Identifier: Apache-2.0 */
/* service_replica.c - the sessions of a model service
 *
 * A replica is created by core_create_sessions(). Its session and the number of the replica are
 * written in one transaction, which fails if the service has ended or is ending.
 */
#include "manager/core/serving/service_replica.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/core/serving/service_health.h"
#include "manager/core/serving/service_rollout.h"
#include "manager/core/serving/service_share.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "manager/rules/folder_mount.h"
#include "store/model_service.h"

#define MODEL_TARGET "/models"
#define RETRY_USEC_MAX (300 * USEC_PER_SEC)
#define RETRY_STEPS 9                     /* 1, 2, 4 ... 256, 300 s */
#define STABLE_USEC (60 * USEC_PER_SEC)   /* an end so soon after being ready is a failure */
#define FORGIVE_USEC (600 * USEC_PER_SEC) /* a replica that is ready so long ends the pauses */
#define REPLICA_VARIABLES 5

/* ---- the request ---- */

/* Variables of the service stand before those of the revision, which cannot replace them. */
static void service_order_set_environ(const struct model_service *s,
                                      const struct model_service_spec *spec, int64_t revision,
                                      int64_t number, struct service_order *order)
{
    const struct pair_list *own = &spec->session.environ;
    struct text_pair *items = arena_array(&order->arena, own->count + REPLICA_VARIABLES,
                                          sizeof(*items));
    char text[24];
    size_t count = 0, first;

    items[count++] = (struct text_pair){ "ALIQUOT_SERVICE", s->name };
    (void)snprintf(text, sizeof(text), "%" PRId64, revision);
    items[count++] = (struct text_pair){ "ALIQUOT_SERVICE_REVISION",
                                         arena_strdup(&order->arena, text) };
    (void)snprintf(text, sizeof(text), "%" PRId64, number);
    items[count++] = (struct text_pair){ "ALIQUOT_REPLICA", arena_strdup(&order->arena, text) };
    if (spec->model_name)
        items[count++] = (struct text_pair){ "BACKEND_MODEL_NAME", spec->model_name };
    items[count++] = (struct text_pair){ "BACKEND_MODEL_PATH",
                                         spec->model_target ? spec->model_target : MODEL_TARGET };
    first = count;
    for (size_t i = 0; i < own->count; i++) {
        size_t k = 0;

        while (k < first && strcmp(items[k].key, own->items[i].key) != 0)
            k++;
        if (k == first)
            items[count++] = own->items[i];
    }
    order->request.spec.environ = (struct pair_list){ items, count };
}

/* "FOLDER[:TARGET[:ro]]" */
static int service_order_read_mount(struct service_order *order, const char *text,
                                    struct named_mount *ret, struct aq_error *err)
{
    char *copy = arena_strdup(&order->arena, text), *target = strchr(copy, ':'), *mode;

    *ret = (struct named_mount){ .folder = copy };
    if (!target)
        return 0;
    *target++ = '\0';
    mode = strchr(target, ':');
    if (mode)
        *mode++ = '\0';
    if (mode && folder_permission_parse(mode, &ret->permission) < 0)
        return aq_fail_field(err, EINVAL, "mounts", "'%.200s' ends with '%.32s', expected ro or rw",
                             text, mode);
    ret->target = target[0] ? target : NULL;
    return 0;
}

static int service_order_set_mounts(const struct core *core, const struct model_service_spec *spec,
                                    struct service_order *order, struct aq_error *err)
{
    struct named_mount *named = arena_array(&order->arena, spec->mounts.count + 1, sizeof(*named));
    size_t count = 0;
    int r = 0;

    if (spec->model)
        named[count++] = (struct named_mount){
            .folder = spec->model,
            .target = spec->model_target ? spec->model_target : MODEL_TARGET,
            .permission = FOLDER_READ_ONLY,
        };
    for (size_t i = 0; r == 0 && i < spec->mounts.count; i++)
        r = service_order_read_mount(order, spec->mounts.items[i], &named[count++], err);
    order->request.mounts = (struct session_mounts){ .named = named,
                                                     .count = count,
                                                     .may_mount = core->serving.may_mount,
                                                     .data = core->serving.mounts_data };
    return r;
}

static int service_order_set_resources(const struct core *core,
                                       const struct model_service_spec *spec,
                                       const char *share_slot, int64_t share_micro,
                                       struct service_order *order, struct aq_error *err)
{
    int r;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    jsonw_object_begin(&w);
    for (size_t i = 0; i < spec->resources.count; i++)
        jsonw_member_str(&w, spec->resources.items[i].key, spec->resources.items[i].value);
    jsonw_object_end(&w);
    r = slots_from_text(text.data, text.len, core->types, &order->request.resources, err);
    if (r == 0 && share_slot)
        slots_put(&order->request.resources, share_slot, share_micro);
    return r;
}

int service_order_make(const struct core *core, const struct model_service *s,
                       const struct model_service_revision *revision, int64_t number,
                       const char *share_slot, int64_t share_micro, struct service_order *ret,
                       struct aq_error *err)
{
    const struct project *project = core_find_project(core, &s->project_id);
    const struct model_service_spec *spec = revision->spec;
    char name[SESSION_NAME_MAX + 1];
    int r;

    *ret = (struct service_order){ .arena = ARENA_INIT };
    if (!project)
        return aq_fail_kind(err, ENOENT, "object-not-found",
                            "the project of the model service was removed");
    ret->replica = (struct session_replica){
        .service_id = s->id, .revision = revision->number, .number = number, .ratio_ppm = 1000000
    };
    (void)snprintf(name, sizeof(name), "%s.r%" PRId64 ".%" PRId64, s->name, revision->number,
                   number);
    ret->request = (struct session_request){
        .name = arena_strdup(&ret->arena, name),
        .type = SESSION_INFERENCE,
        .spec = spec->session,
        .access_key = s->access_key,
        .domain = s->domain,
        .group = project->name,
        .resource_group = s->resource_group,
        .cluster_size = (uint32_t)spec->cluster_size,
        .multi_node = spec->is_multi_node,
        .priority = spec->priority ? (int)spec->priority : -1,
        .replica = &ret->replica,
    };
    /* A lost replica is replaced by another one, and none is moved or preempted. */
    ret->request.spec.on_node_loss = SESSION_ON_NODE_LOSS_END;
    ret->request.spec.is_preemptible = ret->request.spec.is_movable = false;
    if (!ret->request.spec.tag)
        ret->request.spec.tag = s->tag;
    service_order_set_environ(s, spec, revision->number, number, ret);
    r = service_order_set_mounts(core, spec, ret, err);
    return r < 0 ? r : service_order_set_resources(core, spec, share_slot, share_micro, ret, err);
}

void service_order_done(struct service_order *order)
{
    slots_done(&order->request.resources);
    arena_done(&order->arena);
}

/* ---- failures ---- */

static void service_replica_fail(struct core *core, struct model_service_entry *entry,
                                 const char *text)
{
    int64_t now = clock_monotonic_usec(), pause;

    free(entry->failure.text);
    entry->failure.text = aq_strdup(text);
    entry->failure.at_usec = clock_realtime_usec();
    entry->failure.is_trial = true;
    model_service_entry_note_change(core, entry);
    if (now < entry->failure.retry_usec) /* others have failed together with it */
        return;
    pause = entry->failure.count < RETRY_STEPS ? (INT64_C(1) << entry->failure.count) * USEC_PER_SEC
                                               : RETRY_USEC_MAX;
    pause = AQ_MIN(pause, RETRY_USEC_MAX);
    entry->failure.count++;
    entry->failure.retry_usec = now + pause;
    log_info("model service '%s': %.*s; the next replica is created in %lld s", entry->s.name,
             (int)strcspn(text, "\n"), text, (long long)(pause / USEC_PER_SEC));
}

/* Its end was decided by the service, by its user, or by the loss of its node. */
static bool service_replica_is_excused(const struct session_entry *l, const char *reason)
{
    static const char *const reasons[] = { REASON_SERVICE_ENDED,    REASON_SERVICE_SCALED,
                                           REASON_SERVICE_REPLACED, REASON_AGENT_LOST,
                                           REASON_AGENT_DRAINED,    REASON_AGENT_REMOVED };

    for (size_t i = 0; reason && i < AQ_COUNT(reasons); i++)
        if (strcmp(reason, reasons[i]) == 0)
            return true;
    return l->s.replica->draining_usec || session_reason_is_by_user(reason);
}

/* The replica was ready for STABLE_USEC. */
static bool service_replica_was_stable(const struct session_entry *l, int64_t ended_usec)
{
    int64_t ready = l->s.replica->ready_usec;

    return ready && ready >= l->s.running_usec && ended_usec - ready >= STABLE_USEC;
}

bool service_replica_is_failure(const struct session_entry *l, const char *reason)
{
    if (!reason || (l->s.status == SESSION_TERMINATING && l->s.reason)) /* the first one wins */
        reason = l->s.reason;
    return l->replica && !l->replica->service->s.is_ending && !service_replica_is_excused(l, reason)
           && !service_replica_was_stable(l, clock_realtime_usec());
}

/* Once the program has ended with a status, neither the reason "self-terminated" nor the last probe,
 * which may have met the container while it went away, says more than the status and the log.
 */
static void service_replica_describe_end(const struct session_entry *l, struct strbuf *out)
{
    const struct kernel *k = &l->s.kernels[0];
    bool is_late = l->s.reason && strcmp(l->s.reason, REASON_SERVICE_UNREADY) == 0;
    bool has_exited = !is_late && k->has_exit;
    AQ_CLEANUP(strbuf_donep) struct strbuf said = STRBUF_INIT;

    strbuf_addf(out, "replica '%s' ended", l->s.name);
    if (is_late)
        strbuf_adds(out, " because it did not become ready in time");
    if (has_exited)
        strbuf_addf(out, ": its program exited with status %d%s", k->exit_code,
                    l->s.replica->ready_usec ? "" : " before it was ready");
    if (l->s.reason && !is_late
        && !(has_exited && strcmp(l->s.reason, REASON_SELF_TERMINATED) == 0))
        strbuf_addf(out, " (%s)", l->s.reason);
    if (l->replica->health_text && !has_exited)
        strbuf_addf(out, "; its last health check said: %s", l->replica->health_text);
    core_status_text(l->s.status_data, &said);
    if (said.len)
        strbuf_addf(out, ": %s", said.data);
    if (l->replica->last_lines)
        strbuf_addf(out, "\n%s", l->replica->last_lines);
}

void service_replica_ended(struct core *core, struct model_service_entry *entry,
                           const struct session_entry *l)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (service_replica_is_excused(l, l->s.reason) || entry->s.is_ending)
        return;
    if (service_replica_was_stable(l, l->s.status_changed_usec)) {
        log_info("model service '%s': replica '%s' ended: %s", entry->s.name, l->s.name,
                 l->s.reason ? l->s.reason : "no reason is known");
        return;
    }
    service_replica_describe_end(l, &text);
    service_replica_fail(core, entry, text.data);
}

int64_t service_replica_succeeded(struct model_service_entry *entry, int64_t ready_usec,
                                  int64_t now_usec)
{
    if (!entry->failure.count || ready_usec <= entry->failure.at_usec)
        return 0; /* those that were ready before do not show that the next one will be */
    entry->failure.is_trial = false;
    free(AQ_TAKE(entry->failure.text));
    if (now_usec < ready_usec + FORGIVE_USEC)
        return ready_usec + FORGIVE_USEC;
    service_replica_forgive(entry);
    return 0;
}

void service_replica_forgive(struct model_service_entry *entry)
{
    free(AQ_TAKE(entry->failure.text));
    entry->failure.count = 0;
    entry->failure.retry_usec = 0;
    entry->failure.is_trial = false;
}

/* ---- creation ---- */

struct service_creation {
    struct core *core;
    struct uuid service_id;
    struct service_order order;
};

/* session_rows.write */
static int service_creation_write(struct store_tx *tx, void *data, const struct uuid *session_id,
                                  struct aq_error *err)
{
    const struct service_creation *c = data;

    (void)session_id;
    return model_service_take_number(tx, &c->service_id, c->order.replica.number, err);
}

/* core_create_fn */
static void service_creation_on_made(void *data, int r, const struct aq_error *err,
                                     const struct core_created *created)
{
    struct service_creation *c = data;
    struct model_service_entry *entry = model_service_entry_find(c->core, &c->service_id);

    (void)created;
    if (entry) {
        entry->creating--;
        durable_touch(c->core, &entry->durable);
    }
    if (entry && r < 0 && r != -ESTALE && !entry->s.is_ending && !c->core->is_stopping) {
        AQ_CLEANUP(aq_freep) char *text = aq_format("cannot create a replica: %s", err->text);

        service_replica_fail(c->core, entry, text);
    }
    service_order_done(&c->order);
    free(c);
}

void service_replica_create(struct core *core, struct model_service_entry *entry, int64_t revision)
{
    const struct model_service *s = &entry->s;
    struct service_creation *c = aq_alloc(sizeof(*c));
    const struct session_request *request = &c->order.request;
    const struct model_service_revision *made_from = model_service_find_revision(s, revision);
    const char *share_slot;
    bool is_half;
    int64_t share_micro = service_share_of_next(core, entry, made_from, &share_slot, &is_half);
    struct aq_error err;

    c->core = core;
    c->service_id = s->id;
    if (service_order_make(core, s, made_from, entry->last_replica + 1, share_slot, share_micro,
                           &c->order, &err)
        < 0) {
        service_replica_fail(core, entry, err.text);
        service_order_done(&c->order);
        free(c);
        return;
    }
    c->order.replica.has_half_share = is_half;
    c->order.request.rows = (struct session_rows){ service_creation_write, c };
    entry->last_replica++;
    entry->creating++;
    AQ_FAULT("core.serving.replica.asked");
    core_create_sessions(core, &request, 1, NULL, NULL, service_creation_on_made, c);
}
