/* SPDX-License-Identifier: Apache-2.0 */
/* service_share.c - see service_share.h
 *
 * Nothing is kept of a resize but its outcome: what a replica has is in its session's row, what it
 * should have follows from rows and the rollout. A manager that starts again begins with a comparison
 * of both.
 */
#include "manager/core/serving/service_share.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/core/state/agent_devices.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "model/slot.h"
#include "serving/autoscale.h"

#define RESIZES_MAX 8 /* of one service at a time */
#define PAUSE_USEC (5 * USEC_PER_SEC)
#define PAUSE_STEPS 4 /* 5, 10, 20, 40 s; then the next */
#define PAUSE_USEC_MAX (60 * USEC_PER_SEC)
#define AWAY_USEC USEC_PER_SEC          /* when to look at an agent again that is not connected */
#define UNPLACED_USEC USEC_PER_SEC      /* without room for so long: it gets the least share */
#define SMALL_USEC (60 * USEC_PER_SEC)  /* and so do those that are created in this time */
#define QUANTUM_MICRO (AMOUNT_ONE / 20) /* of bounds that name none, where the devices have it */

/* ---- slots and bounds ---- */

static bool share_is_slot(const char *name)
{
    const char *major = strchr(name, '.');

    return major && strncmp(major, ".share", 6) == 0 && slot_name_is_accelerator(name);
}

/* The amount of the revision; 0 = it has no share that could be changed. */
static int64_t share_read_spec(const struct model_service_spec *spec, const char **ret_slot)
{
    const struct text_pair *found = NULL;
    size_t count = 0;
    int64_t amount = 0;

    *ret_slot = NULL;
    for (size_t i = 0; i < spec->resources.count; i++) {
        const struct text_pair *item = &spec->resources.items[i];

        if (strcmp(item->key, "cuda.shares") == 0) {
            found = item;
            count = 1;
            break;
        }
        if (share_is_slot(item->key)) {
            found = item;
            count++;
        }
    }
    if (count != 1
        || slot_amount_parse(found->value, strlen(found->value), SLOT_COUNT, false, found->key,
                             &amount, NULL)
               < 0
        || amount <= 0)
        return 0;
    *ret_slot = slot_name_find(found->key, strlen(found->key));
    return *ret_slot ? amount : 0;
}

/* False if the shares of the service have no bounds. */
static bool share_read_bounds(const struct model_service *s, struct autoscale *ret)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;

    if (!s->scaling || autoscale_parse(s->scaling, strlen(s->scaling), &arena, ret, NULL) < 0)
        return false;
    ret->rules = NULL; /* they were in the arena */
    return ret->share_max_micro > 0;
}

int64_t service_share_of(const struct model_service *s,
                         const struct model_service_revision *revision, const char **ret_slot)
{
    int64_t amount = revision ? share_read_spec(revision->spec, ret_slot) : 0;
    struct autoscale bounds;

    if (!amount)
        *ret_slot = NULL;
    if (!amount || !s->share_micro || !share_read_bounds(s, &bounds))
        return amount;
    return AQ_MAX(AQ_MIN(s->share_micro, bounds.share_max_micro), bounds.share_min_micro);
}

/* ---- the devices of the cluster ---- */

/* The finest quantum of the slot's devices, and the most that an agent has of it; 0 = not known. */
static int64_t share_find_quantum(const struct core *core, const char *slot, int64_t *ret_most)
{
    int64_t quantum = 0;

    *ret_most = 0;
    for (size_t i = 0; i < core->agents.count; i++) {
        struct agent_entry *a = core->agents.entries[i].value;
        const struct sched_device *devices;
        const struct slots *capacity;
        size_t count;

        agent_devices_find_capacity(core, a, &capacity, &devices, &count);
        *ret_most = AQ_MAX(*ret_most, slots_get(capacity, slot));
        for (size_t k = 0; k < count; k++)
            if (devices[k].slot_name == slot && devices[k].quantum > 0
                && (!quantum || devices[k].quantum < quantum))
                quantum = devices[k].quantum;
    }
    return quantum;
}

static int64_t share_half(const struct core *core, const char *slot, int64_t share)
{
    int64_t most, quantum = share_find_quantum(core, slot, &most);
    int64_t half = quantum ? share / 2 / quantum * quantum : share / 2;

    return half > 0 ? half : share;
}

/* ---- changes of a service ---- */

/* Bounds without a quantum get that of the devices, or 0.05 if it is finer. */
static void share_add_quantum(const struct core *core, struct model_service *s, const char *slot)
{
    json_auto_t *scaling = json_loads(s->scaling, 0, NULL);
    json_t *share = json_object_get(scaling, "share");
    int64_t most, quantum = slot ? share_find_quantum(core, slot, &most) : 0;
    char *text;

    if (!share || json_object_get(share, "quantum") || !quantum)
        return;
    quantum = (QUANTUM_MICRO + quantum - 1) / quantum * quantum;
    (void)json_object_set_new(share, "quantum", json_real((double)quantum / AMOUNT_ONE));
    if ((text = json_dumps(scaling, JSON_COMPACT | JSON_REAL_PRECISION(9)))) {
        free(s->scaling);
        s->scaling = text;
    }
}

void service_share_settle(const struct core *core, struct model_service *s)
{
    const struct model_service_revision *goal = model_service_find_revision(s, s->goal);
    struct autoscale bounds;
    const char *slot = NULL;

    if (!share_read_bounds(s, &bounds)) {
        s->share_micro = 0;
        return;
    }
    if (s->share_micro)
        s->share_micro = AQ_MAX(AQ_MIN(s->share_micro, bounds.share_max_micro),
                                bounds.share_min_micro);
    if (goal)
        (void)share_read_spec(goal->spec, &slot);
    share_add_quantum(core, s, slot);
}

static int share_check_quantum(const char *member, int64_t amount, int64_t quantum,
                               const char *slot, struct aq_error *err)
{
    char text[AMOUNT_TEXT_MAX], unit[AMOUNT_TEXT_MAX];

    if (!quantum || amount % quantum == 0)
        return 0;
    return aq_fail_field(err, EINVAL, member,
                         "%s is not a multiple of %s, the smallest part of a device that agents "
                         "give of %s",
                         slot_amount_format(amount, SLOT_COUNT, text),
                         slot_amount_format(quantum, SLOT_COUNT, unit), slot);
}

int service_share_check(const struct core *core, const struct model_service *s, bool has_revision,
                        struct aq_error *err)
{
    const struct model_service_revision *goal = model_service_find_revision(s, s->goal);
    char text[AMOUNT_TEXT_MAX], least[AMOUNT_TEXT_MAX], largest[AMOUNT_TEXT_MAX];
    const char *slot, *field = has_revision ? "resources" : "scaling.share";
    struct autoscale bounds;
    int64_t amount, most, quantum;
    int r;

    if (!goal || !share_read_bounds(s, &bounds))
        return 0;
    if (!(amount = share_read_spec(goal->spec, &slot)))
        return aq_fail_field(err, EINVAL, field,
                             "'scaling.share' bounds a part of a device, and the resources of the "
                             "revision have none; name one such as cuda.shares=0.25, or take the "
                             "bounds away");
    if (amount < bounds.share_min_micro || amount > bounds.share_max_micro)
        return aq_fail_field(err, EINVAL, field,
                             "%s of %s, with which replicas begin, is not within the bounds "
                             "'scaling.share' of %s to %s; change the amount or the bounds",
                             slot, slot_amount_format(amount, SLOT_COUNT, text),
                             slot_amount_format(bounds.share_min_micro, SLOT_COUNT, least),
                             slot_amount_format(bounds.share_max_micro, SLOT_COUNT, largest));
    quantum = share_find_quantum(core, slot, &most);
    if ((r = share_check_quantum("scaling.share.min", bounds.share_min_micro, quantum, slot, err))
            < 0
        || (r = share_check_quantum("scaling.share.max", bounds.share_max_micro, quantum, slot,
                                    err))
               < 0
        || (r = share_check_quantum("scaling.share.quantum", bounds.share_quantum_micro, quantum,
                                    slot, err))
               < 0)
        return r;
    if (most && bounds.share_max_micro > most)
        return aq_fail_field(err, EINVAL, "scaling.share.max",
                             "%s is more than the %s of %s that the largest agent has",
                             slot_amount_format(bounds.share_max_micro, SLOT_COUNT, largest),
                             slot_amount_format(most, SLOT_COUNT, text), slot);
    return 0;
}

/* ---- what a replica has, and should have ---- */

static bool share_is_leaving(const struct session_entry *l)
{
    return l->s.replica->draining_usec || l->commands.end_reason
           || l->s.status == SESSION_TERMINATING || session_is_terminal(l->s.status);
}

static bool share_runs(const struct session_entry *l)
{
    return l->s.status == SESSION_RUNNING || l->s.status == SESSION_RUNNING_DEGRADED;
}

static int64_t share_held(const struct session_entry *l, const char *slot)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (!kernel_is_terminal(l->s.kernels[i].status))
            return slots_get(&l->s.kernels[i].requested, slot);
    return 0;
}

/* 0 = it has no share. */
static int64_t share_wanted(const struct core *core, const struct replica_entry *replica,
                            const char **ret_slot)
{
    const struct model_service *s = &replica->service->s;
    int64_t share = service_share_of(
        s, model_service_find_revision(s, replica->session->s.replica->revision), ret_slot);

    return share && replica->session->s.replica->has_half_share ? share_half(core, *ret_slot, share)
                                                                : share;
}

int64_t service_share_of_next(const struct core *core, const struct model_service_entry *entry,
                              const struct model_service_revision *revision, const char **ret_slot,
                              bool *ret_is_half)
{
    int64_t share = service_share_of(&entry->s, revision, ret_slot);
    struct autoscale bounds;
    int64_t halved = 0;

    LIST_FOREACH(link, &entry->replicas) {
        const struct replica_entry *replica = LIST_ENTRY(link, struct replica_entry, link);

        if (!replica->session->s.replica->has_half_share)
            continue;
        if (replica->session->s.replica->revision != revision->number)
            halved++;
        else if (!share_is_leaving(replica->session))
            halved--;
    }
    *ret_is_half = share && halved > (int64_t)entry->creating;
    if (*ret_is_half)
        return share_half(core, *ret_slot, share);
    if (share && clock_monotonic_usec() < entry->small_until_usec
        && share_read_bounds(&entry->s, &bounds))
        return AQ_MIN(share, bounds.share_min_micro);
    return share;
}

void service_share_describe(const struct core *core, const struct replica_entry *replica,
                            struct core_replica *ret)
{
    const char *slot;
    int64_t wanted = share_wanted(core, replica, &slot);

    if (!wanted)
        return;
    ret->share_micro = share_held(replica->session, slot);
    ret->share_wanted_micro = wanted;
    if (replica->share.is_held && ret->share_micro < wanted)
        ret->share_problem = replica->share.text;
}

int64_t core_service_share(const struct model_service *service)
{
    const char *slot;

    return service_share_of(service, model_service_find_revision(service, service->goal), &slot);
}

/* ---- resizing ---- */

struct share_resize {
    struct core *core;
    struct uuid session_id;
};

/* Half of the way to what had no room; 0 = there is nothing between. */
static int64_t share_find_between(const struct replica_entry *replica, int64_t held)
{
    struct autoscale bounds;
    int64_t quantum = share_read_bounds(&replica->service->s, &bounds) ? bounds.share_quantum_micro
                                                                       : 0;
    int64_t more = quantum ? (replica->share.refused - held) / 2 / quantum * quantum : 0;

    return more > 0 ? held + more : 0;
}

/* It stays as it is until the next try. */
static void share_hold(struct replica_entry *replica)
{
    int64_t pause = replica->share.failures < PAUSE_STEPS ? PAUSE_USEC << replica->share.failures
                                                          : PAUSE_USEC_MAX;

    if (!replica->share.is_held)
        log_info("model service '%s': cannot resize replica '%s' to its share: %s",
                 replica->service->s.name, replica->session->s.name, replica->share.text);
    replica->share.is_held = true;
    replica->share.failures++;
    replica->share.aim = replica->share.goal;
    replica->share.retry_usec = clock_monotonic_usec() + pause;
}

/* core_done_fn */
static void share_on_resized(void *data, int r, const struct aq_error *err)
{
    struct share_resize *z = data;
    struct core *core = z->core;
    struct session_entry *l = session_entry_find(core, &z->session_id);
    struct replica_entry *replica = l ? l->replica : NULL;
    int64_t between;
    const char *slot;

    free(z);
    if (!replica || core->is_stopping)
        return;
    replica->share.is_resizing = false;
    if (r < 0) {
        free(replica->share.text);
        replica->share.text = aq_strdup(err->text);
        replica->share.refused = replica->share.aim;
    }
    if (r < 0 || replica->share.aim != replica->share.goal) {
        (void)share_wanted(core, replica, &slot);
        between = slot ? share_find_between(replica, share_held(l, slot)) : 0;
        if (between)
            replica->share.aim = between;
        else
            share_hold(replica); /* with as much as there was room for */
    }
    model_service_entry_note_change(core, replica->service);
}

static void share_resize(struct core *core, struct replica_entry *replica, const char *slot,
                         int64_t held)
{
    AQ_CLEANUP(slots_donep) struct slots changes = { .items = NULL };
    struct share_resize *z = aq_alloc(sizeof(*z));

    *z = (struct share_resize){ core, replica->session->s.id };
    slots_put(&changes, slot, replica->share.aim);
    replica->share.is_resizing = true;
    replica->share.is_shrinking = replica->share.aim < held;
    AQ_FAULT("core.serving.share.asked");
    core_resize_session(core, &z->session_id, &changes, NULL, share_on_resized, z);
}

/* What it should have has changed: earlier refusals say nothing of it. */
static void share_begin(struct replica_entry *replica, int64_t wanted)
{
    if (replica->share.goal == wanted)
        return;
    replica->share.goal = replica->share.aim = wanted;
    replica->share.retry_usec = 0;
    replica->share.failures = 0;
}

static void share_end(struct replica_entry *replica)
{
    free(AQ_TAKE(replica->share.text));
    replica->share.is_held = false;
    replica->share.failures = 0;
    replica->share.retry_usec = 0;
}

/* ---- replicas that wait ---- */

/* It waits for more than it is to have, or for more than the least while there is no room: another
 * one takes its place. Returns when to look again, monotonic.
 */
static int64_t share_step_pending(struct core *core, struct model_service_entry *entry,
                                  struct session_entry *l, const char *slot, int64_t wanted)
{
    int64_t held = share_held(l, slot), now = clock_monotonic_usec(), due = INT64_MAX;
    struct autoscale bounds;

    if (l->reservation.agents)
        return INT64_MAX; /* what it waits for is kept for it */
    if (share_read_bounds(&entry->s, &bounds) && held > bounds.share_min_micro) {
        bool has_no_room = l->queue.verdict == SCHED_NO_ROOM;

        due = (has_no_room ? l->queue.verdict_usec : now) + UNPLACED_USEC;
        if (now >= due) {
            wanted = AQ_MIN(wanted, bounds.share_min_micro);
            entry->small_until_usec = now + SMALL_USEC;
        }
    }
    if (held <= wanted)
        return due;
    log_info(
        "model service '%s': replacing replica '%s', which waits for room, by one with a smaller "
        "share",
        entry->s.name, l->s.name);
    l->commands.end_reason = REASON_SERVICE_SCALED;
    AQ_FAULT("core.serving.share.replaced");
    durable_touch(core, &l->durable);
    return INT64_MAX;
}

/* ---- the step ---- */

/* Resize those that get less, or those that get more; returns when to look again. */
static int64_t share_step_running(struct core *core, struct model_service_entry *entry,
                                  bool is_growing, size_t *busy)
{
    int64_t now = clock_monotonic_usec(), due = INT64_MAX;

    LIST_FOREACH(link, &entry->replicas) {
        struct replica_entry *replica = LIST_ENTRY(link, struct replica_entry, link);
        struct session_entry *l = replica->session;
        const char *slot;
        int64_t wanted, held;

        if (share_is_leaving(l) || !share_runs(l) || replica->share.is_resizing
            || !(wanted = share_wanted(core, replica, &slot)) || !(held = share_held(l, slot)))
            continue;
        share_begin(replica, wanted);
        if (held == wanted) {
            share_end(replica);
        } else if (now < replica->share.retry_usec) {
            due = AQ_MIN(due, replica->share.retry_usec);
        } else if (!core_agent_is_connected(core, l->s.kernels[0].agent_id)) {
            due = AQ_MIN(due, now + AWAY_USEC);
        } else if ((held < wanted) == is_growing && *busy < RESIZES_MAX) {
            share_resize(core, replica, slot, held);
            ++*busy;
        }
    }
    return due;
}

bool service_share_is_growing(const struct core *core, const struct model_service_entry *entry)
{
    LIST_FOREACH(link, &entry->replicas) {
        const struct replica_entry *replica = LIST_ENTRY(link, struct replica_entry, link);
        const struct session_entry *l = replica->session;
        const char *slot;
        int64_t wanted = share_wanted(core, replica, &slot);

        if (wanted && !share_is_leaving(l) && share_runs(l) && share_held(l, slot) < wanted
            && !(replica->share.failures && replica->share.goal == wanted)
            && core_agent_is_connected(core, l->s.kernels[0].agent_id))
            return true;
    }
    return false;
}

/* Those under way; 'ret_less' of them make a share smaller. */
static size_t share_count_resizes(const struct model_service_entry *entry, size_t *ret_less)
{
    size_t count = 0;

    *ret_less = 0;
    LIST_FOREACH(link, &entry->replicas) {
        const struct replica_entry *replica = LIST_ENTRY(link, struct replica_entry, link);

        count += replica->share.is_resizing;
        *ret_less += replica->share.is_resizing && replica->share.is_shrinking;
    }
    return count;
}

int64_t service_share_step(struct core *core, struct model_service_entry *entry)
{
    int64_t due = INT64_MAX, next;
    size_t busy, less;

    if (entry->s.is_ending)
        return INT64_MAX;
    LIST_FOREACH(link, &entry->replicas) {
        struct replica_entry *replica = LIST_ENTRY(link, struct replica_entry, link);
        struct session_entry *l = replica->session;
        const char *slot;
        int64_t wanted = share_wanted(core, replica, &slot);

        if (!wanted || l->s.status != SESSION_PENDING || share_is_leaving(l))
            continue;
        next = share_step_pending(core, entry, l, slot, wanted);
        due = AQ_MIN(due, next);
    }
    busy = share_count_resizes(entry, &less);
    next = share_step_running(core, entry, false, &busy);
    due = AQ_MIN(due, next);
    (void)share_count_resizes(entry, &less);
    if (less) /* what they give back may be what others need */
        return due;
    next = share_step_running(core, entry, true, &busy);
    return AQ_MIN(due, next);
}
