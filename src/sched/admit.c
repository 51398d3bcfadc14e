#include "sched/admit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

struct findings {
    const struct admission *a;
    struct strbuf *text;
    struct aq_error *err;
    int first;                 /* -errno of the first, 0 = none */
};

/* Note one; the first is the error. */
static void add(struct findings *f, int code, const char *field, const char *fmt, ...)
    AQ_PRINTF(4, 5);

static void add(struct findings *f, int code, const char *field, const char *fmt, ...)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    va_list args;

    va_start(args, fmt);
    strbuf_vaddf(&line, fmt, args);
    va_end(args);
    if (f->first == 0)
        f->first = aq_fail_field(f->err, code, field, "%s", line.data);
    if (f->text)
        strbuf_addf(f->text, "%s%s", f->text->len ? "\n" : "", line.data);
}

/* ---- resource groups ---- */

/* The first slot that is wanted and that no agent of the group has; NULL = none. */
static const char *missing_slot(const struct admission *a, const struct admit_group *g)
{
    for (size_t k = 0; k < a->session->kernel_count; k++)
        for (size_t i = 0; i < a->session->kernels[k]->count; i++) {
            const struct slot *slot = &a->session->kernels[k]->items[i];

            if (slot->amount > 0 && !g->serves(g->data, slot->name))
                return slot->name;
        }
    return NULL;
}

/* The first group that would do; why not, if there is none. */
static const struct admit_group *find_group(struct findings *f)
{
    const struct admission *a = f->a;
    const char *type = session_type_name(a->session->type), *slot = NULL;
    const struct admit_group *first = NULL;
    bool is_known = false, is_accepted = false;

    for (size_t i = 0; i < a->group_count && !first; i++) {
        const struct admit_group *g = &a->groups[i];

        if (a->resource_group && strcmp(g->name, a->resource_group) != 0)
            continue;
        is_known = true;
        if (!(g->types >> a->session->type & 1))
            continue;
        is_accepted = true;
        if (!(slot = missing_slot(a, g)))
            first = g;
    }
    if (first)
        return first;
    if (a->group_count == 0)
        add(f, ENOENT, "scalingGroup", "You do not have any scaling groups allowed to use.");
    else if (!is_known)
        add(f, ENOENT, "scalingGroup", "You do not have access to the scaling group '%s'.",
            a->resource_group);
    else if (!is_accepted && a->resource_group)
        add(f, EINVAL, "scalingGroup",
            "The scaling group '%s' does not accept the session type '%s'. ", a->resource_group,
            type);
    else if (!is_accepted)
        add(f, EINVAL, "scalingGroup", "No scaling groups accept the session type '%s'.", type);
    else
        add(f, EINVAL, slot, "No agent of the scaling group '%s' has the slot '%s'.",
            a->resource_group ? a->resource_group : "(any)", slot);
    return NULL;
}

/* ---- images ---- */

static const char *humanize(const struct admission *a, const char *slot, int64_t amount,
                            char buf[AMOUNT_TEXT_MAX])
{
    return slot_amount_humanize(amount, slot_types_get(a->types, slot), buf);
}

static void check_image(struct findings *f, size_t rank)
{
    const struct admission *a = f->a;
    const struct admit_kernel *k = &a->kernels[rank];
    const struct slots *wanted = a->session->kernels[rank];
    const char *mem = slot_name_find("mem", strlen("mem"));
    char x[AMOUNT_TEXT_MAX], y[AMOUNT_TEXT_MAX];

    if (k->shmem_bytes > 0 && k->shmem_bytes >= slots_get(wanted, mem))
        add(f, EINVAL, "resource_opts", "Shared memory (%s) must be less than memory (%s).",
            humanize(a, mem, k->shmem_bytes, x), humanize(a, mem, slots_get(wanted, mem), y));
    for (size_t i = 0; k->min && i < k->min->count; i++) {
        const struct slot *s = &k->min->items[i];
        int64_t least = s->amount;

        if (s->name == mem && __builtin_add_overflow(least, k->shmem_bytes, &least))
            least = AMOUNT_INFINITE;
        if (slots_get(wanted, s->name) < least)
            add(f, EINVAL, s->name, "The image needs at least %s=%s, not %s.", s->name,
                humanize(a, s->name, least, x),
                humanize(a, s->name, slots_get(wanted, s->name), y));
    }
    for (size_t i = 0; k->max && i < k->max->count; i++) {
        const struct slot *s = &k->max->items[i];

        if (s->amount != AMOUNT_INFINITE && slots_get(wanted, s->name) > s->amount)
            add(f, EINVAL, s->name, "The image takes at most %s=%s, not %s.", s->name,
                humanize(a, s->name, s->amount, x),
                humanize(a, s->name, slots_get(wanted, s->name), y));
    }
}

/* Everything has to have some of these. */
static void check_required(struct findings *f, size_t rank)
{
    static const char *const required[] = { "cpu", "mem" };

    for (size_t i = 0; i < AQ_COUNT(required); i++)
        if (slots_get(f->a->session->kernels[rank],
                      slot_name_find(required[i], strlen(required[i]))) <= 0)
            add(f, EINVAL, required[i], "A session needs some %s.", required[i]);
}

/* ---- policies ---- */

static int sum_kernels(const struct sched_session *s, struct slots *ret)
{
    for (size_t k = 0; k < s->kernel_count; k++) {
        int r = slots_add(ret, s->kernels[k]);

        if (r < 0)
            return r;
    }
    return 0;
}

/* Waiting amounts together with these. */
static int check_pending_slots(struct findings *f)
{
    const struct admission *a = f->a;
    AQ_CLEANUP(slots_donep) struct slots total = { 0 };
    char x[AMOUNT_TEXT_MAX], y[AMOUNT_TEXT_MAX];
    int r = sum_kernels(a->session, &total);

    if (r == 0 && a->pending_slots)
        r = slots_add(&total, a->pending_slots);
    if (r < 0)
        return r == -EOVERFLOW ? aq_fail(f->err, EINVAL, "amounts too large") : r;
    for (size_t i = 0; a->pending_slots_max && i < a->pending_slots_max->count; i++) {
        const struct slot *max = &a->pending_slots_max->items[i];

        if (max->amount != AMOUNT_INFINITE && slots_get(&total, max->name) > max->amount)
            add(f, EDQUOT, max->name, "Your pending sessions would ask for %s=%s, more than the "
                "limit %s.", max->name, humanize(a, max->name, slots_get(&total, max->name), x),
                humanize(a, max->name, max->amount, y));
    }
    return 0;
}

static int check_policy(struct findings *f)
{
    const struct admission *a = f->a;

    if ((int64_t)a->session->kernel_count > a->containers_max)
        add(f, EINVAL, "clusterSize", "A session of yours may have at most %" PRId64
            " containers, not %zu.", a->containers_max, a->session->kernel_count);
    if (a->session->priority > a->priority_max)
        add(f, EINVAL, "priority", "Your highest priority is %d, not %d.", a->priority_max,
            a->session->priority);
    if (a->pending >= a->pending_max)
        add(f, EDQUOT, "", "You cannot have more than %" PRId64 " pending sessions.",
            a->pending_max);
    return check_pending_slots(f);
}

int sched_admit(const struct admission *a, const struct admit_group **ret_group,
                struct strbuf *text, struct aq_error *err)
{
    struct findings f = { .a = a, .text = text, .err = err };
    const struct admit_group *group;
    int r;

    for (size_t k = 0; k < a->session->kernel_count; k++) {
        check_required(&f, k);
        if (a->kernels)
            check_image(&f, k);
    }
    group = find_group(&f);
    if ((r = check_policy(&f)) < 0)
        return r;
    if (f.first == 0)
        *ret_group = group;
    return f.first;
}
