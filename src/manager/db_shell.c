/* SPDX-License-Identifier: Apache-2.0 */
/* The database in the shell of its engine. */
#include "manager/db_shell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "http/url.h"
#include "manager/backup/place.h"
#include "store/store.h"
#include "store/uri.h"

#define READ_ONLY "-c default_transaction_read_only=on"

static void db_shell_warn(void)
{
    (void)fputs("You may write now. A manager that runs does not see what is changed here and goes "
                "on with\nwhat it has in memory: stop it first, and run 'aliquot admin db check' "
                "afterwards.\n",
                stderr);
}

static int db_shell_become(const char *program, const char *package, char *const argv[],
                           struct aq_error *err)
{
    (void)execvp(program, argv);
    if (errno == ENOENT)
        return aq_fail(err, ENOENT, "%s is not installed: apt install %s", program, package);
    return aq_fail_errno(err, "start %s", program);
}

static int db_shell_exec_sqlite(char *file, bool may_write, struct aq_error *err)
{
    char program[] = "sqlite3", read_only[] = "-readonly";
    char *argv[] = { program, may_write ? file : read_only, may_write ? NULL : file, NULL };

    if (access(file, F_OK) < 0)
        return aq_fail_errno(err, "open the database '%s'", file);
    return db_shell_become(program, "sqlite3", argv, err);
}

/* What the URI says for the server's settings, and ours. */
static void db_shell_add_read_only(char *uri, struct strbuf *out)
{
    AQ_CLEANUP(aq_freep) char *options = NULL, *all = NULL;

    uri_take_parameter(uri, "options", &options);
    all = options ? aq_format("%s " READ_ONLY, options) : aq_strdup(READ_ONLY);
    strbuf_addf(out, "%s%soptions=", uri, strchr(uri, '?') ? "&" : "?");
    url_encode(out, all);
}

/* Secrets leave the URI. */
static int db_shell_hide(char *uri, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *password = NULL, *key_password = NULL;

    uri_take_password(uri, &password);
    uri_take_parameter(uri, "sslpassword", &key_password);
    if (key_password)
        return aq_fail_field(err, EINVAL, "manager.database",
                             "psql could be given sslpassword only where others see it: put it "
                             "into a service file and name that by service=");
    if (password && setenv("PGPASSWORD", password, 1) < 0)
        return aq_fail_errno(err, "set PGPASSWORD");
    return 0;
}

static int db_shell_exec_psql(const char *where, bool may_write, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *uri = aq_strdup(where);
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    char program[] = "psql";
    int r = db_shell_hide(uri, err);

    if (r == 0 && may_write)
        strbuf_adds(&out, uri);
    else if (r == 0)
        db_shell_add_read_only(uri, &out);
    return r < 0 ? r
                 : db_shell_become(program, "postgresql-client",
                                   (char *[]){ program, out.data, NULL }, err);
}

int db_shell_exec(const struct manager_conf *conf, bool may_write, struct aq_error *err)
{
    AQ_CLEANUP(place_done) struct place place = place_find(conf->state_dir, conf->database);

    if (may_write)
        db_shell_warn();
    return store_is_server(place.where) ? db_shell_exec_psql(place.where, may_write, err)
                                        : db_shell_exec_sqlite(place.file, may_write, err);
}
