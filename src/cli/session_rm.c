/* Ending sessions. */
#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "cli/client.h"
#include "cli/session.h"
#include "cli/verbs.h"

struct rm_opts {
    bool all, everyone, force, wait, yes;
};

static const struct cli_opt rm_opts[] = {
    { 'a', "all", CLI_FLAG, offsetof(struct rm_opts, all), NULL, "every session of yours" },
    { 'A', "everyone", CLI_FLAG, offsetof(struct rm_opts, everyone), NULL,
      "with --all: those of all users (administrators)" },
    { 'f', "force", CLI_FLAG, offsetof(struct rm_opts, force), NULL,
      "do not wait for the programs to end (administrators)" },
    { 'w', "wait", CLI_FLAG, offsetof(struct rm_opts, wait), NULL,
      "return only when they have ended" },
    { 'y', "yes", CLI_FLAG, offsetof(struct rm_opts, yes), NULL, "do not ask" },
    CLI_OPT_END,
};

/* What to end. */
struct victims {
    struct follow_session *items;
    size_t count, cap;
};

static int add_victim(struct victims *v, const json_t *session, struct aq_error *err)
{
    const char *owner = json_string_value(json_object_get(session, "access_key"));
    const char *id = json_string_value(json_object_get(session, "id"));
    const char *name = json_string_value(json_object_get(session, "name"));

    if (!id || !name)
        return aq_fail(err, EPROTO, "the manager's answer has no id");
    if (!vec_grow(&v->items, &v->cap, v->count + 1, sizeof(*v->items)))
        return aq_fail(err, ENOMEM, "sessions");
    (void)snprintf(v->items[v->count].id, sizeof(v->items[0].id), "%s", id);
    (void)snprintf(v->items[v->count].owner, sizeof(v->items[0].owner), "%s", owner ? owner : "");
    (void)snprintf(v->items[v->count++].name, sizeof(v->items[0].name), "%s", name);
    return 0;
}

static int find_all(struct cli *cli, const struct rm_opts *opts, struct victims *v,
                    struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *rows = NULL, *row;
    size_t i;
    int r;

    session_list_path(cli, &path, NULL, false, opts->everyone);
    r = cli_call_list(cli, path.data, 0, &rows, NULL, err);
    if (r < 0)
        return r;
    json_array_foreach(rows, i, row)
        if (r == 0)
            r = add_victim(v, row, err);
    json_decref(rows);
    return r;
}

static int find_named(struct cli *cli, int argc, char **argv, struct victims *v,
                      struct aq_error *err)
{
    int r = 0;

    for (int i = 0; r == 0 && i < argc; i++) {
        json_t *session = NULL;

        r = session_get(cli, argv[i], &session, err);
        if (r == 0)
            r = add_victim(v, session, err);
        json_decref(session);
    }
    return r;
}

/* One that has ended meanwhile is as good as ended by us. */
static int end_one(struct cli *cli, const struct rm_opts *opts, const struct follow_session *victim,
                   struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    int r;

    strbuf_addf(&path, "/session/%s", victim->id);
    cli_path_query(&path, "forced", opts->force ? "true" : NULL);
    cli_path_query(&path, "owner_access_key", victim->owner[0] ? victim->owner : NULL);
    r = cli_call(cli, METHOD_DELETE, path.data, NULL, NULL, err);
    if (r == -ENOENT && opts->all)
        return 0;
    return r < 0 ? aq_error_wrap(err, "session '%s'", victim->name) : 0;
}

static int rm(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct rm_opts *opts = data;
    struct victims v = { .items = NULL };
    int r, status;

    if (opts->all == (argc > 0))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "name sessions, or say --all");
    r = opts->all ? find_all(cli, opts, &v, err) : find_named(cli, argc, argv, &v, err);
    if (r == 0 && v.count > 1)
        r = cli_confirm(opts->yes, err, "End %zu sessions?", v.count);
    else if (r == 0)
        r = 1;
    if (r <= 0) {
        free(v.items);
        return r < 0 ? r : CLI_EXIT_FAILURE;
    }
    r = 0;
    for (size_t i = 0; r == 0 && i < v.count; i++)
        r = end_one(cli, opts, &v.items[i], err);
    if (r == 0 && opts->wait && v.count)
        r = follow_sessions(cli, v.items, v.count, FOLLOW_END, 0, &status, err);
    free(v.items);
    return r;
}
#define RM_DETAILS                                                                                 \
    "A session that waits is cancelled at once. The programs of one that runs get\n"              \
    "SIGTERM and, after a grace time, SIGKILL; with --force SIGKILL now."

const struct cli_verb verb_session_rm = {
    .name = "session rm",
    .args = "SESSION... | --all",
    .summary = "End sessions",
    .details = RM_DETAILS,
    .examples = "aliquot session rm train-3fa2b1\n"
                "aliquot session rm --yes job-1 job-2",
    .opts = rm_opts,
    .opts_size = sizeof(struct rm_opts),
    .max_args = -1,
    .run = rm,
};

const struct cli_verb verb_rm = {
    .name = "rm",
    .args = "SESSION... | --all",
    .summary = "End sessions (the same as 'session rm')",
    .details = RM_DETAILS,
    .examples = "aliquot rm train-3fa2b1\n"
                "aliquot rm --all --wait",
    .opts = rm_opts,
    .opts_size = sizeof(struct rm_opts),
    .max_args = -1,
    .run = rm,
};
