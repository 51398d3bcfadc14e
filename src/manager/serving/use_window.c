/* SPDX-License-Identifier: Apache-2.0 */
/* use_window.c - see use_window.h */
#include "manager/serving/use_window.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sum.h"

struct use_window {
    size_t width;
    int64_t begun_usec;
    int64_t numbers[USE_WINDOW_SLOTS]; /* time / slot + 1 of what a slot holds; 0 = nothing */
    int64_t counts[];                  /* of the first slot, the second ... */
};

static int64_t use_window_number(int64_t now_usec)
{
    return now_usec / USE_WINDOW_SLOT_USEC + 1;
}

struct use_window *use_window_new(size_t width, int64_t now_usec)
{
    struct use_window *window = aq_alloc(sizeof(*window)
                                         + width * USE_WINDOW_SLOTS * sizeof(window->counts[0]));

    window->width = width;
    window->begun_usec = now_usec;
    return window;
}

void use_window_free(struct use_window *window)
{
    free(window);
}

void use_window_add(struct use_window *window, const int64_t *counts, int64_t now_usec)
{
    int64_t number = use_window_number(now_usec);
    size_t at = (size_t)(number % USE_WINDOW_SLOTS);
    int64_t *slot = window->counts + at * window->width;

    if (window->numbers[at] != number) {
        window->numbers[at] = number;
        memset(slot, 0, window->width * sizeof(*slot));
    }
    for (size_t i = 0; i < window->width; i++)
        slot[i] = sum_add(slot[i], counts[i]);
}

double use_window_sum(const struct use_window *window, size_t slots, int64_t now_usec, int64_t *ret)
{
    int64_t number = use_window_number(now_usec), first = number - (int64_t)slots + 1;
    int64_t since = AQ_MAX((first - 1) * USE_WINDOW_SLOT_USEC, window->begun_usec);

    memset(ret, 0, window->width * sizeof(*ret));
    for (size_t at = 0; at < USE_WINDOW_SLOTS; at++) {
        const int64_t *slot = window->counts + at * window->width;

        if (window->numbers[at] < first || window->numbers[at] > number)
            continue;
        for (size_t i = 0; i < window->width; i++)
            ret[i] = sum_add(ret[i], slot[i]);
    }
    return AQ_MAX((double)(now_usec - since) / USEC_PER_SEC, 1.0);
}

bool use_window_is_over(const struct use_window *window, int64_t now_usec)
{
    int64_t number = use_window_number(now_usec);

    for (size_t at = 0; at < USE_WINDOW_SLOTS; at++)
        if (window->numbers[at] > number - USE_WINDOW_SLOTS && window->numbers[at] <= number)
            return false;
    return true;
}
