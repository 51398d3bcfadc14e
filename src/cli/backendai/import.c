/* SPDX-License-Identifier: Apache-2.0 */
/* "admin import-backendai" and "admin fixture populate": accounts of Backend.AI. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fs.h"
#include "base/utf8.h"
#include "cli/backendai/source.h"
#include "cli/request.h"
#include "cli/verbs.h"

#define PATH "/aliquot/v1/import/backendai"
#define NOTES_MAX 20 /* rows of which is said why they are not as they were */

struct backendai_opts {
    bool dry_run;
    const char *report;
};

static const struct column backendai_columns[] = {
    { "table", "TABLE", COLUMN_TEXT, COLUMN_IS_NAME },
    { "rows", "ROWS", COLUMN_NUMBER, 0 },
    { "taken", "TAKEN", COLUMN_NUMBER, 0 },
    { "changed", "CHANGED", COLUMN_NUMBER, 0 },
    { "exists", "EXIST", COLUMN_NUMBER, 0 },
    { "left", "LEFT", COLUMN_NUMBER, 0 },
    { "note", "NOTE", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    COLUMN_END,
};

/* ---- the request ---- */

/* "table 'users', line 7, email: ..." */
static void backendai_write_place(const struct source *source, const json_t *item, const char *part,
                                  const char *text, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    const char *name = output_text(item, part);

    strbuf_addf(&line, "table '%s', %s %lld%s%s: %s", output_text(item, "table"),
                source->is_rows ? "row" : "line",
                (long long)json_integer_value(json_object_get(item, "line")), *name ? ", " : "",
                name, text);
    utf8_write_printable(line.data, line.len, out);
}

static void backendai_describe(const void *data, const json_t *error, struct strbuf *out)
{
    backendai_write_place(data, error, "field", output_text(error, "msg"), out);
}

static int backendai_send(struct cli *cli, const struct source *source, bool is_fixture,
                          bool dry_run, json_t **ret, struct aq_error *err)
{
    json_auto_t *body = json_pack("{s:O, s:b, s:b}", "tables", source->tables, "plain_passwords",
                                  is_fixture, "dry_run", dry_run);
    int status, r = cli_send_rows(cli, PATH, body, backendai_describe, source, &status, ret, err);

    if (status == 0 && !dry_run)
        cli_hint(cli, "run it again: it says what exists by then; nothing is half done");
    return r;
}

/* ---- the report ---- */

/* Tables that the manager did not get, after those of its answer. */
static void backendai_add_left(const struct source *source, json_t *report)
{
    json_t *tables = json_object_get(report, "tables"), *left;
    const char *name;

    json_object_foreach(source->left, name, left) {
        json_t *rows = json_object_get(left, "rows");

        (void)json_array_append_new(tables,
                                    json_pack("{s:s, s:O, s:i, s:i, s:i, s:O, s:O}", "table", name,
                                              "rows", rows, "taken", 0, "changed", 0, "exists", 0,
                                              "left", rows, "note", json_object_get(left, "why")));
    }
    (void)json_object_update(report, source->kept);
}

static int backendai_write_file(const char *path, const json_t *report, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    output_json(report, &out);
    return fs_write_atomic(AT_FDCWD, path, out.data, out.len, 0600, err);
}

/* Why rows are not as they were. */
static void backendai_say_notes(const struct cli *cli, const struct source *source,
                                const json_t *report)
{
    const json_t *item;
    size_t i, count = 0;

    json_array_foreach(json_object_get(report, "items"), i, item) {
        AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
        const char *note = output_text(item, "note");

        if (!*note || count++ >= NOTES_MAX)
            continue;
        backendai_write_place(source, item, "name", note, &line);
        cli_note(cli, "%s: %s", output_text(item, "status"), line.data);
    }
    if (count > NOTES_MAX)
        cli_note(cli, "and %zu rows more: a file by --report has all", count - NOTES_MAX);
}

static int backendai_show(struct cli *cli, const struct source *source,
                          const struct backendai_opts *opts, const json_t *report,
                          struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    int r = opts->report ? backendai_write_file(opts->report, report, err) : 0;

    if (r == 0 && cli->output.format == OUTPUT_JSON)
        output_json(report, &out);
    else if (r == 0)
        r = output_list(&cli->output, backendai_columns, json_object_get(report, "tables"), &out,
                        err);
    if (r == 0)
        r = cli_print(&out, err);
    if (r < 0)
        return r;
    if (output_is_human(&cli->output))
        backendai_say_notes(cli, source, report);
    if (opts->dry_run)
        cli_note(cli, "nothing was changed; this is what would be done");
    if (opts->report)
        cli_note(cli, "the whole report is in %s", opts->report);
    return 0;
}

/* ---- the commands ---- */

static int backendai_read(struct source *source, const char *from, bool is_fixture,
                          struct aq_error *err)
{
    if (is_fixture)
        return source_read_fixture(source, from, err);
    if (strncmp(from, "postgresql:", 11) == 0 || strncmp(from, "postgres:", 9) == 0)
        return source_read_server(source, from, err);
    return source_read_dump(source, from, err);
}

static int backendai_run(struct cli *cli, const struct backendai_opts *opts, const char *from,
                         bool is_fixture, struct aq_error *err)
{
    AQ_CLEANUP(source_done) struct source source = { .tables = NULL };
    json_auto_t *report = NULL;
    int r;

    source_init(&source);
    if ((r = backendai_read(&source, from, is_fixture, err)) < 0)
        cli_hint(cli, "nothing was changed");
    if (r == 0)
        r = backendai_send(cli, &source, is_fixture, opts->dry_run, &report, err);
    if (r < 0)
        return r;
    backendai_add_left(&source, report);
    return backendai_show(cli, &source, opts, report, err);
}

static int backendai_run_import(struct cli *cli, void *data, int argc, char **argv,
                                struct aq_error *err)
{
    (void)argc;
    return backendai_run(cli, data, argv[0], false, err);
}

static int backendai_run_fixture(struct cli *cli, void *data, int argc, char **argv,
                                 struct aq_error *err)
{
    (void)argc;
    return backendai_run(cli, data, argv[0], true, err);
}

static const struct cli_opt backendai_options[] = {
    { 0, "dry-run", CLI_FLAG, offsetof(struct backendai_opts, dry_run), NULL,
      "change nothing, say what would be done" },
    { 0, "report", CLI_STR, offsetof(struct backendai_opts, report), "FILE",
      "write what became of every row to a file (0600), as JSON" },
    CLI_OPT_END,
};

const struct cli_verb verb_admin_import_backendai = {
    .name = "admin import-backendai",
    .args = "SOURCE",
    .summary = "Take over people and limits of a Backend.AI 22.03 cluster, all or nothing",
    .details =
        "SOURCE is a plain SQL dump of its database by pg_dump, '-' for standard input, or\n"
        "postgresql://USER@HOST/DATABASE, which is only read. Domains, projects, users with\n"
        "their passwords, keypairs with their secrets, policies, resource groups and who may use\n"
        "them, presets, aliases of images, dotfiles and bootstrap scripts are taken.\n"
        "\n"
        "Who and what exists already stays as it is, so the same source can be imported again.\n"
        "What has no place here is left, or changed, and said.",
    .examples = "aliquot admin import-backendai backend.sql --dry-run\n"
                "aliquot admin import-backendai backend.sql --report report.json",
    .opts = backendai_options,
    .opts_size = sizeof(struct backendai_opts),
    .min_args = 1,
    .max_args = 1,
    .run = backendai_run_import,
};

const struct cli_verb verb_admin_fixture_populate = {
    .name = "admin fixture populate",
    .args = "FILE",
    .summary = "Add the rows of a fixture of Backend.AI, all or nothing",
    .details =
        "FILE is JSON, {\"TABLE\": [{\"COLUMN\": VALUE, ...}, ...], ...}, with the tables that\n"
        "'admin import-backendai' takes; '-' is standard input. Passwords are as people\n"
        "type them, or hashes by bcrypt.\n"
        "\n"
        "Rows that exist already stay as they are.",
    .examples = "aliquot admin fixture populate example-keypairs.json --dry-run",
    .opts = backendai_options,
    .opts_size = sizeof(struct backendai_opts),
    .min_args = 1,
    .max_args = 1,
    .run = backendai_run_fixture,
};
