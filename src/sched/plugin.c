/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - sequencers and selectors out of shared objects (aliquot/scheduler.h) */
#include "sched/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aliquot/scheduler.h"
#include "base/log.h"
#include "base/memory.h"
#include "sched/scheduler_internal.h"

#define NAME_MAX_LEN 64

struct sched_plugin {
    char *path;
    const struct aq_scheduler *theirs;
    bool has_complained;
    struct sequencer_ops sequencer;
    struct selector_ops selector;
    struct sched_plugin *next;
};

static struct sched_plugin *loaded;
static const char *folder;

static void plugin_complain(struct sched_plugin *p, const char *what)
{
    if (!p->has_complained)
        log_warning("scheduler plug-in '%s' (%s) %s; the built-in rule takes over", p->theirs->name,
                    p->path, what);
    p->has_complained = true;
}

/* ---- order ---- */

struct ordered {
    uint32_t *order; /* NULL = by row */
};

static struct aq_scheduler_slots plugin_slots_of(const struct cluster *c)
{
    return (struct aq_scheduler_slots){ c->names, (uint32_t)c->columns, 0 };
}

static void plugin_fill_sessions(struct queue_order *seq, struct arena *arena,
                                 struct aq_scheduler_session *ret)
{
    const struct cluster *c = &seq->s->cluster;
    int64_t *amounts = arena_array(arena, seq->count * c->columns + 1, sizeof(*amounts));

    for (size_t i = 0; i < seq->count; i++, amounts += c->columns) {
        const struct sched_entry *e = &seq->s->entries[seq->items[i].handle];

        for (uint32_t q = 0; q < e->req_count; q++)
            for (size_t k = 0; k < c->columns; k++)
                amounts[k] += e->reqs[q]->amounts[k];
        ret[i] = (struct aq_scheduler_session){ .row = e->row,
                                                .lifetime_usec = e->lifetime_usec,
                                                .amounts = amounts,
                                                .owner = e->owner,
                                                .retries = e->retries,
                                                .job_priority = e->job_priority };
    }
}

static bool plugin_is_permutation(const uint32_t *order, size_t count, bool *seen)
{
    for (size_t i = 0; i < count; i++) {
        if (order[i] >= count || seen[order[i]])
            return false;
        seen[order[i]] = true;
    }
    return true;
}

static void plugin_begin_order(struct queue_order *seq, struct arena *arena)
{
    struct sched_plugin *p = AQ_CONTAINER_OF(seq->s->options.sequencer, struct sched_plugin,
                                             sequencer);
    struct aq_scheduler_slots slots = plugin_slots_of(&seq->s->cluster);
    struct ordered *ordered = arena_alloc(arena, sizeof(*ordered));
    struct aq_scheduler_session *sessions = arena_array(arena, seq->count, sizeof(*sessions));
    uint32_t *order = arena_array(arena, seq->count, sizeof(*order));
    bool *seen = arena_array(arena, seq->count, sizeof(*seen));

    plugin_fill_sessions(seq, arena, sessions);
    memset(order, 0xff, seq->count * sizeof(*order));
    if (p->theirs->order(&slots, sessions, (uint32_t)seq->count, order) != 0)
        plugin_complain(p, "refuses to order the sessions");
    else if (!plugin_is_permutation(order, seq->count, seen))
        plugin_complain(p, "does not name each session once");
    else
        ordered->order = order;
    seq->data = ordered;
}

static uint32_t plugin_next_ordered(struct queue_order *seq)
{
    const struct ordered *ordered = seq->data;
    size_t at = seq->at++;

    if (at >= seq->count)
        return NO_HANDLE;
    return seq->items[ordered->order ? ordered->order[at] : at].handle;
}

/* ---- choice ---- */

static int plugin_compare_ids(const void *a, const void *b, void *data)
{
    const struct cluster *c = data;

    return strcmp(c->nodes[*(const uint32_t *)a].id, c->nodes[*(const uint32_t *)b].id);
}

/* All where it fits. */
static uint32_t plugin_find_room(struct cluster *c, struct slot_request *req,
                                 const struct selector *self, uint32_t *nodes)
{
    uint32_t count = 0;

    for (uint32_t n = 0; n < c->node_count; n++)
        if (cluster_fit(c, req, c->nodes[n].state, self)->has_room)
            nodes[count++] = n;
    return count;
}

/* Those that are allowed, by id. */
static uint32_t plugin_list_agents(struct cluster *c, struct slot_request *req,
                                   const struct selector *self, const struct node_list *allowed,
                                   struct aq_scheduler_agent *agents, uint32_t *nodes)
{
    uint32_t count = allowed ? allowed->count : plugin_find_room(c, req, self, nodes);

    if (allowed)
        memcpy(nodes, allowed->nodes, count * sizeof(*nodes));
    qsort_r(nodes, count, sizeof(*nodes), plugin_compare_ids, c);
    for (uint32_t i = 0; i < count; i++)
        agents[i] = (struct aq_scheduler_agent){ c->nodes[nodes[i]].id, c->nodes[nodes[i]].free,
                                                 c->nodes[nodes[i]].capacity };
    return count;
}

static uint32_t plugin_pick(void *data, struct cluster *c, struct slot_request *req,
                            const struct selector *self, const struct node_list *allowed,
                            uint32_t node, int32_t *device)
{
    struct sched_plugin *p = AQ_CONTAINER_OF(self->ops, struct sched_plugin, selector);
    struct aq_scheduler_agent *agents = aq_alloc_array(c->node_count + 1, sizeof(*agents));
    uint32_t *nodes = aq_alloc_array(c->node_count + 1, sizeof(*nodes));
    struct aq_scheduler_slots slots = plugin_slots_of(c);
    uint32_t count = plugin_list_agents(c, req, self, allowed, agents, nodes);
    int32_t chosen = p->theirs->choose(&slots, req->amounts, agents, count);

    (void)data;
    if (chosen >= 0 && (uint32_t)chosen >= count) {
        plugin_complain(p, "chooses an agent that there is not");
        chosen = -1;
    }
    if (chosen >= 0) {
        node = nodes[chosen];
        *device = -1; /* the best fit there */
    }
    free(agents);
    free(nodes);
    return node;
}

/* ---- loading ---- */

static int plugin_check(const char *path, const struct aq_scheduler *theirs, struct aq_error *err)
{
    if (!theirs)
        return aq_fail(err, EINVAL,
                       "'%s' is no scheduler plug-in: it exports no " AQ_SCHEDULER_SYMBOL, path);
    if (theirs->abi != AQ_SCHEDULER_ABI || theirs->size != sizeof(*theirs))
        return aq_fail(err, EINVAL,
                       "'%s' is made for ABI %u (%u bytes), this program has %u (%zu); "
                       "recompile it",
                       path, theirs->abi, theirs->size, AQ_SCHEDULER_ABI, sizeof(*theirs));
    if (!theirs->name || !theirs->name[0] || (!theirs->order && !theirs->choose))
        return aq_fail(err, EINVAL, "'%s' has no name, or neither orders nor chooses", path);
    return 0;
}

static struct sched_plugin *plugin_new(const char *path, const struct aq_scheduler *theirs)
{
    struct sched_plugin *p = aq_alloc(sizeof(*p));

    p->path = aq_strdup(path);
    p->theirs = theirs;
    p->sequencer = (struct sequencer_ops){ .name = theirs->name,
                                           .begin = plugin_begin_order,
                                           .next = plugin_next_ordered };
    p->selector = sched_concentrated;
    p->selector.name = theirs->name;
    p->selector.spreads = true; /* it chooses among all agents of a subtree */
    p->selector.pick = plugin_pick;
    p->next = loaded;
    return loaded = p;
}

static int plugin_load(const char *path, struct sched_plugin **ret, struct aq_error *err)
{
    void *object;
    int r;

    for (*ret = loaded; *ret; *ret = (*ret)->next)
        if (strcmp((*ret)->path, path) == 0)
            return 0;
    if (AQ_STATIC)
        return aq_fail(err, ENOTSUP,
                       "'%s': this program is linked statically and loads no "
                       "scheduler plug-ins; install a package or build it on this machine",
                       path);
    if (!(object = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
        return aq_fail(err, EINVAL, "%s", dlerror());
    if ((r = plugin_check(path, dlsym(object, AQ_SCHEDULER_SYMBOL), err)) < 0) {
        (void)dlclose(object);
        return r;
    }
    *ret = plugin_new(path, dlsym(object, AQ_SCHEDULER_SYMBOL));
    return 0;
}

int sched_plugin_load(const char *path, const struct sequencer_ops **ret_sequencer,
                      const struct selector_ops **ret_selector, struct aq_error *err)
{
    struct sched_plugin *p;
    int r = plugin_load(path, &p, err);

    if (r < 0)
        return r;
    if ((ret_sequencer && !p->theirs->order) || (ret_selector && !p->theirs->choose))
        return aq_fail(err, EINVAL, "scheduler plug-in '%s' does not %s", p->theirs->name,
                       ret_sequencer ? "order sessions" : "choose agents");
    if (ret_sequencer)
        *ret_sequencer = &p->sequencer;
    if (ret_selector)
        *ret_selector = &p->selector;
    return 0;
}

void sched_plugin_set_folder(const char *path)
{
    folder = path;
}

/* Nobody else may put other code there. */
static int plugin_check_owner(const char *path, struct aq_error *err)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return aq_fail(err, EINVAL, "'%s': %s", path, strerror(errno));
    if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & (S_IWGRP | S_IWOTH)))
        return aq_fail(err, EINVAL,
                       "'%s' could be changed by others: it must belong to root or "
                       "this program's user, and only its owner may write to it",
                       path);
    return 0;
}

int sched_plugin_find(const char *name, const struct sequencer_ops **ret_sequencer,
                      const struct selector_ops **ret_selector, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = NULL;
    size_t len = strlen(name);
    int r;

    if (!folder)
        return aq_fail(err, EINVAL,
                       "there is no folder of scheduler plug-ins: set "
                       "scheduler-plugins in the manager's settings");
    if (len == 0 || len > NAME_MAX_LEN || name[0] == '.' || strchr(name, '/'))
        return aq_fail(err, EINVAL, "'%.64s' is no name of a plug-in", name);
    path = aq_format("%s/%s.so", folder, name);
    if ((r = plugin_check_owner(folder, err)) < 0 || (r = plugin_check_owner(path, err)) < 0)
        return r;
    return sched_plugin_load(path, ret_sequencer, ret_selector, err);
}
