/* SPDX-License-Identifier: Apache-2.0 */
/* "folder sftp": a session of the type system, in which folders are reached by SFTP and rsync. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "cli/client.h"
#include "cli/list.h"
#include "cli/session/follow.h"
#include "cli/session/session.h"
#include "cli/tunnel/ssh_entry.h"
#include "cli/verbs.h"
#include "model/folder_mount.h"
#include "model/reference.h"
#include "model/status.h"

struct folder_sftp_opts {
    const char *name, *resource_group;
};

/* ---- which folders ---- */

/* "data/run1" of "data:run1". */
static int folder_sftp_take_named(int argc, char **argv, json_t *ret, struct aq_error *err)
{
    for (int i = 0; i < argc; i++) {
        AQ_CLEANUP(aq_freep) char *mount = aq_strdup(argv[i]);
        char *colon = strchr(mount, ':');

        if (colon)
            *colon = '/';
        if (json_array_append_new(ret, json_string(mount)) < 0)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "an argument is not UTF-8");
    }
    return 0;
}

static bool folder_sftp_has(const json_t *list, const char *text)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
        if (strcmp(json_string_value(one), text) == 0)
            return true;
    return false;
}

/* All that are not hidden, of two of one name the first. */
static int folder_sftp_take_all(struct cli *cli, json_t *ret, struct aq_error *err)
{
    json_auto_t *folders = NULL;
    const json_t *folder;
    size_t total, i, left_out = 0;
    int r = cli_call_list(cli, "/aliquot/v1/folders", CLI_PAGE, 0, &folders, &total, err);

    if (r < 0)
        return r;
    json_array_foreach(folders, i, folder) {
        const char *name = json_string_value(json_object_get(folder, "name"));
        const char *status = json_string_value(json_object_get(folder, "status"));

        if (!name || name[0] == '.' || !status || strcmp(status, "ready") != 0)
            continue;
        if (folder_sftp_has(ret, name) || json_array_size(ret) == FOLDER_MOUNTS_MAX)
            left_out++;
        else
            (void)json_array_append_new(ret, json_string(name));
    }
    if (left_out)
        cli_note(cli, "%zu folders are left out, whose names others have or which are too many",
                 left_out);
    return json_array_size(ret) ? 0
                                : aq_fail(err, ENOENT,
                                          "you have no folders; to make one: aliquot folder create "
                                          "NAME");
}

/* ---- the session ---- */

/* Does it show each of them, and as many? */
static bool folder_sftp_shows(const json_t *session, const json_t *wanted)
{
    const json_t *mounts = json_object_get(session, "mounts"), *mount;
    size_t i;

    if (json_array_size(mounts) != json_array_size(wanted))
        return false;
    json_array_foreach(mounts, i, mount) {
        const char *name = json_string_value(json_object_get(mount, "name"));
        const char *path = json_string_value(json_object_get(mount, "path"));
        AQ_CLEANUP(aq_freep) char *text = aq_format("%s%s%s", name, path ? "/" : "",
                                                    path ? path : "");

        if (!folder_sftp_has(wanted, text))
            return false;
    }
    return true;
}

/* One that lives, or none. 'wanted' NULL = whatever it shows. */
static int folder_sftp_find(struct cli *cli, const char *name, const json_t *wanted,
                            struct follow_session *ret, struct aq_error *err)
{
    json_auto_t *session = NULL;
    enum session_status status;
    int exit_status, r = session_get(cli, name, &session, err);
    const char *text = json_string_value(json_object_get(session, "status"));
    const char *type = json_string_value(json_object_get(session, "type"));

    if (r < 0)
        return r;
    if (!text || session_status_parse(text, &status) < 0 || session_is_terminal(status))
        return -ENOENT;
    if (!type || strcmp(type, session_type_name(SESSION_SYSTEM)) != 0)
        return aq_fail(err, EEXIST, "the session '%s' is another one; take another --name", name);
    if (status != SESSION_TERMINATING && wanted && !folder_sftp_shows(session, wanted)) {
        cli_hint(cli, "to end it: aliquot rm %s", name);
        return aq_fail(err, EEXIST, "the session '%s' shows other folders", name);
    }
    r = session_resolve(cli, name, ret, err);
    if (r == 0 && status == SESSION_TERMINATING)
        r = follow_sessions(cli, ret, 1, FOLLOW_END, 0, &exit_status, err);
    return r < 0 ? r : status == SESSION_TERMINATING ? -ENOENT : 0;
}

static int folder_sftp_create(struct cli *cli, const struct folder_sftp_opts *opts,
                              const char *name, json_t *mounts, struct aq_error *err)
{
    json_auto_t *answer = NULL;
    json_auto_t *body = json_pack(
        "{s:s, s:s, s:s, s:b, s:s*, s:{s:O, s:s*}}", "name", name, "image", IMAGE_OF_FILES, "type",
        session_type_name(SESSION_SYSTEM), "enqueueOnly", true, "owner_access_key",
        cli->globals.owner, "config", "mounts", mounts, "scaling_group", opts->resource_group);

    return body ? cli_call_once(cli, "/session", body, &answer, err)
                : aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "an argument is not UTF-8");
}

/* ---- how to reach it ---- */

static const struct column folder_sftp_columns[] = {
    { "session", "SESSION", COLUMN_TEXT, COLUMN_IS_NAME },
    { "folders", "FOLDERS", COLUMN_NAMES, 0 },
    { "ssh_host", "SSH-HOST", COLUMN_TEXT, 0 },
    { "host", "HOST", COLUMN_TEXT, 0 },
    { "port", "PORT", COLUMN_NUMBER, 0 },
    { "user", "USER", COLUMN_TEXT, 0 },
    { "key", "KEY", COLUMN_TEXT, 0 },
    COLUMN_END,
};

/* ["data: rw", "corpus/v2: ro"] */
static json_t *folder_sftp_list(const json_t *session)
{
    json_t *list = json_array();
    const json_t *mount;
    size_t i;

    json_array_foreach(json_object_get(session, "mounts"), i, mount) {
        const char *path = json_string_value(json_object_get(mount, "path"));

        (void)json_array_append_new(
            list, json_sprintf("%s%s%s: %s", json_string_value(json_object_get(mount, "name")),
                               path ? "/" : "", path ? path : "",
                               json_string_value(json_object_get(mount, "mode"))));
    }
    return list;
}

static int folder_sftp_show(struct cli *cli, const struct follow_session *session,
                            struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_auto_t *about = NULL, *direct = NULL, *row = NULL;
    struct ssh_entry entry;
    uint16_t port;
    int r;

    ssh_entry_init(&entry, cli, session->name, NULL);
    session_old_path(cli, &path, session->id, "/direct-access-info");
    r = session_get(cli, session->id, &about, err);
    if (r == 0)
        r = cli_call(cli, METHOD_GET, path.data, NULL, &direct, err);
    if (r == 0)
        r = ssh_entry_write_keys(&entry, cli, session, &port, err);
    if (r == 0) {
        row = json_pack("{s:s, s:o, s:s, s:O?, s:O?, s:s, s:s}", "session", session->name,
                        "folders", folder_sftp_list(about), "ssh_host", entry.host, "host",
                        json_object_get(direct, "public_host"), "port",
                        json_array_get(json_object_get(direct, "sshd_ports"), 0), "user", "work",
                        "key", entry.key);
        r = record_print(cli, folder_sftp_columns, row, err);
    }
    if (r == 0)
        cli_note(cli,
                 "once: aliquot ssh-config %s --write; then: sftp %s, rsync -a DIR %s:FOLDER/; "
                 "straight to the node: sftp -P PORT -i KEY work@HOST; its end: aliquot rm %s",
                 session->name, entry.host, entry.host, session->name);
    ssh_entry_done(&entry);
    return r;
}

/* ---- the command ---- */

static int folder_sftp(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct folder_sftp_opts *opts = data;
    const char *name = opts->name ? opts->name : "sftp";
    json_auto_t *mounts = json_array();
    struct follow_session session;
    int r = folder_sftp_take_named(argc, argv, mounts, err);

    if (r < 0)
        return r;
    r = folder_sftp_find(cli, name, argc ? mounts : NULL, &session, err);
    if (r == -ENOENT) {
        *err = (struct aq_error){ 0 };
        r = argc ? 0 : folder_sftp_take_all(cli, mounts, err);
        if (r == 0)
            r = folder_sftp_create(cli, opts, name, mounts, err);
    }
    if (r == 0)
        r = session_await(cli, name, &session, err);
    return r < 0 ? r : folder_sftp_show(cli, &session, err);
}

static const struct cli_opt folder_sftp_opts[] = {
    { 0, "name", CLI_STR, offsetof(struct folder_sftp_opts, name), "NAME",
      "name of the session; sftp by default" },
    { 0, "resource-group", CLI_STR, offsetof(struct folder_sftp_opts, resource_group),
      "RESOURCE-GROUP", "group of agents it may run on" },
    CLI_OPT_END,
};

const struct cli_verb verb_folder_sftp = {
    .name = "folder sftp",
    .args = "[FOLDER[:DIRECTORY]...]",
    .summary = "Reach folders by sftp, scp, rsync and rclone",
    .details =
        "Starts a session that has these folders, or all that you may read, and runs nothing\n"
        "else than what moves files; one that there is already is shown. What may only be read\n"
        "cannot be written there either. It ends when nobody was connected for an hour, and does\n"
        "not count as one of your sessions; how many you may have of these, your policy says.",
    .examples = "aliquot folder sftp\n"
                "aliquot folder sftp data corpus:v2\n"
                "aliquot ssh-config sftp --write; rsync -a --partial results sftp.aliquot:data/",
    .opts = folder_sftp_opts,
    .opts_size = sizeof(struct folder_sftp_opts),
    .max_args = -1,
    .run = folder_sftp,
};
