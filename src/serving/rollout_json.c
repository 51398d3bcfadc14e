/* SPDX-License-Identifier: Apache-2.0 */
/* rollout_json.c - the strategy of rollouts and where one is, as JSON */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "base/strbuf.h"
#include "model/model_service.h"
#include "serving/json_member.h"
#include "serving/rollout.h"

#define ROLLOUT_SECONDS_MAX (30 * 86400)
#define ROLLOUT_COUNT_MAX INT64_C(1000000000)
#define ROLLOUT_TIME_MAX (INT64_C(1) << 60) /* usec */

static const char *const strategy_names[] = { "rolling", "blue-green", "canary", NULL };
static const char *const when_full_names[] = { "wait", "replace", "share", NULL };
static const char *const phase_names[] = { "none", "running", "ready", "aborting",
                                           "done", "aborted", NULL };

const char *rollout_strategy_name(enum rollout_strategy strategy)
{
    return strategy_names[strategy];
}

const char *rollout_phase_name(enum rollout_phase phase)
{
    return phase_names[phase];
}

/* The place of a choice in its list; *ret stays if the member is absent. */
static int rollout_read_choice(const struct json_member *at, const char *key,
                               const char *const *names, unsigned *ret)
{
    const char *name = NULL;
    int r = json_member_choice(at, key, names, &name);

    for (unsigned i = 0; r == 0 && name && names[i]; i++)
        if (names[i] == name)
            *ret = i;
    return r;
}

/* A number of replicas, or "25%". */
static int rollout_read_amount(const struct json_member *at, const char *key,
                               struct rollout_amount *ret)
{
    const json_t *value = json_object_get(at->object, key);
    const char *text = json_string_value(value);
    char *end;
    long percent;

    if (!text)
        return json_member_integer(at, key, 0, MODEL_SERVICE_REPLICAS_MAX, &ret->value);
    percent = strtol(text, &end, 10);
    if (end == text || strcmp(end, "%") != 0 || percent < 0 || percent > 100)
        return json_member_refuse(at, key,
                                  "expected a number of replicas or a percentage such as \"25%%\", "
                                  "got '%.40s'",
                                  text);
    *ret = (struct rollout_amount){ percent, true };
    return 0;
}

/* Percentages from 'steps', or in equal distances of 'step_weight'. */
static int rollout_read_steps(const struct json_member *at, struct rollout *ret)
{
    const json_t *list = json_object_get(at->object, "steps"), *item;
    int64_t weight = 20;
    size_t i;
    int r = json_member_integer(at, "step_weight", 5, 100, &weight);

    if (r < 0)
        return r;
    if (json_member_has(at, "steps")) {
        if (json_member_has(at, "step_weight"))
            return json_member_refuse(at, "step_weight", "is given beside 'steps'");
        if (!json_is_array(list) || json_array_size(list) > ROLLOUT_STEPS_MAX)
            return json_member_refuse(at, "steps", "expected a list of at most %d percentages",
                                      ROLLOUT_STEPS_MAX);
        json_array_foreach(list, i, item) {
            int64_t least = i ? ret->steps[i - 1] + 1 : 1;

            if (!json_is_integer(item) || json_integer_value(item) < least
                || json_integer_value(item) > 99) {
                AQ_CLEANUP(aq_freep) char *key = aq_format("steps[%zu]", i);
                AQ_CLEANUP(aq_freep) char *got = json_dump_text(item, JSON_ENCODE_ANY);

                return json_member_refuse(at, key,
                                          "expected percentages that grow, an integer from %" PRId64
                                          " to 99 here, got %.40s",
                                          least, got ? got : "");
            }
            ret->steps[ret->step_count++] = json_integer_value(item);
        }
        return 0;
    }
    for (int64_t percent = weight; percent < 100; percent += weight)
        ret->steps[ret->step_count++] = percent;
    return 0;
}

static int rollout_read_abort(const struct json_member *at, struct rollout *ret)
{
    static const char *const known[] = { "failures", "error_ratio", "latency_ratio",
                                         "requests", "stalled",     NULL };
    struct json_member abort;
    int r;

    if (!json_member_has(at, "abort"))
        return 0;
    abort = json_member_object(at, "abort");
    if ((r = json_member_check_keys(&abort, known)) < 0
        || (r = json_member_integer(&abort, "failures", 0, ROLLOUT_COUNT_MAX, &ret->failures)) < 0
        || (r = json_member_number(&abort, "error_ratio", 0, 1, &ret->error_ratio)) < 0
        || (r = json_member_number(&abort, "latency_ratio", 0, 1000, &ret->latency_ratio)) < 0
        || (r = json_member_integer(&abort, "requests", 1, ROLLOUT_COUNT_MAX, &ret->requests)) < 0)
        return r;
    if (ret->latency_ratio > 0 && ret->latency_ratio < 1) /* would abort for equal times */
        return json_member_refuse(&abort, "latency_ratio",
                                  "expected 0 or a factor from 1 to 1000, such as 2, got %.6g",
                                  ret->latency_ratio);
    return json_member_seconds(&abort, "stalled", ROLLOUT_SECONDS_MAX, &ret->stalled_usec);
}

/* Members that only one strategy has. */
static int rollout_check_strategy(const struct json_member *at, const struct rollout *rollout)
{
    static const struct {
        const char *key;
        enum rollout_strategy strategy;
    } members[] = {
        { "steps", ROLLOUT_CANARY },
        { "step_weight", ROLLOUT_CANARY },
        { "step_interval", ROLLOUT_CANARY },
        { "auto_promote", ROLLOUT_BLUE_GREEN },
        { "promote_delay", ROLLOUT_BLUE_GREEN },
        { "keep", ROLLOUT_BLUE_GREEN },
    };

    for (size_t i = 0; i < AQ_COUNT(members); i++)
        if (json_member_has(at, members[i].key) && members[i].strategy != rollout->strategy)
            return json_member_refuse(at, members[i].key, "is only for the strategy '%s'",
                                      strategy_names[members[i].strategy]);
    if (rollout->strategy == ROLLOUT_BLUE_GREEN
        && (json_member_has(at, "max_surge") || json_member_has(at, "max_unavailable")))
        return json_member_refuse(
            at, json_member_has(at, "max_surge") ? "max_surge" : "max_unavailable",
            "is not for the strategy 'blue-green'");
    if (rollout->max_surge.value == 0 && rollout->max_unavailable.value == 0)
        return json_member_refuse(at, "max_surge",
                                  "max_surge and max_unavailable must not both be 0");
    return 0;
}

static int rollout_read_state(const struct json_member *at, struct rollout_state *ret)
{
    static const char *const known[] = { "phase",    "from",    "to",       "target",
                                         "step",     "since",   "progress", "ready",
                                         "live",     "shared",  "failures", "failures_before",
                                         "promoted", "rolling", "reason",   NULL };
    struct json_member state;
    const char *reason = NULL;
    unsigned phase = ROLLOUT_NONE;
    int r;

    if (!json_member_has(at, "state"))
        return 0;
    state = json_member_object(at, "state");
    if ((r = json_member_check_keys(&state, known)) < 0
        || (r = rollout_read_choice(&state, "phase", phase_names, &phase)) < 0
        || (r = json_member_integer(&state, "from", 0, ROLLOUT_COUNT_MAX, &ret->from)) < 0
        || (r = json_member_integer(&state, "to", 0, ROLLOUT_COUNT_MAX, &ret->to)) < 0
        || (r = json_member_integer(&state, "target", 0, ROLLOUT_COUNT_MAX, &ret->target)) < 0
        || (r = json_member_integer(&state, "step", 0, ROLLOUT_STEPS_MAX, &ret->step)) < 0
        || (r = json_member_integer(&state, "since", 0, ROLLOUT_TIME_MAX, &ret->since_usec)) < 0
        || (r = json_member_integer(&state, "progress", 0, ROLLOUT_TIME_MAX, &ret->progress_usec))
               < 0
        || (r = json_member_integer(&state, "ready", 0, ROLLOUT_COUNT_MAX, &ret->ready)) < 0
        || (r = json_member_integer(&state, "live", 0, ROLLOUT_COUNT_MAX, &ret->live)) < 0
        || (r = json_member_integer(&state, "shared", 0, ROLLOUT_COUNT_MAX, &ret->shared)) < 0
        || (r = json_member_integer(&state, "failures", 0, ROLLOUT_COUNT_MAX, &ret->failures)) < 0
        || (r = json_member_integer(&state, "failures_before", 0, ROLLOUT_COUNT_MAX,
                                    &ret->failures_before))
               < 0
        || (r = json_member_flag(&state, "promoted", &ret->is_promoted)) < 0
        || (r = json_member_flag(&state, "rolling", &ret->is_rolling)) < 0
        || (r = json_member_text(&state, "reason", sizeof(ret->reason) - 1, &reason)) < 0)
        return r;
    ret->phase = (enum rollout_phase)phase;
    if (reason)
        (void)snprintf(ret->reason, sizeof(ret->reason), "%s", reason);
    return 0;
}

int rollout_parse(const char *text, size_t len, struct arena *arena, struct rollout *ret,
                  struct rollout_state *ret_state, struct aq_error *err)
{
    static const char *const known[] = {
        "strategy",    "max_surge",     "max_unavailable", "steps",
        "step_weight", "step_interval", "auto_promote",    "promote_delay",
        "keep",        "when_full",     "abort",           "state",
        NULL
    };
    struct rollout rollout = rollout_default();
    struct rollout_state state = { 0 };
    AQ_CLEANUP(json_member_donep) struct json_member_file file = { 0 };
    unsigned strategy = ROLLOUT_ROLLING, when_full = ROLLOUT_WAIT;
    struct json_member at;
    int r = json_member_load(&file, "rollout", text, len, ROLLOUT_BYTES_MAX, arena, &at, err);

    if (r < 0 || (r = json_member_check_keys(&at, known)) < 0
        || (r = rollout_read_choice(&at, "strategy", strategy_names, &strategy)) < 0
        || (r = rollout_read_choice(&at, "when_full", when_full_names, &when_full)) < 0
        || (r = rollout_read_amount(&at, "max_surge", &rollout.max_surge)) < 0
        || (r = rollout_read_amount(&at, "max_unavailable", &rollout.max_unavailable)) < 0)
        return r;
    rollout.strategy = (enum rollout_strategy)strategy;
    rollout.when_full = (enum rollout_when_full)when_full;
    if ((r = rollout_check_strategy(&at, &rollout)) < 0
        || (rollout.strategy == ROLLOUT_CANARY && (r = rollout_read_steps(&at, &rollout)) < 0)
        || (r = json_member_seconds(&at, "step_interval", ROLLOUT_SECONDS_MAX,
                                    &rollout.step_interval_usec))
               < 0
        || (r = json_member_flag(&at, "auto_promote", &rollout.promotes)) < 0
        || (r = json_member_seconds(&at, "promote_delay", ROLLOUT_SECONDS_MAX,
                                    &rollout.promote_delay_usec))
               < 0
        || (r = json_member_seconds(&at, "keep", ROLLOUT_SECONDS_MAX, &rollout.keep_usec)) < 0
        || (r = rollout_read_abort(&at, &rollout)) < 0 || (r = rollout_read_state(&at, &state)) < 0)
        return r;
    *ret = rollout;
    *ret_state = state;
    return 0;
}

/* ---- writing ---- */

static void rollout_write_amount(const char *key, struct rollout_amount amount, struct jsonw *w)
{
    char percent[32];

    (void)snprintf(percent, sizeof(percent), "%" PRId64 "%%", amount.value);
    if (amount.is_percent)
        jsonw_member_str(w, key, percent);
    else
        jsonw_member_int(w, key, amount.value);
}

static void rollout_write_seconds(const char *key, int64_t usec, struct jsonw *w)
{
    jsonw_key(w, key);
    if (usec % USEC_PER_SEC == 0)
        jsonw_int(w, usec / USEC_PER_SEC);
    else
        jsonw_double(w, (double)usec / USEC_PER_SEC);
}

static void rollout_write_strategy(const struct rollout *rollout, struct jsonw *w)
{
    jsonw_member_str(w, "strategy", strategy_names[rollout->strategy]);
    if (rollout->strategy != ROLLOUT_BLUE_GREEN) {
        rollout_write_amount("max_surge", rollout->max_surge, w);
        rollout_write_amount("max_unavailable", rollout->max_unavailable, w);
    } else {
        jsonw_member_bool(w, "auto_promote", rollout->promotes);
        rollout_write_seconds("promote_delay", rollout->promote_delay_usec, w);
        rollout_write_seconds("keep", rollout->keep_usec, w);
    }
    if (rollout->strategy == ROLLOUT_CANARY) {
        jsonw_key(w, "steps");
        jsonw_array_begin(w);
        for (size_t i = 0; i < rollout->step_count; i++)
            jsonw_int(w, rollout->steps[i]);
        jsonw_array_end(w);
        rollout_write_seconds("step_interval", rollout->step_interval_usec, w);
    }
}

static void rollout_write_state(const struct rollout_state *state, struct jsonw *w)
{
    jsonw_key(w, "state");
    jsonw_object_begin(w);
    jsonw_member_str(w, "phase", phase_names[state->phase]);
    jsonw_member_int(w, "from", state->from);
    jsonw_member_int(w, "to", state->to);
    jsonw_member_int(w, "target", state->target);
    jsonw_member_int(w, "step", state->step);
    jsonw_member_int(w, "since", state->since_usec);
    jsonw_member_int(w, "progress", state->progress_usec);
    jsonw_member_int(w, "ready", state->ready);
    jsonw_member_int(w, "live", state->live);
    jsonw_member_int(w, "shared", state->shared);
    jsonw_member_int(w, "failures", state->failures);
    jsonw_member_int(w, "failures_before", state->failures_before);
    jsonw_member_bool(w, "promoted", state->is_promoted);
    jsonw_member_bool(w, "rolling", state->is_rolling);
    if (state->reason[0])
        jsonw_member_str(w, "reason", state->reason);
    jsonw_object_end(w);
}

void rollout_write_settings(const struct rollout *rollout, struct jsonw *w)
{
    rollout_write_strategy(rollout, w);
    jsonw_member_str(w, "when_full", when_full_names[rollout->when_full]);
    jsonw_key(w, "abort");
    jsonw_object_begin(w);
    jsonw_member_int(w, "failures", rollout->failures);
    jsonw_key(w, "error_ratio");
    jsonw_double(w, rollout->error_ratio);
    jsonw_key(w, "latency_ratio");
    jsonw_double(w, rollout->latency_ratio);
    jsonw_member_int(w, "requests", rollout->requests);
    rollout_write_seconds("stalled", rollout->stalled_usec, w);
    jsonw_object_end(w);
}

void rollout_write(const struct rollout *rollout, const struct rollout_state *state,
                   struct jsonw *w)
{
    jsonw_object_begin(w);
    rollout_write_settings(rollout, w);
    if (state)
        rollout_write_state(state, w);
    jsonw_object_end(w);
}
