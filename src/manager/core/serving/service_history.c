/* SPDX-License-Identifier: Apache-2.0 */
/* service_history.c - what was changed of a model service, in words for its history */
#include "manager/core/serving/service_history.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

static bool history_differs(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) != 0 : a != b;
}

static bool history_limits_differ(const struct model_service_limits *a,
                                  const struct model_service_limits *b)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf one = STRBUF_INIT, two = STRBUF_INIT;
    struct jsonw w1 = jsonw_make(&one), w2 = jsonw_make(&two);

    model_service_limits_write(a, &w1);
    model_service_limits_write(b, &w2);
    return strcmp(one.data, two.data) != 0;
}

static void AQ_PRINTF(2, 3) history_add(struct strbuf *out, const char *fmt, ...)
{
    char text[64];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    strbuf_addf(out, "%s%s", out->len ? ", " : "", text);
}

/* Replicas by their bounds if these change, else the number that is wanted now. */
static void history_add_replicas(const struct model_service *was, const struct model_service *made,
                                 struct strbuf *out)
{
    bool has_bounds = made->replicas_min != made->replicas_max;

    if (was->replicas_min != made->replicas_min || was->replicas_max != made->replicas_max) {
        if (has_bounds)
            history_add(out, "scaled to %" PRId64 "-%" PRId64, made->replicas_min,
                        made->replicas_max);
        else
            history_add(out, "scaled to %" PRId64, made->replicas);
    } else if (was->replicas != made->replicas) {
        history_add(out, "scaled to %" PRId64, made->replicas);
    }
}

static void history_add_settings(const struct model_service *was, const struct model_service *made,
                                 struct strbuf *out)
{
    if (history_limits_differ(&was->limits, &made->limits))
        history_add(out, "limits changed");
    if (history_differs(was->scaling, made->scaling))
        history_add(out, "scaling rules changed");
    if (history_differs(was->tag, made->tag))
        history_add(out, "tag changed");
    if (was->is_public != made->is_public)
        history_add(out, made->is_public ? "made public" : "made private");
}

char *service_describe_change(const struct model_service *was, const struct model_service *made,
                              const char *event, const char *note, const char *by)
{
    const struct model_service_revision *last = made->revision_count
                                                    ? &made->revisions[made->revision_count - 1]
                                                    : NULL;
    bool is_deployed = last && (!was || made->last_number > was->last_number);
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    if (event) {
        strbuf_adds(&out, event);
    } else if (!was) {
        history_add(&out, "created");
    } else if (made->is_ending) {
        history_add(&out, made->is_forced ? "ended at once" : "ended");
    } else {
        if (is_deployed)
            history_add(&out, "revision %" PRId64 " deployed", made->goal);
        else if (made->goal != was->goal)
            history_add(&out, "revision %" PRId64 " deployed again", made->goal);
        history_add_replicas(was, made, &out);
        history_add_settings(was, made, &out);
        /* A rollout that begins with a revision changes its state. */
        if (made->goal == was->goal && history_differs(was->rollout, made->rollout))
            history_add(&out, "rollout settings changed");
        if (!out.len)
            history_add(&out, "no setting changed");
    }
    if (*by)
        strbuf_addf(&out, event ? " (asked for by %s)" : " by %s", by);
    if ((!note || !*note) && is_deployed)
        note = last->note;
    if (note && *note)
        strbuf_addf(&out, ": %.*s", (int)strcspn(note, "\n"), note);
    return strbuf_steal(&out);
}
