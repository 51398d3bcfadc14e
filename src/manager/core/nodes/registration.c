/* SPDX-License-Identifier: Apache-2.0 */
/* registration.c - the rows of agents: what they offer, and whether it is taken
 *
 * One save of an agent is under way at a time. It is put together from the
 * row in memory, what the agent said last and what an administrator set,
 * so that neither undoes the other.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/json_load.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/nodes/agent_change.h"
#include "manager/core/nodes/reach.h"
#include "manager/core/nodes/registration.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/session/agent_command.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/agent_network.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/state.h"

/* Names of slots are known forever, and to the whole cluster, which has room for a few thousand
 * of them: an agent may name so many that nobody knew before.
 */
#define NEW_SLOTS_MAX 64
#define VOLUMES_MAX 32 /* of one agent; what it says beyond does not count */

/* What a list of slots is read with. */
struct registration_reader {
    const struct slot_types *types;
    struct event_batch *batch; /* a slot that is new becomes known by it; NULL = only check */
    unsigned room;             /* for new ones */
};

/* Is the name new, and too much? */
static int registration_check_new(struct registration_reader *reader, const char *name,
                                  struct aq_error *err)
{
    enum slot_type type;

    if (slot_types_find(reader->types, name, &type) == 0)
        return 0;
    if (reader->room == 0)
        return aq_fail_field(err, E2BIG, "slots",
                             "the agent names more than %d slots that the cluster did not know",
                             NEW_SLOTS_MAX);
    reader->room--;
    return 0;
}

/* A slot that was checked becomes one of the row, and known. */
static int registration_take_slot(struct registration_reader *reader, const char *name,
                                  enum slot_type type, bool is_new, int64_t amount,
                                  struct slots *ret, struct aq_error *err)
{
    const char *interned;
    struct event *e;

    if (!(interned = slot_name_intern(name, strlen(name))))
        return aq_fail_field(err, E2BIG, name, "the cluster knows too many names of slots");
    slots_put(ret, interned, amount);
    if (!is_new)
        return 0;
    e = event_batch_add(reader->batch, EVENT_SLOT_TYPE_KNOWN, clock_realtime_usec());
    e->slot_type.name = interned;
    e->slot_type.type = type;
    return 0;
}

/* "cpu": ["count", "4"] */
static int registration_read_slot(struct registration_reader *reader, const char *name,
                                  const json_t *pair, struct slots *ret, struct aq_error *err)
{
    const struct slot_types *types = reader->types;
    const char *type_text = json_string_value(json_array_get(pair, 0));
    const char *amount_text = json_string_value(json_array_get(pair, 1));
    enum slot_type type, known;
    bool is_new;
    int64_t amount;
    int r = registration_check_new(reader, name, err);

    if (r < 0)
        return r;
    if (!slot_name_is_valid(name, strlen(name)) || !type_text || !amount_text
        || slot_type_parse(type_text, &type) < 0)
        return aq_fail_field(err, EINVAL, name, "a slot must be [\"type\", \"amount\"]");
    is_new = slot_types_find(types, name, &known) < 0;
    if (!is_new && known != type)
        return aq_fail_field(err, EINVAL, name,
                             "slot '%s' is a %s in this cluster, not a %s; "
                             "rename it in the agent's configuration",
                             name, slot_type_name(known), type_text);
    r = slot_amount_parse(amount_text, strlen(amount_text), type, false, name, &amount, err);
    if (r < 0 || !reader->batch)
        return r;
    return registration_take_slot(reader, name, type, is_new, amount, ret, err);
}

/* An object of slots; see registration_read_slot(). Without a batch they are only checked: no
 * name becomes known by an offer that is refused.
 */
static int registration_read_slots(struct agent_entry *a, const char *text, struct slots *ret,
                                   struct event_batch *batch, const struct slot_types *types,
                                   struct aq_error *err)
{
    struct registration_reader reader = { types, batch, NEW_SLOTS_MAX - a->new_slots };
    json_t *all = json_load_string(text, JSON_REJECT_DUPLICATES), *pair;
    const char *name;
    int r = 0;

    if (!json_is_object(all))
        r = aq_fail_field(err, EINVAL, "slots", "not a JSON object");
    json_object_foreach(all, name, pair)
        if (r == 0)
            r = registration_read_slot(&reader, name, pair, ret, err);
    json_decref(all);
    if (r == 0 && batch)
        a->new_slots = NEW_SLOTS_MAX - reader.room;
    return r;
}

static bool registration_same_texts(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool registration_is_same(const struct agent *a, const struct agent *b)
{
    return strcmp(a->id, b->id) == 0 && a->status == b->status
           && uuid_equals(&a->incarnation, &b->incarnation)
           && registration_same_texts(a->resource_group, b->resource_group)
           && registration_same_texts(a->assigned_group, b->assigned_group)
           && registration_same_texts(a->assigned_topology, b->assigned_topology)
           && registration_same_texts(a->architecture, b->architecture)
           && registration_same_texts(a->version, b->version)
           && registration_same_texts(a->addr, b->addr)
           && registration_same_texts(a->region, b->region)
           && registration_same_texts(a->topology, b->topology) && a->schedulable == b->schedulable
           && a->ends_sessions == b->ends_sessions
           && registration_same_texts(a->drain_reason, b->drain_reason)
           && slots_eq(&a->available, &b->available)
           && registration_same_texts(a->devices, b->devices)
           && a->first_contact_usec == b->first_contact_usec
           && a->status_changed_usec == b->status_changed_usec && a->lost_usec == b->lost_usec;
}

static void registration_set_text(char **to, const char *text)
{
    char *old = *to;

    *to = aq_strdup(text); /* before: 'text' may be the old one */
    free(old);
}

/* Copy what 'from' says about the agent itself. */
static void registration_copy_offer(struct agent *to, const struct agent *from)
{
    to->incarnation = from->incarnation;
    registration_set_text(&to->resource_group, from->resource_group);
    registration_set_text(&to->architecture, from->architecture);
    registration_set_text(&to->version, from->version);
    registration_set_text(&to->addr, from->addr);
    registration_set_text(&to->region, from->region);
    registration_set_text(&to->topology, from->topology);
    registration_set_text(&to->devices, from->devices);
}

/* ---- the next row ---- */

static void registration_begin_row(const struct agent_entry *a, int64_t now, struct agent *ret)
{
    memcpy(ret->id, a->a.id, sizeof(ret->id));
    ret->status = a->is_known ? a->a.status : AGENT_ALIVE;
    ret->schedulable = a->is_known ? a->a.schedulable : true;
    ret->ends_sessions = a->a.ends_sessions;
    ret->first_contact_usec = a->is_known ? a->a.first_contact_usec : now;
    ret->status_changed_usec = a->is_known ? a->a.status_changed_usec : now;
    ret->lost_usec = a->a.lost_usec;
    registration_set_text(&ret->drain_reason, a->a.drain_reason);
    registration_set_text(&ret->assigned_group, a->a.assigned_group);
    registration_set_text(&ret->assigned_topology, a->a.assigned_topology);
    slots_copy(&ret->available, &a->a.available);
    registration_copy_offer(ret, &a->a);
}

static int registration_add_offer(struct core *core, struct agent_entry *a, int64_t now,
                                  struct event_batch *batch, struct agent *ret,
                                  struct aq_error *err)
{
    int r;

    if (!a->has_registration || !a->is_connected)
        return 0;
    if (ret->status != AGENT_ALIVE) {
        ret->status = AGENT_ALIVE;
        ret->status_changed_usec = now;
        ret->lost_usec = 0;
    }
    slots_done(&ret->available);
    ret->available = (struct slots){ 0 };
    registration_copy_offer(ret, &a->registration);
    if ((r = registration_read_slots(a, a->slots_text, NULL, NULL, core->types, err)) < 0)
        return r; /* an offer that another agent's has made impossible since */
    return registration_read_slots(a, a->slots_text, &ret->available, batch, core->types, err);
}

static void registration_add_change(const struct agent_change *change, struct agent *ret)
{
    const char *group = change->resource_group, *topology = change->topology;

    if (group)
        registration_set_text(&ret->assigned_group, group[0] ? group : NULL);
    if (topology)
        registration_set_text(&ret->assigned_topology, topology[0] ? topology : NULL);
    if (change->drain == CORE_AGENT_DRAIN_KEEP)
        return;
    ret->schedulable = change->drain == CORE_AGENT_DRAIN_OFF;
    ret->ends_sessions = !ret->schedulable && change->ends_sessions;
    registration_set_text(&ret->drain_reason, ret->schedulable ? NULL : change->reason);
}

/* With entries of what each changes. */
static void registration_add_changes(const struct agent_entry *a, struct event_batch *batch,
                                     struct agent *ret)
{
    LIST_FOREACH(link, &a->changes) {
        const struct agent_change *change = LIST_ENTRY(link, struct agent_change, link);

        agent_change_audit(change, ret, batch);
        registration_add_change(change, ret);
    }
    if (ret->assigned_group)
        registration_set_text(&ret->resource_group, ret->assigned_group);
    if (ret->assigned_topology)
        registration_set_text(&ret->topology, ret->assigned_topology);
}

static int registration_make_row(struct core *core, struct agent_entry *a,
                                 struct event_batch *batch, struct agent *ret, struct aq_error *err)
{
    int64_t now = clock_realtime_usec();
    int r;

    registration_begin_row(a, now, ret);
    if ((r = registration_add_offer(core, a, now, batch, ret, err)) == 0)
        registration_add_changes(a, batch, ret);
    return r;
}

/* ---- saving ---- */

void registration_finish_changes(struct core *core, struct list *changes, int r)
{
    struct aq_error err = { .code = -r, .text = "the agent's row could not be written; try again" };

    while (!list_is_empty(changes)) {
        struct agent_change *change = LIST_ENTRY(changes->next, struct agent_change, link);

        list_remove(&change->link);
        core_defer(core, change->done, change->data, r, &err);
        agent_change_free(change);
    }
}

struct offer_saving {
    struct core *core;
    char agent_id[AGENT_ID_MAX + 1];
};

static void registration_on_saved(void *data, int r, const struct aq_error *err)
{
    struct offer_saving *s = data;
    struct agent_entry *a = agent_entry_find(s->core, s->agent_id);

    if (a) {
        if (r < 0)
            log_limited(&a->log, LOG_LEVEL_WARNING, "agent '%s' could not be recorded: %s",
                        s->agent_id, err->text);
        a->is_saving = false;
        a->is_unsaved = r < 0;
        registration_finish_changes(s->core, &a->changing, r);
        if (r == 0) {
            agent_command_drain(s->core, s->agent_id, !a->a.schedulable);
            registration_save(s->core, a);
        }
    }
    free(s);
}

/* Propose the row; -EALREADY if it is up to date. */
static int registration_propose_row(struct core *core, struct agent_entry *a, struct aq_error *err)
{
    struct event_batch *batch = event_batch_new();
    struct offer_saving *s;
    struct agent row = { 0 };
    int r = registration_make_row(core, a, batch, &row, err);

    if (r == 0 && a->is_known && registration_is_same(&row, &a->a))
        r = -EALREADY;
    if (r < 0) {
        agent_done(&row);
        event_batch_free(batch);
        return r;
    }
    event_batch_add(batch, EVENT_AGENT_SAVED, clock_realtime_usec())->agent = row;
    s = aq_alloc(sizeof(*s));
    s->core = core;
    memcpy(s->agent_id, a->a.id, sizeof(s->agent_id));
    AQ_FAULT("core.agent.save.proposed");
    proposal_commit_command(core, batch, registration_on_saved, s);
    return 0;
}

void registration_save(struct core *core, struct agent_entry *a)
{
    struct aq_error err;
    int r;

    if (a->is_saving)
        return;
    a->is_unsaved = false;
    if ((r = registration_propose_row(core, a, &err)) < 0) {
        if (r != -EALREADY)
            log_limited(&a->log, LOG_LEVEL_WARNING, "agent '%s' cannot be recorded: %s", a->a.id,
                        err.text);
        registration_finish_changes(core, &a->changes, r == -EALREADY ? 0 : r);
        return;
    }
    a->is_saving = true;
    while (!list_is_empty(&a->changes)) {
        struct list *link = a->changes.next;

        list_remove(link);
        list_add(&a->changing, link);
    }
}

/* ---- what the agent says ---- */

/* The hosts of folders that it mounts, a JSON list; NULL = none. What is no such list is none, too.
 * The scheduler treats SFTP, the host network and RDMA like hosts of folders.
 */
static void registration_set_volumes(struct agent_entry *a, const char *text)
{
    json_auto_t *list = text ? json_load_string(text, 0) : NULL;
    size_t count = json_array_size(list), size = (count + 3) * sizeof(char *), n = 0;
    const char **items;
    const json_t *item;
    size_t i;
    char *at;

    json_array_foreach(list, i, item)
        size += json_string_length(item) + 1;
    items = aq_alloc(size);
    at = (char *)(items + count + 3);
    json_array_foreach(list, i, item) {
        if (!json_is_string(item) || n == VOLUMES_MAX)
            continue;
        items[n++] = strcpy(at, json_string_value(item));
        at += strlen(at) + 1;
    }
    if (a->has_sftp)
        items[n++] = SCHED_SFTP;
    if (a->network && a->network->offer.host)
        items[n++] = SCHED_HOST_NETWORK;
    if (a->network && a->network->offer.rdma.count)
        items[n++] = SCHED_RDMA;
    registration_set_text(&a->volumes_text, text ? text : "[]");
    free(a->volumes.items);
    a->volumes = (struct str_list){ items, n };
}

/* Sessions may have waited for them. */
static void registration_note_place(struct core *core, struct agent_entry *a)
{
    if (!a->is_known || !a->a.resource_group)
        return;
    sched_sync_mark_agent(core, a);
    queue_agent_changed(core, resource_group_entry_get(core, a->a.resource_group));
}

/* An agent refuses kernels, for example, while its disk is full. The refusal is not stored. */
static void registration_take_refusal(struct core *core, struct agent_entry *a, const char *text)
{
    bool refused = a->refusal != NULL;

    if (registration_same_texts(a->refusal, text))
        return;
    registration_set_text(&a->refusal, text);
    if (text)
        log_limited(&a->log, LOG_LEVEL_WARNING, "agent '%s' takes no new sessions: %s", a->a.id,
                    text);
    else
        log_limited(&a->log, LOG_LEVEL_INFO, "agent '%s' takes sessions again", a->a.id);
    if (refused != (text != NULL))
        registration_note_place(core, a);
}

int registration_take(struct core *core, struct agent_entry *a, const struct msg_hello *hello,
                      struct aq_error *err)
{
    const char *group = hello->resource_group ? hello->resource_group
                        : a->is_known         ? a->a.resource_group
                                              : "default";
    struct agent offer = {
        .incarnation = hello->incarnation,
        .resource_group = (char *)(uintptr_t)group,
        .architecture = (char *)(uintptr_t)hello->architecture,
        .version = (char *)(uintptr_t)hello->version,
        .addr = (char *)(uintptr_t)hello->addr,
        .region = (char *)(uintptr_t)hello->region,
        .topology = (char *)(uintptr_t)hello->topology,
        .devices = (char *)(uintptr_t)hello->devices,
    };
    int r;

    if (hello->topology && (r = topology_check(hello->topology, err)) < 0)
        return r;
    a->has_sftp = hello->has_sftp;
    if (!a->a.assigned_group && !core_find_resource_group(core, group))
        return aq_fail_field(err, ENOENT, "resource_group",
                             "there is no resource group '%s'; make "
                             "it, or configure the agent for another",
                             group);
    r = registration_read_slots(a, hello->slots ? hello->slots : "{}", NULL, NULL, core->types,
                                err);
    if (r < 0)
        return r;
    registration_copy_offer(&a->registration, &offer);
    registration_set_text(&a->slots_text, hello->slots ? hello->slots : "{}");
    registration_set_text(&a->runtime, hello->runtime);
    registration_set_text(&a->runtime_notes, hello->runtime_notes);
    registration_set_text(&a->data_address, hello->data);
    registration_set_text(&a->plugins, hello->plugins);
    reach_take_offer(core, a, hello->network);
    registration_set_volumes(a, hello->volumes);
    a->has_registration = true;
    return 0;
}

void registration_update(struct core *core, struct agent_entry *a, const struct msg_heartbeat *m)
{
    struct aq_error err;
    bool has_slots = m->slots && !registration_same_texts(a->slots_text, m->slots);
    bool has_devices = m->devices && !registration_same_texts(a->registration.devices, m->devices);

    if (m->plugins)
        registration_set_text(&a->plugins, m->plugins); /* only shown */
    if (m->volumes && !registration_same_texts(a->volumes_text, m->volumes)) {
        registration_set_volumes(a, m->volumes);
        registration_note_place(core, a);
    }
    registration_take_refusal(core, a, m->refusal);
    if (!a->has_registration || (!has_slots && !has_devices))
        return;
    if (has_slots && registration_read_slots(a, m->slots, NULL, NULL, core->types, &err) < 0) {
        log_limited(&a->log, LOG_LEVEL_WARNING, "agent '%s' offers what cannot be used: %s",
                    a->a.id, err.text);
        return;
    }
    if (has_slots)
        registration_set_text(&a->slots_text, m->slots);
    if (has_devices)
        registration_set_text(&a->registration.devices, m->devices);
    registration_save(core, a);
}

/* -ENOENT, -EINVAL */
static int registration_check_change(const struct core *core, const char *id,
                                     const struct core_agent_change *change, struct aq_error *err)
{
    const struct agent_entry *a = agent_entry_find(core, id);
    const char *group = change->resource_group;

    if (!a || !a->is_known)
        return aq_fail_field(err, ENOENT, "agent instance", "there is no agent '%.64s'", id);
    if (group && group[0] && !core_find_resource_group(core, group))
        return aq_fail_field(err, ENOENT, "scaling group", "there is no resource group '%.64s'",
                             group);
    return change->topology && change->topology[0] ? topology_check(change->topology, err) : 0;
}

void core_change_agent(struct core *core, const char *id, const struct core_agent_change *what,
                       const struct audit_who *by, core_done_fn done, void *data)
{
    struct agent_entry *a = agent_entry_find(core, id);
    struct agent_change *change;
    struct aq_error err;
    int r = registration_check_change(core, id, what, &err);

    if (r < 0) {
        core_defer(core, done, data, r, &err);
        return;
    }
    change = aq_alloc(sizeof(*change));
    change->reason = aq_strdup(what->drain_reason);
    change->resource_group = aq_strdup(what->resource_group);
    change->topology = aq_strdup(what->topology);
    change->drain = what->drain;
    change->ends_sessions = what->ends_sessions;
    change->by = audit_by_copy(by);
    change->done = done;
    change->data = data;
    list_add(&a->changes, &change->link);
    registration_save(core, a);
}
