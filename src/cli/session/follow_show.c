/* SPDX-License-Identifier: Apache-2.0 */
/* follow_show.c - the display of followed sessions */
#include <stdio.h>

#include "base/clock.h"
#include "cli/session/follow_internal.h"

static const char *follow_stage_word(const struct followed *item)
{
    switch (item->status) {
    case SESSION_PENDING:
    case SESSION_DEPRIORITIZING:
        return "waiting";
    case SESSION_PULLING:
        return "fetching the image";
    case SESSION_CREATING:
        return "bootstrap script running";
    case SESSION_RUNNING:
    case SESSION_RUNNING_DEGRADED:
        return "";
    case SESSION_TERMINATING:
        return "ending";
    default:
        return item->is_final ? "" : "starting";
    }
}

static void follow_show_one(struct follow *f)
{
    const struct followed *item = &f->items[0];
    const char *word = follow_stage_word(item);
    char text[400];

    if (!item->is_known)
        return;
    if (item->pull[0]) {
        progress_stage(&f->progress, item->pull);
        return;
    }
    (void)snprintf(text, sizeof(text), "%s: %s%s%s", item->session->name, word,
                   item->reason[0] ? ": " : "", item->reason);
    progress_stage(&f->progress, word[0] ? text : "");
}

static void follow_show_several(struct follow *f)
{
    size_t waiting = 0, running = 0, done = 0;
    char text[120];

    for (size_t i = 0; i < f->count; i++) {
        const struct followed *item = &f->items[i];

        done += item->is_final;
        running += !item->is_final && follow_stage_word(item)[0] == '\0';
        waiting += item->status == SESSION_PENDING;
    }
    (void)snprintf(text, sizeof(text), "%zu of %zu done, %zu running, %zu waiting", done, f->count,
                   running, waiting);
    if (f->progress.is_terminal
        || clock_monotonic_usec() - f->progress.since_usec >= 10 * USEC_PER_SEC)
        progress_stage(&f->progress, done == f->count ? "" : text);
}

void follow_show(struct follow *f)
{
    if (f->count == 1)
        follow_show_one(f);
    else
        follow_show_several(f);
}
