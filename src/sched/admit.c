/* SPDX-License-Identifier: Apache-2.0 */
/* admit.c - admission checks: what is wrong with a session before it is queued */
#include "sched/admit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/cluster_role.h"

struct findings {
    const struct admission *a;
    struct strbuf *text;
    struct aq_error *err;
    int first;   /* -errno of the first, 0 = none */
    size_t rank; /* of the first kernel that the error is about */
};

/* Note one; the first is the error. */
static void admit_add(struct findings *f, int code, const char *field, const char *fmt, ...)
    AQ_PRINTF(4, 5);

static void admit_add(struct findings *f, int code, const char *field, const char *fmt, ...)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    va_list args;

    va_start(args, fmt);
    strbuf_vaddf(&line, fmt, args);
    va_end(args);
    if (f->first == 0) {
        f->first = aq_fail_field(f->err, code, field, "%s", line.data);
        if (f->rank > 0 && f->a->roles)
            cluster_role_set_field(f->a->roles[f->rank], f->err);
    }
    if (f->text)
        strbuf_addf(f->text, "%s%s", f->text->len ? "\n" : "", line.data);
}

/* ---- resource groups ---- */

/* Which groups it may be in, and what their agents could hold. */
struct admit_search {
    struct capacity_request request;
    int64_t containers;
    struct capacity_report report; /* on all groups that accept its type */
    /* The first of each; NULL = none. */
    const struct admit_resource_group *found, *accepting, *without_agents;
    const struct admit_resource_group *isolating; /* it accepts the type, and not the network */
    bool is_known; /* the group that is asked for is one of the owner's */
};

/* For 'count' kernels from 'first' on. */
static struct admit_search admit_begin_search(const struct admission *a, size_t first, size_t count)
{
    const struct sched_session *s = a->session;

    return (struct admit_search){
        .request = { .each = s->kernels[first],
                     .together = s->single_node ? (int64_t)count : 1,
                     .types = a->types,
                     .architecture = s->architecture,
                     .designated = s->designated,
                     .designated_count = s->designated_strict ? s->designated_count : 0 },
        .containers = (int64_t)count,
    };
}

static void admit_search_groups(const struct admission *a, struct arena *arena,
                                struct admit_search *search)
{
    unsigned wanted = a->networks ? a->networks : ADMIT_NETWORK_PRIVATE;

    search->report = capacity_report_begin(&search->request, arena);
    for (size_t i = 0; i < a->group_count && !search->found; i++) {
        const struct admit_resource_group *g = &a->groups[i];
        size_t agents = search->report.agents;

        if (a->resource_group && strcmp(g->name, a->resource_group) != 0)
            continue;
        search->is_known = true;
        if (!(g->types >> a->session->type & 1))
            continue;
        if (wanted & ~(g->networks ? g->networks : ADMIT_NETWORK_PRIVATE)) {
            search->isolating = search->isolating ? search->isolating : g;
            continue;
        }
        search->accepting = search->accepting ? search->accepting : g;
        search->report.containers = 0; /* those of one group count together */
        search->request.may_split = g->may_split;
        if (capacity_look(&search->request, search->containers, g->next_agent, g->data, arena,
                          &search->report))
            search->found = g;
        else if (search->report.agents == agents && !search->without_agents)
            search->without_agents = g;
    }
    if (!search->found && (a->resource_group || search->report.agents == 0))
        search->found = search->without_agents; /* nobody knows what its agents will be */
    if (!search->found && a->waits_for_capacity)
        search->found = search->accepting;
}

static void admit_name_slot(const char *slot, char ret[SLOT_NAME_MAX + 32])
{
    (void)snprintf(ret, SLOT_NAME_MAX + 32, "config.resources.%s", slot);
}

/* The other way out, after what may be asked for; replicas of services always need an agent. */
static const char *admit_wait(const struct findings *f)
{
    return f->a->session->type == SESSION_INFERENCE
               ? "."
               : ", or let it wait for such an agent (--wait-for-capacity).";
}

/* Slot 'i' of the request is more than any agent has, or between two amounts that fit. */
static void admit_add_slot(struct findings *f, const struct admit_search *search, size_t i)
{
    const struct slot *asked = &search->request.each->items[i];
    const struct capacity_slot *found = &search->report.slots[i];
    enum slot_type type = slot_types_get(f->a->types, asked->name);
    const char *each = search->request.together > 1 ? " for each container" : "";
    char x[AMOUNT_TEXT_MAX], below[AMOUNT_TEXT_MAX], above[AMOUNT_TEXT_MAX], most[AMOUNT_TEXT_MAX];
    char field[SLOT_NAME_MAX + 32];

    admit_name_slot(asked->name, field);
    slot_amount_short(asked->amount, type, x);
    slot_amount_short(found->below, type, below);
    slot_amount_short(found->above, type, above);
    slot_amount_short(found->largest, type, most);
    if (found->sum == 0 && f->a->resource_group)
        admit_add(f, EINVAL, field, "No agent of the scaling group '%s' has the slot '%s'.",
                  f->a->resource_group, asked->name);
    else if (found->sum == 0)
        admit_add(f, EINVAL, field, "No agent has the slot '%s'.", asked->name);
    else if (found->largest == 0 && search->request.together > 1)
        admit_add(f, EINVAL, "clusterSize",
                  "No agent holds %" PRId64
                  " containers with %s=%s each: the most is %s=%s, ask for "
                  "fewer%s",
                  search->containers, asked->name, x, asked->name,
                  slot_amount_short(found->sum, type, most), admit_wait(f));
    else if (found->largest == 0)
        admit_add(f, EINVAL, field, "No agent has %s=%s: the most is %s%s", asked->name, x,
                  slot_amount_short(found->sum, type, most), admit_wait(f));
    else if (found->above == INT64_MAX)
        admit_add(f, EINVAL, field, "No agent has %s=%s%s: ask for %s at most%s", asked->name, x,
                  each, below, admit_wait(f));
    else
        admit_add(f, EINVAL, field, "No agent gives %s=%s%s: ask for %s%s%s (the largest is %s)%s",
                  asked->name, x, each, found->below ? below : "", found->below ? " or " : "",
                  above, most, admit_wait(f));
}

/* Each slot fits, but not beside the others. */
static void admit_add_together(struct findings *f, const struct admit_search *search)
{
    const struct slots *each = search->request.each;

    for (size_t i = 0; i < each->count; i++) {
        enum slot_type type = slot_types_get(f->a->types, each->items[i].name);
        int64_t beside = search->report.slots[i].beside;
        char x[AMOUNT_TEXT_MAX], most[AMOUNT_TEXT_MAX], field[SLOT_NAME_MAX + 32];

        if (beside == 0)
            continue;
        admit_name_slot(each->items[i].name, field);
        admit_add(f, EINVAL, field,
                  "No agent has %s=%s beside all else that is asked for: ask for %s at most%s",
                  each->items[i].name, slot_amount_short(each->items[i].amount, type, x),
                  slot_amount_short(beside, type, most), admit_wait(f));
        return;
    }
    admit_add(f, EINVAL, "config.resources",
              "No agent has all that is asked for together: ask for less%s", admit_wait(f));
}

static void admit_add_capacity(struct findings *f, const struct admit_search *search)
{
    const struct slots *each = search->request.each;
    bool is_said = false;

    for (size_t i = 0; i < each->count; i++)
        if (each->items[i].amount > 0 && search->report.slots[i].below != each->items[i].amount) {
            admit_add_slot(f, search, i);
            is_said = true;
        }
    if (is_said)
        return;
    if (search->report.containers > 0)
        admit_add(f, EINVAL, "clusterSize",
                  "All agents together hold %" PRId64 " such containers, not %" PRId64
                  ": ask for %" PRId64 " at most%s",
                  search->report.containers, search->containers, search->report.containers,
                  admit_wait(f));
    else
        admit_add_together(f, search);
}

/* Which of both refuses the host network, and who may change that. */
static void admit_refuse_network(struct findings *f, const struct admit_resource_group *g)
{
    bool is_host = f->a->networks & ADMIT_NETWORK_HOST;

    admit_add(f, EPERM, "network",
              "The resource group '%s' does not allow %s; a superadmin may allow it: aliquot "
              "admin resource-group set %s --networks private,host",
              g->name, is_host ? "the host network and RDMA" : "the private network", g->name);
    if (f->err && f->first == -EPERM)
        f->err->kind = ADMIT_NETWORK_FORBIDDEN;
}

/* The first group that would do; why not, if there is none. */
static const struct admit_resource_group *admit_find_group(struct findings *f,
                                                           const struct admit_search *search)
{
    const struct admission *a = f->a;
    const char *type = session_type_name(a->session->type);

    if (search->found)
        return search->found;
    if (a->group_count == 0)
        admit_add(f, ENOENT, "scalingGroup", "You do not have any scaling groups allowed to use.");
    else if (!search->is_known)
        admit_add(f, ENOENT, "scalingGroup", "You do not have access to the scaling group '%s'.",
                  a->resource_group);
    else if (!search->accepting && search->isolating)
        admit_refuse_network(f, search->isolating);
    else if (!search->accepting && a->resource_group)
        admit_add(f, EINVAL, "scalingGroup",
                  "The scaling group '%s' does not accept the session type '%s'. ",
                  a->resource_group, type);
    else if (!search->accepting)
        admit_add(f, EINVAL, "scalingGroup", "No scaling groups accept the session type '%s'.",
                  type);
    else
        admit_add_capacity(f, search);
    return NULL;
}

/* Number of kernels from 'first' on with equal requests, as those of a role. */
static size_t admit_count_alike(const struct sched_session *s, size_t first)
{
    size_t end = first + 1;

    while (end < s->kernel_count && slots_eq(s->kernels[first], s->kernels[end]))
        end++;
    return end - first;
}

/* True if the agents of the group can hold the kernels of each role. */
static bool admit_holds_all(const struct admission *a, const struct admit_resource_group *group,
                            struct arena *arena)
{
    struct admission one = *a;

    one.groups = group;
    one.group_count = 1;
    for (size_t first = 0, count; first < a->session->kernel_count; first += count) {
        struct admit_search search;

        count = admit_count_alike(a->session, first);
        search = admit_begin_search(a, first, count);
        admit_search_groups(&one, arena, &search);
        if (!search.found || search.report.agents == 0)
            return false;
    }
    return true;
}

/* The first group that holds the kernels of each role; why not, if there is none. */
static const struct admit_resource_group *admit_choose_group(struct findings *f,
                                                             struct arena *arena)
{
    const struct admission *a = f->a;
    const struct admit_resource_group *chosen = NULL;
    bool is_common = true;

    for (size_t count; f->rank < a->session->kernel_count; f->rank += count) {
        const struct admit_resource_group *found;
        struct admit_search search;

        count = admit_count_alike(a->session, f->rank);
        search = admit_begin_search(a, f->rank, count);
        admit_search_groups(a, arena, &search);
        if (!(found = admit_find_group(f, &search)))
            return NULL;
        is_common = is_common && (!chosen || chosen == found);
        chosen = chosen ? chosen : found;
    }
    for (size_t i = 0; !is_common && i < a->group_count; i++)
        if (admit_holds_all(a, &a->groups[i], arena))
            return &a->groups[i];
    f->rank = 0; /* the next errors are about all kernels */
    if (!is_common)
        admit_add(f, EINVAL, "roles",
                  "No scaling group has room for all roles: ask for less in some of them.");
    return is_common ? chosen : NULL;
}

/* ---- images ---- */

static const char *admit_humanize(const struct admission *a, const char *slot, int64_t amount,
                                  char buf[AMOUNT_TEXT_MAX])
{
    return slot_amount_humanize(amount, slot_types_get(a->types, slot), buf);
}

static void admit_check_image(struct findings *f, size_t rank)
{
    const struct admission *a = f->a;
    const struct admit_kernel *k = &a->kernels[rank];
    const struct slots *wanted = a->session->kernels[rank];
    const char *mem = slot_name_find("mem", strlen("mem"));
    char x[AMOUNT_TEXT_MAX], y[AMOUNT_TEXT_MAX];

    if (k->shmem_bytes > 0 && k->shmem_bytes >= slots_get(wanted, mem))
        admit_add(f, EINVAL, "resource_opts", "Shared memory (%s) must be less than memory (%s).",
                  admit_humanize(a, mem, k->shmem_bytes, x),
                  admit_humanize(a, mem, slots_get(wanted, mem), y));
    for (size_t i = 0; k->min && i < k->min->count; i++) {
        const struct slot *s = &k->min->items[i];
        int64_t least = s->amount;

        if (s->name == mem && __builtin_add_overflow(least, k->shmem_bytes, &least))
            least = AMOUNT_INFINITE;
        if (slots_get(wanted, s->name) < least)
            admit_add(f, EINVAL, s->name, "The image needs at least %s=%s, not %s.", s->name,
                      admit_humanize(a, s->name, least, x),
                      admit_humanize(a, s->name, slots_get(wanted, s->name), y));
    }
    for (size_t i = 0; k->max && i < k->max->count; i++) {
        const struct slot *s = &k->max->items[i];

        if (s->amount != AMOUNT_INFINITE && slots_get(wanted, s->name) > s->amount)
            admit_add(f, EINVAL, s->name, "The image takes at most %s=%s, not %s.", s->name,
                      admit_humanize(a, s->name, s->amount, x),
                      admit_humanize(a, s->name, slots_get(wanted, s->name), y));
    }
}

/* Everything has to have some of these. */
static void admit_check_required(struct findings *f, size_t rank)
{
    static const char *const required[] = { "cpu", "mem" };

    for (size_t i = 0; i < AQ_COUNT(required); i++)
        if (slots_get(f->a->session->kernels[rank],
                      slot_name_find(required[i], strlen(required[i])))
            <= 0)
            admit_add(f, EINVAL, required[i], "A session needs some %s.", required[i]);
}

/* ---- policies ---- */

static int admit_sum_kernels(const struct sched_session *s, struct slots *ret)
{
    for (size_t k = 0; k < s->kernel_count; k++) {
        int r = slots_add(ret, s->kernels[k]);

        if (r < 0)
            return r;
    }
    return 0;
}

/* Waiting amounts together with these. */
static int admit_check_pending_slots(struct findings *f)
{
    const struct admission *a = f->a;
    AQ_CLEANUP(slots_donep) struct slots total = { 0 };
    char x[AMOUNT_TEXT_MAX], y[AMOUNT_TEXT_MAX];
    int r = admit_sum_kernels(a->session, &total);

    if (r == 0 && a->pending_slots)
        r = slots_add(&total, a->pending_slots);
    if (r < 0)
        return r == -EOVERFLOW ? aq_fail(f->err, EINVAL, "amounts too large") : r;
    for (size_t i = 0; a->pending_slots_max && i < a->pending_slots_max->count; i++) {
        const struct slot *max = &a->pending_slots_max->items[i];

        if (max->amount != AMOUNT_INFINITE && slots_get(&total, max->name) > max->amount)
            admit_add(f, EDQUOT, max->name,
                      "Your pending sessions would ask for %s=%s, more than the "
                      "limit %s.",
                      max->name, admit_humanize(a, max->name, slots_get(&total, max->name), x),
                      admit_humanize(a, max->name, max->amount, y));
    }
    return 0;
}

static void admit_check_host_network(struct findings *f)
{
    const char *policy = f->a->policy ? f->a->policy : "default";

    if (!(f->a->networks & ADMIT_NETWORK_HOST) || f->a->may_use_host)
        return;
    admit_add(f, EPERM, "network",
              "Your keypair policy '%s' does not allow the host network and RDMA; a superadmin may "
              "allow it: aliquot admin policy set %s --host-network yes",
              policy, policy);
    if (f->err && f->first == -EPERM)
        f->err->kind = ADMIT_NETWORK_FORBIDDEN;
}

static int admit_check_policy(struct findings *f)
{
    const struct admission *a = f->a;
    size_t containers = AQ_MAX(a->containers, a->session->kernel_count);

    admit_check_host_network(f);
    if ((int64_t)containers > a->containers_max)
        admit_add(f, EDQUOT, "clusterSize",
                  "A session of yours may have at most %" PRId64 " containers, not %zu.",
                  a->containers_max, containers);
    if (a->session->priority > a->priority_max)
        admit_add(f, EDQUOT, "priority", "Your highest priority is %d, not %d.", a->priority_max,
                  a->session->priority);
    if (a->session->type == SESSION_SYSTEM && a->systems >= a->systems_max)
        admit_add(f, EDQUOT, "type",
                  "You cannot run more than %" PRId64 " SFTP sessions. End one, or wait until one "
                  "has ended.",
                  a->systems_max);
    if (a->pending >= a->pending_max)
        admit_add(f, EDQUOT, "",
                  "You cannot have more than %" PRId64 " pending sessions. Wait until some of them "
                  "have begun, or end some.",
                  a->pending_max);
    return admit_check_pending_slots(f);
}

int sched_admit(const struct admission *a, const struct admit_resource_group **ret_group,
                struct arena *arena, struct strbuf *text, struct aq_error *err)
{
    struct findings f = { .a = a, .text = text, .err = err };
    const struct admit_resource_group *group;
    int r;

    for (size_t k = 0; k < a->session->kernel_count; k++) {
        admit_check_required(&f, k);
        if (a->kernels)
            admit_check_image(&f, k);
    }
    /* Before capacity: a limit of the owner is the first reason, however small the cluster is. */
    if ((r = admit_check_policy(&f)) < 0)
        return r;
    group = admit_choose_group(&f, arena);
    if (f.first == 0)
        *ret_group = group;
    return f.first;
}
