/* SPDX-License-Identifier: Apache-2.0 */
/* prometheus_answer.c - see prometheus_answer.h */
#include "serving/prometheus_answer.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_load.h"

#define SHOWN_MAX 120 /* bytes of the server's words */

/* [time, "number"] */
static int prometheus_read_sample(const json_t *sample, double *ret, struct aq_error *err)
{
    const char *text = json_string_value(json_array_get(sample, 1));
    char *end = NULL;
    double value = text ? strtod(text, &end) : 0;

    if (!text || end == text || *end)
        return aq_fail(err, EINVAL, "the answer of Prometheus has '%.40s' in place of a number",
                       text ? text : "nothing");
    *ret = value;
    return 0;
}

static int prometheus_read_vector(const json_t *vector, double *ret, struct aq_error *err)
{
    size_t count = json_array_size(vector);

    if (count == 0)
        return aq_fail(err, ENODATA, "the query has no result now: no series matches");
    if (count > 1)
        return aq_fail(err, E2BIG,
                       "the query results in %zu series, and one number is needed: aggregate them, "
                       "as in sum(...)",
                       count);
    return prometheus_read_sample(json_object_get(json_array_get(vector, 0), "value"), ret, err);
}

int prometheus_answer_read(int status, const char *text, size_t len, double *ret,
                           struct aq_error *err)
{
    json_auto_t *tree = json_load_text(text, len, JSON_REJECT_DUPLICATES, NULL);
    const char *outcome = json_string_value(json_object_get(tree, "status"));
    const json_t *data = json_object_get(tree, "data");
    const char *type = json_string_value(json_object_get(data, "resultType"));
    const char *words = json_string_value(json_object_get(tree, "error"));

    if (outcome && strcmp(outcome, "error") == 0)
        return aq_fail(err, EINVAL, "Prometheus answers %d: %.*s", status, SHOWN_MAX,
                       words ? words : "error");
    if (status != 200)
        return aq_fail(err, EINVAL, "Prometheus answers %d", status);
    if (!outcome || strcmp(outcome, "success") != 0 || !type)
        return aq_fail(err, EINVAL, "the answer is not that of a Prometheus server");
    if (strcmp(type, "scalar") == 0)
        return prometheus_read_sample(json_object_get(data, "result"), ret, err);
    if (strcmp(type, "vector") == 0)
        return prometheus_read_vector(json_object_get(data, "result"), ret, err);
    return aq_fail(err, EINVAL,
                   "the query results in a %.20s, and one number is needed: a scalar, or a vector "
                   "with one element",
                   type);
}
