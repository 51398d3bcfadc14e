/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_trigger.c - triggers of kept pipelines, enabled and disabled */
#include "manager/pipeline/pipeline_trigger.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "store/audit_log.h"

#define CLOCK_WRONG_USEC (24 * 3600 * USEC_PER_SEC)

/* ---- when a schedule is due ---- */

int pipeline_trigger_read(const struct pipeline_trigger_row *row, struct cron *ret_cron,
                          struct time_zone **ret_zone, struct aq_error *err)
{
    int r = cron_parse(row->cron, ret_cron, err);

    if (r == 0)
        r = time_zone_open(row->zone, ret_zone, err);
    return r == -ENOENT || r == -EPROTO ? -EINVAL : r;
}

int pipeline_trigger_plan(struct pipeline_trigger_row *row, struct aq_error *err)
{
    AQ_CLEANUP(time_zone_freep) struct time_zone *zone = NULL;
    struct cron cron;
    int64_t next;
    int r;

    row->next_usec = 0;
    if (!row->cron)
        return 0;
    if ((r = pipeline_trigger_read(row, &cron, &zone, err)) < 0)
        return r;
    next = cron_next(&cron, zone, row->checked_usec / USEC_PER_SEC);
    if (next < CRON_NEVER)
        row->next_usec = next * USEC_PER_SEC;
    return 0;
}

int pipeline_triggers_plan_all(struct store_tx *tx, int64_t now_usec, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct pipeline_trigger_list all;
    int r = pipeline_triggers_read_schedules(tx, &arena, &all, err);

    for (size_t i = 0; i < all.count && r == 0; i++) {
        struct pipeline_trigger_row *row = &all.items[i];
        int64_t before = row->next_usec, checked = row->checked_usec;
        struct aq_error why = { 0 };

        if (checked > now_usec + CLOCK_WRONG_USEC)
            row->checked_usec = now_usec;
        r = pipeline_trigger_plan(row, &why);
        if (r == -EINVAL)
            r = pipeline_triggers_give_up(tx, row, why.text, now_usec, &arena, err);
        else if (r < 0)
            *err = why;
        else if (row->next_usec != before || row->checked_usec != checked)
            r = pipeline_trigger_update(tx, row, err);
    }
    return r;
}

/* ---- chains ---- */

/* A pipeline whose end leads to the one that is kept. */
struct trigger_link {
    const char *name;
    size_t next; /* the link that it starts; 0 is the pipeline that is kept */
    size_t depth;
};

/* "...: prepare -> train -> prepare": pipeline 'first', which starts the link and those after it. */
static int trigger_fail_chain(const char *mistake, const char *first,
                              const struct trigger_link *links, size_t link, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf chain = STRBUF_INIT;

    strbuf_adds(&chain, first);
    for (;; link = links[link].next) {
        strbuf_addf(&chain, " -> %s", links[link].name);
        if (link == 0)
            break;
    }
    return aq_fail_as(err, EINVAL, "invalid-api-params", "payload", "%s: %.240s", mistake,
                      chain.data);
}

/* Pipeline 'name', whose end starts link 'next', becomes a link unless it is one. */
static int trigger_add_link(struct arena *arena, const struct pipeline *p, const char *name,
                            struct trigger_link **links, size_t *count, size_t next,
                            struct map *seen, struct aq_error *err)
{
    struct trigger_link link = { name, next, (*links)[next].depth + 1 };

    if (strcmp(name, p->name) == 0)
        return trigger_fail_chain("pipelines must not start each other in a circle", name, *links,
                                  next, err);
    if (link.depth >= PIPELINE_CHAIN_MAX) {
        AQ_CLEANUP(aq_freep) char *mistake = aq_format(
            "at most %d pipelines may start each other in a chain", PIPELINE_CHAIN_MAX);

        return trigger_fail_chain(mistake, name, *links, next, err);
    }
    if (map_sets(seen, name, seen))
        return 0;
    (void)arena_append(arena, links, count, &link, sizeof(link));
    return 0;
}

/* Walk from the pipeline to those whose ends lead to it, breadth first: the nearest circle. */
static int trigger_check_chain(struct store_tx *tx, const struct uuid *user_id,
                               const struct pipeline *p, struct arena *arena, struct aq_error *err)
{
    const struct trigger_link self = { p->name, 0, 0 };
    struct trigger_link *links = NULL;
    struct map seen = MAP_INIT;
    size_t count = 0;
    int r = 0;

    (void)arena_append(arena, &links, &count, &self, sizeof(self));
    for (size_t i = 0; i < p->trigger_count && r == 0; i++)
        if (p->triggers[i].after)
            r = trigger_add_link(arena, p, p->triggers[i].after, &links, &count, 0, &seen, err);
    for (size_t link = 1; link < count && r == 0; link++) {
        struct pipeline_trigger_list list;

        r = pipeline_triggers_read(tx, user_id, links[link].name, arena, &list, err);
        for (size_t i = 0; r == 0 && i < list.count; i++)
            if (list.items[i].after)
                r = trigger_add_link(arena, p, list.items[i].after, &links, &count, link, &seen,
                                     err);
    }
    map_done(&seen);
    return r;
}

/* ---- the triggers of a version ---- */

static bool trigger_is(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The row of a trigger, which goes on from the same one of the version before. */
static struct pipeline_trigger_row trigger_make_row(const struct uuid *user_id,
                                                    const struct pipeline *p, size_t place,
                                                    const struct pipeline_trigger_list *before,
                                                    int64_t now_usec)
{
    const struct pipeline_trigger *of = &p->triggers[place];
    struct pipeline_trigger_row row = { .id = uuid_random(),
                                        .user_id = *user_id,
                                        .name = p->name,
                                        .place = (int64_t)place,
                                        .cron = of->cron,
                                        .zone = of->zone,
                                        .after = of->after,
                                        .ends = of->ends,
                                        .overlap = p->overlap,
                                        .missed = p->missed,
                                        .checked_usec = now_usec };

    for (size_t i = 0; i < before->count; i++) {
        const struct pipeline_trigger_row *old = &before->items[i];

        if (!trigger_is(row.cron, old->cron) || !trigger_is(row.zone, old->zone)
            || !trigger_is(row.after, old->after) || !trigger_is(row.ends, old->ends))
            continue;
        row.checked_usec = old->checked_usec;
        row.last_usec = old->last_usec;
        row.last_result = old->last_result;
        break;
    }
    return row;
}

/* Write the rows of the version; 'before' are those of the version before. */
static int trigger_write_all(struct store_tx *tx, const struct uuid *user_id,
                             const struct pipeline *p, const struct pipeline_trigger_list *before,
                             bool is_enabled, int64_t now_usec, struct aq_error *err)
{
    int r = pipeline_triggers_remove(tx, user_id, p->name, err);

    for (size_t i = 0; i < p->trigger_count && r == 0; i++) {
        struct pipeline_trigger_row row = trigger_make_row(user_id, p, i, before, now_usec);

        if (!is_enabled || (r = pipeline_trigger_plan(&row, err)) == 0)
            r = pipeline_trigger_insert(tx, &row, err);
    }
    return r;
}

/* Enabled triggers of the user, with 'more' of this pipeline in place of those before. */
static int trigger_check_count(struct store_tx *tx, const struct uuid *user_id, size_t before,
                               size_t more, struct aq_error *err)
{
    int64_t count;
    int r = pipeline_triggers_count(tx, user_id, &count, err);

    if (r < 0 || count - (int64_t)before + (int64_t)more <= PIPELINE_TRIGGERS_ENABLED_MAX)
        return r;
    return aq_fail(err, E2BIG,
                   "you would have %lld enabled triggers of pipelines; at most %d are allowed: "
                   "disable those of a pipeline",
                   (long long)count - (long long)before + (long long)more,
                   PIPELINE_TRIGGERS_ENABLED_MAX);
}

int pipeline_triggers_keep(struct store_tx *tx, const struct uuid *user_id,
                           const struct pipeline *p, int64_t now_usec, struct arena *arena,
                           struct aq_error *err)
{
    struct pipeline_switch_row is_on = { .is_enabled = false };
    struct pipeline_trigger_list before;
    int r = pipeline_triggers_read(tx, user_id, p->name, arena, &before, err);

    if (r < 0 || (before.count == 0 && p->trigger_count == 0))
        return r;
    if ((r = trigger_check_chain(tx, user_id, p, arena, err)) < 0
        || (r = pipeline_switch_read(tx, user_id, p->name, arena, &is_on, err)) < 0
        || (is_on.is_enabled
            && (r = trigger_check_count(tx, user_id, before.count, p->trigger_count, err)) < 0))
        return r;
    return trigger_write_all(tx, user_id, p, &before, is_on.is_enabled, now_usec, err);
}

/* ---- enable, disable ---- */

static int trigger_audit(struct store_tx *tx, const struct pipeline_call *call, const char *action,
                         struct aq_error *err)
{
    char id[UUID_TEXT_MAX];

    return audit_log_add_change(tx, call->by,
                                &(struct audit_change){
                                    .action = action,
                                    .object_kind = "pipeline",
                                    .object_id = uuid_format(&call->pipeline.id, id),
                                    .object_name = call->pipeline.name,
                                    .object_domain = call->domain,
                                },
                                err);
}

int pipeline_call_enable(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err)
{
    const struct uuid *user_id = &call->who.user_id;
    const char *name = request_get_param(call->req, "pipeline");
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = NULL;
    struct pipeline_switch_row is_on = { .is_enabled = false };
    struct pipeline_trigger_list before;
    int64_t now = clock_realtime_usec();
    int r;

    if ((r = pipeline_find(tx, user_id, name, 0, call->arena, &call->pipeline, err)) < 0
        || (r = pipeline_call_parse(call->pipeline.text, &p, err)) < 0)
        return r;
    if (p->trigger_count == 0)
        return aq_fail_kind(err, EBUSY, "conflict",
                            "pipeline '%s' has no triggers; add 'triggers' to its file", name);
    if ((r = pipeline_switch_read(tx, user_id, name, call->arena, &is_on, err)) < 0
        || (r = pipeline_triggers_read(tx, user_id, name, call->arena, &before, err)) < 0)
        return r;
    for (size_t i = 0; i < before.count && !is_on.is_enabled; i++)
        before.items[i].checked_usec = now; /* nothing was due while it was disabled */
    if ((r = trigger_check_count(tx, user_id, is_on.is_enabled ? before.count : 0, p->trigger_count,
                                 err))
            < 0
        || (r = pipeline_switch_write(tx,
                                      &(struct pipeline_switch_row){
                                          .user_id = *user_id,
                                          .name = name,
                                          .is_enabled = true,
                                          .access_key = call->access_key,
                                          .options = pipeline_call_options(call),
                                          .changed_usec = now,
                                      },
                                      err))
               < 0
        || (r = trigger_write_all(tx, user_id, p, &before, true, now, err)) < 0
        || (r = trigger_audit(tx, call, "enable-pipeline", err)) < 0)
        return r;
    return pipeline_triggers_read(tx, user_id, name, call->arena, &call->triggers, err);
}

/* Write the switch, and that no trigger of the pipeline is due. */
static int trigger_turn_off(struct store_tx *tx, const struct pipeline_switch_row *is_off,
                            struct arena *arena, struct aq_error *err)
{
    struct pipeline_trigger_list all;
    int r = pipeline_switch_write(tx, is_off, err);

    if (r == 0)
        r = pipeline_triggers_read(tx, &is_off->user_id, is_off->name, arena, &all, err);
    for (size_t i = 0; r == 0 && i < all.count; i++) {
        all.items[i].next_usec = 0;
        r = pipeline_trigger_update(tx, &all.items[i], err);
    }
    return r;
}

int pipeline_call_disable(struct store_tx *tx, struct pipeline_call *call, struct aq_error *err)
{
    const char *name = request_get_param(call->req, "pipeline");
    struct pipeline_switch_row is_off = { .is_enabled = false };
    int r;

    if ((r = pipeline_find(tx, &call->who.user_id, name, 0, call->arena, &call->pipeline, err)) < 0
        || (r = pipeline_switch_read(tx, &call->who.user_id, name, call->arena, &is_off, err)) < 0)
        return r;
    if (r > 0) {
        is_off.is_enabled = false;
        is_off.reason = NULL;
        is_off.changed_usec = clock_realtime_usec();
        if ((r = trigger_turn_off(tx, &is_off, call->arena, err)) < 0
            || (r = trigger_audit(tx, call, "disable-pipeline", err)) < 0)
            return r;
    }
    return pipeline_triggers_read(tx, &call->who.user_id, name, call->arena, &call->triggers, err);
}

int pipeline_triggers_give_up(struct store_tx *tx, const struct pipeline_trigger_row *row,
                              const char *reason, int64_t now_usec, struct arena *arena,
                              struct aq_error *err)
{
    log_info("disabled the triggers of pipeline '%s' of %s: %s", row->name, row->user_email,
             reason);
    return trigger_turn_off(tx,
                            &(struct pipeline_switch_row){ .user_id = row->user_id,
                                                           .name = row->name,
                                                           .is_enabled = false,
                                                           .reason = reason,
                                                           .access_key = row->access_key,
                                                           .options = row->options,
                                                           .changed_usec = now_usec },
                            arena, err);
}
