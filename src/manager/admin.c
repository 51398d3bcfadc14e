/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to the database while the manager is stopped. */
#include "manager/admin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "store/fixture.h"

static int admin_open_store(const char *state_dir, struct store **ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/aliquot.db", state_dir);
    const struct store_conf conf = { .path = path };

    return path ? store_open(&conf, ret, err) : aq_fail_oom(err);
}

static int admin_print_secrets(const char *email, const struct admin_secrets *s, bool json)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    if (json) {
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "email", email);
        jsonw_member_str(&w, "password", s->password);
        jsonw_member_str(&w, "access_key", s->access_key);
        jsonw_member_str(&w, "secret_key", s->secret_key);
        jsonw_object_end(&w);
        strbuf_addc(&out, '\n');
    } else {
        strbuf_addf(&out, "email       %s\npassword    %s\naccess key  %s\nsecret key  %s\n", email,
                    s->password, s->access_key, s->secret_key);
    }
    if (!strbuf_ok(&out))
        return -ENOMEM;
    return fputs(out.data, stdout) < 0 || fflush(stdout) < 0 ? -EIO : 0;
}

int admin_init(const char *state_dir, const char *email, bool json, struct aq_error *err)
{
    AQ_CLEANUP(store_closep) struct store *store = NULL;
    struct admin_secrets secrets = { .password = "" };
    int r = admin_open_store(state_dir, &store, err);

    if (r < 0 || (r = store_init_admin(store, email, &secrets, err)) < 0)
        return r;
    r = admin_print_secrets(email, &secrets, json);
    explicit_bzero(&secrets, sizeof(secrets));
    return r < 0 ? aq_fail(err, -r,
                           "the secrets could not be written out; remove '%s/aliquot.db' "
                           "and try again",
                           state_dir)
                 : 0;
}

static int admin_audit(struct store_tx *tx, void *data, struct aq_error *err)
{
    int file = store_audit_file(tx, data, err), ledger;

    if (file < 0)
        return file;
    ledger = store_audit_ledger(tx, data, err);
    return ledger < 0 ? ledger : file + ledger;
}

int admin_db(const char *state_dir, const char *verb, struct aq_error *err)
{
    AQ_CLEANUP(store_closep) struct store *store = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf findings = STRBUF_INIT;
    bool check = strcmp(verb, "check") == 0;
    int r;

    if (!check && strcmp(verb, "migrate") != 0)
        return aq_fail_field(err, EINVAL, "db", "'%s' is not known: migrate or check", verb);
    if ((r = admin_open_store(state_dir, &store, err)) < 0)
        return r;
    if (check)
        r = store_call(store, admin_audit, &findings, err);
    if (r == 0)
        (void)printf(check ? "nothing found\n" : "the database is up to date\n");
    else if (r > 0)
        (void)fputs(findings.data, stdout);
    return r;
}
