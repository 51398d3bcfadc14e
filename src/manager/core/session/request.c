/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - a request for a session, checked whole, becomes a session */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/core/session/image_requirements.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/session/request.h"
#include "manager/core/state/state.h"
#include "model/reference.h"

#define SYSTEM_MEMORY (INT64_C(256) << 20)
#define SYSTEM_CORES_MAX 4 /* no limit of the owner counts them */
#define SYSTEM_GIB_MAX 4
#define PROJECTS_SHOWN 8              /* in an error; further ones are counted */
#define MEMORY_MIN (INT64_C(1) << 20) /* no program starts in less */

/* ---- type, times, sizes ---- */

static int request_check_batch(const struct session_request *req, struct aq_error *err)
{
    if (req->type == SESSION_BATCH) {
        if (!req->spec.command || !req->spec.command[0])
            return aq_fail_field(err, EINVAL, "startupCommand",
                                 "a batch session needs a command to run");
    } else if (req->starts_usec) {
        return aq_fail_field(err, EINVAL, "starts_at", "only a batch session can start later");
    } else if (req->spec.batch_timeout_usec) {
        return aq_fail_field(err, EINVAL, "batch_timeout",
                             "only a batch session can have a time limit");
    }
    if (req->spec.input && req->type != SESSION_BATCH)
        return aq_fail_field(err, EINVAL, "input", "is for batch sessions only");
    if (req->starts_usec < 0)
        return aq_fail_field(err, EINVAL, "starts_at", "a start before 1970 is not possible");
    return 0;
}

/* For a session of the system. */
static bool request_is_too_much(const struct slot *slot)
{
    if (strcmp(slot->name, "cpu") == 0)
        return slot->amount > SYSTEM_CORES_MAX * AMOUNT_ONE;
    if (strcmp(slot->name, "mem") == 0)
        return slot->amount > ((int64_t)SYSTEM_GIB_MAX << 30);
    return slot->amount > 0;
}

/* What sessions of the system have by themselves, and what they may ask for: they are for moving
 * files, and nobody's use of the cluster.
 */
static int request_check_system(const struct core *core, const struct session_request *req,
                                struct aq_error *err)
{
    const struct image_requirements *needs = image_requirements_find(core, req->spec.image);

    if (strcmp(req->spec.image, IMAGE_OF_FILES) == 0
            ? req->type != SESSION_SYSTEM
            : req->type == SESSION_SYSTEM && !(needs && needs->is_system))
        return aq_fail_field(err, EINVAL, "image",
                             "sessions of the type system have the image '" IMAGE_OF_FILES
                             "', which is for them alone, or another with the label " IMAGE_ROLE
                             "=SYSTEM that a node of the cluster has");
    if (req->type != SESSION_SYSTEM)
        return 0;
    if (req->spec.command || req->spec.bootstrap)
        return aq_fail_field(err, EINVAL, "startupCommand",
                             "a session of the type system runs no command");
    if (req->cluster_size > 1)
        return aq_fail_field(err, EINVAL, "clusterSize",
                             "a session of the type system has one container");
    if (req->dependency_count > 0)
        return aq_fail_field(err, EINVAL, "dependencies",
                             "a session of the type system does not wait for other sessions");
    if (session_spec_uses_host_network(&req->spec) || req->spec.needs_rdma)
        return aq_fail_field(err, EINVAL, "network",
                             "a session of the type system has a private network; leave the "
                             "network out");
    for (size_t i = 0; i < req->resources.count; i++)
        if (request_is_too_much(&req->resources.items[i]))
            return aq_fail_field(err, EINVAL, "config.resources",
                                 "a session of the type system has %d cores and %d GiB at most, "
                                 "and no accelerators",
                                 SYSTEM_CORES_MAX, SYSTEM_GIB_MAX);
    return 0;
}

const char *request_resource_group(const struct core *core, const struct session_request *req)
{
    const struct agent *a = req->spec.agents.count
                                ? core_find_agent(core, req->spec.agents.items[0])
                                : NULL;

    return req->resource_group ? req->resource_group : a ? a->resource_group : NULL;
}

static int request_check_agents(const struct core *core, const struct session_request *req,
                                struct aq_error *err)
{
    const struct session_spec *spec = &req->spec;
    const char *resource_group = request_resource_group(core, req);

    for (size_t i = 0; i < spec->agents.count; i++) {
        const struct agent *a = core_find_agent(core, spec->agents.items[i]);

        if (!a)
            return aq_fail_field(err, EINVAL, "agent_list", "there is no agent '%s'",
                                 spec->agents.items[i]);
        if (!a->resource_group || !resource_group || strcmp(a->resource_group, resource_group) != 0)
            return aq_fail_field(err, EINVAL, "agent_list",
                                 "agent '%s' is not of resource group "
                                 "'%s'; choose another agent or its group",
                                 spec->agents.items[i], resource_group ? resource_group : "");
    }
    return 0;
}

/* Where and with which sessions it is to be placed, and before which of its owner's. */
static int request_check_constraints(const struct core *core, const struct session_request *req,
                                     int max_priority, struct aq_error *err)
{
    const struct session_spec *spec = &req->spec;
    int max = AQ_MIN(max_priority, PRIORITY_COUNT - 1);

    if (spec->session_group
        && (!spec->session_group[0] || strlen(spec->session_group) > SESSION_GROUP_NAME_MAX))
        return aq_fail_field(err, EINVAL, "session_group.name", "a name has 1 to %d bytes",
                             SESSION_GROUP_NAME_MAX);
    if (spec->job_priority > max)
        return aq_fail_field(err, EINVAL, "job_priority",
                             "your job priorities go from 0 to %d, not %lld", max,
                             (long long)spec->job_priority);
    return request_check_agents(core, req, err);
}

/* What no policy makes possible; the policy itself is for admission_check(). */
static int request_check_limits(const struct core *core, const struct session_request *req,
                                const char *access_key, struct aq_error *err)
{
    const struct keypair *k = core_find_keypair(core, access_key);
    const struct keypair_policy *policy = k && k->policy ? core_find_policy(core, k->policy) : NULL;
    int max_priority = policy && policy->max_priority > 0 ? policy->max_priority : 100;

    if (req->cluster_size > CLUSTER_SIZE_MAX)
        return aq_fail_field(err, EINVAL, "clusterSize",
                             "a session may have at most %d containers, not %u", CLUSTER_SIZE_MAX,
                             (unsigned)req->cluster_size);
    if (req->priority >= PRIORITY_COUNT)
        return aq_fail_field(err, EINVAL, "priority", "the highest priority is %d, not %d",
                             PRIORITY_COUNT - 1, req->priority);
    return request_check_constraints(core, req, max_priority, err);
}

/* ---- owner, domain, project ---- */

bool request_is_member(const struct user *u, const struct uuid *group)
{
    for (size_t i = 0; i < u->project_count; i++)
        if (uuid_equals(&u->project_ids[i], group))
            return true;
    return u->role == ROLE_SUPERADMIN || u->role == ROLE_ADMIN;
}

/* The project that is named; else "default", or the only one that the user is in. */
static const struct project *core_request_find_project(const struct core *core,
                                                       const struct user *u, const char *domain,
                                                       const char *name)
{
    const struct project *g = core_find_project_named(core, domain, name ? name : "default");

    if (name || (g && request_is_member(u, &g->id)) || u->project_count != 1)
        return g;
    g = core_find_project(core, &u->project_ids[0]);
    return g && strcmp(g->domain, domain) == 0 ? g : NULL;
}

/* Says which projects of the domain the user may name instead. */
static int request_fail_project(const struct core *core, const struct user *u, const char *domain,
                                const char *name, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf yours = STRBUF_INIT;
    size_t count = 0;

    for (size_t i = 0; i < u->project_count; i++) {
        const struct project *g = core_find_project(core, &u->project_ids[i]);

        if (!g || !g->is_active || strcmp(g->domain, domain) != 0)
            continue;
        if (count++ < PROJECTS_SHOWN)
            strbuf_addf(&yours, "%s%.40s", yours.len ? ", " : "", g->name);
    }
    if (count > PROJECTS_SHOWN)
        strbuf_addf(&yours, " and %zu more", count - PROJECTS_SHOWN);
    if (count == 0)
        return aq_fail_field(err, EINVAL, "group",
                             "Invalid group: '%s' is not one of yours; you are in no project: ask "
                             "an administrator to add you to one",
                             name ? name : "default");
    if (name)
        return aq_fail_field(err, EINVAL, "group",
                             "Invalid group: '%s' is not one of yours; name one of %s", name,
                             yours.data);
    return aq_fail_field(err, EINVAL, "group", "no project was named; name one of %s", yours.data);
}

static int core_request_find_owner(const struct core *core, const struct session_request *req,
                                   struct session *s, struct aq_error *err)
{
    const struct keypair *k = req->access_key ? core_find_keypair(core, req->access_key) : NULL;
    const struct user *u = k ? core_find_user(core, &k->user_id) : NULL;
    const struct project *g;
    const struct domain *d;
    const char *domain;

    if (!u || !k->is_active || u->status != USER_ACTIVE)
        return aq_fail_field(err, EACCES, "owner_access_key", "the owner's key is not active");
    domain = req->domain ? req->domain : u->domain ? u->domain : "default";
    d = core_find_domain(core, domain);
    g = core_request_find_project(core, u, domain, req->group);
    if (!d || !d->is_active
        || (u->role != ROLE_SUPERADMIN && (!u->domain || strcmp(u->domain, domain) != 0)))
        return aq_fail_field(err, EINVAL, "domain", "Invalid domain: '%s' is not one of yours",
                             domain);
    if (!g || !g->is_active || !request_is_member(u, &g->id))
        return request_fail_project(core, u, domain, req->group, err);
    s->user_id = u->id;
    s->project_id = g->id;
    memcpy(s->access_key, k->access_key, sizeof(s->access_key));
    s->domain = aq_strdup(domain);
    return 0;
}

int core_find_owner(const struct core *core, const struct session_request *request,
                    struct core_owner *ret, struct aq_error *err)
{
    struct session s = { .project_id = { { 0 } } };
    int r = core_request_find_owner(core, request, &s, err);

    if (r == 0)
        *ret = (struct core_owner){ s.user_id, s.project_id,
                                    core_find_domain(core, s.domain)->name };
    session_done(&s);
    return r;
}

int core_check_owner(const struct core *core, const struct session_request *request,
                     struct aq_error *err)
{
    struct core_owner owner;

    return core_find_owner(core, request, &owner, err);
}

/* ---- images ---- */

/* Images that are in no registry are what the agents' own settings allow. */
static int request_check_registry(const struct domain *domain, const char *image, const char *field,
                                  struct aq_error *err)
{
    struct reference ref = { .text = NULL };
    int r = 0;

    if (reference_parse(image, NULL, &ref, NULL) == 0 && ref.registry
        && !domain_allows_registry(domain, ref.registry))
        r = aq_fail_field(err, EINVAL, field,
                          "the domain '%s' does not allow images of the registry '%s'; use one of "
                          "%s",
                          domain->name, ref.registry, domain->registries);
    reference_done(&ref);
    return r;
}

static int request_check_registries(const struct core *core, const struct session_request *req,
                                    const char *domain_name, struct aq_error *err)
{
    const struct domain *domain = core_find_domain(core, domain_name);
    int r = request_check_registry(domain, req->spec.image, "image", err);

    for (size_t i = 0; r == 0 && i < req->role_count; i++)
        if (req->roles[i].role.image)
            r = request_check_registry(domain, req->roles[i].role.image, "roles.image", err);
    return r;
}

/* ---- resources ---- */

static void core_request_set_default(struct slots *slots, const char *name, int64_t amount)
{
    if (slots_get(slots, name) <= 0)
        slots_put(slots, slot_name_intern(name, strlen(name)), amount);
}

static int core_request_check_slot(const struct core *core, const struct slot *slot,
                                   struct aq_error *err)
{
    enum slot_type type;
    char field[80];

    (void)snprintf(field, sizeof(field), "config.resources.%s", slot->name);
    if (slot_types_find(core->types, slot->name, &type) < 0 && slot->amount != 0)
        return aq_fail_field(err, EINVAL, field, "no agent ever offered '%s'", slot->name);
    if (slot->amount < 0 || slot->amount == AMOUNT_INFINITE)
        return aq_fail_field(err, EINVAL, field, "an amount of '%s' cannot be negative or infinite",
                             slot->name);
    if (strcmp(slot->name, "cpu") == 0 && slot->amount % AMOUNT_ONE != 0)
        return aq_fail_field(err, EINVAL, field, "cores are given whole: ask for cpu=%lld",
                             (long long)(slot->amount / AMOUNT_ONE + 1));
    if (strcmp(slot->name, "cpu") == 0 && slot->amount == 0)
        return aq_fail_field(err, EINVAL, field,
                             "a session has 1 core at least: ask for cpu=1, or do not name cpu");
    if (strcmp(slot->name, "mem") == 0 && slot->amount < MEMORY_MIN)
        return aq_fail_field(err, EINVAL, field,
                             "is in bytes, and %lld are less than 1 MiB: ask for more, such as "
                             "512m or 2g, or do not name mem",
                             (long long)slot->amount);
    return 0;
}

/* Shared memory is part of a session's memory, beside what the image needs. */
static void request_set_least(const struct slot *least, int64_t shmem_bytes, struct slots *ret)
{
    int64_t amount = least->amount;

    if (strcmp(least->name, "mem") == 0 && __builtin_add_overflow(amount, shmem_bytes, &amount))
        amount = least->amount;
    core_request_set_default(ret, least->name, amount);
}

/* What is not wanted by name is as the image needs it. */
static int request_build_resources(const struct core *core, const char *image,
                                   const struct session *s, const struct slots *wanted,
                                   struct slots *ret, struct aq_error *err)
{
    const struct image_requirements *needs = image_requirements_find(core, image);
    int64_t shmem_bytes;

    (void)session_spec_shmem(s->spec, &shmem_bytes, NULL); /* it was checked */
    for (size_t i = 0; i < wanted->count; i++) {
        const struct slot *slot = &wanted->items[i];
        int r = core_request_check_slot(core, slot, err);

        if (r == 0 && slot->amount > 0)
            r = image_requirements_check_slot(needs, slot->name, err);
        if (r < 0)
            return r;
        if (slot->amount > 0)
            slots_put(ret, slot->name, slot->amount);
    }
    for (size_t i = 0; needs && i < needs->min.count; i++)
        if (needs->min.items[i].amount > 0)
            request_set_least(&needs->min.items[i], shmem_bytes, ret);
    core_request_set_default(ret, "cpu", AMOUNT_ONE);
    core_request_set_default(ret, "mem",
                             s->type == SESSION_SYSTEM ? SYSTEM_MEMORY : INT64_C(1) << 30);
    return 0;
}

/* A copy without spare room: it lives as long as the session waits. */
static void request_copy_exactly(struct slots *ret, const struct slots *s)
{
    ret->items = aq_alloc(AQ_MAX(s->count, 1) * sizeof(*ret->items));
    memcpy(ret->items, s->items, s->count * sizeof(*s->items));
    ret->count = ret->cap = s->count;
}

/* More kernels of one role, for which there is room. */
static int request_add_kernels(const struct core *core, const char *role, size_t count,
                               const char *image, const struct slots *wanted, struct session *s,
                               struct aq_error *err)
{
    struct slots resources = { 0 };
    int r = request_build_resources(core, image, s, wanted, &resources, err);

    for (size_t i = 0; r == 0 && i < count; i++) {
        struct kernel *k = &s->kernels[s->kernel_count];

        k->id = uuid_ordered();
        k->version = 1;
        k->attempt = 1;
        k->rank = (uint32_t)s->kernel_count++;
        k->index = (uint32_t)i + 1;
        k->status_changed_usec = s->created_usec;
        (void)snprintf(k->role, sizeof(k->role), "%s", role);
        request_copy_exactly(&k->requested, &resources);
    }
    slots_done(&resources);
    return r;
}

static int request_build_kernels(const struct core *core, const struct session_request *req,
                                 struct session *s, struct aq_error *err)
{
    size_t count = AQ_MAX(req->cluster_size, 1u);
    int r;

    s->kernels = aq_alloc_array(count, sizeof(*s->kernels));
    r = request_add_kernels(core, "main", 1, req->spec.image, &req->resources, s, err);
    for (size_t i = 0; r == 0 && i < req->role_count; i++) {
        const struct session_request_role *role = &req->roles[i];

        r = request_add_kernels(core, role->role.name, (size_t)role->role.count, role->role.image,
                                &role->resources, s, err);
        if (r < 0)
            cluster_role_set_field(role->role.name, err);
    }
    if (r == 0 && s->kernel_count < count)
        r = request_add_kernels(core, "sub", count - s->kernel_count, req->spec.image,
                                &req->resources, s, err);
    return r;
}

/* ---- roles ---- */

/* As many kernels as the roles have, which come once each. */
static int request_check_roles(const struct session_request *req, struct aq_error *err)
{
    int64_t kernels = 1;
    int r = 0;

    if (req->role_count > CLUSTER_ROLES_MAX)
        return aq_fail_field(err, EINVAL, "roles", "a session may have at most %d roles",
                             CLUSTER_ROLES_MAX);
    for (size_t i = 0; r == 0 && i < req->role_count; i++) {
        const struct cluster_role *role = &req->roles[i].role;

        r = cluster_role_check(role, err);
        if (r == 0 && role->image && strcmp(role->image, IMAGE_OF_FILES) == 0)
            r = aq_fail_field(err, EINVAL, "roles.image",
                              "'" IMAGE_OF_FILES "' is for sessions of the type system alone");
        for (size_t k = 0; r == 0 && k < i; k++)
            if (strcmp(req->roles[k].role.name, role->name) == 0)
                r = aq_fail_field(err, EINVAL, "roles.role", "the role '%s' is there twice",
                                  role->name);
        kernels += role->count;
    }
    if (r == 0 && req->role_count && kernels != req->cluster_size)
        return aq_fail_field(err, EINVAL, "clusterSize",
                             "the roles have %lld kernels with main1; leave clusterSize out",
                             (long long)kernels);
    return r;
}

/* A minimum of all kernels is none. */
static int request_read_minimum(const struct session_request *req, int64_t *inout,
                                struct aq_error *err)
{
    int64_t size = AQ_MAX(req->cluster_size, 1u);

    if (*inout > size)
        return aq_fail_field(err, EINVAL, "clusterSizeMin",
                             "clusterSizeMin is %lld, more than the %lld kernels of clusterSize; "
                             "lower it, or raise clusterSize",
                             (long long)*inout, (long long)size);
    if (*inout && req->role_count)
        return aq_fail_field(err, EINVAL, "clusterSizeMin",
                             "clusterSizeMin cannot be combined with roles; leave one of them out");
    if (*inout == size)
        *inout = 0;
    return 0;
}

/* The roles as the session keeps them; freed by the caller, NULL = none. */
static char *request_write_roles(const struct session_request *req)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    AQ_CLEANUP(aq_freep) struct cluster_role *roles = NULL;

    if (!req->role_count)
        return NULL;
    roles = aq_alloc_array(req->role_count, sizeof(*roles));
    for (size_t i = 0; i < req->role_count; i++)
        roles[i] = req->roles[i].role;
    cluster_roles_write(roles, req->role_count, &w);
    return strbuf_steal(&text);
}

/* All that the session keeps of what it asks for. */
static int request_build_spec(const struct session_request *req, struct session *ret,
                              struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *roles = request_write_roles(req);
    struct session_spec spec = req->spec;
    int r;

    spec.roles = roles;
    if ((r = session_spec_check(&spec, err)) < 0
        || (r = request_read_minimum(req, &spec.cluster_size_min, err)) < 0)
        return r;
    ret->spec = session_spec_copy(&spec);
    ret->image = aq_strdup(spec.image);
    ret->tag = aq_strdup(spec.tag);
    return 0;
}

/* ---- together ---- */

int request_build(const struct core *core, const struct session_request *req, struct session *ret,
                  struct aq_error *err)
{
    int r;

    if ((r = session_name_check_new(req->name ? req->name : "", err)) < 0
        || (r = request_check_roles(req, err)) < 0 || (r = request_build_spec(req, ret, err)) < 0
        || (r = request_check_batch(req, err)) < 0 || (r = request_check_system(core, req, err)) < 0
        || (r = core_request_find_owner(core, req, ret, err)) < 0
        || (r = request_check_registries(core, req, ret->domain, err)) < 0
        || (r = request_check_limits(core, req, ret->access_key, err)) < 0)
        return r;
    ret->id = uuid_random();
    (void)snprintf(ret->name, sizeof(ret->name), "%s", req->name);
    ret->type = req->type;
    ret->status = SESSION_PENDING;
    ret->version = 1;
    ret->priority = req->priority < 0 ? PRIORITY_DEFAULT : req->priority;
    ret->created_usec = ret->status_changed_usec = clock_realtime_usec();
    ret->starts_usec = req->starts_usec;
    ret->is_multi_node = req->multi_node;
    if (req->replica) {
        ret->replica = aq_alloc(sizeof(*ret->replica));
        *ret->replica = *req->replica;
    }
    return request_build_kernels(core, req, ret, err);
}
