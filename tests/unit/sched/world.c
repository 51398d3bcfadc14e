/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - a snapshot under construction, for the tests of this directory */
#include "world.h"

struct world world;

struct slots parse(const char *text)
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
    struct slots *slots = &world.owned[world.owned_count++];

    assert_true(world.owned_count < AQ_COUNT(world.owned));
    *slots = parse(text);
    for (size_t i = 0; i < slots->count; i++) {
        struct slot_types *merged = slot_types_merge(world.types, slots->items[i].name,
                                                     slot_type_guess(slots->items[i].name), NULL);

        assert_non_null(merged);
        slot_types_unref(world.types);
        world.types = merged;
    }
    return slots;
}

void begin(const struct sequencer_ops *sequencer, const struct selector_ops *selector)
{
    memset(&world, 0, sizeof(world));
    world.types = slot_types_new();
    world.snap = (struct sched_snapshot){ .options = { .sequencer = sequencer,
                                                       .selector = { .ops = selector } },
                                          .agents = world.agents,
                                          .sessions = world.sessions,
                                          .accounts = world.accounts,
                                          .owners = world.owners,
                                          .running = world.running };
}

void end(void)
{
    for (size_t i = 0; i < world.owned_count; i++)
        slots_done(&world.owned[i]);
    slot_types_unref(world.types);
    arena_done(&world.arena);
}

struct sched_agent *agent(const char *id, const char *free)
{
    size_t i = world.snap.agent_count++;

    assert_true(i < AGENTS_MAX);
    (void)snprintf(world.ids[i], sizeof(world.ids[i]), "%s", id);
    world.agents[i] = (struct sched_agent){ .id = world.ids[i],
                                            .architecture = "x86_64",
                                            .free = own(free) };
    return &world.agents[i];
}

void devices(const char *model, size_t count, const double *free)
{
    size_t i = world.snap.agent_count - 1;

    for (size_t d = 0; d < count; d++)
        world.devices[i][d] = (struct sched_device){ slot_name_intern("cuda.shares", 11), model,
                                                     AMOUNT_ONE,
                                                     (int64_t)(free[d] * AMOUNT_ONE + 0.5), 0 };
    world.agents[i].devices = world.devices[i];
    world.agents[i].device_count = count;
}

struct sched_session make_session(int64_t row, const char *request)
{
    world.kernels[world.kernel_count] = own(request);
    return (struct sched_session){ .id = { { (uint8_t)row } },
                                   .row = row,
                                   .type = SESSION_BATCH,
                                   .priority = 10,
                                   .single_node = true,
                                   .kernels = &world.kernels[world.kernel_count++],
                                   .kernel_count = 1,
                                   .owner = UINT32_MAX,
                                   .accounts = SCHED_NO_ACCOUNTS };
}

struct sched_session *session(const char *request)
{
    size_t i = world.snap.session_count++;

    assert_true(i < SESSIONS_MAX);
    world.sessions[i] = make_session((int64_t)i + 1, request);
    return &world.sessions[i];
}

void kernel(const char *request)
{
    world.kernels[world.kernel_count++] = own(request);
    world.sessions[world.snap.session_count - 1].kernel_count++;
}

struct sched_session *runs(const char *agent_id, const char *request, int64_t started,
                           int64_t lifetime)
{
    size_t i = world.snap.running_count++;

    assert_true(i < RUNNING_MAX);
    world.running_sessions[i] = make_session(1000 + (int64_t)i, request);
    world.running_sessions[i].lifetime_usec = lifetime * USEC_PER_SEC;
    world.places[i][0] = (struct sched_place){ .agent_id = agent_id };
    world.running[i] = (struct sched_running){ &world.running_sessions[i], world.places[i],
                                               started * USEC_PER_SEC };
    return &world.running_sessions[i];
}

void runs_also(const char *agent_id, const char *request)
{
    size_t i = world.snap.running_count - 1;
    struct sched_session *s = &world.running_sessions[i];

    world.kernels[world.kernel_count++] = own(request);
    s->single_node = false;
    world.places[i][s->kernel_count++] = (struct sched_place){ .agent_id = agent_id };
    assert_true(s->kernel_count <= AQ_COUNT(world.places[i]));
}

void run(void)
{
    struct aq_error err = { 0 };

    world.snap.types = world.types;
    assert_row(sched_run(&world.snap, &world.arena, &world.result, &err) == 0, "%s", err.text);
}

void run_at(int64_t now_sec)
{
    world.snap.now_usec = now_sec * USEC_PER_SEC;
    run();
}

const struct sched_outcome *outcome_of(size_t n)
{
    for (size_t i = 0; i < world.result.count; i++)
        if (world.result.outcomes[i].session == n)
            return &world.result.outcomes[i];
    return NULL;
}

const char *place_of(size_t n)
{
    const struct sched_outcome *o = outcome_of(n);

    return o && o->verdict == SCHED_PLACED ? world.agents[o->agents[0]].id : "";
}

enum sched_verdict verdict_of(size_t n)
{
    const struct sched_outcome *o = outcome_of(n);

    return o ? o->verdict : SCHED_BEHIND;
}

const char *placed_in_order(void)
{
    static char text[512];
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < world.result.count; i++)
        if (world.result.outcomes[i].verdict == SCHED_PLACED)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u", len ? " " : "",
                                    world.result.outcomes[i].session + 1);
    return text;
}

const char *places(void)
{
    static char text[1024];
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < world.snap.session_count; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", len ? " " : "",
                                *place_of(i) ? place_of(i) : "-");
    return text;
}
