/* SPDX-License-Identifier: Apache-2.0 */
/* "admin import": many users from a table.
 *
 * Keypairs and passwords are made here and, with --keys, are on the disk before the request
 * is sent: an answer that is lost costs nobody their keys.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/csv.h"
#include "base/fs.h"
#include "base/utf8.h"
#include "cli/admin/user_csv.h"
#include "cli/list.h"
#include "cli/request.h"
#include "cli/verbs.h"

#define PATH "/aliquot/v1/users/import"
#define PASSWORD_LETTERS 20 /* of 32: 100 bits */

struct import_opts {
    const char *domain, *keys;
    bool dry_run;
};

/* clang-format off */
#define WHO                                                                                        \
    { "line", "LINE", COLUMN_NUMBER, 0 },                                                          \
    { "email", "E-MAIL", COLUMN_TEXT, COLUMN_IS_NAME },                                            \
    { "status", "STATUS", COLUMN_STATUS, 0 },                                                      \
    { "access_key", "ACCESS-KEY", COLUMN_TEXT, 0 }
/* clang-format on */

static const struct column import_columns[] = {
    WHO,
    { "secret_key", "SECRET-KEY", COLUMN_TEXT, 0 },
    { "password", "PASSWORD", COLUMN_TEXT, 0 },
    COLUMN_END,
};
static const struct column import_columns_without_secrets[] = { WHO, COLUMN_END };

/* ---- keys ---- */

/* 'count' of the letters, whose number is a power of two. */
static int import_make_text(char *ret, size_t count, const char *letters, struct aq_error *err)
{
    unsigned char bytes[64];
    size_t mask = strlen(letters) - 1;

    if (getrandom(bytes, count, 0) != (ssize_t)count)
        return aq_fail_errno(err, "no random numbers");
    for (size_t i = 0; i < count; i++)
        ret[i] = letters[bytes[i] & mask];
    ret[count] = '\0';
    explicit_bzero(bytes, sizeof(bytes));
    return 0;
}

static int import_add_keys(json_t *row, struct aq_error *err)
{
    static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char access[21] = "AKIA", secret[41], password[PASSWORD_LETTERS + 1];
    json_t *user = json_object_get(row, "user");
    bool has_password = json_object_get(user, "password");
    int r;

    if ((r = import_make_text(access + 4, 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", err)) < 0
        || (r = import_make_text(secret, 40, base64, err)) < 0
        || (r = import_make_text(password, PASSWORD_LETTERS, "abcdefghijkmnpqrstuvwxyz23456789",
                                 err))
               < 0)
        return r;
    (void)json_object_set_new(row, "access_key", json_string(access));
    (void)json_object_set_new(row, "secret_key", json_string(secret));
    if (!has_password)
        (void)json_object_set_new(user, "password", json_string(password));
    explicit_bzero(secret, sizeof(secret));
    explicit_bzero(password, sizeof(password));
    return 0;
}

static void import_write_field(const json_t *object, const char *member, char after,
                               struct strbuf *out)
{
    const char *text = output_text(object, member);

    csv_write_exact(text, strlen(text), out); /* keys are used as they are */
    strbuf_addc(out, after);
}

/* All rows, or with the manager's answer those that were created. */
static int import_write_keys(const char *path, const json_t *rows, const json_t *items,
                             struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const json_t *row;
    size_t i;
    int r;

    strbuf_adds(&out, "email,access_key,secret_key,password\n");
    json_array_foreach(rows, i, row) {
        const char *status = json_string_value(json_object_get(json_array_get(items, i), "status"));

        if (status && strcmp(status, "created") != 0)
            continue;
        import_write_field(json_object_get(row, "user"), "email", ',', &out);
        import_write_field(row, "access_key", ',', &out);
        import_write_field(row, "secret_key", ',', &out);
        import_write_field(json_object_get(row, "user"), "password", '\n', &out);
    }
    r = fs_write_atomic(AT_FDCWD, path, out.data, out.len, 0600, err);
    if (out.len)
        explicit_bzero(out.data, out.len);
    return r;
}

/* Nobody else's file is replaced. */
static int import_claim_keys(const char *path, struct aq_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 && errno == EEXIST)
        return aq_fail_field(err, EEXIST, "keys",
                             "'%s' exists; it may hold keys of an earlier import: give another "
                             "name",
                             path);
    if (fd < 0)
        return aq_fail_errno(err, "'%s' cannot be written", path);
    (void)close(fd);
    return 0;
}

/* ---- the file ---- */

static int import_read(const struct cli *cli, const char *path, const struct import_opts *opts,
                       json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, errors = STRBUF_INIT;
    const char *domain = opts->domain ? opts->domain : cli_config_get(&cli->config, SETTING_DOMAIN);
    bool is_input = strcmp(path, "-") == 0;
    size_t wrong = 0, i;
    json_t *row;
    int r = cli_read_file(path, USER_CSV_BYTES_MAX, &text, err);

    if (r == -EFBIG)
        return aq_fail(err, EINVAL, "%s has more than %d KiB; import it in several files", path,
                       USER_CSV_BYTES_MAX >> 10);
    if (r < 0)
        return r;
    r = user_csv_read(text.data, text.len, domain ? domain : "", ret, &errors, &wrong, err);
    explicit_bzero(text.data, text.len);
    if (r < 0)
        return aq_error_wrap(err, "%s", is_input ? "standard input" : path);
    if (wrong) {
        AQ_CLEANUP(strbuf_donep) struct strbuf clean = STRBUF_INIT;

        utf8_write_printable(errors.data, errors.len, &clean);
        fputs(clean.data, stderr);
        return aq_fail(err, EINVAL, "%s has %zu errors; nothing was imported", path, wrong);
    }
    json_array_foreach(*ret, i, row)
        if ((r = import_add_keys(row, err)) < 0)
            return r;
    return 0;
}

/* ---- the request ---- */

/* "line 7, email: ..." */
static void import_describe(const void *data, const json_t *error, struct strbuf *out)
{
    const char *field = output_text(error, "field"), *msg = output_text(error, "msg");

    (void)data;
    strbuf_addf(out, "line %lld%s", (long long)json_integer_value(json_object_get(error, "line")),
                *field ? ", " : "");
    user_csv_add_column_of(field, out);
    strbuf_adds(out, ": ");
    utf8_write_printable(msg, strlen(msg), out);
}

static int import_send(struct cli *cli, const json_t *rows, bool dry_run, json_t **ret,
                       bool *ret_is_refused, struct aq_error *err)
{
    json_auto_t *body = json_pack("{s:O, s:b}", "users", rows, "dry_run", dry_run);
    int status, r = cli_send_rows(cli, PATH, body, import_describe, NULL, &status, ret, err);

    *ret_is_refused = r < 0 && status && status != 200 && status < 500;
    return r;
}

static int import_show(struct cli *cli, const json_t *rows, const json_t *answer,
                       bool without_secrets, struct aq_error *err)
{
    json_t *items = json_object_get(answer, "items"), *item;
    size_t i;

    json_array_foreach(items, i, item) {
        const json_t *user = json_object_get(json_array_get(rows, i), "user");

        if (without_secrets)
            (void)json_object_del(item, "secret_key");
        else if (json_object_get(item, "secret_key"))
            (void)json_object_set(item, "password", json_object_get(user, "password"));
    }
    return list_print(cli, without_secrets ? import_columns_without_secrets : import_columns, items,
                      err);
}

static void import_say(const struct cli *cli, const json_t *answer, const char *keys, bool dry_run)
{
    json_int_t created = json_integer_value(json_object_get(answer, "created"));
    json_int_t existing = json_integer_value(json_object_get(answer, "existing"));

    cli_note(cli, "%lld users %s, %lld exist and stay as they are", (long long)created,
             dry_run ? "would be made" : "made", (long long)existing);
    if (keys && created)
        cli_note(cli, "their keys and passwords are in %s", keys);
}

/* After the answer: what is in the file of keys are keys that exist. */
static int import_keep_keys(const char *path, const json_t *rows, const json_t *answer,
                            struct aq_error *err)
{
    if (json_integer_value(json_object_get(answer, "created")) > 0)
        return import_write_keys(path, rows, json_object_get(answer, "items"), err);
    (void)unlink(path);
    return 0;
}

static int import_run_rows(struct cli *cli, const json_t *rows, const struct import_opts *opts,
                           struct aq_error *err)
{
    const char *keys = opts->dry_run ? NULL : opts->keys;
    bool is_refused = false;
    json_t *answer = NULL;
    int r = 0;

    if (keys && (r = import_claim_keys(keys, err)) < 0)
        return r;
    if (keys && (r = import_write_keys(keys, rows, NULL, err)) < 0)
        is_refused = true;
    if (r == 0)
        r = import_send(cli, rows, opts->dry_run, &answer, &is_refused, err);
    if (r < 0 && keys && is_refused)
        (void)unlink(keys);
    else if (r < 0 && !is_refused && !opts->dry_run)
        cli_hint(cli, "import the file again: it says who exists by then%s%s; nothing is half done",
                 keys ? ", and their keys are in " : " (give them keys by admin keypair create)",
                 keys ? keys : "");
    if (r == 0 && keys)
        r = import_keep_keys(keys, rows, answer, err);
    if (r == 0)
        r = import_show(cli, rows, answer, keys || opts->dry_run, err);
    if (r == 0)
        import_say(cli, answer, keys, opts->dry_run);
    json_decref(answer);
    return r;
}

static int import_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_t *rows = NULL;
    int r = import_read(cli, argv[0], data, &rows, err);

    (void)argc;
    if (r == 0)
        r = import_run_rows(cli, rows, data, err);
    json_decref(rows);
    return r;
}

static const struct cli_opt import_opts[] = {
    { 0, "domain", CLI_STR, offsetof(struct import_opts, domain), "DOMAIN",
      "of lines that name none; default: the configured one" },
    { 0, "dry-run", CLI_FLAG, offsetof(struct import_opts, dry_run), NULL,
      "change nothing, say what would be done" },
    { 0, "keys", CLI_STR, offsetof(struct import_opts, keys), "FILE",
      "write keys and passwords to a new file (0600), do not show them" },
    CLI_OPT_END,
};

const struct cli_verb verb_admin_import = {
    .name = "admin import",
    .args = "FILE",
    .summary = "Make users from a CSV file, each with a keypair",
    .details = "The first line names the columns: email, and perhaps username, full_name, domain,\n"
               "projects (a;b), role, status, policy (of the keypair), password. A password that\n"
               "is missing is made. FILE may be '-' for standard input.\n"
               "\n"
               "All users are made, or none if a line is wrong. Users who exist stay as they are,\n"
               "so the same file can be imported again.",
    .examples = "aliquot admin import users.csv --dry-run\n"
                "aliquot admin import users.csv --keys keys.csv",
    .opts = import_opts,
    .opts_size = sizeof(struct import_opts),
    .min_args = 1,
    .max_args = 1,
    .run = import_run,
};
