/* SPDX-License-Identifier: Apache-2.0 */
/* Rollouts: what is accepted is written so that it reads back the same, and whatever replicas do, no
 * more than the goal is wanted of the new revision, and no more old replicas than there are or the goal
 * is. The input is the strategy, a zero byte, and samples.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "serving/rollout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

static void check_json(const struct rollout *rollout, const struct rollout_state *state,
                       struct arena *arena)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf first = STRBUF_INIT, second = STRBUF_INIT;
    struct jsonw w = jsonw_make(&first);
    struct rollout again;
    struct rollout_state state_again;
    struct aq_error err = { 0 };

    rollout_write(rollout, state, &w);
    require(rollout_parse(first.data, first.len, arena, &again, &state_again, &err) == 0);
    w = jsonw_make(&second);
    rollout_write(&again, &state_again, &w);
    require(strcmp(first.data, second.data) == 0);
}

static int64_t count(uint8_t byte, int64_t most)
{
    return most > 0 ? byte % (most + 1) : 0;
}

/* Each sample is eight bytes. */
static void check_decisions(const struct rollout *rollout, struct rollout_state *state,
                            const uint8_t *data, size_t size)
{
    struct rollout_sample s = { .now_usec = 1 };

    for (; size >= 8; data += 8, size -= 8) {
        struct rollout_actions actions;
        int64_t old_live;

        s.now_usec += data[0] * INT64_C(1000000);
        s.goal = data[1] % 17;
        s.old.live = data[2] % 20;
        s.old.draining = count(data[3], s.old.live);
        s.old.ready = s.old.live - s.old.draining;
        s.new.live = data[4] % 20;
        s.new.ready = count(data[5], s.new.live);
        s.new.unplaced = count(data[6], s.new.live - s.new.ready);
        s.new.failures = data[7] % 4;
        s.promote = data[7] & 16;
        s.abort = data[7] & 32;
        rollout_decide(rollout, state, &s, &actions);
        old_live = actions.event == ROLLOUT_ABORTS ? s.new.live : s.old.live;
        require(actions.old_wanted >= 0 && actions.old_wanted <= AQ_MAX(old_live, s.goal));
        require(actions.new_wanted >= 0 && actions.new_wanted <= s.goal);
        require(actions.old_ratio_ppm >= 0 && actions.old_ratio_ppm <= ROLLOUT_FULL_PPM);
        require(actions.new_ratio_ppm >= 0 && actions.new_ratio_ppm <= ROLLOUT_FULL_PPM);
        require(actions.shared >= 0 && actions.shared <= old_live);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, 0, size);
    size_t len = end ? (size_t)(end - data) : size;
    struct arena arena = ARENA_INIT;
    struct rollout rollout;
    struct rollout_state state;
    struct aq_error err = { 0 };

    if (rollout_parse((const char *)data, len, &arena, &rollout, &state, &err) == 0) {
        check_json(&rollout, &state, &arena);
        if (end)
            check_decisions(&rollout, &state, end + 1, size - len - 1);
        state = rollout_begin(1, 2, 0);
        if (end)
            check_decisions(&rollout, &state, end + 1, size - len - 1);
    } else {
        require(err.text[0] && err.field[0]);
    }
    arena_done(&arena);
    return 0;
}
