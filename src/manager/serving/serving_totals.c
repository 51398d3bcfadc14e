/* SPDX-License-Identifier: Apache-2.0 */
/* serving_totals.c - see serving_totals.h
 *
 * Whole totals are written, not what was added: a write that is repeated counts nothing twice.
 */
#include "manager/serving/serving_totals.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/sum.h"
#include "http/defer.h"
#include "manager/core/services.h"
#include "manager/serving/serving_use_internal.h"
#include "store/service_totals.h"

#define LOOK_MSEC 5000
#define WRITE_USEC (60 * USEC_PER_SEC)
#define ROWS_MAX 2000 /* of one write; the rest follows at the next look */

struct serving_totals {
    struct core *core;
    struct serving_use *use;
    struct defer *timer;
    bool is_loaded, is_busy; /* busy: a read or a write is under way */
    int64_t written_usec;    /* monotonic: when the last write began; 0 = none yet */
};

/* A read or a write on its way through the store. */
struct totals_job {
    struct serving_totals *totals;
    struct service_totals rows;
};

static void totals_job_free(struct totals_job *job)
{
    service_totals_done(&job->rows);
    free(job);
}

/* ---- texts ---- */

/* A count, int64_t. */
struct totals_member {
    const char *name;
    size_t offset;
};

/* Histograms are of Prometheus alone, whose counters begin with 0. */
#define FIGURE(member)                                    \
    {                                                     \
#member, offsetof(struct serving_figures, member) \
    }
static const struct totals_member figures_members[] = {
    FIGURE(arrived),
    FIGURE(refused),
    FIGURE(waited),
    FIGURE(queue_usec),
    FIGURE(requests),
    FIGURE(failures),
    FIGURE(ok),
    FIGURE(client_errors),
    FIGURE(server_errors),
    FIGURE(broken),
    FIGURE(duration_usec),
    FIGURE(first_byte_usec),
    FIGURE(prompt_tokens),
    FIGURE(completion_tokens),
    FIGURE(cached_tokens),
    { NULL, 0 },
};

#define TOKEN(member)                                           \
    {                                                           \
#member, offsetof(struct serving_token_figures, member) \
    }
static const struct totals_member token_members[] = {
    TOKEN(requests),      TOKEN(ok),
    TOKEN(client_errors), TOKEN(server_errors),
    TOKEN(refused),       TOKEN(prompt_tokens),
    TOKEN(cached_tokens), TOKEN(completion_tokens),
    { NULL, 0 },
};

static const struct totals_member cold_start_members[] = {
    { "cold_starts", offsetof(struct serving_cold_starts, count) },
    { "cold_start_usec", offsetof(struct serving_cold_starts, usec) },
    { NULL, 0 },
};

static void totals_write_members(const struct totals_member *members, const void *from,
                                 struct jsonw *w)
{
    for (; members->name; members++)
        jsonw_member_int(w, members->name,
                         *(const int64_t *)(const void *)((const char *)from + members->offset));
}

/* Add what the text has; a member that is missing, or damaged, counts as 0. */
static void totals_add_members(const struct totals_member *members, const json_t *tree, void *to)
{
    for (; members->name; members++) {
        int64_t *count = (void *)((char *)to + members->offset);
        int64_t more = json_integer_value(json_object_get(tree, members->name));

        if (more > 0)
            *count = sum_add(*count, AQ_MIN(more, SUM_MAX));
    }
}

/* ---- reading ---- */

static void totals_add_token(struct service_use *s, const struct model_service *service,
                             const char *text, const json_t *tree)
{
    struct uuid id;

    if (uuid_parse(text, &id) < 0 || !model_service_find_token(service, &id))
        return;
    totals_add_members(token_members, tree, &use_make_token(s, service, &id)->figures);
}

static void totals_add_revision(struct service_use *s, const struct model_service *service,
                                const char *text, const json_t *tree)
{
    int64_t number = strtoll(text, NULL, 10);

    if (model_service_find_revision(service, number))
        totals_add_members(figures_members, tree,
                           &use_make_revision(s, service, number)->sums.before);
}

static void totals_add(struct serving_totals *totals, const struct service_total *row)
{
    const struct model_service *service = core_find_service_by_id(totals->core, &row->service_id);
    json_auto_t *tree = row->counts ? json_load_string(row->counts, 0) : NULL;
    struct service_use *s;

    if (!service)
        return;
    if (!json_is_object(tree)) {
        log_warning("model service '%s': ignoring its stored figures of '%s', which are not a JSON "
                    "object",
                    service->name, row->object);
        return;
    }
    s = use_make(totals->use, &row->service_id);
    if (strncmp(row->object, "token:", 6) == 0) {
        totals_add_token(s, service, row->object + 6, tree);
    } else if (strncmp(row->object, "revision:", 9) == 0) {
        totals_add_revision(s, service, row->object + 9, tree);
    } else if (strcmp(row->object, "service") == 0) {
        totals_add_members(figures_members, tree, &s->sums.before);
        totals_add_members(cold_start_members, tree, &s->cold_starts_before);
    }
}

/* store_tx_fn */
static int totals_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct totals_job *job = data;

    service_totals_done(&job->rows); /* of a try before */
    return service_totals_read(tx, &job->rows, err);
}

/* store_done_fn */
static void totals_on_read(void *data, int r, const struct aq_error *err)
{
    struct totals_job *job = data;
    struct serving_totals *totals = job->totals;

    totals->is_busy = false;
    if (r < 0) {
        log_warning("cannot read the figures of model services, trying again: %s", err->text);
    } else {
        for (size_t i = 0; i < job->rows.count; i++)
            totals_add(totals, &job->rows.items[i]);
        totals->is_loaded = true;
    }
    totals_job_free(job);
}

/* ---- writing ---- */

static void totals_list_figures(const struct service_use *s, const char *object,
                                struct use_sums *sums, const struct serving_cold_starts *cold,
                                struct service_totals *out)
{
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct serving_summary sum;

    if (!sums->is_changed || out->count >= ROWS_MAX)
        return;
    sums->is_changed = false;
    use_sums_get(sums, &sum);
    jsonw_object_begin(&w);
    totals_write_members(figures_members, &sum.total, &w);
    if (cold)
        totals_write_members(cold_start_members, cold, &w);
    jsonw_object_end(&w);
    service_totals_add(out, &s->id, object, strbuf_steal(&text));
}

static void totals_list_token(const struct service_use *s, struct use_token *token,
                              struct service_totals *out)
{
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    char object[SERVICE_TOTAL_OBJECT_MAX], id[UUID_TEXT_MAX];

    if (!token->is_changed || out->count >= ROWS_MAX)
        return;
    token->is_changed = false;
    (void)snprintf(object, sizeof(object), "token:%s", uuid_format(&token->id, id));
    jsonw_object_begin(&w);
    totals_write_members(token_members, &token->figures, &w);
    jsonw_object_end(&w);
    service_totals_add(out, &s->id, object, strbuf_steal(&text));
}

static void totals_list_service(const struct serving_totals *totals, struct service_use *s,
                                struct service_totals *out)
{
    const struct model_service *service = core_find_service_by_id(totals->core, &s->id);
    const struct serving_cold_starts cold = serving_use_sum_cold_starts(totals->use, &s->id);
    char object[SERVICE_TOTAL_OBJECT_MAX];

    if (!service)
        return;
    totals_list_figures(s, "service", &s->sums, &cold, out);
    for (size_t i = 0; i < s->revision_count; i++) {
        (void)snprintf(object, sizeof(object), "revision:%" PRId64, s->revisions[i].number);
        if (model_service_find_revision(service, s->revisions[i].number))
            totals_list_figures(s, object, &s->revisions[i].sums, NULL, out);
    }
    for (size_t i = 0; i < s->token_count; i++)
        if (model_service_find_token(service, &s->tokens[i].id))
            totals_list_token(s, &s->tokens[i], out);
}

/* store_tx_fn */
static int totals_write(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct totals_job *job = data;

    return service_totals_write(tx, &job->rows, err);
}

/* Figures whose write failed are written again at the next look. */
static void totals_mark(struct serving_totals *totals, const struct uuid *id)
{
    struct service_use *s = use_find(totals->use, id);

    if (!s)
        return;
    s->sums.is_changed = true;
    for (size_t i = 0; i < s->revision_count; i++)
        s->revisions[i].sums.is_changed = true;
    for (size_t i = 0; i < s->token_count; i++)
        s->tokens[i].is_changed = true;
}

/* store_done_fn */
static void totals_on_written(void *data, int r, const struct aq_error *err)
{
    struct totals_job *job = data;

    job->totals->is_busy = false;
    if (r < 0)
        log_warning("cannot write the figures of model services, trying again: %s", err->text);
    for (size_t i = 0; r < 0 && i < job->rows.count; i++)
        totals_mark(job->totals, &job->rows.items[i].service_id);
    totals_job_free(job);
}

static struct totals_job *totals_begin(struct serving_totals *totals)
{
    struct totals_job *job = aq_alloc(sizeof(*job));

    *job = (struct totals_job){ .totals = totals };
    totals->is_busy = true;
    return job;
}

/* Whether there is more to write. */
static bool totals_save(struct serving_totals *totals)
{
    struct totals_job *job = totals_begin(totals);
    bool is_all;

    for (size_t i = 0; i < totals->use->services.count; i++)
        totals_list_service(totals, totals->use->services.entries[i].value, &job->rows);
    if (!job->rows.count) {
        totals->is_busy = false;
        totals_job_free(job);
        return false;
    }
    is_all = job->rows.count < ROWS_MAX;
    totals->written_usec = is_all ? clock_monotonic_usec() : 0;
    store_write(core_store(totals->core), totals_write, totals_on_written, job);
    return !is_all;
}

static void totals_load(struct serving_totals *totals)
{
    store_read(core_store(totals->core), totals_read, totals_on_read, totals_begin(totals));
}

static void totals_on_timer(void *data)
{
    struct serving_totals *totals = data;

    if (!totals->is_loaded && !totals->is_busy)
        totals_load(totals);
    else if (totals->is_loaded && !totals->is_busy
             && (!totals->written_usec
                 || clock_monotonic_usec() - totals->written_usec >= WRITE_USEC))
        totals_save(totals);
    defer_start(totals->timer, LOOK_MSEC);
}

/* ---- life ---- */

struct serving_totals *serving_totals_new(struct core *core, struct serving_use *use)
{
    struct serving_totals *totals = aq_alloc(sizeof(*totals));

    *totals = (struct serving_totals){ .core = core, .use = use };
    totals->timer = defer_new(core_loop(core), totals_on_timer, totals);
    defer_start(totals->timer, 0); /* the core is not loaded yet */
    return totals;
}

void serving_totals_stop(struct serving_totals *totals)
{
    defer_cancel(AQ_TAKE(totals->timer));
    while (totals->is_loaded && totals_save(totals))
        continue;
}

void serving_totals_free(struct serving_totals *totals)
{
    if (!totals)
        return;
    defer_cancel(totals->timer);
    free(totals);
}
