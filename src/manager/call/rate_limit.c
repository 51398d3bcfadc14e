/* SPDX-License-Identifier: Apache-2.0 */
/* How many requests a key may make in 15 minutes. */
#include "manager/call/rate_limit.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"

struct window {
    int64_t began_usec, count;
    int64_t reported; /* of 'count' */
};

struct rate_limiter {
    struct map windows; /* access key -> struct window */
    size_t next;        /* the one that is reported next */
};

struct rate_limiter *rate_limiter_new(void)
{
    return aq_alloc(sizeof(struct rate_limiter));
}

void rate_limiter_free(struct rate_limiter *rate)
{
    if (!rate)
        return;
    for (size_t i = 0; i < rate->windows.count; i++)
        free(rate->windows.entries[i].value);
    map_done(&rate->windows);
    free(rate);
}

static struct window *rate_limiter_find_window(struct rate_limiter *rate, const char *access_key,
                                               int64_t now_usec)
{
    struct window *window = map_gets(&rate->windows, access_key);

    if (window)
        return window;
    window = aq_alloc(sizeof(*window));
    window->began_usec = now_usec;
    map_sets(&rate->windows, access_key, window);
    return window;
}

int64_t rate_limiter_count(struct rate_limiter *rate, const char *access_key, int64_t limit,
                           int64_t now_usec)
{
    struct window *window = rate_limiter_find_window(rate, access_key, now_usec);

    if (now_usec - window->began_usec >= RATE_WINDOW_SEC * USEC_PER_SEC)
        *window = (struct window){ .began_usec = now_usec };
    return limit - ++window->count;
}

int64_t rate_limiter_take_changes(struct rate_limiter *rate, int64_t max, rate_change_fn *fn,
                                  void *data)
{
    int64_t taken = 0;

    for (size_t i = 0; i < rate->windows.count && taken < max; i++) {
        const struct map_entry *entry = &rate->windows.entries[rate->next++ % rate->windows.count];
        struct window *window = entry->value;
        int64_t count = AQ_MIN(window->count, window->reported + max - taken);

        if (count == window->reported)
            continue;
        fn(data, &(struct rate_change){ .access_key = entry->key,
                                        .began_usec = window->began_usec,
                                        .from = window->reported,
                                        .count = count });
        taken += count - window->reported;
        window->reported = count;
    }
    return taken;
}

void rate_limiter_forget_reports(struct rate_limiter *rate)
{
    for (size_t i = 0; i < rate->windows.count; i++)
        ((struct window *)rate->windows.entries[i].value)->reported = 0;
}

void rate_limiter_restore(struct rate_limiter *rate, const char *access_key, int64_t began_usec,
                          int64_t count)
{
    struct window *window = rate_limiter_find_window(rate, access_key, began_usec);

    window->began_usec = AQ_MIN(window->began_usec, began_usec);
    window->count += count;
}
