/* SPDX-License-Identifier: Apache-2.0 */
/* How a new revision of a service takes over: options, and a picture of it. */
#include "cli/service/service_rollout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/output/table.h"
#include "cli/service/service.h"

#define BAR_WIDTH 30

/* ---- options ---- */

/* "2" as a number, "25%" as text. */
static int rollout_add_amount(const char *option, const char *text, const char *member,
                              json_t *body, struct aq_error *err)
{
    size_t digits = text ? strspn(text, "0123456789") : 0;

    if (!text)
        return 0;
    if (digits == 0 || digits > 6 || (text[digits] && strcmp(text + digits, "%") != 0))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "%s takes a number of replicas such as 2, or a percentage of them such "
                            "as 25%%, not '%.40s'",
                            option, text);
    return json_object_set_new(
        body, member, text[digits] ? json_string(text) : json_integer(strtoll(text, NULL, 10)));
}

static int rollout_add_steps(const char *text, json_t *body, struct aq_error *err)
{
    json_t *steps = json_array();
    const char *at = text;

    for (;;) {
        size_t digits = strspn(at, "0123456789");

        if (digits == 0 || digits > 3 || (at[digits] && at[digits] != ',')) {
            json_decref(steps);
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                "--steps takes percentages such as 5,25,50, not '%.60s'", text);
        }
        (void)json_array_append_new(steps, json_integer(strtoll(at, NULL, 10)));
        if (!at[digits])
            return json_object_set_new(body, "rollout.steps", steps);
        at += digits + 1;
    }
}

/* "0.05", or with 'may_be_percent' "5%". */
static int rollout_add_ratio(const char *option, const char *text, bool may_be_percent,
                             const char *member, json_t *abort, struct aq_error *err)
{
    char *end = NULL;
    double value = text ? strtod(text, &end) : 0;

    if (!text)
        return 0;
    if (may_be_percent && end != text && strcmp(end, "%") == 0) {
        value /= 100;
        end++;
    }
    if (end == text || *end || !(value >= 0 && value <= 1000))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "%s takes a number such as %s, not '%.40s'", option,
                            may_be_percent ? "0.05 or 5%" : "2", text);
    return json_object_set_new(abort, member, json_real(value));
}

int service_rollout_add(const struct service_rollout_opts *opts, json_t *body, struct aq_error *err)
{
    json_auto_t *abort = json_object();
    int r;

    if (opts->promote_manually && opts->promote_after.is_set)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--promote-manually and --promote-after exclude each other");
    if ((r = rollout_add_amount("--max-surge", opts->max_surge, "rollout.max_surge", body, err)) < 0
        || (r = rollout_add_amount("--max-unavailable", opts->max_unavailable,
                                   "rollout.max_unavailable", body, err))
               < 0
        || (opts->steps && (r = rollout_add_steps(opts->steps, body, err)) < 0)
        || (r = rollout_add_ratio("--abort-errors", opts->abort_errors, true, "error_ratio", abort,
                                  err))
               < 0
        || (r = rollout_add_ratio("--abort-latency", opts->abort_latency, false, "latency_ratio",
                                  abort, err))
               < 0)
        return r;
    if (opts->promote_after.is_set) {
        (void)json_object_set_new(body, "rollout.auto_promote", json_true());
        (void)json_object_set_new(body, "rollout.promote_delay",
                                  json_real((double)opts->promote_after.value / USEC_PER_SEC));
    } else if (opts->promote_manually) {
        (void)json_object_set_new(body, "rollout.auto_promote", json_false());
    }
    if (opts->abort_failures.is_set)
        (void)json_object_set_new(abort, "failures", json_integer(opts->abort_failures.value));
    if (opts->abort_stalled.is_set)
        (void)json_object_set_new(abort, "stalled",
                                  json_real((double)opts->abort_stalled.value / USEC_PER_SEC));
    if (json_object_size(abort))
        (void)json_object_set(body, "rollout.abort", abort);
    return 0;
}

/* ---- settings in words ---- */

static void rollout_add_word(const struct output *o, const struct column *kind, const json_t *value,
                             struct strbuf *out)
{
    bool is_zero = json_is_number(value) && !(json_number_value(value) > 0);

    if (!value || json_is_null(value) || is_zero
        || (json_is_array(value) && !json_array_size(value)))
        return;
    strbuf_addf(out, " %s=", kind->title);
    cell_write(o, kind, value, out);
}

json_t *service_rollout_text(const struct output *o, const json_t *service)
{
    static const struct column kinds[] = {
        { "max_surge", "max-surge", COLUMN_TEXT, 0 },
        { "max_unavailable", "max-unavailable", COLUMN_TEXT, 0 },
        { "step_interval", "step-interval", COLUMN_SPAN, 0 },
        { "keep", "keep", COLUMN_SPAN, 0 },
    };
    static const struct column abort_kinds[] = {
        { "failures", "abort-failures", COLUMN_NUMBER, 0 },
        { "error_ratio", "abort-errors", COLUMN_NUMBER, 0 },
        { "latency_ratio", "abort-latency", COLUMN_NUMBER, 0 },
        { "stalled", "abort-stalled", COLUMN_SPAN, 0 },
    };
    static const struct column delay = { "promote_delay", "promote-after", COLUMN_SPAN, 0 };
    const json_t *rollout = json_object_get(service, "rollout"), *step;
    const json_t *abort = json_object_get(rollout, "abort");
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    size_t i;

    if (!json_is_object(rollout))
        return json_null();
    strbuf_adds(&text, output_text(rollout, "strategy"));
    json_array_foreach(json_object_get(rollout, "steps"), i, step)
        strbuf_addf(&text, "%s%lld", i ? "," : " steps=", (long long)json_integer_value(step));
    for (i = 0; i < AQ_COUNT(kinds); i++)
        rollout_add_word(o, &kinds[i], json_object_get(rollout, kinds[i].key), &text);
    if (json_is_true(json_object_get(rollout, "auto_promote"))) {
        strbuf_addf(&text, " %s=", delay.title);
        cell_write(o, &delay, json_object_get(rollout, delay.key), &text);
    }
    strbuf_addf(&text, " when-full=%s", output_text(rollout, "when_full"));
    for (i = 0; i < AQ_COUNT(abort_kinds); i++)
        rollout_add_word(o, &abort_kinds[i], json_object_get(abort, abort_kinds[i].key), &text);
    return json_string(text.data);
}

/* ---- the picture ---- */

static const char *rollout_phase(const json_t *service)
{
    return output_text(json_object_get(json_object_get(service, "rollout"), "state"), "phase");
}

bool service_rollout_is_under_way(const json_t *service)
{
    const char *phase = rollout_phase(service);

    return strcmp(phase, "running") == 0 || strcmp(phase, "ready") == 0
           || strcmp(phase, "aborting") == 0;
}

bool service_has_rollout(const json_t *service)
{
    return service_rollout_is_under_way(service) || strcmp(rollout_phase(service), "aborted") == 0;
}

static json_int_t rollout_number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* One sentence about how far it is. */
static void rollout_write_title(const json_t *service, struct strbuf *out)
{
    const json_t *rollout = json_object_get(service, "rollout");
    const json_t *state = json_object_get(rollout, "state");
    const char *name = output_text(service, "name"), *phase = output_text(state, "phase");
    const char *strategy = output_text(rollout, "strategy");
    long long from = rollout_number(state, "from"), to = rollout_number(state, "to");

    if (strcmp(phase, "aborting") == 0)
        strbuf_addf(out, "rollout of %s aborted: going back from revision %lld to %lld\n", name,
                    from, to);
    else if (strcmp(phase, "aborted") == 0)
        strbuf_addf(out, "rollout of %s aborted: revision %lld serves, not %lld\n", name, to, from);
    else if (strcmp(phase, "done") == 0 && from == 0) /* its replicas were there already */
        strbuf_addf(out, "rollout of %s complete: revision %lld serves\n", name, to);
    else if (strcmp(phase, "done") == 0)
        strbuf_addf(out, "rollout of %s complete: revision %lld took the place of %lld\n", name, to,
                    from);
    else
        strbuf_addf(out, "%s rollout of %s: revision %lld takes the place of %lld\n", strategy,
                    name, to, from);
}

/* "step 2 of 4, goes on in 5 min" */
static void rollout_write_step(const struct output *o, const json_t *service, struct strbuf *out)
{
    const json_t *rollout = json_object_get(service, "rollout");
    const json_t *state = json_object_get(rollout, "state");
    const char *phase = output_text(state, "phase");
    bool is_promoted = json_is_true(json_object_get(state, "promoted"));
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    int64_t next_usec;

    if (!service_rollout_is_under_way(service))
        return;
    if (json_is_integer(json_object_get(state, "step")))
        strbuf_addf(&line, "step %lld of %lld", (long long)rollout_number(state, "step"),
                    (long long)rollout_number(state, "steps"));
    else if (is_promoted)
        strbuf_adds(&line, "promoted: the new replicas get all requests");
    else if (strcmp(phase, "ready") == 0)
        strbuf_adds(&line, "all new replicas are ready");
    if (clock_parse_date(output_text(state, "next_at"), &next_usec) == 0) {
        int64_t left_usec = AQ_MAX(next_usec - o->now_usec, 0);

        strbuf_addf(&line, is_promoted                   ? "; the old ones end in "
                           : strcmp(phase, "ready") == 0 ? "; promoted in "
                                                         : ", the next one in ");
        cell_write_duration(left_usec / USEC_PER_SEC, &line);
    } else if (strcmp(phase, "ready") == 0) {
        strbuf_addf(&line, "; 'aliquot service promote %s' gives them the requests",
                    output_text(service, "name"));
    }
    if (line.len)
        strbuf_addf(out, "%s\n", line.data);
}

/* "from  revision 3  [######....]  6 of 6 ready, 75 % of requests" */
static void rollout_write_side(const struct output *o, const json_t *service, bool is_new,
                               struct strbuf *out)
{
    const json_t *state = json_object_get(json_object_get(service, "rollout"), "state");
    const json_t *side = json_object_get(state, is_new ? "new" : "old");
    const json_t *percent = json_object_get(state, "percent");
    json_int_t wanted = rollout_number(json_object_get(service, "replicas"), "wanted");
    json_int_t all = AQ_MAX(wanted,
                            AQ_MAX(rollout_number(json_object_get(state, "old"), "replicas"),
                                   rollout_number(json_object_get(state, "new"), "replicas")));
    json_int_t replicas = rollout_number(side, "replicas"), ready = rollout_number(side, "ready");
    int width = (int)AQ_MIN(AQ_MAX(all, 1), BAR_WIDTH);
    /* The colour of ready replicas; those that start or drain are yellow. */
    const char *colour = !o->colour ? "" : is_new ? "\033[32m" : "\033[36m";
    const char *other = o->colour ? "\033[33m" : "", *end = o->colour ? TABLE_COLOUR_END : "";
    int full = (int)((ready * width + all - 1) / AQ_MAX(all, 1));
    int part = (int)((replicas * width + all - 1) / AQ_MAX(all, 1));

    strbuf_addf(out, "%-4s revision %-4lld [%s", is_new ? "to" : "from",
                (long long)rollout_number(state, is_new ? "to" : "from"), colour);
    for (int i = 0; i < width; i++) {
        if (i == full)
            strbuf_addf(out, "%s%s", end, other);
        strbuf_addc(out, i < full ? '#' : i < part ? '+' : '.');
    }
    strbuf_addf(out, "%s]  %lld of %lld ready", end, (long long)ready, (long long)replicas);
    if (json_is_integer(percent))
        strbuf_addf(
            out, ", %lld %% of requests",
            (long long)(is_new ? json_integer_value(percent) : 100 - json_integer_value(percent)));
    strbuf_addc(out, '\n');
}

void service_write_rollout(const struct output *o, const json_t *service, struct strbuf *out)
{
    const json_t *rollout = json_object_get(service, "rollout");
    const json_t *state = json_object_get(rollout, "state");
    const char *reason = output_text(state, "reason");

    if (!json_is_object(state)) {
        strbuf_addf(out, "%s has had no rollout; the next one is %s\n",
                    output_text(service, "name"), output_text(rollout, "strategy"));
        return;
    }
    rollout_write_title(service, out);
    rollout_write_step(o, service, out);
    if (rollout_number(state, "from"))
        rollout_write_side(o, service, false, out);
    rollout_write_side(o, service, true, out);
    if (*reason) {
        strbuf_adds(out, "last event: ");
        utf8_write_printable(reason, strlen(reason), out);
        strbuf_addc(out, '\n');
    }
}
