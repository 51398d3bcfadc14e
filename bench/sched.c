/* SPDX-License-Identifier: Apache-2.0 */
/* sched.c - how long the scheduler takes on a large cluster
 *
 *     bench/sched [ROUNDS]
 *
 * 1,000 agents of 8 GPUs and 10,000 sessions that wait; 10 minutes each, 20
 * users. Twice: all sessions ask for a whole agent ("equal", as Slurm's
 * measurement does), and each asks for something else ("mixed": 0.1 to 8 GPUs
 * and a number of cores of its own). Measured are a pass over the snapshot
 * from nothing, the first pass of a kept state, one on the full cluster, one
 * event on it (a session ends, its successor starts; one comes and waits), and
 * a pass that gives all sessions a time. The same beside 100 bookings, each of half an agent, which
 * begin before sessions that start now would end ("booked"). Then 64 kernels of a GPU each on agents that are partly in
 * use, in 50 racks: as sessions of one kernel, as one session that may be on several agents, with
 * and without a network between these, and as one for which there is no room. Medians of CPU time, which is the time
 * a quiet machine takes: one thread, no input or output. The last line is JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sched/scheduler.h"

#define AGENTS 1000
#define SESSIONS 10000
#define GPUS 8
#define BOOKINGS 100
#define LIFETIME_USEC (INT64_C(600) * 1000000)

struct world {
    struct slot_types *types;
    struct slots free, requests[SESSIONS];
    const struct slots *kernels[SESSIONS];
    struct sched_device devices[GPUS];
    struct sched_agent agents[AGENTS];
    struct sched_session sessions[SESSIONS + 1];
    char ids[AGENTS][16];
    uint32_t handles[SESSIONS + 1];
};

static const char *const priority[] = { "cuda", "cpu", "mem" };

static void die(const char *what)
{
    fprintf(stderr, "bench/sched: %s\n", what);
    exit(1);
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void set(struct slots *slots, const char *name, int64_t amount)
{
    if (slots_set(slots, name, amount) < 0)
        die("out of memory");
}

static void make_world(struct world *w, bool is_mixed)
{
    static const char gpu[] = "cuda.shares";
    const char *name = slot_name_intern(gpu, sizeof(gpu) - 1);
    struct slot_types *types = slot_types_new();

    w->types = slot_types_merge(types, name, SLOT_COUNT, NULL);
    slot_types_unref(types);
    set(&w->free, "cpu", 96 * AMOUNT_ONE);
    set(&w->free, "mem", INT64_C(512) << 30);
    set(&w->free, gpu, GPUS * AMOUNT_ONE);
    for (int d = 0; d < GPUS; d++)
        w->devices[d] = (struct sched_device){ name, "H100", AMOUNT_ONE, AMOUNT_ONE, 0 };
    for (int i = 0; i < AGENTS; i++) {
        (void)snprintf(w->ids[i], sizeof(w->ids[i]), "i-%04d", i);
        w->agents[i] = (struct sched_agent){ .id = w->ids[i],
                                             .architecture = "x86_64",
                                             .free = &w->free,
                                             .devices = w->devices,
                                             .device_count = GPUS };
    }
    for (int i = 0; i <= SESSIONS; i++) {
        int s = i % SESSIONS;
        int64_t shares = !is_mixed    ? GPUS * AMOUNT_ONE
                         : s % 3 == 0 ? (1 + s % 10) * AMOUNT_ONE / 10
                                      : (1 + s % 8) * AMOUNT_ONE;

        if (i < SESSIONS) {
            set(&w->requests[i], "cpu", is_mixed ? (1000 + i) * AMOUNT_ONE / 1000 : 8 * AMOUNT_ONE);
            set(&w->requests[i], "mem", INT64_C(1) << 30);
            set(&w->requests[i], gpu, shares);
            w->kernels[i] = &w->requests[i];
        }
        w->sessions[i] = (struct sched_session){ .row = i + 1,
                                                 .type = SESSION_BATCH,
                                                 .priority = 10,
                                                 .single_node = true,
                                                 .kernels = &w->kernels[s],
                                                 .kernel_count = 1,
                                                 .accounts = SCHED_NO_ACCOUNTS,
                                                 .owner = (uint32_t)s % 20,
                                                 .architecture = "x86_64",
                                                 .lifetime_usec = LIFETIME_USEC };
    }
}

static void free_world(struct world *w)
{
    slots_done(&w->free);
    for (int i = 0; i < SESSIONS; i++)
        slots_done(&w->requests[i]);
    slot_types_unref(w->types);
    free(w);
}

/* Half of every tenth agent, from the middle of a session's life on. */
static void add_bookings(struct sched *s)
{
    struct slots half = { 0 };
    struct aq_error err;

    set(&half, "cpu", 48 * AMOUNT_ONE);
    set(&half, "cuda.shares", GPUS / 2 * AMOUNT_ONE);
    for (uint32_t i = 0; i < BOOKINGS; i++) {
        struct sched_part parts[GPUS / 2];
        struct sched_place place = { .parts = parts, .part_count = AQ_COUNT(parts) };
        struct sched_booking booking = { .id = { { (uint8_t)i, 1 } },
                                         .name = "exam",
                                         .starts_usec = LIFETIME_USEC / 2,
                                         .ends_usec = LIFETIME_USEC * 2,
                                         .amounts = &half,
                                         .places = &place,
                                         .place_count = 1 };
        char id[16];

        (void)snprintf(id, sizeof(id), "i-%04d", (int)i * (AGENTS / BOOKINGS));
        place.agent_id = id;
        for (uint32_t d = 0; d < AQ_COUNT(parts); d++)
            parts[d] = (struct sched_part){ d, AMOUNT_ONE };
        if (sched_booking_set(s, &booking, 1, &err) < 0)
            die(err.text);
    }
    slots_done(&half);
}

static struct sched *make_state(struct world *w, const struct sched_options *o, bool is_booked)
{
    struct sched *s = sched_new(w->types, o);
    struct aq_error err;

    for (int i = 0; i < AGENTS; i++)
        if (sched_set_agent(s, &w->agents[i], &err) < 0)
            die(err.text);
    for (uint32_t i = 0; i < 20; i++)
        sched_set_owner(s, i, &(struct sched_owner){ .user_factor = i / 20.0 });
    for (int i = 0; i < SESSIONS; i++)
        if (sched_add(s, &w->sessions[i], &w->handles[i], &err) < 0)
            die(err.text);
    if (is_booked)
        add_bookings(s);
    return s;
}

static size_t pass(struct sched *s, struct arena *arena, double *ret_ms)
{
    struct sched_result result;
    size_t placed = 0;
    double start = now_ms();

    sched_pass(s, 1, arena, &result);
    *ret_ms = now_ms() - start;
    for (size_t i = 0; i < result.count; i++)
        placed += result.outcomes[i].verdict == SCHED_PLACED;
    arena_clear(arena, 64 << 20);
    return placed;
}

struct figures {
    double snapshot, first, full, end, add;
    size_t started;
};

static void snapshot(struct world *w, const struct sched_options *o, struct arena *arena,
                     struct figures *f)
{
    struct sched_snapshot snap = { .now_usec = 1,
                                   .types = w->types,
                                   .options = *o,
                                   .agents = w->agents,
                                   .agent_count = AGENTS,
                                   .sessions = w->sessions,
                                   .session_count = SESSIONS };
    struct sched_result result;
    double start = now_ms();

    if (sched_run(&snap, arena, &result, NULL) < 0)
        die("out of memory");
    f->snapshot = now_ms() - start;
    arena_clear(arena, 64 << 20);
}

/* One ends, the next starts; one comes and waits. */
static void events(struct world *w, struct sched *s, struct arena *arena, struct figures *f)
{
    struct aq_error err;
    double start = now_ms(), ms;

    sched_drop(s, w->handles[0]);
    (void)pass(s, arena, &ms);
    f->end = now_ms() - start;
    start = now_ms();
    if (sched_add(s, &w->sessions[SESSIONS], &w->handles[SESSIONS], &err) < 0)
        die(err.text);
    (void)pass(s, arena, &ms);
    f->add = now_ms() - start;
}

static struct figures measure(struct world *w, const struct sched_options *o, bool is_booked,
                              struct arena *arena)
{
    struct figures f = { 0 };
    struct sched *s = make_state(w, o, is_booked);

    if (!o->backfill)
        snapshot(w, o, arena, &f);
    f.started = pass(s, arena, &f.first);
    (void)pass(s, arena, &f.full);
    if (!o->backfill)
        events(w, s, arena, &f);
    sched_free(s);
    return f;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const struct figures *all, int rounds, size_t offset)
{
    double values[64];

    for (int i = 0; i < rounds; i++)
        memcpy(&values[i], (const char *)&all[i] + offset, sizeof(double));
    qsort(values, (size_t)rounds, sizeof(double), compare);
    return values[rounds / 2];
}

static const struct row {
    const char *name;
    const struct sequencer_ops *sequencer;
    const struct selector_ops *selector;
    bool backfill, is_mixed, passing, is_booked;
} rows[] = {
    { "equal_fifo", &sched_fifo, &sched_concentrated, false, false, false },
    { "equal_fragmentation", &sched_fifo, &sched_fragmentation, false, false, false },
    { "equal_backfill", &sched_fifo, &sched_concentrated, true, false, false },
    { "mixed_fifo", &sched_fifo, &sched_concentrated, false, true, false },
    { "mixed_passing", &sched_fifo, &sched_concentrated, false, true, true },
    { "mixed_drf", &sched_drf, &sched_concentrated, false, true, false },
    { "mixed_fair_share", &sched_fair_share, &sched_concentrated, false, true, false },
    { "mixed_backfill", &sched_fifo, &sched_concentrated, true, true, false },
    { "equal_booked_fifo", &sched_fifo, &sched_concentrated, false, false, false, true },
    { "mixed_booked_fifo", &sched_fifo, &sched_concentrated, false, true, false, true },
    { "equal_booked_backfill", &sched_fifo, &sched_concentrated, true, false, false, true },
    { "mixed_booked_backfill", &sched_fifo, &sched_concentrated, true, true, false, true },
};

static void run_row(const struct row *row, int rounds, struct arena *arena)
{
    struct world *w = calloc(1, sizeof(*w));
    struct figures all[64];
    const struct sched_options o = { .sequencer = row->sequencer,
                                     .selector = { .ops = row->selector },
                                     .backfill = row->backfill,
                                     .retries_to_skip = row->passing ? 1 : 0,
                                     .slot_priority = priority,
                                     .slot_priority_count = AQ_COUNT(priority) };

    if (!w)
        die("out of memory");
    make_world(w, row->is_mixed);
    for (int i = 0; i <= rounds; i++) {
        struct figures f = measure(w, &o, row->is_booked, arena);

        if (i > 0)
            all[i - 1] = f;
    }
    fprintf(stderr,
            "%-20s started %zu; snapshot %.2f ms, first %.2f ms, full %.3f ms, end %.1f us, "
            "add %.1f us\n",
            row->name, all[0].started, median(all, rounds, offsetof(struct figures, snapshot)),
            median(all, rounds, offsetof(struct figures, first)),
            median(all, rounds, offsetof(struct figures, full)),
            1e3 * median(all, rounds, offsetof(struct figures, end)),
            1e3 * median(all, rounds, offsetof(struct figures, add)));
    printf("%s\"%s\": {\"started\": %zu, \"snapshot_ms\": %.3f, \"first_pass_ms\": %.3f, "
           "\"full_pass_ms\": %.3f, \"end_us\": %.1f, \"add_us\": %.1f}",
           row == rows ? "{\"bench\": \"sched\", \"agents\": 1000, \"sessions\": 10000, " : ", ",
           row->name, all[0].started, median(all, rounds, offsetof(struct figures, snapshot)),
           median(all, rounds, offsetof(struct figures, first)),
           median(all, rounds, offsetof(struct figures, full)),
           1e3 * median(all, rounds, offsetof(struct figures, end)),
           1e3 * median(all, rounds, offsetof(struct figures, add)));
    free_world(w);
}

/* ---- 64 kernels ---- */

#define KERNELS 64

static const struct gang_row {
    const char *name;
    int sessions; /* with the kernels divided equally among them */
    bool needs_network;
    int used; /* GPUs of each agent, at least */
} gang_rows[] = {
    { "single_64", KERNELS, false, 0 },
    { "gang_64", 1, false, 0 },
    { "gang_64_network", 1, true, 0 },
    { "gang_64_no_room", 1, true, GPUS },
};

static void set_agents(struct world *w, struct sched *s, const struct gang_row *row)
{
    struct sched_device devices[GPUS];
    struct aq_error err;
    char topology[64];

    for (int i = 0; i < AGENTS; i++) {
        int used = AQ_MIN(row->used + i * 7 % GPUS, GPUS);
        struct slots left = { 0 };

        used = AQ_MIN(used, i % 16 ? GPUS : GPUS - 1); /* some have one left */
        set(&left, "cpu", (96 - i % 40) * AMOUNT_ONE);
        set(&left, "mem", (INT64_C(512) << 30) - i);
        set(&left, w->devices[0].slot_name, (GPUS - used) * AMOUNT_ONE);
        for (int d = 0; d < GPUS; d++) {
            devices[d] = w->devices[d];
            devices[d].free = d < used ? 0 : AMOUNT_ONE;
        }
        (void)snprintf(topology, sizeof(topology), "zone-%d/rack-%d", i / 250, i / 20);
        w->agents[i].free = &left;
        w->agents[i].devices = devices;
        w->agents[i].topology = topology;
        w->agents[i].network = "wireguard:10.214.0.0/16";
        if (sched_set_agent(s, &w->agents[i], &err) < 0)
            die(err.text);
        slots_done(&left);
    }
}

static double measure_gang(struct world *w, const struct gang_row *row, struct arena *arena,
                           size_t *ret_placed)
{
    const struct sched_options o = { .sequencer = &sched_fifo,
                                     .selector = { .ops = &sched_concentrated },
                                     .slot_priority = priority,
                                     .slot_priority_count = AQ_COUNT(priority) };
    struct sched *s = sched_new(w->types, &o);
    const struct slots *kernels[KERNELS];
    struct aq_error err;
    double ms;

    set_agents(w, s, row);
    set(&w->requests[0], w->devices[0].slot_name, AMOUNT_ONE);
    for (int k = 0; k < KERNELS; k++)
        kernels[k] = &w->requests[0];
    for (int i = 0; i < row->sessions; i++) {
        struct sched_session session = w->sessions[i];

        session.kernels = kernels;
        session.kernel_count = (size_t)(KERNELS / row->sessions);
        session.single_node = session.kernel_count == 1;
        session.needs_network = row->needs_network;
        if (sched_add(s, &session, &w->handles[i], &err) < 0)
            die(err.text);
    }
    *ret_placed = pass(s, arena, &ms);
    sched_free(s);
    return ms;
}

static void run_gangs(int rounds, struct arena *arena)
{
    for (size_t i = 0; i < AQ_COUNT(gang_rows); i++) {
        struct world *w = calloc(1, sizeof(*w));
        struct figures all[64] = { 0 };

        if (!w)
            die("out of memory");
        make_world(w, false);
        for (int round = 0; round < rounds; round++)
            all[round].first = measure_gang(w, &gang_rows[i], arena, &all[round].started);
        fprintf(stderr, "%-20s started %zu; pass %.3f ms\n", gang_rows[i].name, all[0].started,
                median(all, rounds, offsetof(struct figures, first)));
        printf(", \"%s\": {\"started\": %zu, \"pass_ms\": %.3f}", gang_rows[i].name, all[0].started,
               median(all, rounds, offsetof(struct figures, first)));
        free_world(w);
    }
}

int main(int argc, char **argv)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    int rounds = argc > 1 ? atoi(argv[1]) : 5;

    if (rounds < 1 || rounds > 64) {
        fprintf(stderr, "usage: bench/sched [ROUNDS up to 64]\n");
        return 2;
    }
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        run_row(&rows[i], rounds, &arena);
    run_gangs(rounds, &arena);
    printf("}\n");
    return 0;
}
