/* SPDX-License-Identifier: Apache-2.0 */
/* The administrators' announcement: shown, set and cleared. */
#include "cli/announcement.h"

#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/list.h"
#include "cli/request.h"
#include "cli/verbs.h"

#define ANNOUNCEMENT_PATH "/manager/announcement"
#define ANNOUNCEMENT_FILE_MAX 4097 /* what the manager takes, and the end of the line */

static const char *announcement_text(const json_t *answer)
{
    const char *text = json_string_value(json_object_get(answer, "message"));

    return text && json_is_true(json_object_get(answer, "enabled")) ? text : "";
}

void announcement_note(struct cli *cli)
{
    json_auto_t *answer = NULL;

    if (output_is_human(&cli->output)
        && cli_call(cli, METHOD_GET, ANNOUNCEMENT_PATH, NULL, &answer, NULL) == 0
        && announcement_text(answer)[0])
        cli_note(cli, "Announcement: %s", announcement_text(answer));
}

static const struct column announcement_columns[] = {
    { "message", "MESSAGE", COLUMN_TEXT, COLUMN_IS_NAME },
    { "enabled", "ENABLED", COLUMN_BOOL, 0 },
    COLUMN_END,
};

static int announcement_show(struct cli *cli, void *data, int argc, char **argv,
                             struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_auto_t *answer = NULL;
    const char *text;
    int r = cli_call(cli, METHOD_GET, ANNOUNCEMENT_PATH, NULL, &answer, err);

    (void)data;
    (void)argc;
    (void)argv;
    if (r < 0)
        return r;
    if (!output_is_human(&cli->output))
        return record_print(cli, announcement_columns, answer, err);
    text = announcement_text(answer);
    if (!text[0]) {
        cli_note(cli, "there is no announcement");
        return 0;
    }
    utf8_write_printable(text, strlen(text), &out);
    strbuf_addc(&out, '\n');
    return cli_print(&out, err);
}

const struct cli_verb verb_announcement = {
    .name = "announcement",
    .args = "",
    .summary = "Show the administrators' announcement",
    .details =
        "'aliquot login' shows it, too, and so does a command that a frozen cluster refuses.",
    .examples = "aliquot announcement",
    .run = announcement_show,
};

/* ---- set, clear ---- */

struct announcement_opts {
    const char *file;
};

static const struct cli_opt set_opts[] = {
    { 'f', "file", CLI_STR, offsetof(struct announcement_opts, file), "FILE",
      "read it from there; - is standard input" },
    CLI_OPT_END,
};

/* 'text' NULL takes it away. */
static int announcement_send(struct cli *cli, const struct strbuf *text, struct aq_error *err)
{
    return cli_send(
        cli, METHOD_POST, ANNOUNCEMENT_PATH,
        text ? json_pack("{s:b, s:s%}", "enabled", true, "message", text->data, text->len)
             : json_pack("{s:b}", "enabled", false),
        "the text is not UTF-8", NULL, err);
}

static int announcement_set(struct cli *cli, void *data, int argc, char **argv,
                            struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *file = ((const struct announcement_opts *)data)->file;
    int r = 0;

    if (!argc == !file)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "%s",
                            argc ? "TEXT and --file are two texts"
                                 : "something is missing: TEXT, - or --file FILE");
    if (argc && strcmp(argv[0], "-") == 0)
        file = argv[0];
    if (file)
        r = cli_read_file(file, ANNOUNCEMENT_FILE_MAX, &text, err);
    else
        strbuf_adds(&text, argv[0]);
    if (r < 0)
        return r;
    while (text.len && strchr(" \t\r\n", text.data[text.len - 1]))
        strbuf_truncate(&text, text.len - 1);
    if (!text.len) {
        cli_hint(cli, "to clear the announcement: aliquot admin announcement clear");
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the text is empty");
    }
    return announcement_send(cli, &text, err);
}

const struct cli_verb verb_admin_announcement_set = {
    .name = "admin announcement set",
    .args = "[TEXT | -]",
    .summary = "Set the announcement, which everyone is shown until it is cleared",
    .details =
        "'-' reads the text from standard input; it has at most 4096 bytes and replaces the\n"
        "former one. 'aliquot announcement' shows it, and so do 'aliquot login' and\n"
        "Backend.AI's client.",
    .examples = "aliquot admin announcement set 'Maintenance at 18:00'\n"
                "aliquot admin announcement set --file motd.txt",
    .opts = set_opts,
    .opts_size = sizeof(struct announcement_opts),
    .max_args = 1,
    .run = announcement_set,
};

static int announcement_clear(struct cli *cli, void *data, int argc, char **argv,
                              struct aq_error *err)
{
    (void)data;
    (void)argc;
    (void)argv;
    return announcement_send(cli, NULL, err);
}

const struct cli_verb verb_admin_announcement_clear = {
    .name = "admin announcement clear",
    .args = "",
    .summary = "Clear the announcement",
    .examples = "aliquot admin announcement clear",
    .run = announcement_clear,
};
