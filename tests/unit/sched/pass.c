/* SPDX-License-Identifier: Apache-2.0 */
/* pass.c - see pass.h */
#include "pass.h"

#include <stdio.h>

struct bench bench;

static struct slots parse(const char *text)
{
    struct slots slots = { 0 };
    char copy[256], *rest = NULL;

    (void)snprintf(copy, sizeof(copy), "%s", text);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        const char *name;
        int64_t amount;

        *value++ = '\0';
        name = slot_name_intern(word, strlen(word));
        assert_non_null(name);
        assert_int_equal(slot_amount_parse(value, strlen(value), slot_type_guess(word), true, name,
                                           &amount, NULL),
                         0);
        assert_int_equal(slots_set(&slots, name, amount), 0);
    }
    return slots;
}

const struct slots *own(const char *text)
{
    struct slots *slots = &bench.owned[bench.owned_count++];

    assert_true(bench.owned_count < AQ_COUNT(bench.owned));
    *slots = parse(text);
    for (size_t i = 0; i < slots->count; i++) {
        struct slot_types *merged = slot_types_merge(bench.types, slots->items[i].name,
                                                     slot_type_guess(slots->items[i].name), NULL);

        assert_non_null(merged);
        slot_types_unref(bench.types);
        bench.types = merged;
    }
    return slots;
}

void begin(const struct selector_ops *selector)
{
    bench = (struct bench){ .types = slot_types_new() };
    bench.snap = (struct sched_snapshot){ .options = { .sequencer = &sched_fifo,
                                                       .selector = { .ops = selector } },
                                          .agents = bench.agents,
                                          .sessions = bench.sessions,
                                          .accounts = bench.accounts };
}

void end(void)
{
    for (size_t i = 0; i < bench.owned_count; i++)
        slots_done(&bench.owned[i]);
    slot_types_unref(bench.types);
    arena_done(&bench.arena);
}

struct sched_agent *agent(const char *id, const char *free)
{
    struct sched_agent *a = &bench.agents[bench.snap.agent_count++];

    *a = (struct sched_agent){ .id = id, .architecture = "x86_64", .free = own(free) };
    return a;
}

struct sched_session *session(const char *request)
{
    struct sched_session *s = &bench.sessions[bench.snap.session_count];

    bench.kernels[bench.kernel_count] = own(request);
    *s = (struct sched_session){ .id = { { (uint8_t)(bench.snap.session_count + 1) } },
                                 .row = (int64_t)++bench.snap.session_count,
                                 .type = SESSION_BATCH,
                                 .priority = 10,
                                 .single_node = true,
                                 .kernels = &bench.kernels[bench.kernel_count++],
                                 .kernel_count = 1,
                                 .accounts = SCHED_NO_ACCOUNTS };
    return s;
}

void kernel(const char *request)
{
    bench.kernels[bench.kernel_count++] = own(request);
    bench.sessions[bench.snap.session_count - 1].kernel_count++;
}

void run(void)
{
    bench.snap.types = bench.types;
    assert_int_equal(sched_run(&bench.snap, &bench.arena, &bench.result, NULL), 0);
}

const char *place_of(size_t n)
{
    for (size_t i = 0; i < bench.result.count; i++)
        if (bench.result.outcomes[i].session == n)
            return bench.result.outcomes[i].verdict == SCHED_PLACED
                       ? bench.agents[bench.result.outcomes[i].agents[0]].id
                       : "";
    return "";
}

enum sched_verdict verdict_of(size_t n)
{
    for (size_t i = 0; i < bench.result.count; i++)
        if (bench.result.outcomes[i].session == n)
            return bench.result.outcomes[i].verdict;
    return SCHED_BEHIND;
}
