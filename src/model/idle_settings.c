/* SPDX-License-Identifier: Apache-2.0 */
/* idle_settings.c - the keys below config/idle of the configuration tree, most of them Backend.AI's */
#include "model/idle.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define MINUTE_USEC (60 * USEC_PER_SEC)
#define DURATION_MAX_USEC (INT64_C(3650) * 86400 * USEC_PER_SEC)
#define THRESHOLDS "checkers/utilization/resource-thresholds/"

void idle_settings_defaults(struct idle_settings *ret)
{
    *ret = (struct idle_settings){
        .network_types = 1u << SESSION_INTERACTIVE | 1u << SESSION_SYSTEM,
        .utilization_types = 1u << SESSION_INTERACTIVE | 1u << SESSION_BATCH | 1u << SESSION_SYSTEM,
        .network_usec = 10 * MINUTE_USEC,
        .packet_usec = 5 * MINUTE_USEC,
        .window_usec = 12 * 60 * MINUTE_USEC,
        .window_grace_usec = 5 * MINUTE_USEC,
        .traffic_bytes = 512,
        .cpu_percent = 10,
        .accelerator_percent = 1,
        .warnings_usec = { 10 * MINUTE_USEC, MINUTE_USEC },
        .notice_usec = 10 * MINUTE_USEC,
    };
}

/* ---- values ---- */

/* The next of several with commas between, without blanks; false at the end. */
static bool idle_next_word(const char **at, const char **word, size_t *len)
{
    *word = *at + strspn(*at, " ,");
    *len = strcspn(*word, " ,");
    *at = *word + *len;
    return *len > 0;
}

static bool idle_is_word(const char *word, size_t len, const char *other)
{
    return strlen(other) == len && strncmp(word, other, len) == 0;
}

static int idle_put_enabled(struct idle_settings *s, const char *value, struct aq_error *err)
{
    const char *word;
    size_t len;

    s->says_enabled = true;
    if (strcmp(value, "none") == 0)
        return 1;
    while (idle_next_word(&value, &word, &len)) {
        if (idle_is_word(word, len, "network_timeout") || idle_is_word(word, len, "timeout"))
            s->is_network_on = true;
        else if (idle_is_word(word, len, "utilization"))
            s->is_utilization_on = true;
        else if (!idle_is_word(word, len, "session_lifetime")) /* is always on */
            return aq_fail(err, EINVAL,
                           "names the check '%.*s'; there are network_timeout, utilization and "
                           "session_lifetime, with commas between, or none alone",
                           (int)AQ_MIN(len, 40), word);
    }
    return 1;
}

static int idle_put_types(uint32_t *ret, const char *value, struct aq_error *err)
{
    const char *word;
    size_t len;

    *ret = 0;
    while (idle_next_word(&value, &word, &len)) {
        enum session_type type;
        char name[16];

        (void)snprintf(name, sizeof(name), "%.*s", (int)AQ_MIN(len, sizeof(name)), word);
        if (session_type_parse(name, &type) < 0 || type == SESSION_INFERENCE)
            return aq_fail(err, EINVAL,
                           "names the session type '%s'; there are interactive, batch and system, "
                           "with commas between",
                           name);
        *ret |= 1u << type;
    }
    return 1;
}

static int idle_put_duration(int64_t *ret, const char *value, struct aq_error *err)
{
    int64_t usec = 0; /* "none", and -1 as Backend.AI writes it */
    bool is_none = strcmp(value, "none") == 0 || strcmp(value, "-1") == 0;

    if (!is_none
        && (clock_parse_duration(value, &usec) < 0 || usec < 0 || usec > DURATION_MAX_USEC))
        return aq_fail(err, EINVAL,
                       "must be a duration such as 90, 10m or 12h, or none, not '%.40s'", value);
    *ret = usec;
    return 1;
}

static int idle_put_number(double *ret, double max, const char *value, struct aq_error *err)
{
    char *end;
    double number = strtod(value, &end);

    if (!*value || *end || !isfinite(number) || number < 0 || number > max)
        return aq_fail(err, EINVAL, "must be a number from 0 to %.0f, not '%.40s'", max, value);
    *ret = number;
    return 1;
}

static int idle_put_operator(struct idle_settings *s, const char *value, struct aq_error *err)
{
    if (strcmp(value, "and") != 0 && strcmp(value, "or") != 0)
        return aq_fail(err, EINVAL, "must be 'and' or 'or', not '%.40s'", value);
    s->ends_if_any_is_low = strcmp(value, "or") == 0;
    return 1;
}

static int idle_put_warnings(struct idle_settings *s, const char *value, struct aq_error *err)
{
    const char *at = strcmp(value, "none") == 0 ? "" : value, *word;
    int64_t before = INT64_MAX;
    size_t len, count = 0;

    memset(s->warnings_usec, 0, sizeof(s->warnings_usec));
    while (idle_next_word(&at, &word, &len)) {
        char text[24];

        (void)snprintf(text, sizeof(text), "%.*s", (int)AQ_MIN(len, sizeof(text)), word);
        if (count == IDLE_WARNINGS_MAX || clock_parse_duration(text, &s->warnings_usec[count]) < 0
            || s->warnings_usec[count] <= 0 || s->warnings_usec[count] >= before)
            return aq_fail(err, EINVAL,
                           "must be at most %d durations, the longest first, with commas between, "
                           "such as 10m,1m, or none alone, not '%.40s'",
                           IDLE_WARNINGS_MAX, value);
        before = s->warnings_usec[count++];
    }
    s->notice_usec = s->warnings_usec[0];
    return 1;
}

/* ---- thresholds: METRIC/average, and METRIC/name, which nothing here shows ---- */

static struct idle_threshold *idle_get_threshold(struct idle_settings *s, const char *metric,
                                                 size_t len)
{
    struct idle_threshold *t;

    for (size_t i = 0; i < s->threshold_count; i++)
        if (idle_is_word(metric, len, s->thresholds[i].metric))
            return &s->thresholds[i];
    if (s->threshold_count == IDLE_METRICS_MAX)
        return NULL;
    t = &s->thresholds[s->threshold_count++];
    (void)snprintf(t->metric, sizeof(t->metric), "%.*s", (int)len, metric);
    return t;
}

static int idle_put_threshold(struct idle_settings *s, const char *key, const char *value,
                              struct aq_error *err)
{
    const char *member = strchr(key, '/');
    size_t len = member ? (size_t)(member - key) : 0;
    struct idle_threshold *t;
    double percent = 0;

    if (!len || len >= sizeof(t->metric) || (strcmp(member, "/average") && strcmp(member, "/name")))
        return 0;
    if (strcmp(member, "/name") == 0 || !*value || strcmp(value, "null") == 0)
        return 1;
    if (idle_put_number(&percent, 100000, value, err) < 0)
        return -EINVAL;
    if (!(t = idle_get_threshold(s, key, len)))
        return aq_fail(err, EINVAL, "is one threshold too many: there may be %d", IDLE_METRICS_MAX);
    t->percent = percent;
    return 1;
}

/* ---- keys ---- */

int idle_settings_put(struct idle_settings *s, const char *key, const char *value,
                      struct aq_error *err)
{
    const struct {
        const char *key;
        int64_t *to;
    } durations[] = {
        { "app-streaming-packet-timeout", &s->packet_usec },
        { "checkers/network_timeout/threshold", &s->network_usec },
        { "checkers/timeout/threshold", &s->network_usec },
        { "checkers/user_grace_period/user_initial_grace_period", &s->user_grace_usec },
        { "checkers/utilization/initial-grace-period", &s->window_grace_usec },
        { "checkers/utilization/time-window", &s->window_usec },
    };
    double bytes = (double)s->traffic_bytes;
    int r;

    for (size_t i = 0; i < AQ_COUNT(durations); i++)
        if (strcmp(key, durations[i].key) == 0)
            return idle_put_duration(durations[i].to, value, err);
    if (strcmp(key, "enabled") == 0)
        return idle_put_enabled(s, value, err);
    if (strcmp(key, "warnings") == 0)
        return idle_put_warnings(s, value, err);
    if (strcmp(key, "checkers/utilization/thresholds-check-operator") == 0)
        return idle_put_operator(s, value, err);
    if (strcmp(key, "checkers/network_timeout/session-types") == 0)
        return idle_put_types(&s->network_types, value, err);
    if (strcmp(key, "checkers/utilization/session-types") == 0)
        return idle_put_types(&s->utilization_types, value, err);
    if (strcmp(key, "checkers/network_timeout/cpu-util") == 0)
        return idle_put_number(&s->cpu_percent, 100000, value, err);
    if (strcmp(key, "checkers/network_timeout/accelerator-util") == 0)
        return idle_put_number(&s->accelerator_percent, 100, value, err);
    if (strncmp(key, THRESHOLDS, strlen(THRESHOLDS)) == 0)
        return idle_put_threshold(s, key + strlen(THRESHOLDS), value, err);
    if (strcmp(key, "checkers/network_timeout/traffic") != 0)
        return 0;
    r = idle_put_number(&bytes, 1e12, value, err);
    s->traffic_bytes = (int64_t)bytes;
    return r;
}
