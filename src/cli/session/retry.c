/* SPDX-License-Identifier: Apache-2.0 */
/* session retry: queue sessions that have ended again, as new ones. */
#include <errno.h>
#include <string.h>

#include "cli/list.h"
#include "cli/request.h"
#include "cli/session/session.h"
#include "cli/verbs.h"

struct retry_opts {
    const char *name, *image;
    struct cli_list resources;
    bool with_suggested, no_input;
};

static const struct cli_opt retry_opts[] = {
    { 's', "with-suggested", CLI_FLAG, offsetof(struct retry_opts, with_suggested), NULL,
      "request the suggested amounts of its summary", "with_suggested" },
    { 'r', "resource", CLI_LIST, offsetof(struct retry_opts, resources), "SLOT=AMOUNT",
      "another amount per kernel, such as mem=4g; repeatable", "resources" },
    { 0, "image", CLI_STR, offsetof(struct retry_opts, image), "IMAGE", "what it runs in",
      "image" },
    { 0, "name", CLI_STR, offsetof(struct retry_opts, name), "NAME",
      "name of the new session; default: that of the ended one", "name" },
    { 0, "no-input", CLI_FLAG, offsetof(struct retry_opts, no_input), NULL,
      "with an empty standard input, if it read that of its client", "no_input" },
    CLI_OPT_END,
};

static const struct column retry_columns[] = {
    { "sessionId", "ID", COLUMN_TEXT, 0 },
    { "sessionName", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "status", "STATUS", COLUMN_STATUS, 0 },
    { "retry_of", "RETRY-OF", COLUMN_TEXT, 0 },
    { "not_repeated", "NOT-REPEATED", COLUMN_NAMES, COLUMN_IS_EXTRA },
    COLUMN_END,
};

/* A session that waited for others that have ended, for example, does not wait again. */
static void retry_note_left_out(const struct cli *cli, const json_t *created)
{
    static const struct {
        const char *word, *text;
    } notes[] = {
        { "dependencies", "it does not wait again for sessions that have ended" },
        { "array", "it is a session of its own and no longer an element of the array" },
        { "input", "its standard input is empty" },
    };
    const json_t *list = json_object_get(created, "not_repeated"), *word;
    size_t i;

    json_array_foreach(list, i, word)
        for (size_t k = 0; k < AQ_COUNT(notes); k++)
            if (json_string_value(word) && strcmp(json_string_value(word), notes[k].word) == 0)
                cli_note(cli, "session '%s': %s",
                         json_string_value(json_object_get(created, "sessionName")), notes[k].text);
}

static int retry_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct retry_opts *opts = data;
    json_auto_t *body = json_object(), *all = json_array();
    int r, printed;

    if (opts->name && argc > 1)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--name is for one session, and %d were given", argc);
    r = cli_options_add(retry_opts, opts, body, err);
    for (int i = 0; r == 0 && i < argc; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
        json_t *created = NULL;

        session_path(cli, &path, argv[i], "/retry");
        r = cli_call_once(cli, path.data, body, &created, err);
        if (r < 0)
            r = session_fail(cli, argv[i], err);
        else if (json_array_append_new(all, created) == 0 && output_is_human(&cli->output))
            retry_note_left_out(cli, created);
    }
    if (r < 0 && !json_array_size(all))
        return r;
    printed = list_print(cli, retry_columns, all, r < 0 ? NULL : err);
    return r < 0 ? r : printed;
}

const struct cli_verb verb_session_retry = {
    .name = "session retry",
    .args = "SESSION...",
    .summary = "Queue ended batch sessions again, as new ones",
    .details = "A new session has the image, command, environment, folders and options of the\n"
               "ended one, within your rights and limits as they are now. It records which one\n"
               "it repeats. NAME[INDEX] repeats an element of an array; the last example repeats\n"
               "the elements of the array 'sweep' that failed.",
    .examples = "aliquot session retry train-3fa2b1\n"
                "aliquot session retry --with-suggested train-3fa2b1\n"
                "aliquot session retry -r mem=8g train-3fa2b1\n"
                "aliquot session retry -r mem=8g $(aliquot ps sweep -q --filter result=failure)",
    .opts = retry_opts,
    .opts_size = sizeof(struct retry_opts),
    .min_args = 1,
    .max_args = -1,
    .run = retry_run,
};
