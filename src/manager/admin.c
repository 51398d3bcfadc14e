/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to the database while the manager is stopped. */
#include "manager/admin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "manager/backup/place.h"
#include "model/slot.h"
#include "store/fixture.h"
#include "store/info.h"
#include "store/move.h"

static int admin_open_store(const struct manager_conf *conf, struct store **ret,
                            struct aq_error *err)
{
    AQ_CLEANUP(place_done) struct place place = place_find(conf->state_dir, conf->database);

    return store_open(&(struct store_conf){ .path = place.where, .key_path = place.key }, ret, err);
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
    return fputs(out.data, stdout) < 0 || fflush(stdout) < 0 ? -EIO : 0;
}

int admin_init(const struct manager_conf *conf, const char *email, bool json, struct aq_error *err)
{
    AQ_CLEANUP(store_closep) struct store *store = NULL;
    struct admin_secrets secrets = { .password = "" };
    int r = admin_open_store(conf, &store, err);

    if (r < 0 || (r = store_init_admin(store, email, &secrets, err)) < 0)
        return r;
    r = admin_print_secrets(email, &secrets, json);
    explicit_bzero(&secrets, sizeof(secrets));
    return r < 0
               ? aq_fail(err, -r, "the secrets could not be written out; remove '%s' and try again",
                         conf->database ? conf->database : conf->state_dir)
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

/* ---- what it is ---- */

static void admin_print_info(const struct store_info *info, struct strbuf *out)
{
    char size[AMOUNT_TEXT_MAX], taken[CLOCK_ISO_MAX];

    strbuf_addf(out, "engine      %s\nwhere       %s\nsize        %s\n", info->engine, info->where,
                slot_amount_humanize(info->bytes, SLOT_BYTES, size));
    strbuf_addf(out, "schema      %s", info->schema[0] ? info->schema : "none");
    if (info->newer || info->older)
        strbuf_addf(out, ": %lld migrations %s", (long long)(info->newer + info->older),
                    info->newer ? "of a newer program" : "are to be made: db migrate");
    strbuf_addc(out, '\n');
    if (info->epoch)
        strbuf_addf(out, "manager     %s, since %s, epoch %lld\n", info->manager,
                    clock_format_utc(info->taken_usec, taken), (long long)info->epoch);
    for (const char *line = info->risks.len ? info->risks.data : ""; *line;) {
        size_t len = strcspn(line, "\n");

        strbuf_addf(out, "risk        %.*s\n", (int)len, line);
        line += len + (line[len] == '\n');
    }
    for (size_t i = 0; i < info->table_count; i++)
        strbuf_addf(out, "%-24s %12lld rows\n", info->tables[i].name,
                    (long long)info->tables[i].rows);
}

static void admin_print_info_json(const struct store_info *info, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "engine", info->engine);
    jsonw_member_str(&w, "where", info->where);
    jsonw_member_int(&w, "bytes", info->bytes);
    jsonw_member_str(&w, "schema", info->schema[0] ? info->schema : NULL);
    jsonw_member_int(&w, "migrations_unknown", info->newer);
    jsonw_member_int(&w, "migrations_missing", info->older);
    jsonw_member_str(&w, "manager", info->epoch ? info->manager : NULL);
    jsonw_member_int(&w, "epoch", info->epoch);
    jsonw_key(&w, "risks");
    jsonw_array_begin(&w);
    for (const char *line = info->risks.len ? info->risks.data : ""; *line;) {
        size_t len = strcspn(line, "\n");

        jsonw_strn(&w, line, len);
        line += len + (line[len] == '\n');
    }
    jsonw_array_end(&w);
    jsonw_key(&w, "rows");
    jsonw_object_begin(&w);
    for (size_t i = 0; i < info->table_count; i++)
        jsonw_member_int(&w, info->tables[i].name, info->tables[i].rows);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
    strbuf_addc(out, '\n');
}

int admin_db_info(const struct manager_conf *conf, bool json, struct aq_error *err)
{
    AQ_CLEANUP(place_done) struct place place = place_find(conf->state_dir, conf->database);
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    AQ_CLEANUP(store_info_done) struct store_info info = { .risks = STRBUF_INIT };
    int r = store_info_read(place.where, &info, err);

    if (r < 0)
        return r;
    if (json)
        admin_print_info_json(&info, &out);
    else
        admin_print_info(&info, &out);
    return fputs(out.data, stdout) < 0 ? aq_fail_errno(err, "write it out") : 0;
}

static int admin_vacuum(const struct manager_conf *conf, struct aq_error *err)
{
    AQ_CLEANUP(place_done) struct place place = place_find(conf->state_dir, conf->database);
    AQ_CLEANUP(store_info_done) struct store_info before = { .risks = STRBUF_INIT };
    AQ_CLEANUP(store_info_done) struct store_info after = { .risks = STRBUF_INIT };
    char was[AMOUNT_TEXT_MAX], is[AMOUNT_TEXT_MAX];
    int r = store_info_read(place.where, &before, err);

    if (r == 0)
        r = store_vacuum(&(struct store_conf){ .path = place.where, .key_path = place.key }, err);
    if (r == 0)
        r = store_info_read(place.where, &after, err);
    if (r == 0)
        (void)printf("%s before, %s now\n", slot_amount_humanize(before.bytes, SLOT_BYTES, was),
                     slot_amount_humanize(after.bytes, SLOT_BYTES, is));
    return r;
}

static int admin_mark_restored(const struct manager_conf *conf, struct aq_error *err)
{
    AQ_CLEANUP(place_done) struct place place = place_find(conf->state_dir, conf->database);
    AQ_CLEANUP(store_info_done) struct store_info info = { .risks = STRBUF_INIT };
    int r = store_info_read(place.where, &info, err);

    if (r == 0 && !info.schema[0])
        r = aq_fail(err, ENOENT, "'%s' has no cluster: restore it first", info.where);
    if (r == 0)
        r = store_mark_restored(place.where, place.key, clock_realtime_usec(), err);
    if (r == 0)
        (void)printf("start the manager: it starts no session, and keeps what is newer on agents, "
                     "until 'aliquot admin orphan ls' is worked through\n");
    return r;
}

/* ---- check, migrate, take-over ---- */

int admin_db(const struct manager_conf *conf, const char *verb, struct aq_error *err)
{
    AQ_CLEANUP(store_closep) struct store *store = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf findings = STRBUF_INIT;
    bool check = strcmp(verb, "check") == 0;
    int r;

    if (strcmp(verb, "vacuum") == 0)
        return admin_vacuum(conf, err);
    if (strcmp(verb, "take-over") == 0)
        return store_take_over(conf->database ? conf->database : conf->state_dir, err);
    if (strcmp(verb, "mark-restored") == 0)
        return admin_mark_restored(conf, err);
    if (!check && strcmp(verb, "migrate") != 0)
        return aq_fail_field(
            err, EINVAL, "db",
            "'%s' is not known: info, check, vacuum, shell, migrate, take-over or mark-restored",
            verb);
    if ((r = admin_open_store(conf, &store, err)) < 0)
        return r;
    if (check)
        r = store_call(store, admin_audit, &findings, err);
    if (r == 0)
        (void)printf(check ? "nothing found\n" : "the database is up to date\n");
    else if (r > 0)
        (void)fputs(findings.data, stdout);
    return r;
}

/* ---- another database ---- */

static void admin_show_move(void *data, const char *table, int64_t done, int64_t total)
{
    (void)data;
    (void)fprintf(stderr, "\r\033[K%3d %% %lld of %lld rows, %s",
                  total ? (int)(100 * done / total) : 100, (long long)done, (long long)total,
                  table);
    (void)fflush(stderr);
}

int admin_move(const struct manager_conf *conf, const char *to, bool dry_run, struct aq_error *err)
{
    AQ_CLEANUP(place_done) struct place place = place_find(conf->state_dir, conf->database);
    struct store_move move = { .to = to, .dry_run = dry_run };
    int r;

    move.from = place.where;
    move.key_path = place.key;
    if (isatty(STDERR_FILENO))
        move.report = admin_show_move;
    r = store_move(&move, err);
    if (move.report && !dry_run)
        (void)fputc('\n', stderr);
    if (r < 0)
        return r;
    if (dry_run)
        (void)printf("%lld rows would be copied; nothing was changed\n", (long long)move.rows);
    else
        (void)printf("%lld rows are copied and compared. '%s' stays as it is.\n"
                     "Now name the new one to the manager: database = \"%s\" in [manager] of "
                     "manager.toml\n",
                     (long long)move.rows, place.where, to);
    return 0;
}
