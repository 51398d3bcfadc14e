/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs that an option such as -j, -u or -t means, as the manager has them. */
#include "cli/slurm/job_list.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"
#include "cli/client.h"
#include "cli/session/session.h"
#include "cli/slurm/slurm.h"
#include "cli/submit/job_name.h"

/* ---- lists of words ---- */

/* Names are compared as sessions can have them. */
static bool job_list_has_name(const char *list, const char *name)
{
    const char *word;
    size_t len;

    while (slurm_list_take(&list, &word, &len)) {
        char given[SESSION_NAME_MAX * 4], clean[SESSION_NAME_MAX + 1];

        (void)snprintf(given, sizeof(given), "%.*s", (int)AQ_MIN(len, sizeof(given) - 1), word);
        job_name_clean(given, SESSION_NAME_MAX, clean);
        if (strncmp(clean, name, SESSION_NAME_MAX - JOB_SUFFIX_MAX) == 0)
            return true;
    }
    return false;
}

/* The e-mail address, or what is before its '@'. */
static bool job_list_has_user(const char *list, const char *email)
{
    AQ_CLEANUP(aq_freep) char *local = aq_format("%.*s", (int)strcspn(email, "@"), email);

    return slurm_list_has(list, email) || slurm_list_has(list, local);
}

/* The user of this process, whom the manager knows by another name. */
static bool job_list_is_me(const char *user, size_t len)
{
    const struct passwd *me = getpwuid(geteuid());
    const char *variable = getenv("USER");
    char id[24];

    (void)snprintf(id, sizeof(id), "%u", (unsigned)geteuid());
    return (me && strlen(me->pw_name) == len && strncmp(me->pw_name, user, len) == 0)
           || (variable && strlen(variable) == len && strncmp(variable, user, len) == 0)
           || (strlen(id) == len && strncmp(id, user, len) == 0);
}

static bool job_list_names_me(const char *users)
{
    const char *word;
    size_t len;
    bool is_me = false;

    while (users && slurm_list_take(&users, &word, &len)) {
        if (!job_list_is_me(word, len))
            return false;
        is_me = true;
    }
    return is_me;
}

/* ---- which ---- */

static int job_list_read_states(const char *text, bool ret[JOB_STATE_COUNT], struct aq_error *err)
{
    const char *word;
    size_t len;

    while (slurm_list_take(&text, &word, &len)) {
        enum job_state state;

        if (len == 3 && strncasecmp(word, "all", 3) == 0) {
            memset(ret, true, JOB_STATE_COUNT * sizeof(*ret));
            continue;
        }
        if (job_state_parse(word, len, &state) < 0)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "Invalid job state specified: %.*s",
                                (int)AQ_MIN(len, (size_t)60), word);
        ret[state] = true;
    }
    return 0;
}

static bool job_list_matches(const struct job_query *query, const bool states[JOB_STATE_COUNT],
                             const struct job *job)
{
    return (!query->states || states[job->state])
           && (query->has_ended || !job_state_is_ended(job->state))
           && (!query->names || job_list_has_name(query->names, job->name))
           && (!query->partitions || slurm_list_has(query->partitions, job->partition))
           && (!query->accounts || slurm_list_has(query->accounts, job->account))
           && (!query->users || job_list_names_me(query->users)
               || job_list_has_user(query->users, job->user))
           && (!query->since_usec || !job->end_usec || job->end_usec >= query->since_usec)
           && (!query->until_usec || job->submit_usec <= query->until_usec);
}

/* ---- the list ---- */

/* A user who may not see everyone's sees their own, as Slurm's PrivateData has it. */
static int job_list_fetch_seen(struct cli *cli, const struct job_query *query,
                               const struct job_ids *ids, struct job_list *ret,
                               struct aq_error *err)
{
    bool is_mine = !query->users || job_list_names_me(query->users);
    bool everyone = !is_mine || (!query->users && query->is_all_users);
    unsigned needs = query->needs | (!is_mine || query->accounts ? JOB_NEEDS_OWNER : 0u);
    int r;

    for (;; everyone = false) {
        r = job_list_fetch(cli, query, ids, everyone, needs, ret, err);
        if (r != -EPERM || !everyone || !is_mine)
            return r;
        (void)json_array_clear(ret->rows);
        (void)json_object_clear(ret->arrays);
    }
}

/* By the number that is shown, elements by index, then what has no session. */
static int job_list_compare(const void *a, const void *b)
{
    const struct job *x = a, *y = b;
    int64_t one = x->array_number ? x->array_number : x->id;
    int64_t other = y->array_number ? y->array_number : y->id;

    if (one != other)
        return (one > other) - (one < other);
    if (x->index != y->index)
        return x->index < 0 ? 1 : y->index < 0 ? -1 : (x->index > y->index) - (x->index < y->index);
    return (x->id > y->id) - (x->id < y->id);
}

static void job_list_push(struct job_list *list, const struct job *job)
{
    vec_grow(&list->jobs, &list->cap, list->count + 1, sizeof(*list->jobs));
    list->jobs[list->count++] = *job;
}

static int job_list_add_rows(struct job_list *list, int64_t now_usec, struct aq_error *err)
{
    json_t *row;
    size_t i;

    json_array_foreach(list->rows, i, row) {
        struct job job;

        if (job_read(row, now_usec, &job, err) < 0)
            return -err->code;
        if (job.array_id)
            job.array_number = json_integer_value(
                json_object_get(json_object_get(list->arrays, job.array_id), "number"));
        job_list_push(list, &job);
    }
    if (list->count)
        qsort(list->jobs, list->count, sizeof(*list->jobs), job_list_compare);
    return 0;
}

/* ---- elements without a session ---- */

static int job_list_read_set(const json_t *array, const char *member, struct array_set *ret,
                             struct aq_error *err)
{
    const char *text = json_string_value(json_object_get(array, member));

    return text ? array_set_parse(text, INT32_MAX, ret, NULL, err) : 0;
}

/* The indices of one array whose elements wait, and that were cancelled without a session. */
struct job_rest {
    const json_t *array;
    struct array_set indices, removed;
    int64_t next;                /* those from there on have no session */
    struct strbuf waiting, gone; /* "3,4,5" */
};

static void job_rest_done(struct job_rest *rest)
{
    array_set_done(&rest->indices);
    array_set_done(&rest->removed);
    strbuf_done(&rest->waiting);
    strbuf_done(&rest->gone);
}

static int job_rest_read(const json_t *array, struct job_rest *ret, struct aq_error *err)
{
    const json_t *next = json_object_get(array, "next_index");
    int r = job_list_read_set(array, "indices", &ret->indices, err);

    if (r == 0)
        r = job_list_read_set(array, "removed", &ret->removed, err);
    ret->array = array;
    ret->next = json_is_integer(next) ? json_integer_value(next) : INT64_MAX;
    return r;
}

/* Sort the indices by what the elements' jobs [first .. end) say. Jobs that wait are merged into
 * the set unless each is shown; those that stay are moved to 'kept'.
 */
static void job_rest_sort(struct job_rest *rest, struct job_list *list, size_t first, size_t end,
                          bool is_expanded, size_t *kept)
{
    struct array_cursor c = array_set_seek(&rest->indices, 0);

    for (int64_t index; (index = array_cursor_next(&c)) >= 0;) {
        bool is_waiting = index >= rest->next && !array_set_has(&rest->removed, index);
        bool has_session = false;

        for (; first < end && list->jobs[first].index <= index; first++) {
            const struct job *job = &list->jobs[first];

            has_session = true;
            is_waiting = job->state == JOB_PENDING && !is_expanded;
            if (!is_waiting)
                list->jobs[(*kept)++] = *job;
        }
        if (is_waiting)
            strbuf_addf(&rest->waiting, "%s%" PRId64, rest->waiting.len ? "," : "", index);
        else if (!has_session)
            strbuf_addf(&rest->gone, "%s%" PRId64, rest->gone.len ? "," : "", index);
    }
}

/* "3,4,5" as one job, with ranges and the limit. */
static int job_list_push_set(struct job_list *list, const struct job_rest *rest, const char *text,
                             bool is_cancelled, int64_t now_usec, struct aq_error *err)
{
    AQ_CLEANUP(array_set_done) struct array_set set = { 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    int64_t limit = json_integer_value(json_object_get(rest->array, "limit"));
    struct job job;
    int r = array_set_parse(text, INT32_MAX, &set, NULL, err);

    if (r < 0)
        return r;
    array_set_write(&set, &out);
    if (limit && !is_cancelled)
        strbuf_addf(&out, "%%%" PRId64, limit);
    r = job_read_set(rest->array, strbuf_steal(&out), is_cancelled, now_usec, &job, err);
    job_list_push(list, &job);
    return r;
}

static int job_list_push_each(struct job_list *list, const struct job_rest *rest, int64_t now_usec,
                              struct aq_error *err)
{
    int r = 0;

    for (const char *at = rest->waiting.data; r == 0 && *at; at += *at == ',') {
        struct job job;

        r = job_read_set(rest->array, NULL, false, now_usec, &job, err);
        job.index = strtoll(at, (char **)(uintptr_t)&at, 10);
        job_list_push(list, &job);
    }
    return r;
}

/* The jobs [first .. end) are elements of the array, or there are none. */
static int job_list_add_rest(struct job_list *list, const struct job_query *query,
                             const json_t *array, size_t first, size_t end, int64_t now_usec,
                             struct aq_error *err)
{
    AQ_CLEANUP(job_rest_done) struct job_rest rest = { .waiting = STRBUF_INIT,
                                                       .gone = STRBUF_INIT };
    size_t kept = first;
    int r = job_rest_read(array, &rest, err);

    if (r < 0)
        return r;
    job_rest_sort(&rest, list, first, end, query->is_expanded, &kept);
    for (; kept < end; kept++)
        list->jobs[kept].id = 0; /* merged; left out when the list is sorted again */
    if (rest.waiting.len && query->is_expanded)
        r = job_list_push_each(list, &rest, now_usec, err);
    else if (rest.waiting.len)
        r = job_list_push_set(list, &rest, rest.waiting.data, false, now_usec, err);
    if (r == 0 && rest.gone.len && query->ids && query->has_ended)
        r = job_list_push_set(list, &rest, rest.gone.data, true, now_usec, err);
    return r;
}

static int job_list_add_arrays(struct job_list *list, const struct job_query *query,
                               int64_t now_usec, struct aq_error *err)
{
    size_t count = list->count; /* sorted by array */
    const char *id;
    json_t *array;
    int r = 0;

    json_object_foreach(list->arrays, id, array) {
        int64_t number = json_integer_value(json_object_get(array, "number"));
        size_t first = 0, high = count, end;

        while (first < high) { /* the first job of this number or above */
            size_t middle = first + (high - first) / 2;
            const struct job *job = &list->jobs[middle];

            if ((job->array_number ? job->array_number : job->id) < number)
                first = middle + 1;
            else
                high = middle;
        }
        for (end = first; end < count && list->jobs[end].array_number == number; end++)
            ;
        if (r == 0)
            r = job_list_add_rest(list, query, array, first, end, now_usec, err);
    }
    if (list->count)
        qsort(list->jobs, list->count, sizeof(*list->jobs), job_list_compare);
    return r;
}

/* ---- what is left of it ---- */

static const struct job_id *job_list_find_id(const struct job_ids *ids, int64_t number)
{
    size_t low = 0, high = ids->count;

    while (low < high) { /* the first of that number */
        size_t middle = low + (high - low) / 2;

        if (ids->items[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ids->count && ids->items[low].number == number ? &ids->items[low] : NULL;
}

/* Is the job one of the numbers, or an element of one? */
static bool job_list_is_wanted(const struct job_ids *ids, const struct job *job)
{
    const struct job_id *id = job->array_number ? job_list_find_id(ids, job->array_number) : NULL;

    for (; id && id < ids->items + ids->count && id->number == job->array_number; id++)
        if (!id->elements.count || job->set || array_set_has(&id->elements, job->index))
            return true;
    return job_list_find_id(ids, job->id) && job->id != job->array_number;
}

/* Only the requested elements of a set are shown. */
static void job_list_narrow(const struct job_ids *ids, struct job *job)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, out = STRBUF_INIT;
    AQ_CLEANUP(array_set_done) struct array_set set = { 0 };
    int64_t limit = 0;

    (void)array_set_parse(job->set, INT32_MAX, &set, &limit, NULL);
    for (const struct job_id *id = job_list_find_id(ids, job->array_number);
         id && id < ids->items + ids->count && id->number == job->array_number; id++) {
        struct array_cursor c = array_set_seek(&id->elements, 0);

        if (!id->elements.count)
            return;
        for (int64_t index; (index = array_cursor_next(&c)) >= 0;)
            if (array_set_has(&set, index))
                strbuf_addf(&text, "%s%" PRId64, text.len ? "," : "", index);
    }
    free(job->set);
    job->set = NULL;
    if (!text.len)
        return;
    (void)array_set_parse(text.data, INT32_MAX, &set, NULL, NULL);
    array_set_write(&set, &out);
    if (limit)
        strbuf_addf(&out, "%%%" PRId64, limit);
    job->set = strbuf_steal(&out);
}

/* An array exists even if no element of it is a job. */
static bool job_list_has(const struct job_list *list, const struct job_id *wanted)
{
    const char *id;
    json_t *array;

    for (size_t i = 0; i < list->count; i++)
        if (list->jobs[i].id == wanted->number && !wanted->elements.count)
            return true;
    json_object_foreach(list->arrays, id, array) {
        AQ_CLEANUP(array_set_done) struct array_set set = { 0 };

        if (json_integer_value(json_object_get(array, "number")) == wanted->number
            && job_list_read_set(array, "indices", &set, NULL) == 0
            && array_set_find_beyond(&set, &wanted->elements) < 0)
            return true;
    }
    return false;
}

static int job_list_check_ids(const struct job_ids *ids, const struct job_list *list,
                              struct aq_error *err)
{
    for (size_t i = 0; i < ids->count; i++)
        if (!job_list_has(list, &ids->items[i]))
            return aq_fail_kind(err, ENOENT, "job-not-found", "Invalid job id specified: %" PRId64,
                                ids->items[i].number);
    return 0;
}

/* A session that ended between two requests is in both answers. */
static void job_list_select(struct job_list *list, const struct job_query *query,
                            const struct job_ids *ids, const bool states[JOB_STATE_COUNT])
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct job *job = &list->jobs[i];
        bool is_repeated = i + 1 < list->count && list->jobs[i + 1].id == job->id
                           && list->jobs[i + 1].index == job->index && !job->set;

        if (query->ids && job->set)
            job_list_narrow(ids, job);
        if (job->id && !is_repeated && (job->index >= 0 || job->set)
            && (!query->ids || job_list_is_wanted(ids, job))
            && job_list_matches(query, states, job))
            list->jobs[kept++] = *job;
        else
            free(job->set);
    }
    list->count = kept;
}

static int job_id_compare(const void *a, const void *b)
{
    int64_t x = ((const struct job_id *)a)->number, y = ((const struct job_id *)b)->number;

    return (x > y) - (x < y);
}

int job_list_read(struct cli *cli, const struct job_query *query, struct job_list *ret,
                  struct aq_error *err)
{
    AQ_CLEANUP(job_ids_done) struct job_ids ids = { .items = NULL };
    bool states[JOB_STATE_COUNT] = { false };
    int64_t now = clock_realtime_usec();
    int r = query->states ? job_list_read_states(query->states, states, err) : 0;

    ret->rows = json_array();
    ret->arrays = json_object();
    if (r == 0)
        r = job_ids_read(query->ids, &ids, err);
    if (ids.count)
        qsort(ids.items, ids.count, sizeof(*ids.items), job_id_compare);
    if (r == 0)
        r = job_list_fetch_seen(cli, query, &ids, ret, err);
    if (r == 0)
        r = job_list_add_rows(ret, now, err);
    if (r == 0)
        r = job_list_add_arrays(ret, query, now, err);
    if (r == 0 && query->must_exist)
        r = job_list_check_ids(&ids, ret, err);
    if (r == 0)
        job_list_select(ret, query, &ids, states);
    return r;
}

void job_list_done(struct job_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->jobs[i].set);
    free(list->jobs);
    json_decref(list->rows);
    json_decref(list->arrays);
}
