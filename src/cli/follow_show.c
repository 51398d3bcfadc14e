/* follow_show.c - what people see of sessions that are followed */
#include <stdio.h>

#include "base/clock.h"
#include "cli/follow_private.h"

static const char *stage_word(const struct followed *item)
{
    switch (item->status) {
    case SESSION_PENDING:
    case SESSION_DEPRIORITIZING:
        return "waiting";
    case SESSION_PULLING:
        return "fetching the image";
    case SESSION_RUNNING:
    case SESSION_RUNNING_DEGRADED:
        return "";
    case SESSION_TERMINATING:
        return "ending";
    default:
        return item->is_final ? "" : "starting";
    }
}

static void show_one(struct follow *f)
{
    const struct followed *item = &f->items[0];
    const char *word = stage_word(item);
    char text[300];

    if (!item->is_known)
        return;
    (void)snprintf(text, sizeof(text), "%s: %s%s%s", item->session->name, word,
                   item->reason[0] ? ": " : "", item->reason);
    progress_stage(&f->progress, word[0] ? text : "");
}

static void show_several(struct follow *f)
{
    size_t waiting = 0, running = 0, done = 0;
    char text[120];

    for (size_t i = 0; i < f->count; i++) {
        const struct followed *item = &f->items[i];

        done += item->is_final;
        running += !item->is_final && stage_word(item)[0] == '\0';
        waiting += item->status == SESSION_PENDING;
    }
    (void)snprintf(text, sizeof(text), "%zu of %zu done, %zu running, %zu waiting", done, f->count,
                   running, waiting);
    if (f->progress.is_terminal ||
        clock_monotonic_usec() - f->progress.since_usec >= 10 * USEC_PER_SEC)
        progress_stage(&f->progress, done == f->count ? "" : text);
}

void follow_show(struct follow *f)
{
    if (f->count == 1)
        show_one(f);
    else
        show_several(f);
}
