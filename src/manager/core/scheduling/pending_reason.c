/* SPDX-License-Identifier: Apache-2.0 */
/* pending_reason.c - why a session waits
 *
 * The same code that places sessions looks at one of them by itself, against
 * a snapshot of what there is now.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "manager/core/scheduling/booking_sync.h"
#include "manager/core/scheduling/group_agents.h"
#include "manager/core/scheduling/pending_reason.h"
#include "manager/core/scheduling/preemption.h"
#include "manager/core/scheduling/rejection.h"
#include "manager/core/scheduling/reservation.h"
#include "manager/core/scheduling/sched_sync_internal.h"
#include "manager/core/scheduling/start_estimate.h"
#include "manager/core/state/account.h"
#include "manager/core/state/agent_devices.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/array_entry.h"
#include "manager/core/state/agent_network.h"
#include "manager/core/state/booking_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "model/reference.h"

#define REFUSALS_SHOWN 8 /* agents; further ones are left out */

struct snapshot {
    struct sched_snapshot snap;
    struct sched_agent *agents;
    struct sched_session *sessions;
    struct sched_account *accounts;
    struct account **owners; /* per account */
};

/* ---- the snapshot ---- */

/* Pairs of agents that cannot reach each other; those with others than the snapshot's are ignored. */
static void pending_reason_add_pairs(struct core *core, struct snapshot *s)
{
    struct sched_pair *pairs;
    size_t count = 0;

    for (size_t i = 0; i < core->agent_count; i++)
        if (core->agents_sorted[i]->network)
            count += core->agents_sorted[i]->network->unreachable.count;
    if (count == 0)
        return;
    s->snap.unreachable = pairs = arena_array(&core->scratch, count, sizeof(*pairs));
    for (size_t i = 0; i < core->agent_count; i++) {
        const struct agent_entry *a = core->agents_sorted[i];

        for (size_t k = 0; a->network && k < a->network->unreachable.count; k++)
            pairs[s->snap.unreachable_count++] = (struct sched_pair){
                a->a.id, a->network->unreachable.items[k]
            };
    }
}

static int pending_reason_add_agents(struct core *core, const struct resource_group_entry *g,
                                     struct snapshot *s)
{
    s->agents = arena_array(&core->scratch, core->agent_count, sizeof(*s->agents));
    for (size_t i = 0; i < core->agent_count; i++) {
        struct agent_entry *a = core->agents_sorted[i];
        const struct sched_device *devices;
        const struct slots *free;
        size_t device_count;
        int r;

        if (!agent_entry_is_ready(a) || !a->a.resource_group
            || strcmp(a->a.resource_group, g->g.name) != 0)
            continue;
        if ((r = agent_entry_free_slots(a, &free)) < 0
            || (r = agent_devices_find(core, a, &devices, &device_count)) < 0)
            return r;
        s->agents[s->snap.agent_count++] = (struct sched_agent){
            .id = a->a.id,
            .architecture = a->a.architecture,
            .free = free,
            .capacity = &a->a.available,
            .volumes = a->volumes.items,
            .volume_count = a->volumes.count,
            .kernels = a->kernel_count,
            .devices = devices,
            .device_count = device_count,
            .topology = a->a.topology,
            .network = agent_network_sched_class(a),
        };
    }
    s->snap.agents = s->agents;
    pending_reason_add_pairs(core, s);
    return 0;
}

/* The index of an account in the snapshot, where it is added if it limits anything. */
static int pending_reason_add_account(struct core *core, struct snapshot *s,
                                      struct account *account, uint32_t *ret)
{
    struct sched_account *sa = &s->accounts[s->snap.account_count];
    int r;

    if (account->index < s->snap.account_count && s->owners[account->index] == account) {
        *ret = account->index;
        return 0;
    }
    *ret = SCHED_NO_ACCOUNT;
    if (!account_limits(core, account, sa))
        return 0;
    if ((r = account_usage(account, &sa->used)) < 0)
        return r;
    sa->sessions = (int64_t)account->member_count;
    s->owners[s->snap.account_count] = account;
    *ret = account->index = (uint32_t)s->snap.account_count++;
    return 0;
}

static int pending_reason_add_session(struct core *core, struct snapshot *s,
                                      struct session_entry *l)
{
    struct sched_session *ret = &s->sessions[s->snap.session_count];
    int r;

    session_entry_describe(core, l, false, ret);
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        if (l->s.type == SESSION_SYSTEM)
            ret->accounts[kind] = SCHED_NO_ACCOUNT;
        else if ((r = pending_reason_add_account(core, s, l->accounts[kind], &ret->accounts[kind]))
                 < 0)
            return r;
    s->snap.session_count++;
    return 0;
}

/* ---- bookings, and sessions that run beside them ---- */

/* Are all agents of its kernels in the snapshot? */
static bool pending_reason_is_inside(const struct snapshot *s, const struct session_entry *l)
{
    for (size_t k = 0; k < l->s.kernel_count; k++) {
        size_t i = 0;

        if (list_is_empty(&l->kernels[k].agent_link))
            continue;
        while (i < s->snap.agent_count && strcmp(s->agents[i].id, l->s.kernels[k].agent_id) != 0)
            i++;
        if (i == s->snap.agent_count)
            return false;
    }
    return true;
}

static int pending_reason_add_running(struct core *core, const struct resource_group_entry *g,
                                      struct snapshot *s)
{
    size_t max = core->sessions_by_id.count;
    struct sched_running *running = arena_array(&core->scratch, max + 1, sizeof(*running));
    struct sched_session *sessions = arena_array(&core->scratch, max + 1, sizeof(*sessions));

    LIST_FOREACH(link, &core->sessions) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, all_link);
        size_t n = s->snap.running_count;
        struct sched_place *places;
        int r;

        if (l->resource_group != g || !l->is_in_usage || n == max
            || !pending_reason_is_inside(s, l))
            continue;
        session_entry_describe(core, l, true, &sessions[n]);
        for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
            sessions[n].accounts[kind] = SCHED_NO_ACCOUNT;
        sessions[n].owner = UINT32_MAX;
        if ((r = sched_sync_find_places(core, l, &places)) < 0)
            return r;
        running[s->snap.running_count++] = (struct sched_running){
            .session = &sessions[n],
            .places = places,
            .started_usec = sched_sync_started_usec(l),
            .is_terminating = preemption_is_leaving(&l->s),
        };
    }
    s->snap.running = running;
    return 0;
}

/* As 'l' may see them: names of others' bookings are left out. */
static int pending_reason_add_bookings(struct core *core, const struct session_entry *l,
                                       struct snapshot *s)
{
    struct sched_booking *bookings = arena_array(&core->scratch, core->booking_count + 1,
                                                 sizeof(*bookings));

    s->snap.bookings = bookings;
    LIST_FOREACH(link, &core->bookings) {
        const struct booking_entry *entry = LIST_ENTRY(link, struct booking_entry, all_link);
        struct sched_booking *to = &bookings[s->snap.booking_count];
        int r;

        if (entry->resource_group != l->resource_group)
            continue;
        if ((r = booking_sync_describe(core, &entry->b, &core->scratch, to)) < 0)
            return r;
        if (l->booking != entry && !uuid_equals(&l->s.booking_id, &entry->b.id)
            && !booking_is_for(&entry->b, &l->s.user_id, &l->s.project_id))
            to->name = "";
        s->snap.booking_count++;
    }
    return s->snap.booking_count ? pending_reason_add_running(core, l->resource_group, s) : 0;
}

/* 'count': sessions that will be added. */
static int snapshot_begin(struct core *core, const struct resource_group_entry *g, size_t count,
                          struct snapshot *s)
{
    struct arena *arena = &core->scratch;

    *s = (struct snapshot){ .snap = {
                                .now_usec = clock_realtime_usec(),
                                .types = core->types,
                            } };
    s->snap.options = g->scheduling.options;
    s->sessions = arena_array(arena, count, sizeof(*s->sessions));
    s->accounts = arena_array(arena, SCHED_ACCOUNT_KINDS + 1, sizeof(*s->accounts));
    s->owners = arena_array(arena, SCHED_ACCOUNT_KINDS + 1, sizeof(struct account *));
    s->snap.sessions = s->sessions;
    s->snap.accounts = s->accounts;
    return pending_reason_add_agents(core, g, s);
}

/* The group now, and 'count' sessions like 'l' that wait there alone. */
static int snapshot_of_copies(struct core *core, struct session_entry *l, size_t count,
                              struct snapshot *s)
{
    int r = snapshot_begin(core, l->resource_group, count, s);

    if (r == 0)
        r = pending_reason_add_bookings(core, l, s);
    if (r == 0)
        r = pending_reason_add_session(core, s, l);
    for (; r == 0 && s->snap.session_count < count; s->snap.session_count++) {
        s->sessions[s->snap.session_count] = s->sessions[0];
        s->sessions[s->snap.session_count].row += (int64_t)s->snap.session_count;
    }
    return r;
}

/* How many of the sessions fit together, whatever waits before them. */
static int pending_reason_count_fits(struct core *core, struct session_entry *l, size_t count,
                                     size_t *ret, struct aq_error *err)
{
    struct sched_result result = { .count = 0 };
    struct snapshot s;
    int r = snapshot_of_copies(core, l, count, &s);

    *ret = 0;
    if (r == 0)
        r = sched_run(&s.snap, &core->scratch, &result, err);
    for (size_t i = 0; r == 0 && i < result.count; i++)
        *ret += result.outcomes[i].verdict == SCHED_PLACED;
    arena_clear(&core->scratch, 1 << 16);
    return r;
}

/* ---- explanations ---- */

static void pending_reason_behind(const struct session_entry *l, struct strbuf *text,
                                  struct strbuf *json)
{
    const struct session_entry *b = l->resource_group->blocker;
    AQ_CLEANUP(strbuf_donep) struct strbuf sentence = STRBUF_INIT;
    char id[UUID_TEXT_MAX];

    if (b)
        strbuf_addf(&sentence,
                    "It waits its turn: session '%s' (%s) is before it and waits for "
                    "room.",
                    b->s.name, uuid_format(&b->s.id, id));
    else
        strbuf_adds(&sentence, "It waits its turn: resources are free, but reserved for sessions "
                               "before it.");
    if (text)
        strbuf_add(text, sentence.data, sentence.len);
    if (json) {
        struct jsonw w = jsonw_make(json);

        jsonw_object_begin(&w);
        jsonw_member_str(&w, "kind", sched_verdict_name(SCHED_BEHIND));
        jsonw_member_str(&w, "text", sentence.data);
        if (b)
            jsonw_member_str(&w, "blocker", id);
        jsonw_object_end(&w);
    }
}

static void pending_reason_preempting(const struct session_entry *l, struct strbuf *text,
                                      struct strbuf *json)
{
    static const char sentence[] = "It has its place and starts when the preempted sessions "
                                   "have ended.";

    if (text)
        strbuf_adds(text, sentence);
    if (json) {
        struct jsonw w = jsonw_make(json);

        jsonw_object_begin(&w);
        jsonw_member_str(&w, "kind", sched_verdict_name(SCHED_PREEMPTING));
        jsonw_member_str(&w, "text", sentence);
        reservation_write(l, RESERVATION_PREEMPTING, &w);
        jsonw_object_end(&w);
    }
}

/* It could not be started, and is tried again before long. */
static void pending_reason_start_failed(const struct session_entry *l, struct strbuf *text,
                                        struct strbuf *json)
{
    uint32_t max = l->resource_group->scheduling.retry[l->s.retry.step].max_retry_count;
    AQ_CLEANUP(strbuf_donep) struct strbuf sentence = STRBUF_INIT;

    strbuf_addf(&sentence, "Its start has failed %u times; it is tried again in %lld s",
                (unsigned)l->s.retry.attempts,
                (long long)((l->retry.backoff_usec - clock_monotonic_usec()) / USEC_PER_SEC + 1));
    if (max)
        strbuf_addf(&sentence, ", and given up when %u tries have failed", (unsigned)max + 1);
    strbuf_addc(&sentence, '.');
    if (text)
        strbuf_add(text, sentence.data, sentence.len);
    if (json) {
        struct jsonw w = jsonw_make(json);

        jsonw_object_begin(&w);
        jsonw_member_str(&w, "kind", sched_verdict_name(SCHED_TOO_EARLY));
        jsonw_member_str(&w, "text", sentence.data);
        jsonw_member_int(&w, "failed", l->s.retry.attempts);
        jsonw_object_end(&w);
    }
    rejection_append(l->s.status_data, text, json);
}

/* An attempt has ended, and the next one is delayed. */
static void pending_reason_rerun(const struct session_entry *l, struct strbuf *text,
                                 struct strbuf *json)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sentence = STRBUF_INIT;
    char iso[CLOCK_ISO_MAX];

    rerun_describe(l->s.spec, l->s.rerun, &sentence);
    if (text)
        strbuf_add(text, sentence.data, sentence.len);
    if (json) {
        struct jsonw w = jsonw_make(json);

        jsonw_object_begin(&w);
        jsonw_member_str(&w, "kind", sched_verdict_name(SCHED_TOO_EARLY));
        jsonw_member_str(&w, "text", sentence.data);
        jsonw_member_int(&w, "attempt", l->s.rerun->attempts);
        jsonw_member_int(&w, "attempts_max", rerun_attempts_max(l->s.spec, l->s.rerun));
        jsonw_member_str(&w, "cause", rerun_cause_name(l->s.rerun->cause));
        jsonw_member_str(&w, "next_at", clock_format_iso(l->s.rerun->next_usec, iso));
        jsonw_object_end(&w);
    }
}

static void pending_reason_backoff(const struct session_entry *l, struct strbuf *text,
                                   struct strbuf *json)
{
    if (l->s.rerun && l->s.rerun->next_usec > clock_realtime_usec())
        pending_reason_rerun(l, text, json);
    else
        pending_reason_start_failed(l, text, json);
}

/* No session is started until an administrator has finished that. */
static void pending_reason_restored(struct strbuf *text, struct strbuf *json)
{
    static const char sentence[] = "The manager was restored from a backup: no session starts "
                                   "until an administrator runs 'aliquot admin orphan finish'.";

    if (text)
        strbuf_adds(text, sentence);
    if (json) {
        struct jsonw w = jsonw_make(json);

        jsonw_object_begin(&w);
        jsonw_member_str(&w, "kind", "restored");
        jsonw_member_str(&w, "text", sentence);
        jsonw_object_end(&w);
    }
}

static void pending_reason_no_agents(const struct core *core, const struct resource_group_entry *g,
                                     struct strbuf *text, struct strbuf *json)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sentence = STRBUF_INIT;

    group_agents_say_none(core, g, &sentence);
    if (text)
        strbuf_add(text, sentence.data, sentence.len);
    if (json) {
        struct jsonw w = jsonw_make(json);

        jsonw_object_begin(&w);
        jsonw_member_str(&w, "kind", sched_verdict_name(SCHED_NO_AGENT));
        jsonw_member_str(&w, "text", sentence.data);
        jsonw_object_end(&w);
    }
}

/* Are resources free that a pass reserves for others? Without an estimate, as the last pass
 * decided.
 */
static bool pending_reason_is_behind(const struct session_entry *l,
                                     const struct core_start_estimate *estimate)
{
    const struct session_entry *b = l->resource_group->blocker;

    if (b)
        return b != l && b->s.priority >= l->s.priority;
    return estimate ? estimate->is_promised : l->queue.verdict == SCHED_NO_ROOM;
}

/* As the scheduler sees it against what there is now. */
static int pending_reason_explain_now(struct core *core, struct session_entry *l, size_t before,
                                      const struct core_start_estimate *estimate,
                                      struct strbuf *text, struct strbuf *json,
                                      enum sched_verdict *ret_verdict, struct aq_error *err)
{
    struct snapshot s;
    AQ_CLEANUP(strbuf_donep) struct strbuf t = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf j = STRBUF_INIT;
    int r = snapshot_of_copies(core, l, before + 1, &s);

    if (r == 0)
        r = sched_explain(&s.snap, (uint32_t)before, &core->scratch, &t, &j, err);
    arena_clear(&core->scratch, 1 << 16);
    if (r < 0)
        return r;
    *ret_verdict = (enum sched_verdict)r;
    if (r == SCHED_PLACED && pending_reason_is_behind(l, estimate)) {
        *ret_verdict = SCHED_BEHIND;
        pending_reason_behind(l, text, json);
    } else if (r == SCHED_NO_AGENT && s.snap.agent_count == 0) {
        pending_reason_no_agents(core, l->resource_group, text, json);
    } else {
        if (text)
            strbuf_add(text, t.data, t.len);
        if (json)
            strbuf_add(json, j.data, j.len);
        if (text && r == SCHED_NO_CAPACITY)
            group_agents_say_absent(core, l->resource_group, text);
    }
    rejection_append(l->s.status_data, text, json);
    return 0;
}

/* Of one that comes after 'before' sessions like it, which start first. 'estimate' may be NULL: not
 * known. The verdict, as far as the scheduler has one, else SCHED_PREEMPTING.
 */
static int pending_reason_explain(struct core *core, struct session_entry *l, size_t before,
                                  const struct core_start_estimate *estimate, struct strbuf *text,
                                  struct strbuf *json, struct aq_error *err)
{
    enum sched_verdict verdict = SCHED_PREEMPTING;
    int r = 0;

    if (core->orphans.restored_usec)
        pending_reason_restored(text, json);
    else if (l->preemption.is_preempting)
        pending_reason_preempting(l, text, json);
    else if (l->retry.backoff_usec > clock_monotonic_usec())
        pending_reason_backoff(l, text, json);
    else
        r = pending_reason_explain_now(core, l, before, estimate, text, json, &verdict, err);
    return r < 0 ? aq_fail(err, -r, "cannot explain why session '%s' waits: %s", l->s.name,
                           strerror(-r))
                 : (int)verdict;
}

int pending_reason_write(struct core *core, struct session_entry *l, struct strbuf *text,
                         struct strbuf *json, struct aq_error *err)
{
    int r = pending_reason_explain(core, l, 0, NULL, text, json, err);

    return AQ_MIN(r, 0);
}

/* More members into an object that is text already. */
static void pending_reason_add_members(struct strbuf *json, const struct strbuf *members)
{
    strbuf_truncate(json, json->len - 1); /* its "}" */
    strbuf_addc(json, ',');
    strbuf_add(json, members->data + 1, members->len - 1);
}

/* The agents of its resource group that refuse new sessions, and why. */
static void pending_reason_add_refusals(const struct core *core, const struct session_entry *l,
                                        struct strbuf *text, struct strbuf *json)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf members = STRBUF_INIT;
    struct jsonw w = jsonw_make(&members);
    size_t count = 0;

    jsonw_object_begin(&w);
    jsonw_key(&w, "refusals");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < core->agent_count; i++) {
        const struct agent_entry *a = core->agents_sorted[i];

        if (!a->refusal || !a->is_connected || !a->a.resource_group
            || strcmp(a->a.resource_group, l->resource_group->g.name) != 0)
            continue;
        if (count++ >= REFUSALS_SHOWN)
            break;
        if (text)
            strbuf_addf(text, "\nAgent '%s' takes no new sessions: %s.", a->a.id, a->refusal);
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "agent", a->a.id);
        jsonw_member_str(&w, "text", a->refusal);
        jsonw_object_end(&w);
    }
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    if (json && count)
        pending_reason_add_members(json, &members);
}

static void pending_reason_add_estimate(const struct core *core, const struct session_entry *l,
                                        const struct core_start_estimate *estimate,
                                        struct strbuf *text, struct strbuf *json)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf members = STRBUF_INIT;
    struct jsonw w = jsonw_make(&members);

    if (text && !core->orphans.restored_usec)
        start_estimate_write_text(core, l->resource_group, estimate, text);
    jsonw_object_begin(&w);
    core_write_start_estimate(estimate, &w);
    jsonw_member_int(&w, "retries", estimate->tries);
    jsonw_object_end(&w);
    if (json)
        pending_reason_add_members(json, &members);
}

/* What a forecast cannot know: whether a registry has the image that an agent is to fetch. */
static void pending_reason_add_image(const struct core *core, const struct session_entry *l,
                                     struct strbuf *text, struct strbuf *json)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf members = STRBUF_INIT;
    struct jsonw w = jsonw_make(&members);
    struct reference ref = { .text = NULL };

    if (strcmp(l->s.image, IMAGE_OF_PROCESSES) == 0
        || reference_parse(l->s.image, NULL, &ref, NULL) < 0)
        return;
    if (ref.form == REFERENCE_REGISTRY
        && !group_agents_have_image(core, l->resource_group, ref.text)) {
        strbuf_addf(text,
                    "\nNo agent of resource group '%s' has the image '%s': its agent fetches it "
                    "from '%s' first, and the session fails if it is not there.",
                    l->resource_group->g.name, l->s.image, ref.registry);
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "image_to_fetch", ref.text);
        jsonw_object_end(&w);
        pending_reason_add_members(json, &members);
    }
    reference_done(&ref);
}

/* How many start, before the reason why others do not. */
static void pending_reason_say_count(size_t started, size_t count, struct strbuf *text)
{
    if (started == count)
        strbuf_addf(text, "All %zu sessions fit and start with the next pass.", count);
    else if (started == 0)
        strbuf_addf(text, "None of the %zu sessions would start now. The first one:\n", count);
    else
        strbuf_addf(text, "%zu of %zu sessions would start now. The next one:\n", started, count);
}

int pending_reason_what_if(struct core *core, struct session_entry *l, size_t count,
                           size_t *ret_started, struct strbuf *text, struct strbuf *json,
                           struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf why = STRBUF_INIT;
    struct core_start_estimate estimate;
    bool is_estimated;
    size_t fits;
    int r = pending_reason_count_fits(core, l, count, &fits, err);

    if (r < 0)
        return r;
    is_estimated = start_estimate_what_if(core, l, count, fits, ret_started, &estimate) == 0;
    if (!is_estimated)
        *ret_started = fits;
    r = pending_reason_explain(core, l, AQ_MIN(*ret_started, count - 1),
                               is_estimated ? &estimate : NULL, &why, json, err);
    if (r < 0)
        return r;
    if (is_estimated) {
        estimate.verdict = (enum sched_verdict)r;
        pending_reason_add_estimate(core, l, &estimate, &why, json);
    }
    if (count > 1)
        pending_reason_say_count(*ret_started, count, text);
    if (count == 1 || *ret_started < count)
        strbuf_add(text, why.data, why.len);
    pending_reason_add_image(core, l, text, json);
    return 0;
}

int core_explain(struct core *core, const struct uuid *session_id, struct strbuf *text,
                 struct strbuf *json, struct aq_error *err)
{
    struct session_entry *l = session_entry_find(core, session_id);
    struct core_start_estimate estimate;
    bool is_estimated;
    int r;

    if (!l || l->s.status != SESSION_PENDING)
        return aq_fail(err, ENOENT, "no such session waits in a queue");
    if (l->array_held) {
        strbuf_addf(text,
                    "At most %" PRId64 " elements of its array run at once, and as many run or are "
                    "about to.",
                    l->array->a.limit);
        return 0;
    }
    is_estimated = core_get_start_estimate(core, session_id, &estimate) == 0; /* else not now */
    r = pending_reason_explain(core, l, 0, is_estimated ? &estimate : NULL, text, json, err);
    if (r < 0)
        return r;
    pending_reason_add_refusals(core, l, text, json);
    estimate.verdict = (enum sched_verdict)r;
    if (is_estimated)
        pending_reason_add_estimate(core, l, &estimate, text, json);
    return 0;
}
