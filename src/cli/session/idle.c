/* SPDX-License-Identifier: Apache-2.0 */
/* session extend, session exempt: keep sessions that nobody uses. */
#include <errno.h>

#include "base/clock.h"
#include "cli/output/prose.h"
#include "cli/request.h"
#include "cli/session/session.h"
#include "cli/verbs.h"

/* {"duration": ...} as the manager reads it; without one an empty object. */
static json_t *idle_body(const char *duration)
{
    return duration ? json_pack("{s:s}", "duration", duration) : json_object();
}

static int idle_extend(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT, line = STRBUF_INIT;
    json_t *answer = NULL, *text;
    int r;

    (void)data;
    session_path(cli, &path, argv[0], "/extend");
    r = cli_send(cli, METHOD_POST, path.data, idle_body(argc > 1 ? argv[1] : NULL),
                 "the time is not UTF-8", &answer, err);
    if (r < 0)
        return session_wrap_error(err, argv[0]);
    strbuf_addf(&line, "It is kept until %s.",
                json_string_value(json_object_get(answer, "extended_until")));
    text = json_pack("{s:s}", "text", line.data);
    r = session_print_text(cli, text, err);
    json_decref(text);
    json_decref(answer);
    return r;
}

const struct cli_verb verb_session_extend = {
    .name = "session extend",
    .args = "SESSION [TIME]",
    .summary = "Keep a session for a time though nobody uses it",
    .details = "TIME, such as 2h, is from now on; without it the session is kept for as long as\n"
               "it may be unused. Its lifetime is not moved.",
    .examples = "aliquot session extend notebook\n"
                "aliquot session extend notebook 8h",
    .min_args = 1,
    .max_args = 2,
    .run = idle_extend,
};

struct idle_exempt_opts {
    const char *until;
    bool off;
};

/* A date, or so long from now on, as {"duration": SECONDS}; NULL with 'err'. */
static json_t *idle_body_until(const struct cli *cli, const char *text, struct aq_error *err)
{
    int64_t usec;

    if (clock_parse_duration(text, &usec) == 0 && usec > 0)
        return json_pack("{s:s}", "duration", text);
    if (clock_parse_local_date(text, &usec) < 0 || usec < cli->output.now_usec + USEC_PER_SEC) {
        (void)aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                           "--until: '%.60s' is neither a time to come, such as 2026-12-24T18:00, "
                           "nor a duration such as 3d",
                           text);
        return NULL;
    }
    return json_pack("{s:I}", "duration",
                     (json_int_t)((usec - cli->output.now_usec) / USEC_PER_SEC));
}

static const struct cli_opt exempt_opts[] = {
    { 'u', "until", CLI_STR, offsetof(struct idle_exempt_opts, until), "TIME",
      "a date, or so long from now on, instead of its end" },
    { 0, "off", CLI_FLAG, offsetof(struct idle_exempt_opts, off), NULL,
      "let idle checks end it again" },
    CLI_OPT_END,
};

static int idle_exempt(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct idle_exempt_opts *opts = data;
    json_t *body;
    int r;

    (void)argc;
    if (opts->off && opts->until)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "say --until or --off, not both");
    body = opts->off     ? json_pack("{s:b}", "off", 1)
           : opts->until ? idle_body_until(cli, opts->until, err)
                         : json_object();
    if (!body)
        return -EINVAL;
    session_path(cli, &path, argv[0], "/exempt");
    r = cli_send(cli, METHOD_POST, path.data, body, "the time is not UTF-8", NULL, err);
    return r < 0 ? session_wrap_error(err, argv[0]) : 0;
}

const struct cli_verb verb_session_exempt = {
    .name = "session exempt",
    .args = "SESSION",
    .summary = "Let no idle check end a session (administrators)",
    .details = "Neither its idle timeout nor its lifetime or low use ends it.",
    .examples = "aliquot session exempt --until 3d demo\n"
                "aliquot session exempt --off demo",
    .opts = exempt_opts,
    .opts_size = sizeof(struct idle_exempt_opts),
    .min_args = 1,
    .max_args = 1,
    .run = idle_exempt,
};
