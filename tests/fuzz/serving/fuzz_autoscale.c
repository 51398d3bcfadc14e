/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of autoscaling: what is accepted is written so that it reads back the same, and whatever is
 * measured, the wish stays within its bounds. The input is the rules, a zero byte, and samples.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "serving/autoscale.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

static void check_json(const struct autoscale *a, struct arena *arena)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf first = STRBUF_INIT, second = STRBUF_INIT;
    struct jsonw w = jsonw_make(&first);
    struct autoscale again;
    struct aq_error err = { 0 };

    autoscale_write(a, &w);
    require(autoscale_parse(first.data, first.len, arena, &again, &err) == 0
            || err.code == E2BIG); /* escapes make it longer */
    if (err.code)
        return;
    w = jsonw_make(&second);
    autoscale_write(&again, &w);
    require(strcmp(first.data, second.data) == 0);
}

/* Each sample is a byte of time and a double of a value. */
static void check_decisions(const struct autoscale *a, const uint8_t *data, size_t size)
{
    struct autoscale_state state = { 0 };
    struct autoscale_sample s = { .replicas_min = size % 3, .replicas_max = 3 + size % 9 };
    struct autoscale_wish wish;

    s.wanted = s.replicas_min;
    s.share_micro = a->share_min_micro;
    for (size_t i = 0; i + 9 <= size; i += 9) {
        s.now_usec += data[i] % 7 ? data[i] * INT64_C(900000) : -s.now_usec / 2;
        for (size_t k = 0; k < AUTOSCALE_RULES_MAX; k++)
            memcpy(&s.values[k], data + i + 1, sizeof(double));
        s.in_flight = s.values[0];
        s.arrived = data[i] % 5;
        s.ready = data[i] % 11;
        autoscale_decide(a, &state, &s, &wish);
        require(wish.replicas >= s.replicas_min && wish.replicas <= s.replicas_max);
        require(
            !a->share_max_micro || wish.replicas == 0
            || (wish.share_micro >= a->share_min_micro && wish.share_micro <= a->share_max_micro));
        require(wish.reason[0] != '\0');
        s.wanted = wish.replicas;
        s.share_micro = wish.share_micro;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, 0, size);
    size_t len = end ? (size_t)(end - data) : size;
    struct arena arena = ARENA_INIT;
    struct autoscale a;
    struct aq_error err = { 0 };

    if (autoscale_parse((const char *)data, len, &arena, &a, &err) == 0) {
        check_json(&a, &arena);
        if (end)
            check_decisions(&a, end + 1, size - len - 1);
    } else {
        require(err.text[0] && err.field[0]);
    }
    arena_done(&arena);
    return 0;
}
