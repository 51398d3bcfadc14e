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

#define IDS_AT_ONCE 100 /* in a filter of the manager, which takes 200 values */
#define IDS_MAX 100000

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

/* ---- numbers ---- */

struct job_ids {
    int64_t *items;
    size_t count, cap;
};

/* "12,13": what is behind a number, as in "12.batch", is a step, of which there are none. */
static int job_ids_read(const char *text, struct job_ids *ret, struct aq_error *err)
{
    const char *word;
    size_t len;

    while (text && slurm_list_take(&text, &word, &len)) {
        char *end;
        int64_t id = strtoll(word, &end, 10);

        if (id <= 0 || (end != word + len && *end != '.') || ret->count == IDS_MAX)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "Invalid job id: %.*s",
                                (int)AQ_MIN(len, (size_t)60), word);
        if (*end == '.')
            continue;
        vec_grow(&ret->items, &ret->cap, ret->count + 1, sizeof(*ret->items));
        ret->items[ret->count++] = id;
    }
    return 0;
}

static void job_ids_done(struct job_ids *ids)
{
    free(ids->items);
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

/* ---- requests ---- */

static int job_list_fetch(struct cli *cli, struct strbuf *path, const char *filter, unsigned needs,
                          json_t *ret, struct aq_error *err)
{
    size_t page = needs & JOB_NEEDS_LIMIT ? CLI_PAGE : CLI_PAGE_OF_SHORT_ROWS;
    json_t *rows = NULL;
    int r;

    cli_path_query(path, "filter", filter);
    cli_path_query(path, "fields", job_members(needs));
    r = cli_call_list(cli, path->data, page, 0, &rows, NULL, err);
    if (r == 0)
        (void)json_array_extend(ret, rows);
    json_decref(rows);
    return r;
}

static int job_list_fetch_ids(struct cli *cli, const struct job_ids *ids, bool everyone,
                              unsigned needs, json_t *ret, struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < ids->count; i += IDS_AT_ONCE) {
        AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT, filter = STRBUF_INIT;

        strbuf_adds(&filter, "job_id in [");
        for (size_t k = i; k < AQ_MIN(i + IDS_AT_ONCE, ids->count); k++)
            strbuf_addf(&filter, "%s%" PRId64, k > i ? "," : "", ids->items[k]);
        strbuf_addc(&filter, ']');
        session_list_path(cli, &path, NULL, true, everyone);
        r = job_list_fetch(cli, &path, filter.data, needs, ret, err);
    }
    return r;
}

/* Those that live and, if they are asked for, those that ended lately. */
static int job_list_fetch_all(struct cli *cli, const struct job_query *query, bool everyone,
                              unsigned needs, json_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf live = STRBUF_INIT, ended = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf filter = STRBUF_INIT;
    char since[CLOCK_ISO_MAX];
    int r;

    session_list_path(cli, &live, NULL, false, everyone);
    r = job_list_fetch(cli, &live, NULL, needs, ret, err);
    if (r < 0 || !query->has_ended)
        return r;
    strbuf_addf(&filter, "terminated_at >= \"%s\"", clock_format_iso(query->since_usec, since));
    session_list_path(cli, &ended, "TERMINATED,ERROR,CANCELLED", true, everyone);
    return job_list_fetch(cli, &ended, query->since_usec ? filter.data : NULL, needs, ret, err);
}

/* A user who may not see everyone's sees their own, as Slurm's PrivateData has it. */
static int job_list_fetch_seen(struct cli *cli, const struct job_query *query,
                               const struct job_ids *ids, json_t *ret, struct aq_error *err)
{
    bool is_mine = !query->users || job_list_names_me(query->users);
    bool everyone = !is_mine || (!query->users && query->is_all_users);
    unsigned needs = query->needs | (!is_mine || query->accounts ? JOB_NEEDS_OWNER : 0u);
    int r;

    for (;; everyone = false) {
        r = query->ids ? job_list_fetch_ids(cli, ids, everyone, needs, ret, err)
                       : job_list_fetch_all(cli, query, everyone, needs, ret, err);
        if (r != -EPERM || !everyone || !is_mine)
            return r;
        (void)json_array_clear(ret);
    }
}

/* ---- the list ---- */

static int job_list_compare(const void *a, const void *b)
{
    int64_t x = ((const struct job *)a)->id, y = ((const struct job *)b)->id;

    return (x > y) - (x < y);
}

static int job_list_check_ids(const struct job_ids *ids, const struct job_list *list,
                              struct aq_error *err)
{
    for (size_t i = 0; i < ids->count; i++) {
        struct job wanted = { .id = ids->items[i] };

        if (!list->count
            || !bsearch(&wanted, list->jobs, list->count, sizeof(wanted), job_list_compare))
            return aq_fail_kind(err, ENOENT, "job-not-found", "Invalid job id specified: %" PRId64,
                                ids->items[i]);
    }
    return 0;
}

static int job_list_add(struct job_list *list, struct aq_error *err)
{
    int64_t now = clock_realtime_usec();
    json_t *row;
    size_t i;

    json_array_foreach(list->rows, i, row) {
        vec_grow(&list->jobs, &list->cap, list->count + 1, sizeof(*list->jobs));
        if (job_read(row, now, &list->jobs[list->count], err) < 0)
            return -err->code;
        list->count++;
    }
    if (list->count)
        qsort(list->jobs, list->count, sizeof(*list->jobs), job_list_compare);
    return 0;
}

/* A session that ended between two requests is in both answers. */
static void job_list_select(struct job_list *list, const struct job_query *query,
                            const bool states[JOB_STATE_COUNT])
{
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        const struct job *job = &list->jobs[i];
        bool is_repeated = i + 1 < list->count && list->jobs[i + 1].id == job->id;

        if (!is_repeated && job_list_matches(query, states, job))
            list->jobs[kept++] = *job;
    }
    list->count = kept;
}

int job_list_read(struct cli *cli, const struct job_query *query, struct job_list *ret,
                  struct aq_error *err)
{
    AQ_CLEANUP(job_ids_done) struct job_ids ids = { .items = NULL };
    bool states[JOB_STATE_COUNT] = { false };
    int r = query->states ? job_list_read_states(query->states, states, err) : 0;

    ret->rows = json_array();
    if (r == 0)
        r = job_ids_read(query->ids, &ids, err);
    if (r == 0)
        r = job_list_fetch_seen(cli, query, &ids, ret->rows, err);
    if (r == 0)
        r = job_list_add(ret, err);
    if (r == 0 && query->must_exist)
        r = job_list_check_ids(&ids, ret, err);
    if (r == 0)
        job_list_select(ret, query, states);
    return r;
}

void job_list_done(struct job_list *list)
{
    json_decref(list->rows);
    free(list->jobs);
}
