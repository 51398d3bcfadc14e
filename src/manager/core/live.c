/* live.c - sessions in memory: indexes, the heap of alarms, what they hold */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
#include "manager/core/usage.h"

#define NOT_IN_HEAP UINT32_MAX

/* ---- the heap: earliest wake_usec on top ---- */

static void heap_put(struct core *core, size_t i, struct live *l)
{
    core->heap[i] = l;
    l->heap_index = (uint32_t)i;
}

static void heap_up(struct core *core, size_t i, struct live *l)
{
    while (i > 0 && core->heap[(i - 1) / 2]->wake_usec > l->wake_usec) {
        heap_put(core, i, core->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    heap_put(core, i, l);
}

static void heap_down(struct core *core, size_t i, struct live *l)
{
    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= core->heap_count)
            break;
        if (child + 1 < core->heap_count &&
            core->heap[child + 1]->wake_usec < core->heap[child]->wake_usec)
            child++;
        if (core->heap[child]->wake_usec >= l->wake_usec)
            break;
        heap_put(core, i, core->heap[child]);
        i = child;
    }
    heap_put(core, i, l);
}

void live_unschedule(struct core *core, struct live *l)
{
    struct live *last;
    size_t i = l->heap_index;

    l->wake_usec = 0;
    if (l->heap_index == NOT_IN_HEAP)
        return;
    l->heap_index = NOT_IN_HEAP;
    last = core->heap[--core->heap_count];
    if (last == l)
        return;
    if (i > 0 && core->heap[(i - 1) / 2]->wake_usec > last->wake_usec)
        heap_up(core, i, last);
    else
        heap_down(core, i, last);
}

void live_wake_at(struct core *core, struct live *l, int64_t usec)
{
    if (l->heap_index != NOT_IN_HEAP) {
        if (usec < l->wake_usec) {
            l->wake_usec = usec;
            heap_up(core, l->heap_index, l);
        }
        return;
    }
    if (!vec_grow(&core->heap, &core->heap_cap, core->heap_count + 1, sizeof(*core->heap)))
        core_die("an alarm");
    l->wake_usec = usec;
    heap_up(core, core->heap_count++, l);
}

void live_pop_due(struct core *core, int64_t now)
{
    while (core->heap_count > 0 && core->heap[0]->wake_usec <= now) {
        struct live *l = core->heap[0];

        live_unschedule(core, l);
        live_touch(core, l);
    }
}

/* ---- what is held ---- */

static bool holds_any(const struct live *l)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (!list_is_empty(&l->kernels[i].agent_link))
            return true;
    return false;
}

static void join_accounts(struct live *l)
{
    if (l->is_in_usage)
        return;
    l->is_in_usage = true;
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++) {
        list_add(&l->accounts[kind]->members, &l->account_links[kind]);
        l->accounts[kind]->member_count++;
    }
}

static void leave_accounts(struct live *l)
{
    if (!l->is_in_usage)
        return;
    l->is_in_usage = false;
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++) {
        list_remove(&l->account_links[kind]);
        l->accounts[kind]->member_count--;
    }
}

void live_hold(struct core *core, struct live *l, size_t rank, int64_t at_usec)
{
    struct agent_live *a = agent_add(core, l->s.kernels[rank].agent_id);

    list_add(&a->kernels, &l->kernels[rank].agent_link);
    l->kernels[rank].held_usec = at_usec;
    a->kernel_count++;
    a->is_stale = a->cards_stale = true;
    join_accounts(l);
    kept_held(core, l, a);
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        l->accounts[kind]->is_stale = true;
}

void live_release(struct core *core, struct live *l, size_t rank, int64_t at_usec)
{
    struct agent_live *a = agent_find(core, l->s.kernels[rank].agent_id);

    if (list_is_empty(&l->kernels[rank].agent_link))
        return;
    usage_add(l, rank, l->kernels[rank].held_usec, at_usec);
    list_remove(&l->kernels[rank].agent_link);
    a->kernel_count--;
    a->is_stale = a->cards_stale = true;
    if (!holds_any(l))
        leave_accounts(l);
    kept_released(core, l, a);
    queue_room(core, l->rgroup);
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        queue_account(core, l->accounts[kind]);
}

void live_forget_facts(struct kernel_live *k)
{
    k->is_pulling = k->error_is_image = false;
    k->pulled_usec = 0;
    free(k->alloc);
    free(k->service_ports);
    free(k->error);
    free(k->misuse);
    *k = (struct kernel_live){ .live = k->live, .requested = k->requested,
        .agent_link = k->agent_link, .held_usec = k->held_usec, .measured = k->measured };
}

/* ---- entering and leaving memory ---- */

#define NAME_KEY_MAX (sizeof(struct uuid) + SESSION_NAME_MAX)

static size_t name_key(const struct uuid *user, const char *name, char key[NAME_KEY_MAX])
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

    return map_get(&core->sessions_by_name, key, name_key(user_id, name, key));
}

struct live *live_find(const struct core *core, const struct uuid *id)
{
    return map_get(&core->sessions_by_id, id->bytes, sizeof(id->bytes));
}

void live_touch(struct core *core, struct live *l)
{
    if (list_is_empty(&l->touched_link))
        list_add(&core->touched, &l->touched_link);
    core_schedule_turn(core);
}

int live_rename(struct core *core, struct live *l, const char *name)
{
    char key[NAME_KEY_MAX];
    int r = map_set(&core->sessions_by_name, key, name_key(&l->s.user_id, name, key), l);

    if (r < 0)
        return r;
    map_remove(&core->sessions_by_name, key, name_key(&l->s.user_id, l->s.name, key));
    (void)snprintf(l->s.name, sizeof(l->s.name), "%s", name);
    return 0;
}

/* What the scheduler needs of the spec. Most have none of it: then it is not parsed. */
static int read_spec(struct live *l)
{
    const struct session *s = &l->s;
    const char *architecture;
    json_t *spec;
    int r = 0;

    l->is_single_node = !s->is_multi_node;
    if (!s->spec || (!strstr(s->spec, "\"architecture\":") && !wishes_are_in(s->spec)))
        return 0;
    spec = json_loads(s->spec, 0, NULL);
    architecture = json_string_value(json_object_get(spec, "architecture"));
    if (architecture && !(l->architecture = strdup(architecture)))
        r = -ENOMEM;
    if (r == 0)
        r = wishes_read(spec, l);
    json_decref(spec);
    return r;
}

static int find_accounts(struct core *core, struct live *l)
{
    char user[UUID_TEXT_MAX], group[UUID_TEXT_MAX];

    l->accounts[SCHED_KEYPAIR] = account_get(core, SCHED_KEYPAIR, l->s.access_key);
    l->accounts[SCHED_USER] = account_get(core, SCHED_USER, uuid_format(&l->s.user_id, user));
    l->accounts[SCHED_GROUP] = account_get(core, SCHED_GROUP, uuid_format(&l->s.group_id, group));
    l->accounts[SCHED_DOMAIN] = account_get(core, SCHED_DOMAIN, l->s.domain ? l->s.domain : "");
    l->rgroup = rgroup_get(core, l->s.resource_group ? l->s.resource_group : "");
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        if (!l->accounts[kind])
            return -ENOMEM;
    return 0;
}

static int index_live(struct core *core, struct live *l)
{
    char key[NAME_KEY_MAX];

    if (map_set(&core->sessions_by_id, l->s.id.bytes, sizeof(l->s.id.bytes), l) < 0)
        return -ENOMEM;
    return map_set(&core->sessions_by_name, key, name_key(&l->s.user_id, l->s.name, key), l);
}

static void list_by_row(struct core *core, struct live *l)
{
    struct list *place = &core->sessions;

    while (place->prev != &core->sessions &&
           LIST_ENTRY(place->prev, struct live, all_link)->s.row > l->s.row)
        place = place->prev;
    list_add(place, &l->all_link);
}

struct live *live_new(struct core *core, struct session *s)
{
    struct live *l = calloc(1, sizeof(*l) + s->kernel_count * sizeof(l->kernels[0]));

    if (!l)
        return NULL;
    l->s = *s;
    *s = (struct session){ 0 };
    l->heap_index = NOT_IN_HEAP;
    list_init(&l->all_link);
    list_init(&l->touched_link);
    list_init(&l->queue_link);
    list_init(&l->change_link);
    list_init(&l->waiters);
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        list_init(&l->account_links[kind]);
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        l->s.kernels[i].session = &l->s;
        l->kernels[i].live = l;
        l->kernels[i].requested = &l->s.kernels[i].requested;
        list_init(&l->kernels[i].agent_link);
    }
    l->since_usec = age_since(core, l->s.status_changed_usec);
    if (read_spec(l) < 0 || find_accounts(core, l) < 0) {
        live_free(l);
        return NULL;
    }
    return l;
}

struct live *live_add(struct core *core, struct session *s)
{
    struct live *l = live_new(core, s);

    if (!l || index_live(core, l) < 0)
        return NULL; /* the caller ends the process */
    list_by_row(core, l);
    places_load(l);
    return l;
}

void live_bury(struct core *core, struct live *l)
{
    char key[NAME_KEY_MAX];
    size_t len = name_key(&l->s.user_id, l->s.name, key);

    live_unschedule(core, l);
    for (size_t i = 0; i < l->s.kernel_count; i++)
        live_release(core, l, i, 0);
    queue_remove(core, l);
    if (l->rgroup->blocker == l)
        l->rgroup->blocker = NULL;
    kept_forget(l);
    list_remove(&l->touched_link);
    map_remove(&core->sessions_by_id, l->s.id.bytes, sizeof(l->s.id.bytes));
    if (map_get(&core->sessions_by_name, key, len) == l)
        map_remove(&core->sessions_by_name, key, len);
    dependency_forget(core, l);
    list_remove(&l->all_link);
    list_add(&core->graveyard, &l->all_link);
    core_schedule_turn(core);
}

void live_free(struct live *l)
{
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        live_forget_facts(&l->kernels[i]);
        kernel_measured_free(l->kernels[i].measured);
    }
    free(l->architecture);
    wishes_free(l);
    free(l->failed_agent);
    for (size_t k = 0; l->places && k < l->s.kernel_count; k++)
        free(l->places[k]);
    free(l->places);
    session_done(&l->s);
    free(l);
}

int live_describe(struct core *core, struct live *l, bool holding, struct sched_session *ret)
{
    const struct slots **kernels = arena_array(&core->scratch, l->s.kernel_count,
                                               sizeof(*kernels));

    if (!kernels)
        return -ENOMEM;
    *ret = (struct sched_session){
        .id = l->s.id,
        .row = l->s.row,
        .type = l->s.type,
        .priority = l->s.priority,
        .starts_usec = l->s.starts_usec,
        .architecture = l->architecture,
        .single_node = l->is_single_node,
        .kernels = kernels,
        .dependencies = l->s.dependencies,
        .dependency_count = l->s.dependency_count,
        .failed_agent = l->failed_agent,
        .lifetime_usec = l->s.batch_timeout_usec,
    };
    for (size_t k = 0; k < l->s.kernel_count; k++)
        if (!holding || !list_is_empty(&l->kernels[k].agent_link))
            kernels[ret->kernel_count++] = &l->s.kernels[k].requested;
    return wishes_describe(core, l, ret);
}
