/* SPDX-License-Identifier: Apache-2.0 */
/* admission.c - what the core knows of a session to be made, for sched/admit.h */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "manager/core/session/image_requirements.h"
#include "manager/core/state/account.h"
#include "manager/core/state/session_entry.h"
#include "sched/admit.h"
#include "manager/core/accounts/access.h"
#include "manager/core/booking/booking_member.h"
#include "manager/core/session/admission.h"
#include "manager/core/state/agent_devices.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/state.h"
#include "model/architecture.h"

/* ---- resource groups ---- */

/* A group, for admission_next_agent(). */
struct admission_place {
    struct core *core;
    const char *group;
};

/* What it has ever been known to offer, devices that are not healthy now included. */
static bool admission_next_agent(const void *data, size_t *at, struct sched_agent *ret)
{
    const struct admission_place *place = data;
    struct core *core = place->core;

    while (*at < core->agent_count) {
        struct agent_entry *a = core->agents_sorted[(*at)++];

        if (!a->is_known || !a->a.resource_group || strcmp(a->a.resource_group, place->group) != 0)
            continue;
        *ret = (struct sched_agent){ .id = a->a.id, .architecture = a->a.architecture };
        (void)agent_devices_find_capacity(core, a, &ret->capacity, &ret->devices,
                                          &ret->device_count);
        return true;
    }
    return false;
}

/* Those that the owner may use and that are in use. */
static void admission_list_groups(struct core *core, const struct session *s,
                                  enum splitting splitting, struct admission *ret)
{
    const struct allowed *allowed = access_find(core, s);
    size_t count = allowed ? allowed->count : 0;
    struct admit_resource_group *groups = arena_array(&core->scratch, count + 1, sizeof(*groups));
    struct admission_place *places = arena_array(&core->scratch, count + 1, sizeof(*places));

    for (size_t i = 0; i < count; i++) {
        const struct resource_group_entry *g = resource_group_entry_find(core, allowed->names[i]);

        if (!g || !g->is_known || !g->g.is_active)
            continue;
        places[ret->group_count] = (struct admission_place){ core, g->g.name };
        groups[ret->group_count] = (struct admit_resource_group){
            .name = g->g.name,
            .types = g->scheduling.session_types,
            .networks = g->scheduling.networks,
            .may_split = (splitting ? splitting : g->scheduling.splitting) == SPLITTING_ALLOWED,
            .next_agent = admission_next_agent,
            .data = &places[ret->group_count]
        };
        ret->group_count++;
    }
    ret->groups = groups;
}

/* ---- what the owner has waiting ---- */

void admission_done(struct admission_queue *queue)
{
    slots_done(&queue->slots);
}

/* -EOVERFLOW */
static int admission_add_waiting(struct admission_queue *queue, const struct session *s,
                                 struct aq_error *err)
{
    for (size_t k = 0; k < session_least_kernels(s); k++)
        if (slots_add(&queue->slots, &s->kernels[k].requested) < 0)
            return aq_fail_field(err, EOVERFLOW, "resources",
                                 "the PENDING sessions of access key '%s' request more resources "
                                 "than can be counted; request less, or end some of them",
                                 s->access_key);
    return 0;
}

/* Sessions of a request have one owner as a rule: sum again for another one only. */
static int admission_sum_waiting(const struct core *core, const struct session *s,
                                 struct admission_queue *queue, struct aq_error *err)
{
    int r = 0;

    if (strcmp(queue->access_key, s->access_key) == 0)
        return 0;
    memcpy(queue->access_key, s->access_key, sizeof(queue->access_key));
    slots_done(&queue->slots);
    for (const struct session *o = NULL; r == 0 && (o = core_next_session(core, o));)
        if (o->status == SESSION_PENDING && strcmp(o->access_key, s->access_key) == 0)
            r = admission_add_waiting(queue, o, err);
    return r;
}

/* ---- what it takes itself ---- */

void admission_release(struct core *core, struct admission_hold *hold)
{
    if (!hold->user)
        return;
    hold->keypair->pending--;
    hold->keypair->systems -= hold->is_system;
    session_bytes_add(core, hold->user, -hold->bytes);
    *hold = (struct admission_hold){ .user = NULL };
}

static struct admission_hold admission_find_hold(struct core *core, const struct session *s)
{
    char user[UUID_TEXT_MAX];

    return (struct admission_hold){
        .keypair = account_get(core, SCHED_KEYPAIR, s->access_key),
        .user = account_get(core, SCHED_USER, uuid_format(&s->user_id, user)),
        .bytes = session_bytes_of(s),
        .is_system = s->type == SESSION_SYSTEM,
    };
}

/* ---- together ---- */

static int64_t admission_limit_of(int64_t limit)
{
    return limit > 0 ? limit : ADMIT_UNLIMITED;
}

static void admission_set_policy(const struct core *core, const struct session *s,
                                 struct admission *a)
{
    const struct keypair *k = core_find_keypair(core, s->access_key);
    const struct keypair_policy *p = k && k->policy ? core_find_policy(core, k->policy) : NULL;

    a->containers_max = a->pending_max = a->systems_max = ADMIT_UNLIMITED;
    a->priority_max = PRIORITY_COUNT - 1;
    if (!p)
        return;
    a->containers_max = admission_limit_of(p->max_containers_per_session);
    a->pending_max = admission_limit_of(p->max_pending_sessions);
    a->systems_max = admission_limit_of(p->max_concurrent_sftp_sessions);
    a->policy = p->name;
    a->may_use_host = p->host_network;
    a->pending_slots_max = p->max_pending_slots.count ? &p->max_pending_slots : NULL;
    if (p->max_priority > 0)
        a->priority_max = AQ_MIN(p->max_priority, a->priority_max);
}

struct admission_roles {
    struct cluster_role *items;
    size_t count;
};

/* What the image of a kernel wants; kernels of one role are neighbours. */
static void admission_find_needs(struct core *core, const struct session *s, size_t k,
                                 const struct admission_roles *roles,
                                 const struct image_requirements **inout)
{
    struct session_spec spec = { .image = s->image };

    if (k > 0 && strcmp(s->kernels[k].role, s->kernels[k - 1].role) == 0)
        return;
    cluster_role_apply(roles->items, roles->count, s->kernels[k].role, &spec);
    *inout = image_requirements_find(core, spec.image);
}

static void admission_set_kernels(struct core *core, const struct session *s,
                                  struct sched_session *subject, struct admission *a)
{
    const struct session_spec *spec = s->spec;
    bool is_designated = spec->agents.count && !spec->agents_preferred;
    int64_t shmem_bytes;
    bool any = false;
    struct admission_roles roles;
    const struct image_requirements *needs = NULL;
    const struct slots **requested = arena_array(&core->scratch, s->kernel_count,
                                                 sizeof(*requested));
    struct admit_kernel *kernels = arena_array(&core->scratch, s->kernel_count, sizeof(*kernels));
    const char **names = arena_array(&core->scratch, s->kernel_count, sizeof(*names));

    /* both were checked */
    (void)session_spec_shmem(spec, &shmem_bytes, NULL);
    (void)cluster_roles_parse(spec->roles, &core->scratch, &roles.items, &roles.count, NULL);
    for (size_t k = 0; k < s->kernel_count; k++) {
        admission_find_needs(core, s, k, &roles, &needs);
        any = any || needs;
        requested[k] = &s->kernels[k].requested;
        names[k] = s->kernels[k].role;
        kernels[k] = (struct admit_kernel){ .min = needs ? &needs->min : NULL,
                                            .max = needs ? &needs->max : NULL,
                                            .shmem_bytes = shmem_bytes };
    }
    *subject = (struct sched_session){ .type = s->type,
                                       .priority = s->priority,
                                       .architecture = architecture_of_machine(spec->architecture),
                                       .single_node = !s->is_multi_node,
                                       .kernels = requested,
                                       .kernel_count = session_least_kernels(s),
                                       .designated = is_designated ? spec->agents.items : NULL,
                                       .designated_count = is_designated ? spec->agents.count : 0,
                                       .designated_strict = true };
    a->session = subject;
    a->containers = s->kernel_count;
    a->roles = spec->roles ? names : NULL;
    a->kernels = any || shmem_bytes ? kernels : NULL;
    a->waits_for_capacity = spec->waits_for_capacity;
    a->networks = session_spec_uses_host_network(spec) ? ADMIT_NETWORK_HOST : ADMIT_NETWORK_PRIVATE;
    a->networks |= spec->needs_rdma ? ADMIT_NETWORK_HOST : 0;
}

/* All that is wrong, as far as it has room. */
static void admission_say_all(const struct strbuf *text, struct aq_error *err)
{
    if (text->len < sizeof(err->text))
        memcpy(err->text, text->data, text->len + 1);
}

static int admission_decide(struct core *core, const struct admission *a, struct session *s,
                            struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct admit_resource_group *group;
    int r = sched_admit(a, &group, &core->scratch, &text, err);

    if (r < 0) {
        if (text.len)
            admission_say_all(&text, err);
        return r;
    }
    s->resource_group = aq_strdup(group->name);
    return 0;
}

static int admission_check_room(struct core *core, struct aq_error *err)
{
    int lack = store_find_lack(core->store);

    if (lack == EROFS)
        return aq_fail(err, EROFS,
                       "the file system of the manager's state folder '%s' is mounted read-only: "
                       "running sessions continue, but nothing can be created, changed or ended "
                       "until it is remounted writable",
                       core->conf.state_dir);
    if (lack)
        return aq_fail(err, ENOSPC,
                       "the file system of the manager's state folder '%s' is full or over a "
                       "quota: sessions can be ended, but none are created until space is freed "
                       "there",
                       core->conf.state_dir);
    return 0;
}

int admission_check(struct core *core, struct session *s, const char *resource_group,
                    struct admission_queue *queue, struct admission_hold *ret_hold,
                    struct aq_error *err)
{
    struct sched_session subject;
    struct admission a = { .types = core->types,
                           .resource_group = resource_group ? resource_group
                                                            : booking_resource_group(core, s) };
    struct admission_hold hold;
    int r;

    r = admission_check_room(core, err);
    if (r < 0)
        return r;
    admission_set_policy(core, s, &a);
    admission_set_kernels(core, s, &subject, &a);
    admission_list_groups(core, s, s->spec->splitting, &a);
    hold = admission_find_hold(core, s);
    a.pending = (int64_t)hold.keypair->pending;
    a.systems = (int64_t)hold.keypair->systems;
    if (a.pending_slots_max) {
        r = admission_sum_waiting(core, s, queue, err);
        a.pending_slots = &queue->slots;
    }
    if (r == 0)
        r = admission_decide(core, &a, s, err);
    if (r == 0)
        r = booking_admit(core, s, err);
    if (r == 0)
        r = session_bytes_check(core, hold.user, hold.bytes, err);
    if (r == 0 && a.pending_slots)
        r = admission_add_waiting(queue, s, err);
    if (r == 0) {
        hold.keypair->pending++;
        hold.keypair->systems += hold.is_system;
        session_bytes_add(core, hold.user, hold.bytes);
        *ret_hold = hold;
    }
    arena_clear(&core->scratch, 1 << 16);
    return r;
}
