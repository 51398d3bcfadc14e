/* admission.c - what the core knows of a session to be made, for sched/admit.h */
#include <errno.h>
#include <string.h>

#include "manager/core/create.h"
#include "manager/core/image_needs.h"
#include "sched/admit.h"

/* ---- resource groups ---- */

/* A group, for serves(). */
struct place {
    const struct core *core;
    const char *group;
};

static bool serves(const void *data, const char *slot)
{
    const struct place *place = data;
    bool is_empty = true;

    for (size_t i = 0; i < place->core->agent_count; i++) {
        const struct agent *a = &place->core->agents_sorted[i]->a;

        if (!a->resource_group || strcmp(a->resource_group, place->group) != 0)
            continue;
        if (slots_get(&a->available, slot) > 0)
            return true;
        is_empty = false;
    }
    return is_empty;
}

/* Those that the owner may use and that are in use. */
static int list_groups(struct core *core, const struct session *s, struct admission *ret)
{
    const struct allowed *allowed = access_find(core, s);
    size_t count = allowed ? allowed->count : 0;
    struct admit_group *groups = arena_array(&core->scratch, count + 1, sizeof(*groups));
    struct place *places = arena_array(&core->scratch, count + 1, sizeof(*places));

    if (!groups || !places)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct rgroup *g = rgroup_find(core, allowed->names[i]);

        if (!g || !g->is_known || !g->g.is_active)
            continue;
        places[ret->group_count] = (struct place){ core, g->g.name };
        groups[ret->group_count] = (struct admit_group){ .name = g->g.name,
            .types = g->scheduling.session_types, .serves = serves,
            .data = &places[ret->group_count] };
        ret->group_count++;
    }
    ret->groups = groups;
    return 0;
}

/* ---- what the owner has waiting ---- */

void admission_done(struct admission_queue *queue)
{
    slots_done(&queue->slots);
}

static int add_waiting(struct admission_queue *queue, const struct session *s)
{
    queue->count++;
    for (size_t k = 0; k < s->kernel_count; k++)
        if (slots_add(&queue->slots, &s->kernels[k].requested) < 0)
            return -ENOMEM;
    return 0;
}

/* Sessions of a request have one owner as a rule: count anew for another one only. */
static int count_waiting(const struct core *core, const struct session *s,
                         struct admission_queue *queue)
{
    if (strcmp(queue->access_key, s->access_key) == 0)
        return 0;
    memcpy(queue->access_key, s->access_key, sizeof(queue->access_key));
    queue->count = 0;
    slots_done(&queue->slots);
    for (const struct session *o = NULL; (o = core_next_session(core, o));)
        if (o->status == SESSION_PENDING && strcmp(o->access_key, s->access_key) == 0
            && add_waiting(queue, o) < 0)
            return -ENOMEM;
    return 0;
}

/* ---- together ---- */

static int64_t limit_of(int64_t limit)
{
    return limit > 0 ? limit : ADMIT_UNLIMITED;
}

static void set_policy(const struct core *core, const struct session *s, struct admission *a)
{
    const struct keypair *k = core_find_keypair(core, s->access_key);
    const struct keypair_policy *p = k && k->policy ? core_find_policy(core, k->policy) : NULL;

    a->containers_max = a->pending_max = ADMIT_UNLIMITED;
    a->priority_max = PRIORITY_COUNT - 1;
    if (!p)
        return;
    a->containers_max = limit_of(p->max_containers_per_session);
    a->pending_max = limit_of(p->max_pending_sessions);
    a->pending_slots_max = p->max_pending_slots.count ? &p->max_pending_slots : NULL;
    if (p->max_priority > 0)
        a->priority_max = AQ_MIN(p->max_priority, a->priority_max);
}

static int set_kernels(struct core *core, const struct session *s, int64_t shmem_bytes,
                       struct sched_session *subject, struct admission *a)
{
    const struct image_needs *needs = s->image ? image_needs_find(core, s->image) : NULL;
    const struct slots **requested = arena_array(&core->scratch, s->kernel_count,
                                                 sizeof(*requested));
    struct admit_kernel *kernels = arena_array(&core->scratch, s->kernel_count, sizeof(*kernels));

    if (!requested || !kernels)
        return -ENOMEM;
    for (size_t k = 0; k < s->kernel_count; k++) {
        requested[k] = &s->kernels[k].requested;
        kernels[k] = (struct admit_kernel){ .min = needs ? &needs->min : NULL,
            .max = needs ? &needs->max : NULL, .shmem_bytes = shmem_bytes };
    }
    *subject = (struct sched_session){ .type = s->type, .priority = s->priority,
        .kernels = requested, .kernel_count = s->kernel_count };
    a->session = subject;
    a->kernels = needs || shmem_bytes ? kernels : NULL;
    return 0;
}

/* All that is wrong, as far as it has room. */
static void say_all(const struct strbuf *text, struct aq_error *err)
{
    if (strbuf_ok(text) && text->len < sizeof(err->text))
        memcpy(err->text, text->data, text->len + 1);
}

static int decide(const struct admission *a, struct session *s, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct admit_group *group;
    int r = sched_admit(a, &group, &text, err);

    if (r < 0) {
        if (text.len)
            say_all(&text, err);
        return r;
    }
    s->resource_group = strdup(group->name);
    return s->resource_group ? 0 : aq_fail(err, ENOMEM, "a session");
}

int admission_check(struct core *core, struct session *s, const char *resource_group,
                    int64_t shmem_bytes, struct admission_queue *queue, struct aq_error *err)
{
    struct sched_session subject;
    struct admission a = { .types = core->types, .resource_group = resource_group };
    int r;

    set_policy(core, s, &a);
    r = set_kernels(core, s, shmem_bytes, &subject, &a);
    if (r == 0)
        r = list_groups(core, s, &a);
    if (r == 0 && (a.pending_max != ADMIT_UNLIMITED || a.pending_slots_max)) {
        r = count_waiting(core, s, queue);
        a.pending = queue->count;
        a.pending_slots = &queue->slots;
    }
    r = r < 0 ? aq_fail(err, ENOMEM, "a session") : decide(&a, s, err);
    if (r == 0 && a.pending_slots && add_waiting(queue, s) < 0)
        r = aq_fail(err, ENOMEM, "a session");
    arena_clear(&core->scratch, 1 << 16);
    return r;
}
