#include "sched/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "sched/fragmentation.h"
#include "sched/state_private.h"

int sched_new(const struct slot_types *types, const struct sched_options *options,
              struct sched **ret, struct aq_error *err)
{
    AQ_CLEANUP(sched_freep) struct sched *s = calloc(1, sizeof(*s));

    if (!s || cluster_init(&s->cluster, types, options->slot_priority,
                           options->slot_priority_count) < 0)
        return aq_fail(err, ENOMEM, "a scheduler");
    s->options = *options;
    s->capacity = calloc(s->cluster.width, sizeof(*s->capacity));
    s->column_types = calloc(s->cluster.width, sizeof(*s->column_types));
    for (size_t c = 0; s->column_types && c < s->cluster.columns; c++)
        s->column_types[c] = slot_types_get(types, s->cluster.names[c]);
    if (!s->capacity || !s->column_types ||
        (options->selector.ops->open && !options->selector.data &&
         options->selector.ops->open(&s->options.selector.data) < 0))
        return aq_fail(err, ENOMEM, "a scheduler");
    s->owns_selector = s->options.selector.data != options->selector.data;
    *ret = AQ_TAKE(s);
    return 0;
}

static void entry_done(struct entry *e)
{
    for (uint32_t i = 0; e->holds && i < e->req_count; i++)
        free(e->holds[i].parts);
    free(e->holds);
    free(e->reqs);
    if (e->more) {
        free(e->more->designated);
        free(e->more->group);
        free(e->more->scope);
        free(e->more);
    }
    *e = (struct entry){ 0 };
}

void sched_free(struct sched *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->entry_count; i++)
        entry_done(&s->entries[i]);
    for (size_t i = 0; i < s->account_count; i++) {
        free(s->accounts[i].limits);
        free(s->accounts[i].used);
    }
    for (size_t i = 0; i < s->owner_count; i++)
        free(s->owners[i].used);
    if (s->owns_selector)
        s->options.selector.ops->close(s->options.selector.data);
    cluster_done(&s->cluster);
    free(s->column_types);
    strbuf_done(&s->choices);
    free(s->entries);
    free(s->free_entries);
    for (size_t i = 0; i < s->reserved_count; i++) {
        for (uint32_t q = 0; q < s->reserved[i].count; q++)
            free(s->reserved[i].holds[q].parts);
        free(s->reserved[i].holds);
        free(s->reserved[i].reqs);
    }
    free(s->reserved);
    free(s->queue);
    free(s->accounts);
    free(s->owners);
    free(s->capacity);
    free(s);
}

/* ---- holding ---- */

static void add_amounts(const struct sched *s, int64_t *sums, const struct entry *e, int sign)
{
    for (uint32_t i = 0; sums && i < e->req_count; i++)
        for (size_t c = 0; c < s->cluster.columns; c++)
            sums[c] += sign * e->reqs[i]->amounts[c];
}

void state_charge(struct sched *s, const struct entry *e, int sign)
{
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        if (e->accounts[kind] < s->account_count) {
            s->accounts[e->accounts[kind]].sessions += sign;
            add_amounts(s, s->accounts[e->accounts[kind]].used, e, sign);
        }
    if (e->owner < s->owner_count)
        add_amounts(s, s->owners[e->owner].used, e, sign);
    s->grouped += e->more && e->more->group ? (size_t)sign : 0;
}

int state_hold(struct sched *s, struct entry *e, size_t req, uint32_t node, int32_t device)
{
    struct hold *h = &e->holds[req];
    int r = cluster_hold(&s->cluster, node, e->reqs[req], device, &h->parts, &h->part_count);

    if (r == 0)
        h->node = node;
    return r;
}

int state_release(struct sched *s, struct entry *e, size_t req)
{
    struct hold *h = &e->holds[req];
    int r = 0;

    if (h->node != CLUSTER_NONE)
        r = cluster_release(&s->cluster, h->node, e->reqs[req], h->parts, h->part_count);
    if (r < 0)
        return r;
    free(h->parts);
    *h = (struct hold){ .node = CLUSTER_NONE };
    return 0;
}

/* ---- agents ---- */

/* Take what sessions hold on 'node' off what was said to be free there. */
static int hold_again(struct sched *s, uint32_t node)
{
    for (size_t i = 0; i < s->entry_count; i++) {
        struct entry *e = &s->entries[i];

        if (e->status != ENTRY_PLACED && e->status != ENTRY_PREEMPTING)
            continue;
        for (uint32_t q = 0; q < e->req_count; q++)
            if (e->holds[q].node == node &&
                cluster_hold_parts(&s->cluster, node, e->reqs[q], e->holds[q].parts,
                                   e->holds[q].part_count) < 0)
                return -ENOMEM;
    }
    for (size_t i = 0; i < s->reserved_count; i++) {
        const struct reserved *r = &s->reserved[i];

        for (uint32_t q = 0; q < r->count; q++)
            if (r->holds[q].node == node &&
                cluster_hold_parts(&s->cluster, node, r->reqs[q], r->holds[q].parts,
                                   r->holds[q].part_count) < 0)
                return -ENOMEM;
    }
    return 0;
}

int sched_set_agent(struct sched *s, const struct sched_agent *agent, struct aq_error *err)
{
    bool is_new = cluster_find_agent(&s->cluster, agent->id) == CLUSTER_NONE;
    uint32_t node;
    int r = cluster_set_agent(&s->cluster, agent, &node, err);

    if (r == 0 && !is_new && hold_again(s, node) < 0)
        r = aq_fail(err, ENOMEM, "agent '%s'", agent->id);
    return r;
}

static bool is_reserved_on(const struct reserved *r, uint32_t node)
{
    for (uint32_t q = 0; q < r->count; q++)
        if (r->holds[q].node == node)
            return true;
    return false;
}

int sched_remove_agent(struct sched *s, const char *id, struct aq_error *err)
{
    uint32_t node = cluster_find_agent(&s->cluster, id);

    if (node == CLUSTER_NONE)
        return aq_fail(err, ENOENT, "there is no agent '%s'", id);
    for (size_t i = 0; i < s->entry_count; i++)
        for (uint32_t q = 0; s->entries[i].holds && q < s->entries[i].req_count; q++)
            if (s->entries[i].holds[q].node == node)
                return aq_fail(err, EBUSY, "sessions hold something on agent '%s'", id);
    for (size_t i = s->reserved_count; i-- > 0;)
        if (is_reserved_on(&s->reserved[i], node) && state_unreserve(s, s->reserved[i].row) < 0)
            return aq_fail(err, ENOMEM, "agent '%s'", id);
    cluster_remove_agent(&s->cluster, node);
    return 0;
}

/* ---- accounts and owners ---- */

static int fill_row(const struct cluster *c, const struct slots *slots, int64_t absent,
                    int64_t **row)
{
    if (!*row && !(*row = calloc(c->width, sizeof(**row))))
        return -ENOMEM;
    cluster_fill_row(c, slots, absent, *row);
    return 0;
}

static bool is_holding(const struct entry *e)
{
    return e->status == ENTRY_PLACED || e->status == ENTRY_PREEMPTING;
}

int sched_set_account(struct sched *s, uint32_t account, const struct sched_account *value)
{
    struct account *a;

    if (account >= s->account_count) {
        if (!vec_grow(&s->accounts, &s->account_cap, (size_t)account + 1, sizeof(*s->accounts)))
            return -ENOMEM;
        memset(&s->accounts[s->account_count], 0,
               (account + 1 - s->account_count) * sizeof(*s->accounts));
        s->account_count = (size_t)account + 1;
    }
    a = &s->accounts[account];
    if (fill_row(&s->cluster, value->limits, value->missing_is_zero ? 0 : AMOUNT_INFINITE,
                 &a->limits) < 0 ||
        fill_row(&s->cluster, value->used, 0, &a->used) < 0)
        return -ENOMEM;
    a->kind = value->kind;
    a->max_sessions = value->max_sessions;
    a->sessions = value->sessions;
    for (size_t i = 0; i < s->entry_count; i++) {
        const struct entry *e = &s->entries[i];

        if (is_holding(e) && e->accounts[value->kind] == account) {
            a->sessions++;
            add_amounts(s, a->used, e, 1);
        }
    }
    return 0;
}

int sched_set_owner(struct sched *s, uint32_t owner, const struct sched_owner *value)
{
    struct owner *o;

    if (owner >= s->owner_count) {
        if (!vec_grow(&s->owners, &s->owner_cap, (size_t)owner + 1, sizeof(*s->owners)))
            return -ENOMEM;
        memset(&s->owners[s->owner_count], 0, (owner + 1 - s->owner_count) * sizeof(*s->owners));
        s->owner_count = (size_t)owner + 1;
    }
    o = &s->owners[owner];
    if (fill_row(&s->cluster, value->used, 0, &o->used) < 0)
        return -ENOMEM;
    o->factors[0] = value->domain_factor;
    o->factors[1] = value->project_factor;
    o->factors[2] = value->user_factor;
    for (size_t i = 0; i < s->entry_count; i++)
        if (is_holding(&s->entries[i]) && s->entries[i].owner == owner)
            add_amounts(s, o->used, &s->entries[i], 1);
    return 0;
}

void sched_set_factors(struct sched *s, uint32_t owner, double domain, double project, double user)
{
    if (owner >= s->owner_count)
        return;
    s->owners[owner].factors[0] = domain;
    s->owners[owner].factors[1] = project;
    s->owners[owner].factors[2] = user;
}

/* ---- sessions ---- */

static int copy_text(char **to, const char *text)
{
    return !text || (*to = strdup(text)) ? 0 : -ENOMEM;
}

static int read_more(const struct sched *s, const struct sched_session *session, struct entry *e)
{
    struct entry_more *more;

    if (!session->designated_count && !session->failed_agent && !session->group && !session->scope)
        return 0;
    if (!(e->more = more = calloc(1, sizeof(*more))))
        return -ENOMEM;
    more->failed = session->failed_agent ? cluster_find_agent(&s->cluster, session->failed_agent)
                                         : CLUSTER_NONE;
    more->designated_strict = session->designated_strict;
    more->grouping = session->group ? session->grouping : SCHED_UNGROUPED;
    more->grouping_strict = session->grouping_strict;
    if (copy_text(&more->group, session->group) < 0 || copy_text(&more->scope, session->scope) < 0)
        return -ENOMEM;
    if (!session->designated_count)
        return 0;
    more->designated = calloc(session->designated_count, sizeof(*more->designated));
    if (!more->designated)
        return -ENOMEM;
    for (size_t i = 0; i < session->designated_count; i++)
        more->designated[more->designated_count++]
            = cluster_find_agent(&s->cluster, session->designated[i]);
    return 0;
}

static enum sched_verdict judge_dependencies(const struct sched_session *session)
{
    enum sched_verdict verdict = SCHED_PLACED;

    for (size_t i = 0; i < session->dependency_count; i++) {
        if (!session->dependencies[i].ended)
            verdict = SCHED_DEPENDENCY;
        else if (session->dependencies[i].result != RESULT_SUCCESS)
            return SCHED_DOOMED;
    }
    return verdict;
}

static int read_requests(struct sched *s, const struct sched_session *session, struct entry *e)
{
    struct request_spec spec = { .architecture = session->architecture,
        .models = session->models, .model_count = session->model_count,
        .may_split = session->may_split };
    uint32_t count = session->single_node ? 1 : (uint32_t)session->kernel_count;

    if (!(e->reqs = calloc(count, sizeof(struct request *))))
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        spec.kernels = session->single_node ? session->kernels : &session->kernels[i];
        spec.kernel_count = session->single_node ? session->kernel_count : 1;
        if (!(e->reqs[i] = cluster_request(&s->cluster, &spec)))
            return -ENOMEM;
        e->req_count++;
    }
    return 0;
}

int state_requests(struct sched *s, const struct sched_session *session, struct request ***ret,
                   uint32_t *ret_count)
{
    struct entry e = { 0 };
    int r = read_requests(s, session, &e);

    *ret_count = e.req_count;
    *ret = e.reqs;
    while (r < 0 && *ret_count > 0)
        cluster_request_release(&s->cluster, e.reqs[--*ret_count]);
    if (r < 0)
        free(e.reqs);
    return r;
}

int sched_shape(struct sched *s, const struct sched_session *session, struct shape *ret)
{
    struct entry e = { 0 };
    int r = read_requests(s, session, &e);

    if (r == 0)
        (void)shape_of(&s->cluster, e.reqs[0], ret);
    for (uint32_t i = 0; i < e.req_count; i++)
        cluster_request_release(&s->cluster, e.reqs[i]);
    free(e.reqs);
    return r;
}

static int read_session(struct sched *s, const struct sched_session *session, struct entry *e)
{
    *e = (struct entry){ .row = session->row, .starts_usec = session->starts_usec,
        .lifetime_usec = session->lifetime_usec, .type = session->type,
        .priority = session->priority, .job_priority = session->job_priority,
        .is_preemptible = session->is_preemptible, .is_movable = session->is_movable,
        .single_node = session->single_node,
        .dependencies = judge_dependencies(session), .owner = session->owner,
        .retries = session->retries, .kernel_count = (uint32_t)session->kernel_count };
    memcpy(e->accounts, session->accounts, sizeof(e->accounts));
    if (read_requests(s, session, e) < 0 || read_more(s, session, e) < 0)
        return -ENOMEM;
    e->holds = calloc(e->req_count + 1, sizeof(*e->holds));
    for (uint32_t i = 0; e->holds && i < e->req_count; i++)
        e->holds[i].node = CLUSTER_NONE;
    return e->holds ? 0 : -ENOMEM;
}

static void entry_drop(struct sched *s, struct entry *e)
{
    for (uint32_t i = 0; i < e->req_count; i++)
        cluster_request_release(&s->cluster, e->reqs[i]);
    entry_done(e);
}

/* *ret is still ENTRY_FREE. */
static int add_entry(struct sched *s, const struct sched_session *session, uint32_t *ret,
                     struct aq_error *err)
{
    if (session->kernel_count == 0 || session->kernel_count > UINT16_MAX)
        return aq_fail_field(err, EINVAL, "kernels", "a session has 1 to %d kernels", UINT16_MAX);
    if (s->free_count) {
        *ret = s->free_entries[--s->free_count];
    } else {
        if (!vec_grow(&s->entries, &s->entry_cap, s->entry_count + 1, sizeof(*s->entries)) ||
            !vec_grow(&s->free_entries, &s->free_cap, s->entry_count + 1,
                      sizeof(*s->free_entries)))
            return aq_fail(err, ENOMEM, "a session");
        s->entries[s->entry_count] = (struct entry){ 0 };
        *ret = (uint32_t)s->entry_count++;
    }
    if (read_session(s, session, &s->entries[*ret]) < 0) {
        entry_drop(s, &s->entries[*ret]);
        s->free_entries[s->free_count++] = *ret;
        return aq_fail(err, ENOMEM, "a session");
    }
    return 0;
}

/* < 0: a comes before b. */
static int compare_queued(const struct queued *a, const struct queued *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* The first that does not come before 'q'. */
static size_t queue_find(const struct sched *s, const struct queued *q)
{
    size_t low = 0, high = s->queue_count;

    if (high && compare_queued(&s->queue[high - 1], q) < 0)
        return high;
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (compare_queued(&s->queue[middle], q) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t queue_band_end(const struct sched *s, size_t from)
{
    size_t low = from, high = s->queue_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (s->queue[middle].priority == s->queue[from].priority)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void queue_insert(struct sched *s, uint32_t handle)
{
    const struct entry *e = &s->entries[handle];
    struct queued q = { e->row, e->priority, handle, e->owner };
    size_t at = queue_find(s, &q);

    memmove(&s->queue[at + 1], &s->queue[at], (s->queue_count - at) * sizeof(q));
    s->queue[at] = q;
    s->queue_count++;
}

static void queue_take_out(struct sched *s, const struct entry *e)
{
    struct queued q = { .row = e->row, .priority = e->priority };
    size_t at = queue_find(s, &q);

    memmove(&s->queue[at], &s->queue[at + 1], (s->queue_count - at - 1) * sizeof(q));
    s->queue_count--;
}

int sched_add_guess(struct sched *s, const struct sched_session *session, uint32_t *ret_handle,
                    struct aq_error *err)
{
    struct queued q = { .row = session->row, .priority = session->priority };
    size_t at = queue_find(s, &q);
    int r;

    if (at < s->queue_count && compare_queued(&s->queue[at], &q) == 0)
        return aq_fail(err, EEXIST, "session %lld waits already", (long long)session->row);
    if (!vec_grow(&s->queue, &s->queue_cap, s->queue_count + 1, sizeof(*s->queue)))
        return aq_fail(err, ENOMEM, "a session");
    if ((r = add_entry(s, session, ret_handle, err)) < 0)
        return r;
    s->entries[*ret_handle].status = ENTRY_WAITING;
    queue_insert(s, *ret_handle);
    return 0;
}

int sched_add(struct sched *s, const struct sched_session *session, uint32_t *ret_handle,
              struct aq_error *err)
{
    const struct selector *selector = &s->options.selector;
    int r = sched_add_guess(s, session, ret_handle, err);

    if (r < 0)
        return r;
    if (selector->ops->arrive)
        for (uint32_t i = 0; i < s->entries[*ret_handle].req_count; i++)
            selector->ops->arrive(selector->data, &s->cluster, s->entries[*ret_handle].reqs[i]);
    return 0;
}

/* Its agent as it is said; without devices said, some are chosen. */
static int hold_place(struct sched *s, struct entry *e, size_t req, const struct sched_place *place,
                      bool is_counted)
{
    struct hold *h = &e->holds[req];
    uint32_t node = cluster_find_agent(&s->cluster, place->agent_id);
    int r = 0;

    if (node == CLUSTER_NONE)
        return -ENOENT;
    if (!place->part_count && !is_counted)
        return state_hold(s, e, req, node, -1);
    for (size_t i = 0; i < place->part_count; i++)
        if (place->parts[i].device >= s->cluster.nodes[node].device_count)
            return -EINVAL;
    if (place->part_count && !(h->parts = calloc(place->part_count, sizeof(*h->parts))))
        return -ENOMEM;
    h->part_count = (uint32_t)place->part_count;
    for (size_t i = 0; i < place->part_count; i++)
        h->parts[i] = (struct part){ place->parts[i].device, place->parts[i].amount };
    if (!is_counted)
        r = cluster_hold_parts(&s->cluster, node, e->reqs[req], h->parts, h->part_count);
    if (r == 0)
        h->node = node;
    return r;
}

int state_add_running(struct sched *s, const struct sched_running *running, bool is_counted,
                      uint32_t *ret_handle, struct aq_error *err)
{
    struct entry *e;
    int r = add_entry(s, running->session, ret_handle, err);

    if (r < 0)
        return r;
    e = &s->entries[*ret_handle];
    for (uint32_t i = 0; i < e->req_count && r == 0; i++)
        if ((r = hold_place(s, e, i, &running->places[i], is_counted)) < 0) {
            aq_fail_field(err, -r, "places", r == -ENOENT   ? "there is no agent '%s'"
                                             : r == -EINVAL ? "agent '%s' has no such device"
                                                            : "memory is short for agent '%s'",
                          running->places[i].agent_id);
            for (uint32_t done = 0; !is_counted && done < i; done++)
                (void)state_release(s, e, done);
            entry_drop(s, e);
            s->free_entries[s->free_count++] = *ret_handle;
            return r;
        }
    e->status = ENTRY_PLACED;
    e->started_usec = running->started_usec;
    e->is_claimed = running->is_leaving;
    if (is_counted)
        s->grouped += e->more && e->more->group;
    else
        state_charge(s, e, 1);
    return 0;
}

int sched_add_running(struct sched *s, const struct sched_running *running, uint32_t *ret_handle,
                      struct aq_error *err)
{
    return state_add_running(s, running, false, ret_handle, err);
}

void sched_leaves(struct sched *s, uint32_t handle)
{
    s->entries[handle].is_claimed = true;
}

int sched_drop(struct sched *s, uint32_t handle)
{
    struct entry *e = &s->entries[handle];
    const struct selector *selector = &s->options.selector;

    if (e->status == ENTRY_WAITING) {
        queue_take_out(s, e);
    } else {
        for (uint32_t i = 0; i < e->req_count; i++)
            if (state_release(s, e, i) < 0)
                return -ENOMEM; /* what is left is released by the next try */
        state_charge(s, e, -1);
        s->preempting -= e->status == ENTRY_PREEMPTING;
        if (selector->ops->left)
            selector->ops->left(selector->data);
    }
    entry_drop(s, e);
    s->free_entries[s->free_count++] = handle;
    return 0;
}

uint32_t sched_retries(const struct sched *s, uint32_t handle)
{
    return s->entries[handle].retries;
}
