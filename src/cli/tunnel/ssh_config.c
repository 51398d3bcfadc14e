/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions as hosts of ssh(1), and of whatever reads its configuration. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "cli/client.h"
#include "cli/tunnel/ssh_entry.h"
#include "cli/verbs.h"
#include "model/session.h"

#define SSH_CONFIG_MAX (1u << 20) /* bytes of a user's ~/.ssh/config */

struct ssh_config_opts {
    bool write;
};

static void ssh_config_add_host(const struct cli *cli, const char *name, const char *kernel,
                                struct strbuf *out)
{
    struct ssh_entry entry;

    ssh_entry_init(&entry, cli, name, kernel);
    ssh_entry_write_section(&entry, out);
    ssh_entry_done(&entry);
}

/* The session and, if it has several kernels, each of them. What the manager says becomes lines of
 * a configuration that runs programs.
 */
static int ssh_config_add(const struct cli *cli, const json_t *session, struct strbuf *out,
                          struct aq_error *err)
{
    const char *name = json_string_value(json_object_get(session, "name"));
    const json_t *kernels = json_object_get(session, "kernels"), *kernel;
    int r = session_name_check(name ? name : "", err);
    size_t i;

    if (r < 0)
        return aq_error_wrap(err, "the manager's answer");
    ssh_config_add_host(cli, name, NULL, out);
    json_array_foreach(kernels, i, kernel) {
        const char *hostname = json_string_value(json_object_get(kernel, "hostname"));

        if (json_array_size(kernels) > 1 && hostname && session_name_check(hostname, NULL) == 0)
            ssh_config_add_host(cli, name, hostname, out);
    }
    return 0;
}

static int ssh_config_add_named(struct cli *cli, const char *name, struct strbuf *out,
                                struct aq_error *err)
{
    json_auto_t *session = NULL;
    int r = session_get(cli, name, &session, err);

    return r < 0 ? r : ssh_config_add(cli, session, out, err);
}

/* Those that users log in to, whether they run already or not. */
static int ssh_config_add_live(struct cli *cli, struct strbuf *out, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *sessions = NULL;
    const json_t *session;
    size_t total, i;
    int r;

    session_list_path(cli, &path, NULL, false, false);
    r = cli_call_list(cli, path.data, CLI_PAGE, 0, &sessions, &total, err);
    if (r < 0)
        return r;
    json_array_foreach(sessions, i, session) {
        const char *type = json_string_value(json_object_get(session, "type"));

        if (r == 0 && type && (strcmp(type, "interactive") == 0 || strcmp(type, "system") == 0))
            r = ssh_config_add(cli, session, out, err);
    }
    json_decref(sessions);
    return r;
}

/* ---- --write ---- */

/* Its own file, or what a link of that name leads to. */
static int ssh_config_find_users(char ret[PATH_MAX], mode_t *ret_mode, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *folder = fs_user_file(".ssh");
    AQ_CLEANUP(aq_freep) char *path = fs_user_file(".ssh/config");
    struct stat st;
    int r;

    r = fs_mkdirs(folder, 0700, err);
    if (r < 0)
        return r;
    if (!realpath(path, ret) && errno != ENOENT)
        return aq_fail_errno(err, "'%s'", path);
    if (stat(path, &st) < 0) {
        (void)snprintf(ret, PATH_MAX, "%s", path);
        st.st_mode = 0600;
    }
    *ret_mode = st.st_mode & 0777;
    return 0;
}

/* Its first line includes ours, as a section of it would take what follows for its own. */
static int ssh_config_include(const char *file, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf old = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char path[PATH_MAX];
    mode_t mode = 0600;
    int r = ssh_config_find_users(path, &mode, err);

    if (r < 0)
        return r;
    r = fs_read(AT_FDCWD, path, SSH_CONFIG_MAX, &old, err);
    if (r < 0 && r != -ENOENT)
        return r;
    strbuf_addf(&text, "Include \"%s\"\n", file);
    if (old.len && strstr(old.data, text.data))
        return 0;
    if (old.len)
        strbuf_addf(&text, "\n%s", old.data);
    return fs_write_atomic(AT_FDCWD, path, text.data, text.len, mode, err);
}

static int ssh_config_write(struct cli *cli, const struct strbuf *text, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *folder = fs_user_config_dir();
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/ssh_config", folder);
    int r = fs_mkdirs(folder, 0700, err);

    if (r == 0)
        r = fs_write_atomic(AT_FDCWD, path, text->data, text->len, 0600, err);
    if (r == 0)
        r = ssh_config_include(path, err);
    if (r == 0)
        cli_note(cli, "Written to %s, which ~/.ssh/config includes; e.g.: ssh SESSION%s", path,
                 SSH_ENTRY_SUFFIX);
    return r;
}

/* ---- the command ---- */

static int ssh_config_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct ssh_config_opts *opts = data;
    int r = 0;

    strbuf_adds(&text, "# Of 'aliquot ssh-config', which writes it again.\n");
    for (int i = 0; r == 0 && i < argc; i++)
        r = ssh_config_add_named(cli, argv[i], &text, err);
    if (r == 0 && argc == 0)
        r = ssh_config_add_live(cli, &text, err);
    if (r < 0)
        return r;
    return opts->write ? ssh_config_write(cli, &text, err) : cli_print(&text, err);
}

static const struct cli_opt ssh_config_options[] = {
    { 0, "write", CLI_FLAG, offsetof(struct ssh_config_opts, write), NULL,
      "Write them to a file of their own, and have ~/.ssh/config include it" },
    CLI_OPT_END,
};

const struct cli_verb verb_ssh_config = {
    .name = "ssh-config",
    .args = "[SESSION...]",
    .summary = "Make sessions hosts of ssh, sftp, rsync and editors",
    .details =
        "Shows what ~/.ssh/config needs so that SESSION.aliquot is a host: connections\n"
        "go through 'aliquot ssh --stdio', which fetches the keys each time. Each kernel of a\n"
        "session of several is a host, too, such as sub1.SESSION.aliquot. Without\n"
        "SESSION it is all sessions that live and are logged in to. An entry is good for the next\n"
        "session of that name, too.",
    .examples = "aliquot ssh-config notebook --write\n"
                "ssh notebook.aliquot\n"
                "rsync -a data/ notebook.aliquot:data/\n"
                "code --remote ssh-remote+notebook.aliquot /home/work",
    .opts = ssh_config_options,
    .opts_size = sizeof(struct ssh_config_opts),
    .max_args = -1,
    .run = ssh_config_run,
};
