/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of sessions: following them, cancelling, and as rows of lists. */
#include "cli/session/array.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/request.h"
#include "cli/session/session.h"
#include "model/session_array.h"

#define ARRAY_AT_ONCE 100 /* elements that are followed together */
#define ARRAY_PAUSE_MIN_USEC (100 * USEC_PER_MSEC)
#define ARRAY_PAUSE_MAX_USEC (2 * USEC_PER_SEC)

static const struct column array_columns[] = {
    { "id", "ID", COLUMN_TEXT, 0 },
    { "label", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "number", "NUMBER", COLUMN_NUMBER, 0 },
    { "type", "TYPE", COLUMN_TEXT, 0 },
    { "status", "STATUS", COLUMN_STATUS, 0 },
    { "result", "RESULT", COLUMN_STATUS, 0 },
    { "indices", "INDICES", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "limit", "AT-ONCE", COLUMN_NUMBER, 0 },
    { "size", "ELEMENTS", COLUMN_NUMBER, 0 },
    { "waiting", "WAITING", COLUMN_NUMBER, 0 },
    { "running", "RUNNING", COLUMN_NUMBER, 0 },
    { "succeeded", "SUCCEEDED", COLUMN_NUMBER, 0 },
    { "failed", "FAILED", COLUMN_NUMBER, 0 },
    { "cancelled", "CANCELLED", COLUMN_NUMBER, 0 },
    { "priority", "PRIORITY", COLUMN_NUMBER, 0 },
    { "user", "USER", COLUMN_TEXT, 0 },
    { "group", "PROJECT", COLUMN_TEXT, 0 },
    { "resource_group", "RESOURCE-GROUP", COLUMN_TEXT, 0 },
    { "image", "IMAGE", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "tag", "TAG", COLUMN_TEXT, 0 },
    { "created_at", "CREATED", COLUMN_TIME, 0 },
    { "terminated_at", "ENDED", COLUMN_TIME, 0 },
    { "dependencies", "DEPENDENCIES", COLUMN_TEXT,
      COLUMN_IS_EXTRA | COLUMN_IS_NESTED | COLUMN_IS_LONG },
    COLUMN_END,
};

void array_path(const struct cli *cli, struct strbuf *path, const char *name, const char *rest)
{
    strbuf_adds(path, "/aliquot/v1/arrays/");
    url_encode(path, name);
    strbuf_adds(path, rest);
    cli_path_query(path, "owner_access_key", cli->globals.owner);
}

int array_get(struct cli *cli, const char *name, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    array_path(cli, &path, name, "");
    return cli_call(cli, METHOD_GET, path.data, NULL, ret, err);
}

int array_show(struct cli *cli, const char *name, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *row = NULL;
    int r;

    array_path(cli, &path, name, "");
    r = record_show(cli, path.data, array_columns, NULL, &row, err);
    if (r == 0)
        r = session_dependencies_print(cli, row, err);
    json_decref(row);
    return r;
}

/* ---- following ---- */

/* What is followed, and how far. */
struct array_following {
    struct cli *cli;
    const char *id;
    unsigned flags;
    int64_t deadline_usec; /* monotonic; 0 = none */
    size_t seen;           /* elements that have ended */
    int exit_status;       /* the highest so far */
};

/* The elements that come after those seen; an empty list while none are made. */
static int array_read_elements(const struct array_following *f, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *answer = NULL;
    int r;

    strbuf_addf(&path, "/aliquot/v1/sessions?order=array_index&fields=id,name&limit=%d&offset=%zu",
                ARRAY_AT_ONCE, f->seen);
    cli_path_query(&path, "array", f->id);
    cli_path_query(&path, "owner_access_key", f->cli->globals.owner);
    r = cli_call(f->cli, METHOD_GET, path.data, NULL, &answer, err);
    if (r == 0)
        *ret = json_incref(json_object_get(answer, "items"));
    json_decref(answer);
    return r == 0 && !json_is_array(*ret)
               ? aq_fail(err, EPROTO, "the manager's answer has no items")
               : r;
}

static int array_follow_elements(struct array_following *f, const json_t *elements,
                                 struct aq_error *err)
{
    size_t count = json_array_size(elements), i;
    AQ_CLEANUP(aq_freep) struct follow_session *sessions = aq_alloc_array(count, sizeof(*sessions));
    int64_t left = f->deadline_usec ? AQ_MAX(f->deadline_usec - clock_monotonic_usec(), 1) : 0;
    int status = 0, r = 0;
    json_t *element;

    json_array_foreach(elements, i, element) {
        if (r == 0)
            r = session_read(f->cli, element, &sessions[i], err);
        sessions[i].array = f->id;
    }
    if (r == 0)
        r = follow_sessions(f->cli, sessions, count, f->flags | FOLLOW_HIGHEST, left, &status, err);
    f->seen += count;
    f->exit_status = AQ_MAX(f->exit_status, status);
    return r;
}

/* 1 if the array has ended; elements that never ran count as failed. */
static int array_check_end(struct array_following *f, struct aq_error *err)
{
    json_t *array = NULL;
    int r = array_get(f->cli, f->id, &array, err);

    if (r == 0 && json_is_string(json_object_get(array, "terminated_at"))) {
        r = 1;
        if (json_integer_value(json_object_get(array, "cancelled")) > 0)
            f->exit_status = AQ_MAX(f->exit_status, CLI_EXIT_FAILURE);
    }
    json_decref(array);
    return r;
}

static int array_pause(const struct array_following *f, int64_t *pause, struct aq_error *err)
{
    if (f->deadline_usec && clock_monotonic_usec() >= f->deadline_usec)
        return aq_fail(err, ETIMEDOUT, "the time is over and the array goes on");
    (void)usleep((useconds_t)*pause);
    *pause = AQ_MIN(*pause * 2, ARRAY_PAUSE_MAX_USEC);
    return 0;
}

/* Elements are made in order, so those seen stay the first ones of the list. */
static int array_follow_all(struct array_following *f, struct aq_error *err)
{
    int64_t pause = ARRAY_PAUSE_MIN_USEC;
    int r = 0;

    while (r == 0) {
        int ended = array_check_end(f, err); /* before: what is made after it is not missed */
        json_t *elements = NULL;

        r = ended < 0 ? ended : array_read_elements(f, &elements, err);
        if (r == 0 && json_array_size(elements)) {
            r = array_follow_elements(f, elements, err);
            pause = ARRAY_PAUSE_MIN_USEC;
        } else if (r == 0) {
            r = ended ? 1 : array_pause(f, &pause, err);
        }
        json_decref(elements);
    }
    return AQ_MIN(r, 0);
}

int array_follow(struct cli *cli, const char *name, unsigned flags, int64_t timeout_usec,
                 int *ret_exit, struct aq_error *err)
{
    struct array_following f = {
        .cli = cli,
        .flags = flags,
        .deadline_usec = timeout_usec ? clock_monotonic_usec() + timeout_usec : 0,
    };
    json_t *array = NULL;
    int r = array_get(cli, name, &array, err);

    f.id = json_string_value(json_object_get(array, "id"));
    if (r == 0 && !f.id)
        r = aq_fail(err, EPROTO, "the manager's answer has no id of the array");
    if (r == 0)
        r = array_follow_all(&f, err);
    json_decref(array);
    *ret_exit = f.exit_status;
    return r;
}

int array_wait(struct cli *cli, const char *name, int64_t timeout_usec, int *ret_exit,
               struct aq_error *err)
{
    return array_follow(cli, name, 0, timeout_usec, ret_exit, err);
}

/* ---- cancelling ---- */

int array_cancel(struct cli *cli, const char *name, bool forced, bool recursive,
                 struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *set = aq_alloc(strlen(name) + 1);
    AQ_CLEANUP(aq_freep) char *stem = aq_strdup(name);
    json_t *body = json_object();
    size_t len;
    int r;

    if (session_array_split_name(name, &len, set, strlen(name) + 1) == 0) {
        stem[len] = '\0';
        (void)json_object_set_new(body, "elements", json_string(set));
    }
    if (forced)
        (void)json_object_set_new(body, "forced", json_true());
    if (recursive)
        (void)json_object_set_new(body, "recursive", json_true());
    array_path(cli, &path, stem, "");
    r = cli_call(cli, METHOD_DELETE, path.data, body, NULL, err);
    json_decref(body);
    return r;
}

/* ---- as rows of lists of sessions ---- */

static long long array_number(const json_t *array, const char *member)
{
    return json_integer_value(json_object_get(array, member));
}

/* "3 running, 40 done, 2 failed, 55 waiting" */
static void array_write_counts(const json_t *array, struct strbuf *out)
{
    static const struct {
        const char *member, *word;
    } counts[] = { { "running", "running" },
                   { "succeeded", "done" },
                   { "failed", "failed" },
                   { "cancelled", "cancelled" },
                   { "waiting", "waiting" } };

    for (size_t i = 0; i < AQ_COUNT(counts); i++)
        if (array_number(array, counts[i].member))
            strbuf_addf(out, "%s%lld %s", out->len ? ", " : "",
                        array_number(array, counts[i].member), counts[i].word);
}

/* Members of sessions that it has not are absent, and shown as such. */
static void array_adapt(json_t *array)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf counts = STRBUF_INIT;

    array_write_counts(array, &counts);
    (void)json_object_set(array, "name", json_object_get(array, "label"));
    (void)json_object_set_new(array, "reason", json_string(counts.data));
}

int array_list_rows(struct cli *cli, const char *status, bool ended, bool everyone, json_t **ret,
                    struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *row;
    size_t i;
    int r;

    strbuf_adds(&path, "/aliquot/v1/arrays");
    cli_path_query(&path, "status",
                   status  ? status
                   : ended ? NULL
                           : session_status_name(SESSION_RUNNING));
    cli_path_query(&path, "all", everyone ? "true" : NULL);
    cli_path_query(&path, "owner_access_key", cli->globals.owner);
    r = cli_call_list(cli, path.data, CLI_PAGE, 0, ret, NULL, err);
    if (r < 0)
        return r;
    json_array_foreach(*ret, i, row)
        array_adapt(row);
    return 0;
}
