/* SPDX-License-Identifier: Apache-2.0 */
/* swarm_kernel.c - kernels without processes: what an agent says of them, and when
 *
 * The program of a batch session is read, not run: "true" ends at once, "sleep SECONDS" after that
 * time, anything else and every interactive session runs until it is destroyed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "model/session.h"
#include "swarm.h"

#define EXIT_TERMINATED (128 + 15)

struct swarm_kernel {
    struct node *node;
    struct uuid id, session_id;
    int64_t attempt, at_usec, ends_usec; /* ends: how long its program takes; 0 = until destroyed */
    enum msg_kernel_state state;
    struct alloc_grant grant;
    char *alloc;        /* JSON of it */
    char *order;        /* text of the kernel.create, without secrets */
    const char *reason; /* static or 'given_reason' */
    char *given_reason;
    int64_t lease_usec, lease_grace_usec;
    int exit_code;
    bool has_exit, is_held, is_released, is_ready;
    uv_timer_t timer; /* until the program starts, or ends */
};

/* ---- records ---- */

static void swarm_kernel_note(const struct swarm_kernel *k, const char *what)
{
    FILE *journal = k->node->swarm->options.journal;
    char kernel[UUID_TEXT_MAX], session[UUID_TEXT_MAX];

    if (!journal)
        return;
    (void)fprintf(journal,
                  "{\"what\":\"%s\",\"node\":\"%s\",\"kernel\":\"%s\",\"session\":\"%s\","
                  "\"attempt\":%" PRId64 ",\"at\":%" PRId64 "}\n",
                  what, k->node->id, uuid_format(&k->id, kernel),
                  uuid_format(&k->session_id, session), k->attempt, clock_monotonic_usec());
    (void)fflush(journal);
}

static size_t *swarm_kernel_count_of(struct swarm *swarm, enum msg_kernel_state state)
{
    switch (state) {
    case MSG_KERNEL_RUNNING:
        return &swarm->counts.running;
    case MSG_KERNEL_TERMINATING:
        return &swarm->counts.ending;
    case MSG_KERNEL_TERMINATED:
    case MSG_KERNEL_ERROR:
        return &swarm->counts.ended;
    case MSG_KERNEL_CREATING:
    case MSG_KERNEL_RESTARTING:
        break;
    }
    return &swarm->counts.creating;
}

static bool swarm_kernel_is_final(const struct swarm_kernel *k)
{
    return k->state == MSG_KERNEL_TERMINATED || k->state == MSG_KERNEL_ERROR;
}

void swarm_kernel_describe(const struct swarm_kernel *k, struct msg_kernel_status *ret)
{
    *ret = (struct msg_kernel_status){
        .kernel_id = k->id,
        .session_id = k->session_id,
        .attempt = k->attempt,
        .state = k->state,
        .reason = k->reason,
        .has_exit = k->has_exit,
        .exit_code = k->exit_code,
        .alloc = swarm_kernel_is_final(k) ? NULL : k->alloc,
        .is_ready = k->is_ready,
        .lease_usec = k->lease_usec,
        .lease_grace_usec = k->lease_grace_usec,
        .at_usec = k->at_usec,
    };
}

static void swarm_kernel_report(const struct swarm_kernel *k)
{
    struct message msg = { .type = MSG_KERNEL_STATUS };

    swarm_kernel_describe(k, &msg.kernel_status);
    node_send(k->node, &msg);
}

static void swarm_kernel_enter(struct swarm_kernel *k, enum msg_kernel_state state)
{
    --*swarm_kernel_count_of(k->node->swarm, k->state);
    ++*swarm_kernel_count_of(k->node->swarm, state);
    k->state = state;
    k->is_ready = false;
    k->at_usec = clock_realtime_usec();
    swarm_kernel_report(k);
}

/* ---- its life ---- */

static struct swarm_kernel *swarm_kernel_find(struct node *node, const struct uuid *id)
{
    return map_get(&node->kernels, id->bytes, sizeof(id->bytes));
}

static void swarm_kernel_on_closed(uv_handle_t *timer)
{
    struct swarm_kernel *k = timer->data;

    alloc_grant_done(&k->grant);
    free(k->alloc);
    free(k->order);
    free(k->given_reason);
    free(k);
}

static void swarm_kernel_release_devices(struct swarm_kernel *k)
{
    struct aq_error err = { 0 };

    if (k->grant.count && alloc_map_release(k->node->map, &k->grant, &err) < 0) {
        (void)fprintf(stderr, "swarm: node '%s' released devices that it did not hold: %s\n",
                      k->node->id, err.text);
        abort();
    }
    alloc_grant_done(&k->grant);
    k->grant = (struct alloc_grant){ 0 };
}

static void swarm_kernel_drop(struct swarm_kernel *k)
{
    (void)map_remove(&k->node->kernels, k->id.bytes, sizeof(k->id.bytes));
    --*swarm_kernel_count_of(k->node->swarm, k->state);
    if (map_get(&k->node->swarm->running, k->id.bytes, sizeof(k->id.bytes)) == k->node)
        (void)map_remove(&k->node->swarm->running, k->id.bytes, sizeof(k->id.bytes));
    swarm_kernel_release_devices(k);
    uv_close((uv_handle_t *)&k->timer, swarm_kernel_on_closed);
}

static void swarm_kernel_end(struct swarm_kernel *k, const char *reason, int exit_code)
{
    struct swarm *swarm = k->node->swarm;

    (void)uv_timer_stop(&k->timer);
    if (map_get(&swarm->running, k->id.bytes, sizeof(k->id.bytes)) == k->node) {
        (void)map_remove(&swarm->running, k->id.bytes, sizeof(k->id.bytes));
        swarm->counts.ends++;
        swarm_kernel_note(k, "end");
        k->has_exit = true;
        k->exit_code = exit_code;
    }
    k->reason = k->reason ? k->reason : reason;
    swarm_kernel_release_devices(k);
    swarm_kernel_enter(k, MSG_KERNEL_TERMINATED);
}

static void swarm_kernel_on_finished(uv_timer_t *timer)
{
    swarm_kernel_end(timer->data, REASON_TASK_FINISHED, 0);
}

/* The program starts: once for each attempt, and nowhere else meanwhile. */
static void swarm_kernel_launch(struct swarm_kernel *k)
{
    struct swarm *swarm = k->node->swarm;
    unsigned char key[sizeof(k->id.bytes) + sizeof(k->attempt)];
    const struct node *other = map_get(&swarm->running, k->id.bytes, sizeof(k->id.bytes));

    memcpy(key, k->id.bytes, sizeof(k->id.bytes));
    memcpy(key + sizeof(k->id.bytes), &k->attempt, sizeof(k->attempt));
    swarm->counts.starts++;
    swarm->counts.repeats += map_get(&swarm->started, key, sizeof(key)) != NULL;
    swarm->counts.overlaps += other != NULL;
    (void)map_set(&swarm->started, key, sizeof(key), swarm);
    (void)map_set(&swarm->running, k->id.bytes, sizeof(k->id.bytes), k->node);
    swarm_kernel_note(k, "start");
    swarm_kernel_enter(k, MSG_KERNEL_RUNNING);
    if (k->ends_usec > 0)
        (void)uv_timer_start(&k->timer, swarm_kernel_on_finished,
                             (uint64_t)(k->ends_usec / USEC_PER_MSEC), 0);
}

static void swarm_kernel_on_start(uv_timer_t *timer)
{
    swarm_kernel_launch(timer->data);
}

/* Without a manager that answers, nothing with a lease starts. */
static bool swarm_kernel_is_held_back(const struct swarm_kernel *k)
{
    int64_t contact = k->node->contact_usec;

    return k->lease_usec > 0 && (!contact || clock_boottime_usec() >= contact + k->lease_usec);
}

/* The next step from CREATING. */
static void swarm_kernel_step(struct swarm_kernel *k)
{
    struct swarm *swarm = k->node->swarm;

    if (k->state != MSG_KERNEL_CREATING || swarm->is_mute || uv_is_active((uv_handle_t *)&k->timer))
        return;
    if (k->is_held && !k->is_released) {
        if (!k->is_ready) {
            k->is_ready = true;
            swarm_kernel_report(k);
        }
        return;
    }
    if (swarm_kernel_is_held_back(k))
        return;
    if (swarm->options.start_usec > 0)
        (void)uv_timer_start(&k->timer, swarm_kernel_on_start,
                             (uint64_t)(swarm->options.start_usec / USEC_PER_MSEC), 0);
    else
        swarm_kernel_launch(k);
}

/* ---- commands ---- */

static void swarm_kernel_reject(struct node *node, const struct msg_kernel_create *create,
                                const struct aq_error *err)
{
    const struct message msg = {
        .type = MSG_KERNEL_STATUS,
        .kernel_status = { .kernel_id = create->kernel_id,
                           .session_id = create->session_id,
                           .attempt = create->attempt,
                           .state = MSG_KERNEL_ERROR,
                           .reason = REASON_FAILED_TO_CREATE,
                           .error_kind = err->kind ? err->kind : REASON_FAILED_TO_CREATE,
                           .error_field = err->field[0] ? err->field : NULL,
                           .error_text = err->text,
                           .at_usec = clock_realtime_usec() },
    };

    node->swarm->counts.rejected++;
    node_send(node, &msg);
}

static int64_t swarm_kernel_find_duration(const struct kernel_spec *spec)
{
    const char *command = spec->session.command;

    if (!command || !spec->session_type || strcmp(spec->session_type, "batch") != 0)
        return 0;
    if (strcmp(command, "true") == 0)
        return 1;
    if (strncmp(command, "sleep ", 6) == 0)
        return AQ_MAX((int64_t)(strtod(command + 6, NULL) * (double)USEC_PER_SEC), 1);
    return 0;
}

/* What the command says of the attempt. The map gives the devices, so that an amount that is given
 * twice is an error of this node, as it is of an agent.
 */
static int swarm_kernel_take(struct swarm_kernel *k, const struct msg_kernel_create *create,
                             struct aq_error *err)
{
    AQ_CLEANUP(slots_donep) struct slots slots = { .items = NULL };
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant chosen = { .items = NULL };
    AQ_CLEANUP(strbuf_donep) struct strbuf order = STRBUF_INIT;
    struct message msg = { .type = MSG_KERNEL_CREATE, .kernel_create = *create };
    const struct kernel_spec *spec = &create->spec;
    struct strbuf alloc = STRBUF_INIT;
    struct jsonw w = jsonw_make(&alloc);
    int r = slots_from_text(spec->slots, strlen(spec->slots), NULL, &slots, err);

    if (r < 0)
        return r;
    if (spec->devices)
        alloc_grant_read_json(&chosen, spec->devices, k->node->swarm->types);
    if (!k->grant.count)
        r = alloc_map_allocate(k->node->map,
                               &(struct alloc_request){ .slots = &slots, .chosen = &chosen },
                               &k->grant, err);
    msg.kernel_create.spec.ssh_seed = NULL;
    if (r == 0)
        r = message_encode(&msg, &order, err);
    if (r < 0)
        return r;
    alloc_grant_write_json(&k->grant, &w);
    free(k->alloc);
    free(k->order);
    k->alloc = strbuf_steal(&alloc);
    k->order = strbuf_steal(&order);
    k->session_id = create->session_id;
    k->attempt = create->attempt;
    k->is_held = spec->is_held;
    k->lease_usec = spec->lease_usec;
    k->lease_grace_usec = spec->lease_grace_usec;
    k->ends_usec = swarm_kernel_find_duration(spec);
    return 0;
}

static struct swarm_kernel *swarm_kernel_add(struct node *node, const struct uuid *id)
{
    struct swarm_kernel *k = aq_alloc(sizeof(*k));

    *k = (struct swarm_kernel){ .node = node, .id = *id, .state = MSG_KERNEL_CREATING };
    k->at_usec = clock_realtime_usec();
    k->timer.data = k;
    (void)uv_timer_init(&node->swarm->loop, &k->timer);
    (void)map_set(&node->kernels, id->bytes, sizeof(id->bytes), k);
    node->swarm->counts.creating++;
    return k;
}

static int swarm_kernel_check_room(struct node *node, struct aq_error *err)
{
    if (node->is_draining)
        return aq_fail_kind(err, EAGAIN, "draining", "this agent is drained");
    if (node->kernels.count >= MSG_KERNELS_MAX)
        return aq_fail_kind(err, EAGAIN, "busy", "this agent has %d kernels already",
                            MSG_KERNELS_MAX);
    if (node->swarm->to_fail > 0) {
        node->swarm->to_fail--;
        return aq_fail_kind(err, EIO, "busy", "a failure that was ordered");
    }
    return 0;
}

static void swarm_kernel_create_new(struct node *node, const struct msg_kernel_create *create)
{
    struct swarm_kernel *k = NULL;
    struct aq_error err = { 0 };
    int r = swarm_kernel_check_room(node, &err);

    if (r == 0) {
        k = swarm_kernel_add(node, &create->kernel_id);
        r = swarm_kernel_take(k, create, &err);
    }
    if (r < 0) {
        swarm_kernel_reject(node, create, &err);
        if (k)
            swarm_kernel_drop(k);
        return;
    }
    swarm_kernel_report(k);
    swarm_kernel_step(k);
}

/* A later attempt: the one before it ends first. */
static void swarm_kernel_begin_attempt(struct swarm_kernel *k)
{
    struct swarm *swarm = k->node->swarm;

    (void)uv_timer_stop(&k->timer);
    if (map_get(&swarm->running, k->id.bytes, sizeof(k->id.bytes)) == k->node) {
        (void)map_remove(&swarm->running, k->id.bytes, sizeof(k->id.bytes));
        swarm->counts.ends++;
    }
    k->reason = NULL;
    k->has_exit = k->is_released = false;
    swarm_kernel_enter(k, MSG_KERNEL_CREATING);
    swarm_kernel_step(k);
}

void swarm_kernel_on_create(struct node *node, const struct msg_kernel_create *create)
{
    struct swarm_kernel *k = swarm_kernel_find(node, &create->kernel_id);
    struct aq_error err = { 0 };

    if (!k)
        swarm_kernel_create_new(node, create);
    else if (create->attempt <= k->attempt)
        swarm_kernel_report(k); /* it has come before */
    else if (swarm_kernel_check_room(node, &err) < 0 || swarm_kernel_take(k, create, &err) < 0)
        swarm_kernel_reject(node, create, &err);
    else
        swarm_kernel_begin_attempt(k);
}

/* The same order as before, as an agent keeps it on its disk. */
void swarm_kernel_on_restart(struct node *node, const struct msg_kernel_restart *restart)
{
    struct swarm_kernel *k = swarm_kernel_find(node, &restart->kernel_id);
    struct message order;
    struct aq_error err = { 0 };

    if (!k)
        return;
    if (restart->attempt <= k->attempt) {
        swarm_kernel_report(k);
        return;
    }
    if (message_decode(k->order, strlen(k->order), &order, &err) < 0) {
        (void)fprintf(stderr, "swarm: cannot read the order of a kernel: %s\n", err.text);
        abort();
    }
    order.kernel_create.attempt = restart->attempt;
    order.kernel_create.spec.attempts++;
    if (swarm_kernel_take(k, &order.kernel_create, &err) < 0)
        swarm_kernel_reject(node, &order.kernel_create, &err);
    else
        swarm_kernel_begin_attempt(k);
    message_done(&order);
}

void swarm_kernel_on_destroy(struct node *node, const struct msg_kernel_destroy *destroy)
{
    struct swarm_kernel *k = swarm_kernel_find(node, &destroy->kernel_id);

    if (!k || (destroy->attempt && destroy->attempt < k->attempt))
        return; /* the inventory says what is here */
    if (swarm_kernel_is_final(k)) {
        swarm_kernel_report(k);
        return;
    }
    if (!k->reason && destroy->reason) {
        free(k->given_reason);
        k->reason = k->given_reason = aq_strdup(destroy->reason);
    }
    if (k->state != MSG_KERNEL_TERMINATING)
        swarm_kernel_enter(k, MSG_KERNEL_TERMINATING);
    swarm_kernel_end(k, REASON_USER_REQUESTED, EXIT_TERMINATED);
}

void swarm_kernel_on_release(struct node *node, const struct msg_kernel_release *release)
{
    struct swarm_kernel *k = swarm_kernel_find(node, &release->kernel_id);

    if (!k || k->attempt != release->attempt)
        return;
    k->is_released = true;
    swarm_kernel_step(k);
}

void swarm_kernel_on_forget(struct node *node, const struct msg_kernel_forget *forget)
{
    struct swarm_kernel *k = swarm_kernel_find(node, &forget->kernel_id);

    if (k && swarm_kernel_is_final(k) && (!forget->attempt || forget->attempt >= k->attempt))
        swarm_kernel_drop(k);
}

void swarm_kernel_on_describe(struct node *node, const struct msg_kernel_describe *describe)
{
    const struct swarm_kernel *k = swarm_kernel_find(node, &describe->kernel_id);
    const struct message answer = { .type = MSG_KERNEL_ORDER,
                                    .kernel_order = { describe->kernel_id, k ? k->order : NULL } };

    if (k)
        node_send(node, &answer);
}

void swarm_kernel_on_resize(struct node *node, const struct msg_kernel_resize *resize)
{
    const struct swarm_kernel *k = swarm_kernel_find(node, &resize->kernel_id);
    struct message msg = { .type = MSG_KERNEL_STATUS };

    if (!k || k->attempt != resize->attempt)
        return;
    swarm_kernel_describe(k, &msg.kernel_status);
    msg.kernel_status.error_kind = "unsupported-resource";
    msg.kernel_status.error_text = "kernels of the swarm keep their amounts";
    msg.kernel_status.trial = resize->trial;
    node_send(node, &msg);
}

/* ---- leases ---- */

void swarm_kernel_take_leases(struct node *node, const struct msg_heartbeat_reply *reply)
{
    for (size_t i = 0; i < reply->lease_count; i++) {
        struct swarm_kernel *k = swarm_kernel_find(node, &reply->leases[i].kernel_id);

        if (k && k->attempt == reply->leases[i].attempt) {
            k->lease_usec = reply->leases[i].lease_usec;
            k->lease_grace_usec = reply->leases[i].lease_grace_usec;
        }
    }
    node->contact_usec = AQ_MAX(node->contact_usec, reply->uptime_usec);
    swarm_kernel_step_all(node);
}

void swarm_kernel_step_all(struct node *node)
{
    for (size_t i = 0; i < node->kernels.count; i++)
        swarm_kernel_step(node->kernels.entries[i].value);
}

void swarm_kernel_check_leases(struct node *node)
{
    int64_t now = clock_boottime_usec();

    for (size_t i = 0; i < node->kernels.count; i++) {
        struct swarm_kernel *k = node->kernels.entries[i].value;

        if (k->lease_usec > 0 && k->state == MSG_KERNEL_RUNNING
            && now >= node->contact_usec + k->lease_usec) {
            node->swarm->counts.leases_over++;
            swarm_kernel_end(k, REASON_AGENT_LOST, EXIT_TERMINATED);
        }
    }
}

void swarm_kernel_drop_all(struct node *node)
{
    while (node->kernels.count)
        swarm_kernel_drop(node->kernels.entries[node->kernels.count - 1].value);
}
