/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that end sessions: "rm" and "session rm". */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "cli/client.h"
#include "cli/session/array.h"
#include "cli/session/session.h"
#include "cli/verbs.h"

#define AT_ONCE_MAX 1000 /* sessions in one request */

struct session_rm_rm_opts {
    bool all, everyone, force, recursive, wait, yes;
};

static const struct cli_opt rm_opts[] = {
    { 'a', "all", CLI_FLAG, offsetof(struct session_rm_rm_opts, all), NULL,
      "every session of yours" },
    { 'A', "everyone", CLI_FLAG, offsetof(struct session_rm_rm_opts, everyone), NULL,
      "with --all: those of all users (administrators)" },
    { 'f', "force", CLI_FLAG, offsetof(struct session_rm_rm_opts, force), NULL,
      "do not wait for the programs to end (administrators)" },
    { 'r', "recursive", CLI_FLAG, offsetof(struct session_rm_rm_opts, recursive), NULL,
      "also the sessions and arrays that wait for them, and for those" },
    { 'w', "wait", CLI_FLAG, offsetof(struct session_rm_rm_opts, wait), NULL,
      "return only when those that are named have ended" },
    { 'y', "yes", CLI_FLAG, offsetof(struct session_rm_rm_opts, yes), NULL, "do not ask" },
    CLI_OPT_END,
};

/* What to end. */
struct victims {
    struct follow_session *items;
    size_t count, cap;
    struct cli_list arrays; /* names, perhaps with indices; borrowed */
    json_t *rows;           /* of arrays, that their ids are borrowed of; NULL = none */
};

static int rm_add(struct victims *v, const json_t *session, struct aq_error *err)
{
    const char *owner = json_string_value(json_object_get(session, "access_key"));
    const char *id = json_string_value(json_object_get(session, "id"));
    const char *name = json_string_value(json_object_get(session, "name"));

    if (!id || !name)
        return aq_fail(err, EPROTO, "the manager's answer has no id");
    vec_grow(&v->items, &v->cap, v->count + 1, sizeof(*v->items));
    v->items[v->count] = (struct follow_session){ .is_new = false };
    (void)snprintf(v->items[v->count].id, sizeof(v->items[0].id), "%s", id);
    (void)snprintf(v->items[v->count].owner, sizeof(v->items[0].owner), "%s", owner ? owner : "");
    (void)snprintf(v->items[v->count++].name, sizeof(v->items[0].name), "%s", name);
    return 0;
}

static int rm_find_all(struct cli *cli, const struct session_rm_rm_opts *opts, struct victims *v,
                       struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *rows = NULL, *row;
    size_t i;
    int r;

    r = array_list_rows(cli, NULL, false, opts->everyone, &v->rows, err);
    json_array_foreach(v->rows, i, row)
        cli_list_add(&v->arrays, json_string_value(json_object_get(row, "id")));
    session_list_path(cli, &path, NULL, false, opts->everyone);
    cli_path_query(&path, "array", "none");
    cli_path_query(&path, "fields", "id,name");
    if (r == 0)
        r = cli_call_list(cli, path.data, CLI_PAGE_OF_SHORT_ROWS, 0, &rows, NULL, err);
    if (r < 0)
        return r;
    json_array_foreach(rows, i, row)
        if (r == 0)
            r = rm_add(v, row, err);
    json_decref(rows);
    return r;
}

/* An array, or elements of one. Of an array that has ended, one element may be meant. */
static int rm_find_array(struct cli *cli, char *name, struct victims *v, struct aq_error *err)
{
    char *bracket = strchr(name, '[');
    struct aq_error none = { 0 };
    json_t *found = NULL;
    int r;

    if (bracket)
        *bracket = '\0';
    r = array_get(cli, name, &found, &none);
    if (bracket)
        *bracket = '[';
    if (r == 0 && !json_is_string(json_object_get(found, "terminated_at"))) {
        cli_list_add(&v->arrays, name);
    } else if (r == 0 && !bracket) {
        cli_note(cli, "array '%s' has ended already", name);
    } else {
        json_decref(found);
        found = NULL;
        r = session_get(cli, name, &found, err);
        if (r == 0)
            r = rm_add(v, found, err);
    }
    json_decref(found);
    return r;
}

static int rm_find_named(struct cli *cli, int argc, char **argv, struct victims *v,
                         struct aq_error *err)
{
    int r = 0;

    for (int i = 0; r == 0 && i < argc; i++) {
        json_t *session = NULL;

        r = strchr(argv[i], '[') ? -ENOENT : session_get(cli, argv[i], &session, err);
        if (r == 0)
            r = rm_add(v, session, err);
        else if (r == -ENOENT)
            r = rm_find_array(cli, argv[i], v, err);
        json_decref(session);
    }
    return r;
}

static json_t *rm_make_request(const struct session_rm_rm_opts *opts,
                               const struct follow_session *items, size_t count)
{
    json_t *ids = json_array(), *body = json_pack("{s:o}", "sessions", ids);

    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(ids, json_string(items[i].id));
    if (opts->force)
        (void)json_object_set_new(body, "forced", json_true());
    if (opts->recursive)
        (void)json_object_set_new(body, "recursive", json_true());
    return body;
}

/* What has ended meanwhile is as good as ended by us. */
static void rm_note_ended(const struct cli *cli, const struct session_rm_rm_opts *opts,
                          const struct follow_session *items, const json_t *answer)
{
    json_t *item;
    size_t i;

    json_array_foreach(json_object_get(answer, "items"), i, item) {
        const char *status = json_string_value(json_object_get(item, "status"));

        if (!opts->all && status && strcmp(status, "gone") == 0)
            cli_note(cli, "session '%s' has ended already", items[i].name);
    }
}

static int rm_end_some(struct cli *cli, const struct session_rm_rm_opts *opts,
                       const struct follow_session *items, size_t count, struct aq_error *err)
{
    json_t *body = rm_make_request(opts, items, count), *answer = NULL;
    int r = cli_call(cli, METHOD_DELETE, "/aliquot/v1/sessions", body, &answer, err);

    if (r == 0)
        rm_note_ended(cli, opts, items, answer);
    json_decref(body);
    json_decref(answer);
    return r < 0 && count == 1 ? aq_error_wrap(err, "session '%s'", items[0].name) : r;
}

/* Whatever is alive of the victims comes first: only younger ones are not theirs. */
static int rm_count_left(struct cli *cli, const struct session_rm_rm_opts *opts,
                         const json_t *victims, size_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *rows = NULL, *row;
    size_t i;
    int r;

    session_list_path(cli, &path, NULL, false, opts->everyone);
    cli_path_query(&path, "order", "created_at");
    cli_path_query(&path, "fields", "id");
    r = cli_call_list(cli, path.data, CLI_PAGE, AT_ONCE_MAX, &rows, NULL, err);
    *ret = 0;
    json_array_foreach(rows, i, row)
        *ret += json_object_get(victims, json_string_value(json_object_get(row, "id"))) != NULL;
    json_decref(rows);
    return r;
}

/* Until all are gone; asks for lists, which thousands of sessions make long but not many. */
static int rm_wait(struct cli *cli, const struct session_rm_rm_opts *opts, const struct victims *v,
                   struct aq_error *err)
{
    json_t *ids = json_object();
    unsigned msec = 50;
    size_t left = v->count;
    int r = 0;

    for (size_t i = 0; i < v->count; i++)
        (void)json_object_set_new(ids, v->items[i].id, json_true());
    while (r == 0 && left > 0) {
        (void)usleep(msec * 1000);
        msec = AQ_MIN(msec * 2, 2000u);
        r = rm_count_left(cli, opts, ids, &left, err);
    }
    json_decref(ids);
    return r;
}

static int rm_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct session_rm_rm_opts *opts = data;
    struct victims v = { .items = NULL };
    int r, status;

    if (opts->all == (argc > 0))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "name sessions, or say --all");
    r = opts->all ? rm_find_all(cli, opts, &v, err) : rm_find_named(cli, argc, argv, &v, err);
    if (r == 0 && v.count + v.arrays.count > 1)
        r = v.arrays.count ? cli_confirm(opts->yes, err, "End %zu sessions and arrays?",
                                         v.count + v.arrays.count)
                           : cli_confirm(opts->yes, err, "End %zu sessions?", v.count);
    for (size_t i = 0; r == 0 && i < v.arrays.count; i++)
        r = array_cancel(cli, v.arrays.items[i], opts->force, opts->recursive, err);
    for (size_t i = 0; r == 0 && i < v.count; i += AT_ONCE_MAX)
        r = rm_end_some(cli, opts, &v.items[i], AQ_MIN(v.count - i, (size_t)AT_ONCE_MAX), err);
    for (size_t i = 0; r == 0 && opts->wait && i < v.arrays.count; i++)
        if (!strchr(v.arrays.items[i], '['))
            r = array_wait(cli, v.arrays.items[i], 0, &status, err);
    if (r == 0 && opts->wait && opts->all)
        r = rm_wait(cli, opts, &v, err);
    else if (r == 0 && opts->wait && v.count)
        r = follow_sessions(cli, v.items, v.count, FOLLOW_END, 0, &status, err);
    json_decref(v.rows);
    free(v.arrays.items);
    free(v.items);
    return r;
}
#define RM_DETAILS                                                                   \
    "A session that waits is cancelled at once. The programs of one that runs get\n" \
    "SIGTERM and, after a grace time, SIGKILL; with --force SIGKILL now. One that\n" \
    "has ended already is no error; one in ERROR no longer appears in the default\n" \
    "lists of Backend.AI's clients, and stays in the history."

const struct cli_verb verb_session_rm = {
    .name = "session rm",
    .args = "SESSION... | --all",
    .summary = "End sessions",
    .details = RM_DETAILS,
    .examples = "aliquot session rm train-3fa2b1\n"
                "aliquot session rm --yes job-1 job-2\n"
                "aliquot session rm --recursive 'prepare[7]'",
    .opts = rm_opts,
    .opts_size = sizeof(struct session_rm_rm_opts),
    .max_args = -1,
    .run = rm_run,
};

const struct cli_verb verb_rm = {
    .name = "rm",
    .args = "SESSION... | --all",
    .summary = "End sessions (the same as 'session rm')",
    .details = RM_DETAILS,
    .examples = "aliquot rm train-3fa2b1\n"
                "aliquot rm --all --wait",
    .opts = rm_opts,
    .opts_size = sizeof(struct session_rm_rm_opts),
    .max_args = -1,
    .run = rm_run,
};
