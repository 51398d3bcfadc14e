/* SPDX-License-Identifier: Apache-2.0 */
/* session extend, session exempt: keep idle sessions running. */
#include <errno.h>

#include "base/clock.h"
#include "cli/output/prose.h"
#include "cli/request.h"
#include "cli/session/session.h"
#include "cli/verbs.h"

/* The request body: {"duration": TEXT}, or an empty object if 'duration' is NULL. */
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
    strbuf_addf(&line, "The session is kept until %s.",
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
    .summary = "Keep an unused session for a time",
    .details = "TIME, such as 2h, counts from now; the default is the session's idle timeout.\n"
               "An earlier extension that ends later stays in effect, and so does the limit on\n"
               "its lifetime.",
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

/* A date or a time from now as {"duration": SECONDS}; NULL with 'err' filled. */
static json_t *idle_body_until(const struct cli *cli, const char *text, struct aq_error *err)
{
    int64_t usec;

    if (clock_parse_duration(text, &usec) == 0 && usec > 0)
        return json_pack("{s:s}", "duration", text);
    if (clock_parse_local_date(text, &usec) < 0 || usec < cli->output.now_usec + USEC_PER_SEC) {
        (void)aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                           "--until: expected a future date or a duration such as 3d, not '%.60s'",
                           text);
        return NULL;
    }
    return json_pack("{s:I}", "duration",
                     (json_int_t)((usec - cli->output.now_usec) / USEC_PER_SEC));
}

static const struct cli_opt exempt_opts[] = {
    { 'u', "until", CLI_STR, offsetof(struct idle_exempt_opts, until), "TIME",
      "end of the exemption: a date or a time from now; default never" },
    { 0, "off", CLI_FLAG, offsetof(struct idle_exempt_opts, off), NULL, "remove the exemption" },
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
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--until and --off exclude each other");
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
    .summary = "Exempt a session from all idle checks (administrators)",
    .details = "It is not ended by its idle timeout, its lifetime or low utilization.",
    .examples = "aliquot session exempt --until 3d demo\n"
                "aliquot session exempt --off demo",
    .opts = exempt_opts,
    .opts_size = sizeof(struct idle_exempt_opts),
    .min_args = 1,
    .max_args = 1,
    .run = idle_exempt,
};
