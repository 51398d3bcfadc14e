/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of sessions and arrays that a query of jobs may mean, from the manager. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "cli/client.h"
#include "cli/session/session.h"
#include "cli/slurm/job_list.h"

#define AT_ONCE 100 /* values in a filter of the manager, which takes 200 */

static int job_fetch_sessions(struct cli *cli, struct strbuf *path, const char *filter,
                              unsigned needs, struct job_list *ret, struct aq_error *err)
{
    const unsigned long_rows = JOB_NEEDS_LIMIT | JOB_NEEDS_USAGE | JOB_NEEDS_DEPENDENCY
                               | JOB_NEEDS_RESERVATION;
    size_t page = needs & long_rows ? CLI_PAGE : CLI_PAGE_OF_SHORT_ROWS;
    AQ_CLEANUP(strbuf_donep) struct strbuf members = STRBUF_INIT;
    json_t *rows = NULL;
    int r;

    cli_path_query(path, "filter", filter);
    job_members(needs, &members);
    cli_path_query(path, "fields", members.data);
    r = cli_call_list(cli, path->data, page, 0, &rows, NULL, err);
    if (r == 0)
        (void)json_array_extend(ret->rows, rows);
    json_decref(rows);
    return r;
}

/* Without a filter only live jobs. */
static int job_fetch_arrays(struct cli *cli, const char *filter, bool everyone,
                            struct job_list *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *rows = NULL, *row;
    size_t i;
    int r;

    strbuf_adds(&path, "/aliquot/v1/arrays");
    cli_path_query(&path, "status", filter ? NULL : "RUNNING");
    cli_path_query(&path, "filter", filter);
    cli_path_query(&path, "all", everyone ? "true" : NULL);
    cli_path_query(&path, "owner_access_key", cli->globals.owner);
    r = cli_call_list(cli, path.data, CLI_PAGE, 0, &rows, NULL, err);
    if (r == 0)
        json_array_foreach(rows, i, row) {
            const char *id = json_string_value(json_object_get(row, "id"));

            (void)json_object_set(ret->arrays, id ? id : "", row);
        }
    json_decref(rows);
    return r;
}

/* ---- by number ---- */

static bool job_fetch_is_array(const struct job_list *list, int64_t number)
{
    const char *id;
    json_t *array;

    json_object_foreach(list->arrays, id, array)
        if (json_integer_value(json_object_get(array, "number")) == number)
            return true;
    return false;
}

/* "MEMBER in [12,13]" of those numbers from *at on that are not of arrays, some at a time. False:
 * there are none.
 */
static bool job_fetch_write_filter(const struct job_list *list, const struct job_ids *ids,
                                   const char *member, size_t *at, struct strbuf *out)
{
    size_t count = 0;

    strbuf_addf(out, "%s in [", member);
    for (; *at < ids->count && count < AT_ONCE; (*at)++)
        if (!job_fetch_is_array(list, ids->items[*at].number)
            && (*at == 0 || ids->items[*at - 1].number != ids->items[*at].number))
            strbuf_addf(out, "%s%" PRId64, count++ ? "," : "", ids->items[*at].number);
    strbuf_addc(out, ']');
    return count > 0;
}

/* The elements of one array that are wanted, or all if these are too many for a filter. */
static int job_fetch_elements(struct cli *cli, const char *array_id, int64_t number,
                              const struct job_ids *ids, bool everyone, unsigned needs,
                              struct job_list *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT, filter = STRBUF_INIT;
    bool is_all = false;
    size_t count = 0;

    strbuf_adds(&filter, "array_index in [");
    for (size_t i = 0; i < ids->count; i++) {
        struct array_cursor c = array_set_seek(&ids->items[i].elements, 0);

        if (ids->items[i].number != number)
            continue;
        is_all |= !ids->items[i].elements.count;
        for (int64_t index; count <= AT_ONCE && (index = array_cursor_next(&c)) >= 0;)
            strbuf_addf(&filter, "%s%" PRId64, count++ ? "," : "", index);
    }
    strbuf_addc(&filter, ']');
    is_all |= count > AT_ONCE;
    session_list_path(cli, &path, NULL, true, everyone);
    cli_path_query(&path, "array", array_id);
    return job_fetch_sessions(cli, &path, is_all ? NULL : filter.data, needs, ret, err);
}

static int job_fetch_ids(struct cli *cli, const struct job_ids *ids, bool everyone, unsigned needs,
                         struct job_list *ret, struct aq_error *err)
{
    const char *id;
    json_t *array;
    int r = 0;

    for (size_t at = 0; r == 0 && at < ids->count;) {
        AQ_CLEANUP(strbuf_donep) struct strbuf filter = STRBUF_INIT;

        if (job_fetch_write_filter(ret, ids, "number", &at, &filter))
            r = job_fetch_arrays(cli, filter.data, everyone, ret, err);
    }
    for (size_t at = 0; r == 0 && at < ids->count;) {
        AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT, filter = STRBUF_INIT;

        if (!job_fetch_write_filter(ret, ids, "job_id", &at, &filter))
            continue;
        session_list_path(cli, &path, NULL, true, everyone);
        r = job_fetch_sessions(cli, &path, filter.data, needs, ret, err);
    }
    json_object_foreach(ret->arrays, id, array)
        if (r == 0)
            r = job_fetch_elements(cli, id, json_integer_value(json_object_get(array, "number")),
                                   ids, everyone, needs, ret, err);
    return r;
}

/* ---- others ---- */

/* Live jobs and, on request, those that ended lately. */
static int job_fetch_all(struct cli *cli, const struct job_query *query, bool everyone,
                         unsigned needs, struct job_list *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf live = STRBUF_INIT, ended = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf filter = STRBUF_INIT;
    char since[CLOCK_ISO_MAX];
    int r = job_fetch_arrays(cli, NULL, everyone, ret, err);

    session_list_path(cli, &live, NULL, false, everyone);
    if (r == 0)
        r = job_fetch_sessions(cli, &live, NULL, needs, ret, err);
    if (r < 0 || !query->has_ended)
        return r;
    strbuf_addf(&filter, "terminated_at >= \"%s\"", clock_format_iso(query->since_usec, since));
    session_list_path(cli, &ended, "TERMINATED,ERROR,CANCELLED", true, everyone);
    return job_fetch_sessions(cli, &ended, query->since_usec ? filter.data : NULL, needs, ret, err);
}

/* The arrays of elements that were found by themselves. */
static int job_fetch_arrays_of_rows(struct cli *cli, bool everyone, struct job_list *ret,
                                    struct aq_error *err)
{
    json_t *missing = json_object(), *row;
    const char *id;
    void *next;
    size_t i;
    int r = 0;

    json_array_foreach(ret->rows, i, row) {
        id = json_string_value(json_object_get(json_object_get(row, "array"), "id"));
        if (id && !json_object_get(ret->arrays, id))
            (void)json_object_set_new(missing, id, json_true());
    }
    while (r == 0 && json_object_size(missing)) {
        AQ_CLEANUP(strbuf_donep) struct strbuf filter = STRBUF_INIT;
        size_t count = 0;

        strbuf_adds(&filter, "id in [");
        json_object_foreach_safe(missing, next, id, row)
        {
            if (count == AT_ONCE)
                break;
            strbuf_addf(&filter, "%s\"%s\"", count++ ? "," : "", id);
            (void)json_object_del(missing, id);
        }
        strbuf_addc(&filter, ']');
        r = job_fetch_arrays(cli, filter.data, everyone, ret, err);
    }
    json_decref(missing);
    return r;
}

int job_list_fetch(struct cli *cli, const struct job_query *query, const struct job_ids *ids,
                   bool everyone, unsigned needs, struct job_list *ret, struct aq_error *err)
{
    int r = query->ids ? job_fetch_ids(cli, ids, everyone, needs, ret, err)
                       : job_fetch_all(cli, query, everyone, needs, ret, err);

    return r < 0 ? r : job_fetch_arrays_of_rows(cli, everyone, ret, err);
}
