/* SPDX-License-Identifier: Apache-2.0 */
/* "session why": why a session waits, where it runs, or why it ended. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cli/client.h"
#include "cli/list.h"
#include "cli/output/prose.h"
#include "cli/session/array.h"
#include "cli/session/session.h"
#include "cli/verbs.h"
#include "model/idle.h"
#include "model/session.h"

#define WHY_AGENTS_MAX 8

static const struct column why_columns[] = {
    { "status", "STATUS", COLUMN_STATUS, COLUMN_IS_NAME },
    { "reason", "REASON", COLUMN_REASON, 0 },
    { "text", "TEXT", COLUMN_TEXT, COLUMN_IS_NESTED },
    { "explanation", "EXPLANATION", COLUMN_TEXT, COLUMN_IS_NESTED },
    COLUMN_END,
};

static const struct column array_why_columns[] = {
    { "status", "STATUS", COLUMN_STATUS, COLUMN_IS_NAME },
    { "session", "ELEMENT", COLUMN_TEXT, 0 },
    { "text", "TEXT", COLUMN_TEXT, COLUMN_IS_NESTED },
    { "explanation", "EXPLANATION", COLUMN_TEXT, COLUMN_IS_NESTED },
    COLUMN_END,
};

int session_print_text(struct cli *cli, const json_t *answer, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, local = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf shown = STRBUF_INIT;
    const struct column line = { "", "", COLUMN_TEXT, 0 };
    const char *text = json_string_value(json_object_get(answer, "text"));

    if (!text || !output_is_human(&cli->output) || cli->output.columns)
        return 0;
    prose_localize(text, cli->output.now_usec, &local);
    text = local.data;
    while (*text) {
        size_t len = strcspn(text, "\n");
        json_t *piece = json_stringn_nocheck(text, len);

        strbuf_adds(&out, len ? "  " : "");
        cell_write(&cli->output, &line, piece, &out);
        strbuf_addc(&out, '\n');
        json_decref(piece);
        text += len + (text[len] == '\n');
    }
    prose_wrap(out.data, cli->output.width, &shown);
    return cli_print(&shown, err);
}

/* Its time limit, and what is left of it; none without one. */
static int why_print_limit(struct cli *cli, const json_t *of, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf limit = STRBUF_INIT, out = STRBUF_INIT;
    const json_t *seconds = json_object_get(of, "timeout_sec");
    const char *ends_by = json_string_value(json_object_get(of, "ends_by"));
    json_t *text;
    int r;

    if (!json_is_number(seconds))
        return 0;
    cell_write_duration((int64_t)json_number_value(seconds), &limit);
    if (ends_by)
        strbuf_addf(&out, "Its time limit of %s ends at %s.", limit.data, ends_by);
    else
        strbuf_addf(&out, "Its time limit is %s from its start on.", limit.data);
    text = json_pack("{s:s}", "text", out.data);
    r = session_print_text(cli, text, err);
    json_decref(text);
    return r;
}

/* ---- what the manager says nothing of, as the session shows it ---- */

/* When idle checks end it. A warning says so itself, as the manager's text. */
static void why_write_idle(const json_t *session, struct strbuf *out)
{
    const json_t *idle = json_object_get(session, "idle");
    const char *ends_at = json_string_value(json_object_get(idle, "ends_at"));
    const char *extended = json_string_value(json_object_get(idle, "extended_until"));
    const char *until = json_string_value(json_object_get(idle, "exempt_until"));

    if (json_is_true(json_object_get(idle, "exempt")))
        strbuf_addf(out, "It is exempt from idle checks%s%s.\n", until ? " until " : "",
                    until ? until : "");
    else if (ends_at && strcmp(output_text(idle, "reason"), REASON_IDLE_LIFETIME) == 0)
        strbuf_addf(out, "It is ended at %s, the end of its lifetime.\n", ends_at);
    else if (extended)
        strbuf_addf(out, "It was extended: it is kept until %s.\n", extended);
    else if (ends_at)
        strbuf_addf(out, "If it stays unused, it is ended at %s (%s).\n", ends_at,
                    output_text(idle, "reason"));
}

static void why_write_agents(const json_t *agents, struct strbuf *out)
{
    const json_t *agent;
    size_t i;

    strbuf_adds(out, "It runs");
    json_array_foreach(agents, i, agent)
        if (i < WHY_AGENTS_MAX)
            strbuf_addf(out, "%s %s", i ? "," : " on", json_string_value(agent));
    strbuf_adds(out, json_array_size(agents) > WHY_AGENTS_MAX ? ", ...\n" : ".\n");
}

static void why_write_running(const json_t *session, struct strbuf *out)
{
    why_write_agents(json_object_get(session, "agents"), out);
    why_write_idle(session, out);
}

static void why_write_memory(const json_t *session, struct strbuf *out)
{
    static const struct output plain = { .format = OUTPUT_TABLE };
    static const struct column slots = { "mem", "MEM", COLUMN_SLOTS, 0 };
    json_t *memory = json_object_get(json_object_get(session, "requested_slots"), "mem");
    json_t *only = memory ? json_pack("{s:O}", "mem", memory) : NULL;

    if (!only)
        return;
    strbuf_adds(out, "It had ");
    cell_write(&plain, &slots, only, out);
    strbuf_adds(out, "; -r mem=AMOUNT asks for more.\n");
    json_decref(only);
}

static void why_write_end(const json_t *session, struct strbuf *out)
{
    const char *reason = json_string_value(json_object_get(session, "reason"));
    const char *name = json_string_value(json_object_get(session, "name"));
    const char *text = reason ? follow_end_text(reason) : NULL;
    const json_t *code = session_exit_code(session);
    int status = code ? (int)json_integer_value(code) & 255 : -1;

    if (text)
        strbuf_addf(out, "It was ended: %s.\n", text);
    else if (status >= 0)
        strbuf_addf(out, "Its program ended with exit status %d", status);
    if (!text && status > 128 && status <= 128 + SIGRTMAX)
        strbuf_addf(out, ", that of signal %d (%s)", status - 128, strsignal(status - 128));
    if (!text && status >= 0)
        strbuf_adds(out, ".\n");
    if (reason && strcmp(reason, REASON_OUT_OF_MEMORY) == 0)
        why_write_memory(session, out);
    if (status > 0 && name)
        strbuf_addf(out, "What it has printed: aliquot logs %s\n", name);
}

/* A line or two for users where the manager has no words; none if it is elsewhere by now. */
static int why_print_rest(struct cli *cli, const char *name, const json_t *answer,
                          struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const json_t *shown = json_object_get(answer, "status");
    enum session_status status = SESSION_PENDING;
    json_t *session = NULL, *text;
    int r = session_get(cli, name, &session, err);

    if (r < 0)
        return r;
    if (json_is_string(shown) && json_equal(shown, json_object_get(session, "status")))
        (void)session_status_parse(json_string_value(shown), &status);
    if (status == SESSION_RUNNING || status == SESSION_RUNNING_DEGRADED)
        why_write_running(session, &out);
    else if (session_is_terminal(status))
        why_write_end(session, &out);
    text = json_pack("{s:s}", "text", out.data);
    r = session_print_text(cli, text, err);
    if (r == 0 && !session_is_terminal(status))
        r = why_print_limit(cli, session, err);
    json_decref(text);
    json_decref(session);
    return r;
}

/* What the manager says, and the limit of a session that has not ended. */
static int why_print_text(struct cli *cli, const json_t *answer, struct aq_error *err)
{
    const char *name = json_string_value(json_object_get(answer, "status"));
    enum session_status status;
    int r = session_print_text(cli, answer, err);

    if (r < 0 || !name || session_status_parse(name, &status) < 0 || session_is_terminal(status))
        return r;
    return why_print_limit(cli, answer, err);
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
    if (r == -ENOENT) {
        strbuf_truncate(&path, 0);
        array_path(cli, &path, argv[0], "/why");
        if (record_show(cli, path.data, array_why_columns, NULL, &answer, NULL) == 0)
            r = 0;
    }
    if (r == 0 && json_is_string(json_object_get(answer, "text")))
        r = why_print_text(cli, answer, err);
    else if (r == 0 && output_is_human(&cli->output) && !cli->output.columns)
        r = why_print_rest(cli, argv[0], answer, err);
    json_decref(answer);
    return r < 0 ? session_wrap_error(err, argv[0]) : 0;
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
