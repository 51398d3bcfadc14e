/* SPDX-License-Identifier: Apache-2.0 */
/* violations.c - who uses cards past the limits of pods, and who is told
 *
 * The driver's list of processes is the source that no program of a pod can change. A process of a
 * container that asks for a part of a card and has no slice, or no slot in it, runs without its
 * limit: so a limit is never silently not there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "k8s/limits/limits_internal.h"

#define TOLD_MAX 1024
#define HIDDEN_LOOKS 3

/* Whose the processes of the driver's last list are. */
struct user {
    pid_t pid;
    struct cgroup_name name; /* pod "" = of no pod */
};

struct violations {
    struct limits *limits;
    struct user *users;
    size_t user_count, user_cap;
    struct map told; /* "POD/ID/REASON/IS_BREACH" */
    pid_t hidden_pid;
    unsigned hidden_looks;
    bool is_hidden_told;
};

/* ---- telling ---- */

struct culprit {
    const char *namespace, *pod, *uid, *id;
};

static void violations_tell(struct violations *violations, const struct culprit *who,
                            const char *reason, const char *text, bool is_breach)
{
    AQ_CLEANUP(aq_freep) char *key = aq_format("%s/%s/%s/%d", who->uid, who->id, reason, is_breach);
    struct limits *limits = violations->limits;
    const struct event event = { .reason = reason,
                                 .text = text,
                                 .namespace = who->namespace,
                                 .pod = who->pod,
                                 .uid = who->uid };

    if (violations->told.count >= TOLD_MAX)
        map_done(&violations->told);
    if (map_gets(&violations->told, key))
        return;
    map_sets(&violations->told, key, violations);
    events_tell(limits->events, &event);
    if (is_breach && strcmp(limits->conf.settings->on_violation, "evict") == 0)
        evictions_ask(limits->evictions, who->namespace, who->pod, who->uid);
}

static void violations_tell_not_active(struct violations *violations, const struct culprit *who,
                                       const char *container, const char *what)
{
    AQ_CLEANUP(aq_freep) char *text = aq_format(
        "container %s: %s. Its limit is not active for this program: it is statically linked, or its "
        "image's loader does not read /etc/ld.so.preload (musl), or it has got past that. Use a "
        "dynamically linked program and an image with glibc",
        container, what);

    violations_tell(violations, who, EVENT_LIMIT_NOT_ACTIVE, text, true);
}

void violations_on_violation(void *data, struct slice *slice, const struct gpu_violation *violation,
                             const char *text)
{
    const struct limits *limits = data;
    const struct container *container = AQ_CONTAINER_OF(slice, struct container, slice);
    const struct culprit who = { container->namespace, container->pod_name, container->pod,
                                 container->id };
    AQ_CLEANUP(aq_freep) char *full = aq_format("container %s: %s", container->name, text);

    if (violation->kind == GPU_VIOLATION_UNREGISTERED)
        violations_tell_not_active(limits->violations, &who, container->name, text);
    else
        violations_tell(limits->violations, &who, EVENT_OVER_LIMIT, full,
                        gpu_violation_is_breach(violation));
}

/* ---- looking ---- */

static const struct cgroup_name *violations_name_of(const struct violations *violations, pid_t pid)
{
    for (size_t i = 0; i < violations->user_count; i++)
        if (violations->users[i].pid == pid)
            return &violations->users[i].name;
    return NULL;
}

bool violations_owns(void *data, const struct slice *slice, pid_t pid)
{
    const struct limits *limits = data;
    const struct container *container = AQ_CONTAINER_OF(slice, const struct container, slice);
    const struct cgroup_name *name = violations_name_of(limits->violations, pid);
    const struct node_pod *pod;
    const struct node_container *of;

    if (!name || strcmp(name->pod, container->pod) != 0)
        return false;
    if (strcmp(name->container, container->id) == 0)
        return true;
    pod = pods_find(limits->pods, name->pod);
    of = pod ? identity_container(pod, name) : NULL;
    return of && strcmp(of->name, container->name) == 0;
}

char *violations_find_cgroup(void *data, const struct slice *slice)
{
    static const char mount[] = "/sys/fs/cgroup";
    const struct container *container = AQ_CONTAINER_OF(slice, const struct container, slice);
    bool is_unified = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s%s%s", mount, is_unified ? "" : "/unified",
                                                container->cgroup);

    (void)data;
    return container->cgroup[0] && access(path, F_OK) == 0 ? AQ_TAKE(path) : NULL;
}

/* It is not known yet that it has one. */
static bool violations_is_lost(const struct limits *limits, pid_t pid)
{
    for (size_t i = 0; i < limits->lost_count; i++)
        if (limits->lost[i].pid == pid)
            return true;
    return false;
}

/* A process of a container without a part, in a pod that has one: it was handed an open device by
 * another container, as those of a pod can do for each other. Cards of other device plugins are not
 * looked at.
 */
static void violations_look_beside(struct violations *violations, const struct user *user,
                                   const struct node_pod *pod, const struct node_container *of,
                                   uint64_t bytes)
{
    const struct culprit who = { pod->namespace, pod->name, pod->uid, user->name.container };
    AQ_CLEANUP(aq_freep) char *text = aq_format(
        "container %s: process %d uses a GPU (%llu MiB of device memory), but the container has no part "
        "of one: let it ask for a part, or run the program in the container that has one",
        of->name, (int)user->pid, (unsigned long long)bytes >> 20);

    violations_tell(violations, &who, EVENT_LIMIT_NOT_ACTIVE, text, true);
}

/* Processes without a slice at all: their program has not even asked. */
static void violations_look_at(struct violations *violations, const struct user *user,
                               uint64_t bytes)
{
    const struct limits *limits = violations->limits;
    const struct node_pod *pod = user->name.pod[0] ? pods_find(limits->pods, user->name.pod) : NULL;
    const struct node_container *of = pod ? identity_container(pod, &user->name) : NULL;
    AQ_CLEANUP(aq_freep) char *what = NULL;
    struct culprit who;

    if (!pod || container_find_by_id(limits, &user->name) || violations_is_lost(limits, user->pid)
        || !slices_is_running(user->pid))
        return;
    if (pod->is_asking && of && !of->memory && !of->has_whole)
        violations_look_beside(violations, user, pod, of, bytes);
    if (!of || !of->memory || container_find(limits, pod->uid, of->name))
        return;
    who = (struct culprit){ pod->namespace, pod->name, pod->uid, user->name.container };
    what = aq_format("process %d uses a GPU past its limits (%llu MiB of device memory)",
                     (int)user->pid, (unsigned long long)bytes >> 20);
    violations_tell_not_active(violations, &who, of->name, what);
}

void violations_tell_hidden(struct violations *violations)
{
    const struct event event = {
        .reason = EVENT_LIMIT_NOT_ACTIVE,
        .text =
            "processes that use or ask for GPUs cannot be seen from the device plugin, so no container "
            "gets its part, and nobody watches who goes past it: run the plugin with hostPID: true",
    };

    if (!violations->is_hidden_told)
        events_tell(violations->limits->events, &event);
    violations->is_hidden_told = true;
}

/* Of the driver's list; one that is not there any more may have ended since. */
static void violations_look_for_hidden(struct violations *violations, pid_t hidden)
{
    violations->hidden_looks = hidden && hidden == violations->hidden_pid
                                   ? violations->hidden_looks + 1
                                   : hidden != 0;
    violations->hidden_pid = hidden;
    if (violations->hidden_looks == HIDDEN_LOOKS)
        violations_tell_hidden(violations);
}

static bool violations_is_seen(pid_t pid)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return pid > 0 && access(path, F_OK) == 0;
}

void violations_on_processes(struct violations *violations, const struct gpu_process_memory *uses,
                             size_t count)
{
    const struct limits *limits = violations->limits;
    pid_t hidden = 0;

    violations->user_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct user *user;

        if (violations_name_of(violations, uses[i].pid))
            continue;
        vec_grow(&violations->users, &violations->user_cap, violations->user_count + 1,
                 sizeof(*violations->users));
        user = &violations->users[violations->user_count++];
        user->pid = uses[i].pid;
        if (!identity_of_pid(limits, uses[i].pid, &user->name))
            user->name = (struct cgroup_name){ .pod = "" };
        if (!violations_is_seen(uses[i].pid))
            hidden = uses[i].pid ? uses[i].pid : -1;
        violations_look_at(violations, user, uses[i].bytes);
    }
    violations_look_for_hidden(violations, hidden);
}

/* ---- life ---- */

void violations_set_needed(struct violations *violations)
{
    const struct limits *limits = violations->limits;
    bool is_needed = false;
    const struct node_pod *pod;

    for (size_t i = 0; !is_needed && (pod = pods_at(limits->pods, i)); i++)
        is_needed = pod->is_asking && !pod->is_over;
    slices_keep_watching(limits->slices, is_needed);
}

struct violations *violations_new(struct limits *limits)
{
    struct violations *violations = aq_alloc(sizeof(*violations));

    violations->limits = limits;
    return violations;
}

void violations_free(struct violations *violations)
{
    if (!violations)
        return;
    map_done(&violations->told);
    free(violations->users);
    free(violations);
}
