/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenSSH has to be told of a session. */
#include "cli/tunnel/ssh_entry.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/memory.h"
#include "cli/client.h"
#include "http/url.h"

/* ---- texts ---- */

/* One word for a shell, in which ssh(1) replaces nothing. */
static void ssh_entry_add_word(struct strbuf *out, const char *text)
{
    strbuf_adds(out, out->len ? " '" : "'");
    for (; *text; text++) {
        if (*text == '\'')
            strbuf_adds(out, "'\\''");
        else if (*text == '%')
            strbuf_adds(out, "%%");
        else
            strbuf_addc(out, *text);
    }
    strbuf_addc(out, '\'');
}

static void ssh_entry_add_option(struct strbuf *out, const char *option, const char *value)
{
    if (!value)
        return;
    ssh_entry_add_word(out, option);
    ssh_entry_add_word(out, value);
}

static char *ssh_entry_make_command(const struct cli *cli, const char *program, const char *option,
                                    const char *name, const char *kernel)
{
    struct strbuf out = STRBUF_INIT;

    ssh_entry_add_word(&out, program);
    ssh_entry_add_option(&out, "--profile", cli->globals.profile);
    ssh_entry_add_option(&out, "--endpoint", cli->globals.endpoint);
    ssh_entry_add_option(&out, "--owner", cli->globals.owner);
    strbuf_addf(&out, " ssh %s", option);
    ssh_entry_add_option(&out, "--kernel", kernel);
    ssh_entry_add_word(&out, name);
    return strbuf_steal(&out);
}

/* A name for files: the same session of another manager or user is another one. */
static char *ssh_entry_make_label(const struct cli *cli, const char *name, const char *kernel)
{
    const char *const parts[] = { cli->globals.profile, cli->globals.endpoint, cli->globals.owner };
    struct strbuf out = STRBUF_INIT;

    url_encode(&out, name);
    if (kernel) {
        strbuf_addc(&out, '+'); /* which no name has */
        url_encode(&out, kernel);
    }
    for (size_t i = 0; i < AQ_COUNT(parts); i++) {
        if (!parts[i])
            continue;
        strbuf_addc(&out, '@');
        url_encode(&out, parts[i]);
    }
    return strbuf_steal(&out);
}

void ssh_entry_init(struct ssh_entry *entry, const struct cli *cli, const char *name,
                    const char *kernel)
{
    AQ_CLEANUP(aq_freep) char *cache = fs_user_cache_dir();
    AQ_CLEANUP(aq_freep) char *folder = fs_program_dir();
    AQ_CLEANUP(aq_freep) char *program = aq_format("%s/aliquot", folder);

    *entry = (struct ssh_entry){
        .label = ssh_entry_make_label(cli, name, kernel),
        .host = aq_format("%s%s%s" SSH_ENTRY_SUFFIX, kernel ? kernel : "", kernel ? "." : "", name),
        .command = ssh_entry_make_command(cli, program, "--stdio", name, kernel),
        .fetch = ssh_entry_make_command(cli, program, "--keys", name, kernel),
    };
    entry->key = aq_format("%s/ssh/%s.key", cache, entry->label);
    entry->known = aq_format("%s/ssh/%s.known", cache, entry->label);
    for (char *c = entry->label; *c; c++)
        *c = (char)tolower((unsigned char)*c); /* as ssh(1) compares it */
}

void ssh_entry_done(struct ssh_entry *entry)
{
    free(entry->host);
    free(entry->key);
    free(entry->known);
    free(entry->label);
    free(entry->command);
    free(entry->fetch);
    *entry = (struct ssh_entry){ .host = NULL };
}

/* ---- keys ---- */

/* The folder of the keys is nobody else's. */
static int ssh_entry_make_folder(const struct ssh_entry *entry, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *folder = aq_strndup(entry->key,
                                                   (size_t)(strrchr(entry->key, '/') - entry->key));
    struct stat st;
    int r = fs_mkdirs(folder, 0700, err);

    if (r < 0)
        return r;
    if (lstat(folder, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return aq_fail(err, EPERM, "'%s' is no folder of yours, for keys", folder);
    if ((st.st_mode & 077) && chmod(folder, 0700) < 0)
        return aq_fail_errno(err, "'%s'", folder);
    return 0;
}

static bool ssh_entry_is_line(const char *text)
{
    return text && text[0] && !strpbrk(text, "\r\n");
}

int ssh_entry_write_keys(const struct ssh_entry *entry, struct cli *cli,
                         const struct follow_session *session, uint16_t *ret_port,
                         struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    json_t *answer = NULL;
    const char *key, *host;
    int r;

    session_path(cli, &path, session->id, "/ssh");
    cli_path_query(&path, "kernel", session->kernel);
    r = cli_call(cli, METHOD_GET, path.data, NULL, &answer, err);
    if (r < 0)
        return r;
    key = json_string_value(json_object_get(answer, "private_key"));
    host = json_string_value(json_object_get(answer, "host_key"));
    *ret_port = (uint16_t)json_integer_value(json_object_get(answer, "port"));
    if (!key || !ssh_entry_is_line(host) || !*ret_port)
        r = aq_fail(err, EPROTO, "the manager's answer has no keys for SSH");
    if (r == 0)
        r = ssh_entry_make_folder(entry, err);
    if (r == 0)
        r = fs_write_quick(AT_FDCWD, entry->key, key, strlen(key), 0600, err);
    strbuf_addf(&line, "%s %s\n", entry->label, host ? host : "");
    if (r == 0)
        r = fs_write_quick(AT_FDCWD, entry->known, line.data, line.len, 0600, err);
    json_decref(answer);
    return r;
}

/* ---- settings ---- */

/* In quotes; of a path 'is_literal', so that ssh(1) replaces nothing. */
static char *ssh_entry_quote(const char *text, bool is_literal)
{
    struct strbuf out = STRBUF_INIT;

    strbuf_addc(&out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            strbuf_addc(&out, '\\');
        else if (*text == '%' && is_literal)
            strbuf_addc(&out, '%');
        strbuf_addc(&out, *text);
    }
    strbuf_addc(&out, '"');
    return strbuf_steal(&out);
}

struct ssh_entry_setting {
    const char *name;
    char *value;
};

static void ssh_entry_list(const struct ssh_entry *entry,
                           struct ssh_entry_setting ret[SSH_ENTRY_SETTINGS])
{
    const struct ssh_entry_setting settings[SSH_ENTRY_SETTINGS] = {
        { "User", aq_strdup("work") },
        { "ProxyCommand", aq_strdup(entry->command) },
        { "HostKeyAlias", aq_strdup(entry->label) },
        { "UserKnownHostsFile", ssh_entry_quote(entry->known, true) },
        { "StrictHostKeyChecking", aq_strdup("yes") },
        { "UpdateHostKeys", aq_strdup("no") },
        { "IdentityFile", ssh_entry_quote(entry->key, true) },
        { "IdentitiesOnly", aq_strdup("yes") },
    };

    memcpy(ret, settings, sizeof(settings));
}

static void ssh_entry_list_done(struct ssh_entry_setting settings[SSH_ENTRY_SETTINGS])
{
    for (size_t i = 0; i < SSH_ENTRY_SETTINGS; i++)
        free(settings[i].value);
}

void ssh_entry_make_options(const struct ssh_entry *entry, char *ret[SSH_ENTRY_SETTINGS])
{
    struct ssh_entry_setting settings[SSH_ENTRY_SETTINGS];

    ssh_entry_list(entry, settings);
    for (size_t i = 0; i < SSH_ENTRY_SETTINGS; i++)
        ret[i] = aq_format("%s=%s", settings[i].name, settings[i].value);
    ssh_entry_list_done(settings);
}

void ssh_entry_write_section(const struct ssh_entry *entry, struct strbuf *out)
{
    AQ_CLEANUP(aq_freep) char *fetch = ssh_entry_quote(entry->fetch, false);
    struct ssh_entry_setting settings[SSH_ENTRY_SETTINGS];

    ssh_entry_list(entry, settings);
    strbuf_addf(out, "Match originalhost %s exec %s\nHost %s\n", entry->host, fetch, entry->host);
    for (size_t i = 0; i < SSH_ENTRY_SETTINGS; i++)
        strbuf_addf(out, "    %s %s\n", settings[i].name, settings[i].value);
    ssh_entry_list_done(settings);
}
