/* SPDX-License-Identifier: Apache-2.0 */
/* "folder": shared with others, offered, accepted and left. */
#include <errno.h>
#include <string.h>

#include "cli/folder/folder.h"
#include "cli/list.h"
#include "cli/verbs.h"

/* ---- share ---- */

struct folder_share_opts {
    const char *permission;
};

static const struct cli_opt share_opts[] = {
    { 'p', "permission", CLI_STR, offsetof(struct folder_share_opts, permission), "PERMISSION",
      "ro, rw (by default) or wd: may put the folder into the trash, too" },
    CLI_OPT_END,
};

/* 1 of a project's, 0 of a user's; its id into 'ret_id', the caller's. */
static int folder_is_of_project(struct cli *cli, const char *folder, json_t **ret_id,
                                struct aq_error *err)
{
    json_auto_t *answer = NULL;
    int r = folder_call(cli, METHOD_GET, folder, "", NULL, &answer, err);
    const char *type = json_string_value(json_object_get(answer, "type"));

    if (r == 0)
        *ret_id = json_incref(json_object_get(answer, "id"));
    return r < 0 ? r : type && strcmp(type, "group") == 0;
}

/* Those who are not in the answer's list are not known, or have it already. */
static void folder_note_others(const struct cli *cli, const json_t *reached, int argc, char **argv,
                               const char *what)
{
    for (int i = 0; i < argc; i++) {
        const json_t *one;
        bool is_in = false;
        size_t k;

        json_array_foreach(reached, k, one)
            is_in |= json_is_string(one) && strcmp(json_string_value(one), argv[i]) == 0;
        if (!is_in)
            cli_note(cli, "%s %s", argv[i], what);
    }
}

static int folder_share(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const char *permission = ((const struct folder_share_opts *)data)->permission;
    json_t *emails = folder_texts(argc - 1, argv + 1);
    json_auto_t *answer = NULL, *id = NULL;
    int r = folder_is_of_project(cli, argv[0], &id, err);
    bool is_project = r > 0;

    if (r < 0) {
        json_decref(emails);
        return r;
    }
    r = folder_send(cli, METHOD_POST, argv[0], is_project ? "/share" : "/invite",
                    emails ? json_pack("{s:s, s:o}", "permission", permission ? permission : "rw",
                                       "emails", emails)
                           : NULL,
                    &answer, err);
    if (r == 0)
        folder_note_others(cli,
                           json_object_get(answer, is_project ? "shared_emails" : "invited_ids"),
                           argc - 1, argv + 1, "is not known, or has it or its offer already");
    return r;
}

const struct cli_verb verb_folder_share = {
    .name = "folder share",
    .args = "FOLDER E-MAIL...",
    .summary = "Offer a folder of yours to users, or give a project's members a permission",
    .details =
        "A folder of a user is offered: 'aliquot folder accept' makes it theirs to use. On a\n"
        "folder of a project, members get this permission in place of the folder's.",
    .examples = "aliquot folder share data anna@example.com -p ro",
    .opts = share_opts,
    .opts_size = sizeof(struct folder_share_opts),
    .min_args = 2,
    .max_args = -1,
    .run = folder_share,
};

/* ---- shares, unshare ---- */

static int folder_get_shares(struct cli *cli, json_t *id, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    strbuf_adds(&path, "/folders/_/shared");
    if (id)
        cli_path_query(&path, "vfolder_id", json_string_value(id));
    return cli_call(cli, METHOD_GET, path.data, NULL, ret, err);
}

static const struct column share_columns[] = {
    { "vfolder_name", "FOLDER", COLUMN_TEXT, COLUMN_IS_NAME },
    { "email", "USER", COLUMN_TEXT, 0 },
    { "perm", "PERMISSION", COLUMN_TEXT, 0 },
    { "owner", "OWNER", COLUMN_TEXT, 0 },
    COLUMN_END,
};

static int folder_shares(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_auto_t *answer = NULL, *id = NULL;
    int r = argc ? folder_is_of_project(cli, argv[0], &id, err) : 0;
    json_t *rows, *row;
    size_t i;

    (void)data;
    if (r < 0 || (r = folder_get_shares(cli, id, &answer, err)) < 0)
        return r;
    rows = json_object_get(answer, "shared");
    json_array_foreach(rows, i, row)
        if (json_object_set(row, "email",
                            json_object_get(json_object_get(row, "shared_to"), "email"))
            < 0)
            return cli_fail_answer(cli, "a share", err);
    return list_print(cli, share_columns, rows, err);
}

const struct cli_verb verb_folder_shares = {
    .name = "folder shares",
    .args = "[FOLDER]",
    .summary = "List with whom your folders are shared",
    .examples = "aliquot folder shares data",
    .if_empty = "they are shared with nobody",
    .max_args = 1,
    .run = folder_shares,
};

/* The id of the user with this e-mail among the shares; NULL if it is not shared. */
static const char *folder_find_share(const json_t *shares, const char *email)
{
    const json_t *row;
    size_t i;

    json_array_foreach(json_object_get(shares, "shared"), i, row) {
        const json_t *whom = json_object_get(row, "shared_to");
        const char *name = json_string_value(json_object_get(whom, "email"));

        if (name && strcmp(name, email) == 0)
            return json_string_value(json_object_get(whom, "uuid"));
    }
    return NULL;
}

static int folder_unshare(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_auto_t *answer = NULL, *id = NULL;
    int r = folder_is_of_project(cli, argv[0], &id, err);

    (void)data;
    if (r >= 0)
        r = folder_get_shares(cli, id, &answer, err);
    for (int i = 1; r == 0 && i < argc; i++) {
        const char *user = folder_find_share(answer, argv[i]);

        if (!user)
            return aq_fail_kind(err, ENOENT, "object-not-found", "'%s' is not shared with '%s'",
                                argv[0], argv[i]);
        r = cli_send(cli, METHOD_POST, "/folders/_/shared",
                     json_pack("{s:O, s:s}", "vfolder", id, "user", user), "a user is not UTF-8",
                     NULL, err);
    }
    return r;
}

const struct cli_verb verb_folder_unshare = {
    .name = "folder unshare",
    .args = "FOLDER E-MAIL...",
    .summary = "Share a folder with users no more",
    .examples = "aliquot folder unshare data anna@example.com",
    .min_args = 2,
    .max_args = -1,
    .run = folder_unshare,
};

/* ---- invitations ---- */

static const struct column invitation_columns[] = {
    { "id", "ID", COLUMN_TEXT, COLUMN_IS_NAME },
    { "vfolder_name", "FOLDER", COLUMN_TEXT, 0 },
    { "inviter", "FROM", COLUMN_TEXT, 0 },
    { "invitee", "TO", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "perm", "PERMISSION", COLUMN_TEXT, 0 },
    { "created_at", "AGE", COLUMN_TIME, 0 },
    COLUMN_END,
};

struct folder_invitations_opts {
    bool sent;
};

static const struct cli_opt invitations_opts[] = {
    { 0, "sent", CLI_FLAG, offsetof(struct folder_invitations_opts, sent), NULL,
      "those of your folders to others" },
    CLI_OPT_END,
};

static int folder_invitations(struct cli *cli, void *data, int argc, char **argv,
                              struct aq_error *err)
{
    (void)argc;
    (void)argv;
    return list_show_whole(cli,
                           ((const struct folder_invitations_opts *)data)->sent
                               ? "/folders/invitations/list-sent"
                               : "/folders/invitations/list",
                           "invitations", invitation_columns, err);
}

const struct cli_verb verb_folder_invitations = {
    .name = "folder invitations",
    .args = "",
    .summary = "List folders that others offer you",
    .examples = "aliquot folder invitations",
    .if_empty = "nobody offers you a folder",
    .opts = invitations_opts,
    .opts_size = sizeof(struct folder_invitations_opts),
    .run = folder_invitations,
};

static int folder_answer(struct cli *cli, enum method method, const char *path, int argc,
                         char **argv, struct aq_error *err)
{
    int r = 0;

    for (int i = 0; r == 0 && i < argc; i++)
        r = cli_send(cli, method, path, json_pack("{s:s}", "inv_id", argv[i]),
                     "an argument is not UTF-8", NULL, err);
    return r;
}

static int folder_accept(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    return folder_answer(cli, METHOD_POST, "/folders/invitations/accept", argc, argv, err);
}

const struct cli_verb verb_folder_accept = {
    .name = "folder accept",
    .args = "INVITATION...",
    .summary = "Accept folders that are offered",
    .details = "An invitation is named by its id in 'aliquot folder invitations'.",
    .examples = "aliquot folder accept $(aliquot folder invitations -o name)",
    .min_args = 1,
    .max_args = -1,
    .run = folder_accept,
};

static int folder_reject(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    return folder_answer(cli, METHOD_DELETE, "/folders/invitations/delete", argc, argv, err);
}

const struct cli_verb verb_folder_reject = {
    .name = "folder reject",
    .args = "INVITATION...",
    .summary = "Reject folders that are offered, or offer yours no more",
    .examples = "aliquot folder reject 3f1c8d2e-...",
    .min_args = 1,
    .max_args = -1,
    .run = folder_reject,
};

static int folder_leave(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    int r = 0;

    (void)data;
    for (int i = 0; r == 0 && i < argc; i++)
        r = folder_call(cli, METHOD_POST, argv[i], "/leave", json_object(), NULL, err);
    return r;
}

const struct cli_verb verb_folder_leave = {
    .name = "folder leave",
    .args = "FOLDER...",
    .summary = "Leave folders that others share with you",
    .examples = "aliquot folder leave data",
    .min_args = 1,
    .max_args = -1,
    .run = folder_leave,
};
