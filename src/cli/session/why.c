/* SPDX-License-Identifier: Apache-2.0 */
/* "session why": why a session waits, where it runs, or why it ended. */
#include <string.h>

#include "cli/client.h"
#include "cli/list.h"
#include "cli/session/session.h"
#include "cli/verbs.h"

static const struct column why_columns[] = {
    { "status", "STATUS", COLUMN_STATUS, COLUMN_IS_NAME },
    { "reason", "REASON", COLUMN_TEXT, 0 },
    { "text", "TEXT", COLUMN_TEXT, COLUMN_IS_NESTED },
    { "explanation", "EXPLANATION", COLUMN_TEXT, COLUMN_IS_NESTED },
    COLUMN_END,
};

int session_print_text(struct cli *cli, const json_t *answer, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct column line = { "", "", COLUMN_TEXT, 0 };
    const char *text = json_string_value(json_object_get(answer, "text"));

    if (!text || !output_is_human(&cli->output) || cli->output.columns)
        return 0;
    while (*text) {
        size_t len = strcspn(text, "\n");
        json_t *piece = json_stringn_nocheck(text, len);

        strbuf_adds(&out, len ? "  " : "");
        cell_write(&cli->output, &line, piece, &out);
        strbuf_addc(&out, '\n');
        json_decref(piece);
        text += len + (text[len] == '\n');
    }
    return cli_print(&out, err);
}

struct why_opts {
    bool explain;
};

static const struct cli_opt why_opts[] = {
    { 0, "explain", CLI_FLAG, offsetof(struct why_opts, explain), NULL,
      "why it is where it is: the agents between which was chosen" },
    CLI_OPT_END,
};

static int why_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct why_opts *opts = data;
    json_t *answer = NULL;
    int r;

    (void)argc;
    if (opts->explain)
        return choices_show(cli, argv[0], err);
    session_path(cli, &path, argv[0], "/why");
    r = record_show(cli, path.data, why_columns, NULL, &answer, err);
    if (r == 0)
        r = session_print_text(cli, answer, err);
    json_decref(answer);
    return r < 0 ? aq_error_wrap(err, "session '%s'", argv[0]) : 0;
}

const struct cli_verb verb_session_why = {
    .name = "session why",
    .args = "SESSION",
    .summary = "Say why a session waits, where it runs, or why it ended",
    .details = "Which resource is short, on which agents and by how much; which policy; which\n"
               "session it waits for. Its place in the queue, and until when it starts, if\n"
               "the time limits of those before it say so.\n\n"
               "Of one that has started, --explain lists the best candidates as the scheduler\n"
               "saw them then: agents that were equal in one line, with what was free.",
    .examples = "aliquot session why train-3fa2b1\n"
                "aliquot session why --explain train-3fa2b1",
    .opts = why_opts,
    .opts_size = sizeof(struct why_opts),
    .min_args = 1,
    .max_args = 1,
    .run = why_run,
};
