/* resize.c - other parts of devices for a session that runs
 *
 * The agent does it, and what it says a kernel holds is what is written down:
 * it alone knows what is free of the very device. It says so with every report
 * of a kernel with such parts, so nothing is lost with a manager or a message.
 */
#include <errno.h>
#include <string.h>

#include "base/fault.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "manager/core/parts.h"

/* ---- the wish ---- */

static int check_session(const struct live *l, struct aq_error *err)
{
    if (l->s.status != SESSION_RUNNING || l->end_reason)
        return aq_fail_field(err, EINVAL, "session", "only a RUNNING session can be given other "
                             "parts of devices, '%s' is %s", l->s.name,
                             session_status_name(l->s.status));
    if (l->s.kernel_count != 1)
        return aq_fail_field(err, EINVAL, "session", "'%s' has %zu kernels, and no order yet "
                             "says which of them is meant", l->s.name, l->s.kernel_count);
    return waiters_resize(l) ? aq_fail_field(err, EINVAL, "session", "'%s' is being given other "
                                             "parts already; ask again", l->s.name)
                             : 0;
}

static int check_slot(const struct live *l, const struct slots *left, const struct slot *slot,
                      struct aq_error *err)
{
    int64_t has = slots_get(&l->s.kernels[0].requested, slot->name);
    int64_t more = slot->amount - has, room = slots_get(left, slot->name);

    if (!has)
        return aq_fail_field(err, EINVAL, slot->name, "the session has no %s that could become "
                             "more or less", slot->name);
    if (slot->amount <= 0)
        return aq_fail_field(err, EINVAL, slot->name, "a part of a device has to be more than "
                             "nothing; end the session to free it");
    if (more > 0 && more > room)
        return aq_fail_field(err, EINVAL, slot->name, "its agent has less %s free than the "
                             "session wants in addition", slot->name);
    return 0;
}

/* What the kernel is to hold. */
static int decide(const struct live *l, struct agent_live *a, const struct slots *changes,
                  struct slots *ret, struct aq_error *err)
{
    const struct slots *left;
    int r = check_session(l, err);

    if (r == 0 && (agent_free_slots(a, &left) < 0
                   || slots_copy(ret, &l->s.kernels[0].requested) < 0))
        r = aq_fail(err, ENOMEM, "a session");
    for (size_t i = 0; r == 0 && i < changes->count; i++) {
        r = check_slot(l, left, &changes->items[i], err);
        if (r == 0 && slots_set(ret, changes->items[i].name, changes->items[i].amount) < 0)
            r = aq_fail(err, ENOMEM, "a session");
    }
    return r;
}

static int send_order(struct core *core, const struct live *l, const struct slots *slots,
                      struct aq_error *err)
{
    const struct kernel *k = &l->s.kernels[0];
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct message msg = { .type = MSG_KERNEL_RESIZE };

    slots_write_json(slots, core->types, &w);
    if (!strbuf_ok(&text))
        return aq_fail(err, ENOMEM, "a session");
    msg.kernel_resize = (struct msg_kernel_resize){ k->id, k->attempt, text.data };
    AQ_FAULT("core.gpu.resize.sending");
    return core->send(core, k->agent_id, &msg, err);
}

void core_resize_session(struct core *core, const struct uuid *id, const struct slots *changes,
                         core_done_fn done, void *data)
{
    struct live *l = live_find(core, id);
    struct agent_live *a = l && l->s.kernel_count && l->s.kernels[0].agent_id
                               ? agent_find(core, l->s.kernels[0].agent_id) : NULL;
    AQ_CLEANUP(slots_donep) struct slots wanted = { .items = NULL };
    struct aq_error err = { 0 };
    int r = 0;

    if (!l)
        r = aq_fail_kind(&err, ENOENT, "session-not-found", "No such session.");
    else if (!a || !a->is_connected)
        r = check_session(l, &err) < 0 ? -err.code
                                       : aq_fail_kind(&err, ENOTCONN, "service-unavailable", "the agent of '%s' is not "
                                                 "connected; ask again when it is", l->s.name);
    else
        r = decide(l, a, changes, &wanted, &err);
    if (r == 0 && slots_eq(&wanted, &l->s.kernels[0].requested)) {
        core_defer(core, done, data, 0, NULL);
        return;
    }
    if (r == 0)
        r = send_order(core, l, &wanted, &err);
    if (r < 0)
        core_defer(core, done, data, r, &err);
    else
        waiters_add_resize(l, &wanted, done, data);
}

/* ---- what became of it ---- */

static void note_alloc(struct agent_live *a, struct live *l, size_t rank, const char *alloc)
{
    struct kernel_live *f = &l->kernels[rank];

    if (!alloc || (f->alloc && strcmp(f->alloc, alloc) == 0))
        return;
    free(f->alloc);
    f->alloc = strdup(alloc); /* unknown if memory is short */
    a->cards_stale = true;
    if (agent_has_cards(a))
        kept_session(l);
}

static void write_down(struct core *core, struct live *l, size_t rank, struct slots *slots,
                       const char *alloc)
{
    const struct kernel *k = &l->s.kernels[rank];
    struct event *e = l->is_busy ? NULL : propose(core, l, EVENT_KERNEL_RESIZED);

    if (!e)
        return; /* the next report says it again */
    e->kernel_resized.id = k->id;
    e->kernel_resized.session_id = l->s.id;
    e->kernel_resized.version = k->version;
    e->kernel_resized.requested = *slots;
    *slots = (struct slots){ .items = NULL };
    e->kernel_resized.alloc = alloc ? strdup(alloc) : NULL;
    core_schedule_turn(core);
}

void resize_take(struct core *core, struct agent_live *a, struct live *l, size_t rank,
                 const struct msg_kernel_status *m)
{
    const struct kernel *k = &l->s.kernels[rank];
    AQ_CLEANUP(slots_donep) struct slots held = { .items = NULL };
    struct aq_error err = { 0 };

    if (m->state != MSG_KERNEL_RUNNING || k->status != KERNEL_RUNNING)
        return;
    if (m->error_text && waiters_resize(l)) {
        (void)aq_fail_field(&err, EINVAL, m->error_field ? m->error_field : "resources", "%s",
                            m->error_text);
        waiters_fail_resize(core, l, &err);
        return;
    }
    if (!m->slots)
        return;
    if (slots_from_text(m->slots, strlen(m->slots), core->types, &held, &err) < 0) {
        log_warning("what agent '%s' says a kernel holds makes no sense: %s", a->a.id, err.text);
        return;
    }
    if (slots_eq(&held, &k->requested))
        return;
    AQ_FAULT("core.gpu.resize.heard");
    note_alloc(a, l, rank, m->alloc);
    write_down(core, l, rank, &held, m->alloc);
}

void resize_lost(struct core *core, struct agent_live *a)
{
    struct aq_error err;

    (void)aq_fail_kind(&err, ENOTCONN, "service-unavailable", "agent '%s' is disconnected; whether it has done it shows in "
                  "the session when it is back", a->a.id);
    LIST_FOREACH(link, &a->kernels)
        waiters_fail_resize(core, LIST_ENTRY(link, struct kernel_live, agent_link)->live, &err);
}
