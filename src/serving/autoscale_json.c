/* SPDX-License-Identifier: Apache-2.0 */
/* autoscale_json.c - rules of autoscaling as JSON */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "model/model_service.h"
#include "serving/autoscale.h"
#include "serving/json_member.h"

#define SCALING_TEXT_MAX 4096 /* bytes of a query */
#define SCALING_NAME_MAX 256
#define SCALING_PATH_MAX 256
#define SCALING_SECONDS_MAX 86400
#define SCALING_VALUE_MAX 1e15
#define SCALING_FILL_IN_FLIGHT 0.95 /* a slot is left for what comes while a replica starts */
#define SCALING_MICRO 1000000

static const char *const signal_names[AUTOSCALE_SIGNAL_COUNT] = {
    [AUTOSCALE_IN_FLIGHT] = "in_flight", [AUTOSCALE_RATE] = "rate",
    [AUTOSCALE_LATENCY] = "latency",     [AUTOSCALE_USE] = "use",
    [AUTOSCALE_METRIC] = "metric",       [AUTOSCALE_PROMETHEUS] = "prometheus",
};

static int autoscale_read_signal(const struct json_member *at, struct autoscale_rule *ret)
{
    const char *name = NULL;
    int r = json_member_text(at, "signal", SCALING_NAME_MAX, &name);

    if (r < 0)
        return r;
    for (size_t i = 0; name && i < AQ_COUNT(signal_names); i++)
        if (strcmp(name, signal_names[i]) == 0) {
            ret->signal = (enum autoscale_signal)i;
            return 0;
        }
    return json_member_refuse(at, "signal",
                              "expected in_flight, rate, latency, use, metric or prometheus, got "
                              "'%.40s'",
                              name ? name : "");
}

/* The page with the metrics of a model's server. */
static int autoscale_read_page(const struct json_member *at, struct autoscale_rule *ret)
{
    bool has_page = ret->source && strcmp(ret->source, "inference_framework") == 0;
    int r;

    if (!has_page && (json_member_has(at, "path") || json_member_has(at, "port")))
        return json_member_refuse(at, json_member_has(at, "path") ? "path" : "port",
                                  "is only for metrics of the source 'inference_framework'");
    if ((r = json_member_text(at, "path", SCALING_PATH_MAX, &ret->path)) < 0
        || (r = json_member_integer(at, "port", 1, UINT16_MAX, &ret->port)) < 0)
        return r;
    for (const char *c = ret->path; c && *c; c++)
        if (ret->path[0] != '/' || *c <= ' ' || *c > '~')
            return json_member_refuse(at, "path",
                                      "'%.60s' is not the path of a URL: begin with '/', and write "
                                      "blanks and characters beyond ASCII as %%XX",
                                      ret->path);
    return 0;
}

/* The members that say what is measured. */
static int autoscale_read_source(const struct json_member *at, struct autoscale_rule *ret)
{
    static const char *const pers[] = { "service", "replica", NULL };
    static const char *const sources[] = { "kernel", "inference_framework", NULL };
    const char *per = NULL;
    int r;

    if ((r = json_member_choice(at, "per", pers, &per)) < 0
        || (r = json_member_choice(at, "source", sources, &ret->source)) < 0
        || (r = json_member_text(at, "name", SCALING_NAME_MAX, &ret->name)) < 0
        || (r = json_member_text(at, "query", SCALING_TEXT_MAX, &ret->query)) < 0)
        return r;
    if ((ret->signal == AUTOSCALE_METRIC) != (ret->name != NULL))
        return json_member_refuse(at, "name",
                                  ret->name ? "is only for the signal 'metric'"
                                            : "is missing; give the metric's name");
    if (ret->source && ret->signal != AUTOSCALE_METRIC)
        return json_member_refuse(at, "source", "is only for the signal 'metric'");
    if ((ret->signal == AUTOSCALE_PROMETHEUS) != (ret->query != NULL))
        return json_member_refuse(at, "query",
                                  ret->query ? "is only for the signal 'prometheus'"
                                             : "is missing; give a query in PromQL");
    if (per && ret->signal != AUTOSCALE_PROMETHEUS)
        return json_member_refuse(at, "per", "is only for the signal 'prometheus'");
    if (ret->signal == AUTOSCALE_METRIC && !ret->source)
        ret->source = sources[1];
    if ((r = autoscale_read_page(at, ret)) < 0)
        return r;
    ret->is_mean = ret->signal == AUTOSCALE_LATENCY || ret->signal == AUTOSCALE_USE
                   || ret->signal == AUTOSCALE_METRIC || (per && strcmp(per, "replica") == 0);
    return 0;
}

static int autoscale_read_target(const struct json_member *at, struct autoscale_rule *ret)
{
    int r;

    ret->fill = ret->signal == AUTOSCALE_IN_FLIGHT ? SCALING_FILL_IN_FLIGHT : 1;
    if ((r = json_member_number(at, "target", 1e-6, SCALING_VALUE_MAX, &ret->target)) < 0)
        return r;
    if (ret->signal == AUTOSCALE_USE && ret->target > 1)
        return json_member_refuse(
            at, "target", "expected a part of the GPU share from 0 to 1, got %.6g", ret->target);
    return json_member_number(at, "fill", 0.01, 1, &ret->fill);
}

/* Clients of Backend.AI send the comparator in upper or lower case, and the step of either sign. */
static int autoscale_read_comparison(const struct json_member *at, struct autoscale_rule *ret)
{
    static const char *const comparators[] = { "less_than", "less_than_or_equal", "greater_than",
                                               "greater_than_or_equal", NULL };
    const char *comparator = NULL;
    double threshold = NAN;
    int64_t step = 0;
    int r;

    if ((r = json_member_choice(at, "comparator", comparators, &comparator)) < 0
        || (r = json_member_number(at, "threshold", -SCALING_VALUE_MAX, SCALING_VALUE_MAX,
                                   &threshold))
               < 0
        || (r = json_member_integer(at, "step", -MODEL_SERVICE_REPLICAS_MAX,
                                    MODEL_SERVICE_REPLICAS_MAX, &step))
               < 0)
        return r;
    if (!comparator)
        return json_member_refuse(at, "comparator", "is missing beside 'threshold'");
    if (isnan(threshold))
        return json_member_refuse(at, "threshold", "is missing beside 'comparator'");
    if (step == 0)
        return json_member_refuse(at, "step",
                                  "is missing or 0; expected a number of replicas, "
                                  "negative for fewer");
    ret->is_inclusive = strstr(comparator, "_or_equal") != NULL;
    if (*comparator == 'g') {
        ret->above = threshold;
        ret->above_step = step;
    } else {
        ret->below = threshold;
        ret->below_step = step;
    }
    return 0;
}

static int autoscale_read_thresholds(const struct json_member *at, struct autoscale_rule *ret)
{
    int64_t step = 1;
    int r;

    if ((r = json_member_number(at, "max_threshold", -SCALING_VALUE_MAX, SCALING_VALUE_MAX,
                                &ret->above))
            < 0
        || (r = json_member_number(at, "min_threshold", -SCALING_VALUE_MAX, SCALING_VALUE_MAX,
                                   &ret->below))
               < 0
        || (r = json_member_integer(at, "step", 1, MODEL_SERVICE_REPLICAS_MAX, &step)) < 0)
        return r;
    if (ret->below > ret->above)
        return json_member_refuse(at, "min_threshold", "%.6g is above the max_threshold of %.6g",
                                  ret->below, ret->above);
    ret->above_step = step;
    ret->below_step = -step;
    return 0;
}

static int autoscale_read_step(const struct json_member *at, struct autoscale_rule *ret)
{
    int r = json_member_has(at, "comparator") || json_member_has(at, "threshold")
                ? autoscale_read_comparison(at, ret)
                : autoscale_read_thresholds(at, ret);

    if (r < 0
        || (r = json_member_seconds(at, "cooldown", SCALING_SECONDS_MAX, &ret->cooldown_usec)) < 0
        || (r = json_member_integer(at, "min_replicas", 0, MODEL_SERVICE_REPLICAS_MAX,
                                    &ret->replicas_min))
               < 0
        || (r = json_member_integer(at, "max_replicas", 0, MODEL_SERVICE_REPLICAS_MAX,
                                    &ret->replicas_max))
               < 0)
        return r;
    if (ret->replicas_max >= 0 && ret->replicas_min > ret->replicas_max)
        return json_member_refuse(at, "min_replicas",
                                  "%" PRId64 " is more than the max_replicas of %" PRId64,
                                  ret->replicas_min, ret->replicas_max);
    return 0;
}

static int autoscale_read_rule(const struct json_member *at, struct autoscale_rule *ret)
{
    static const char *const targets[] = { "id",   "signal", "per",    "source", "name", "path",
                                           "port", "query",  "target", "fill",   NULL };
    static const char *const steps[] = { "id",
                                         "signal",
                                         "per",
                                         "source",
                                         "name",
                                         "path",
                                         "port",
                                         "query",
                                         "comparator",
                                         "threshold",
                                         "step",
                                         "min_threshold",
                                         "max_threshold",
                                         "cooldown",
                                         "min_replicas",
                                         "max_replicas",
                                         NULL };
    static const char *const compared[] = { "id",           "signal",       "per",  "source",
                                            "name",         "path",         "port", "query",
                                            "comparator",   "threshold",    "step", "cooldown",
                                            "min_replicas", "max_replicas", NULL };
    bool is_compared = json_member_has(at, "comparator") || json_member_has(at, "threshold");
    int r;

    *ret = (struct autoscale_rule){ .above = NAN,
                                    .below = NAN,
                                    .replicas_min = -1,
                                    .replicas_max = -1,
                                    .cooldown_usec = AUTOSCALE_COOLDOWN_USEC };
    ret->is_step = is_compared || json_member_has(at, "min_threshold")
                   || json_member_has(at, "max_threshold");
    if ((r = json_member_check_keys(at, !ret->is_step ? targets
                                        : is_compared ? compared
                                                      : steps))
            < 0
        || (r = autoscale_read_signal(at, ret)) < 0
        || (r = json_member_text(at, "id", SCALING_NAME_MAX, &ret->id)) < 0
        || (r = autoscale_read_source(at, ret)) < 0)
        return r;
    if (!ret->is_step && !json_member_has(at, "target"))
        return json_member_refuse(at, "target",
                                  "is missing; give a target for one replica, or "
                                  "thresholds of a step");
    return ret->is_step ? autoscale_read_step(at, ret) : autoscale_read_target(at, ret);
}

static int autoscale_read_rules(const struct json_member *at, struct autoscale *ret)
{
    const json_t *list = json_object_get(at->object, "rules");
    size_t count = json_array_size(list);

    if (list && !json_is_array(list))
        return json_member_refuse(at, "rules", "expected a list");
    if (count > AUTOSCALE_RULES_MAX)
        return json_member_refuse(at, "rules", "expected at most %d rules, got %zu",
                                  AUTOSCALE_RULES_MAX, count);
    ret->rules = arena_array(at->arena, count + 1, sizeof(*ret->rules));
    for (size_t i = 0; i < count; i++) {
        struct json_member rule = json_member_item(at, "rules", i);
        int r = autoscale_read_rule(&rule, &ret->rules[ret->rule_count++]);

        if (r < 0)
            return r;
        if (ret->rules[i].is_step != ret->rules[0].is_step)
            return json_member_refuse(&rule, NULL,
                                      "a service has rules with targets or with steps, not both");
    }
    return 0;
}

static int autoscale_read_share(const struct json_member *at, struct autoscale *ret)
{
    static const char *const known[] = { "min", "max", "quantum", NULL };
    double min = 0, max = 0, quantum = 0.05;
    struct json_member share;
    int r;

    if (!json_member_has(at, "share"))
        return 0;
    share = json_member_object(at, "share");
    if ((r = json_member_check_keys(&share, known)) < 0
        || (r = json_member_number(&share, "min", 1e-6, 1e6, &min)) < 0
        || (r = json_member_number(&share, "max", 1e-6, 1e6, &max)) < 0
        || (r = json_member_number(&share, "quantum", 1e-6, 1e6, &quantum)) < 0)
        return r;
    if (min <= 0 || max <= 0)
        return json_member_refuse(&share, min <= 0 ? "min" : "max", "is missing");
    if (min > max)
        return json_member_refuse(&share, "min", "%.6g is more than the max of %.6g", min, max);
    if (ret->rule_count && ret->rules[0].is_step)
        return json_member_refuse(at, "share", "needs rules with targets; steps are of replicas");
    ret->share_min_micro = llround(min * SCALING_MICRO);
    ret->share_max_micro = llround(max * SCALING_MICRO);
    ret->share_quantum_micro = llround(quantum * SCALING_MICRO);
    return 0;
}

int autoscale_parse(const char *text, size_t len, struct arena *arena, struct autoscale *ret,
                    struct aq_error *err)
{
    static const char *const known[] = { "window", "idle", "share", "rules", NULL };
    struct autoscale a = { .window_usec = AUTOSCALE_WINDOW_USEC, .idle_usec = AUTOSCALE_IDLE_USEC };
    AQ_CLEANUP(json_member_donep) struct json_member_file file = { 0 };
    struct json_member at;
    int r = json_member_load(&file, "scaling", text, len, AUTOSCALE_BYTES_MAX, arena, &at, err);

    if (r < 0 || (r = json_member_check_keys(&at, known)) < 0
        || (r = json_member_seconds(&at, "window", SCALING_SECONDS_MAX, &a.window_usec)) < 0
        || (r = json_member_seconds(&at, "idle", 365 * SCALING_SECONDS_MAX, &a.idle_usec)) < 0
        || (r = autoscale_read_rules(&at, &a)) < 0 || (r = autoscale_read_share(&at, &a)) < 0)
        return r;
    *ret = a;
    return 0;
}

/* ---- writing ---- */

static void autoscale_write_number(struct jsonw *w, const char *key, double value)
{
    if (isnan(value))
        return;
    jsonw_key(w, key);
    jsonw_double(w, value);
}

static void autoscale_write_text(struct jsonw *w, const char *key, const char *text)
{
    if (text)
        jsonw_member_str(w, key, text);
}

static void autoscale_write_seconds(struct jsonw *w, const char *key, int64_t usec)
{
    if (usec % USEC_PER_SEC == 0)
        jsonw_member_int(w, key, usec / USEC_PER_SEC);
    else
        autoscale_write_number(w, key, (double)usec / USEC_PER_SEC);
}

static void autoscale_write_step(const struct autoscale_rule *rule, struct jsonw *w)
{
    bool is_both = !isnan(rule->above) && !isnan(rule->below);

    if (is_both) {
        autoscale_write_number(w, "min_threshold", rule->below);
        autoscale_write_number(w, "max_threshold", rule->above);
        jsonw_member_int(w, "step", rule->above_step);
    } else {
        AQ_CLEANUP(aq_freep) char *comparator = aq_format(
            "%s%s", isnan(rule->above) ? "less_than" : "greater_than",
            rule->is_inclusive ? "_or_equal" : "");

        jsonw_member_str(w, "comparator", comparator);
        autoscale_write_number(w, "threshold", isnan(rule->above) ? rule->below : rule->above);
        jsonw_member_int(w, "step", isnan(rule->above) ? rule->below_step : rule->above_step);
    }
    autoscale_write_seconds(w, "cooldown", rule->cooldown_usec);
    if (rule->replicas_min >= 0)
        jsonw_member_int(w, "min_replicas", rule->replicas_min);
    if (rule->replicas_max >= 0)
        jsonw_member_int(w, "max_replicas", rule->replicas_max);
}

static void autoscale_write_rule(const struct autoscale_rule *rule, struct jsonw *w)
{
    jsonw_object_begin(w);
    autoscale_write_text(w, "id", rule->id);
    jsonw_member_str(w, "signal", signal_names[rule->signal]);
    autoscale_write_text(w, "source", rule->source);
    autoscale_write_text(w, "name", rule->name);
    autoscale_write_text(w, "path", rule->path);
    if (rule->port)
        jsonw_member_int(w, "port", rule->port);
    autoscale_write_text(w, "query", rule->query);
    if (rule->query)
        jsonw_member_str(w, "per", rule->is_mean ? "replica" : "service");
    if (rule->is_step) {
        autoscale_write_step(rule, w);
    } else {
        autoscale_write_number(w, "target", rule->target);
        autoscale_write_number(w, "fill", rule->fill);
    }
    jsonw_object_end(w);
}

void autoscale_write(const struct autoscale *a, struct jsonw *w)
{
    jsonw_object_begin(w);
    autoscale_write_seconds(w, "window", a->window_usec);
    autoscale_write_seconds(w, "idle", a->idle_usec);
    if (a->share_max_micro) {
        jsonw_key(w, "share");
        jsonw_object_begin(w);
        autoscale_write_number(w, "min", (double)a->share_min_micro / SCALING_MICRO);
        autoscale_write_number(w, "max", (double)a->share_max_micro / SCALING_MICRO);
        autoscale_write_number(w, "quantum", (double)a->share_quantum_micro / SCALING_MICRO);
        jsonw_object_end(w);
    }
    jsonw_key(w, "rules");
    jsonw_array_begin(w);
    for (size_t i = 0; i < a->rule_count; i++)
        autoscale_write_rule(&a->rules[i], w);
    jsonw_array_end(w);
    jsonw_object_end(w);
}
