/* SPDX-License-Identifier: Apache-2.0 */
/* Bookings: what is kept for whom and when, single cases and random lives of small clusters against
 * sums over all times.
 */
#include "world.h"

#include <errno.h>

#include "sched/scheduler_internal.h"

#define S(sec) ((int64_t)(sec)*USEC_PER_SEC)

static const struct uuid exam = { { 0xe } }, other = { { 0xf } };

/* ---- a kept scheduler ---- */

static struct sched *start(void)
{
    struct sched *s = sched_new(world.types, &world.snap.options);

    for (size_t i = 0; i < world.snap.agent_count; i++)
        assert_int_equal(sched_set_agent(s, &world.agents[i], NULL), 0);
    return s;
}

/* Devices of cuda.device for the agent added last, all free. */
static void gpus(size_t count)
{
    size_t i = world.snap.agent_count - 1;

    for (size_t d = 0; d < count; d++)
        world.devices[i][d] = (struct sched_device){ .slot_name = slot_name_intern("cuda.device",
                                                                                   11),
                                                     .capacity = AMOUNT_ONE,
                                                     .free = AMOUNT_ONE };
    world.agents[i].devices = world.devices[i];
    world.agents[i].device_count = count;
}

static int book_at(struct sched *s, const struct uuid *id, const char *amounts, size_t places,
                   int64_t starts, int64_t ends, int64_t now, bool ignores_sessions,
                   struct sched_booking_obstacle *obstacle)
{
    const struct sched_booking_wish wish = { .id = id,
                                             .starts_usec = S(starts),
                                             .ends_usec = S(ends),
                                             .amounts = own(amounts),
                                             .place_count = places,
                                             .ignores_sessions = ignores_sessions };
    struct sched_place *chosen;
    struct sched_booking booking = { .id = *id,
                                     .name = "exam",
                                     .starts_usec = S(starts),
                                     .ends_usec = S(ends),
                                     .amounts = wish.amounts,
                                     .place_count = places };
    int r = sched_booking_place(s, &wish, S(now), &world.arena, &chosen, obstacle);

    if (r < 0)
        return r;
    booking.places = chosen;
    assert_int_equal(sched_booking_set(s, &booking, S(now), NULL), 0);
    return 0;
}

static int book(struct sched *s, const struct uuid *id, const char *amounts, int64_t starts,
                int64_t ends, int64_t now)
{
    struct sched_booking_obstacle obstacle;

    return book_at(s, id, amounts, 1, starts, ends, now, false, &obstacle);
}

static uint32_t add(struct sched *s, int64_t row, const char *request, int64_t lifetime,
                    const struct uuid *booking)
{
    struct sched_session session = make_session(row, request);
    uint32_t handle;

    session.lifetime_usec = S(lifetime);
    session.booking = booking;
    session.is_preemptible = true;
    assert_int_equal(sched_add(s, &session, &handle, NULL), 0);
    return handle;
}

static struct sched_outcome pass(struct sched *s, int64_t now, uint32_t handle)
{
    struct sched_result result;

    sched_pass(s, S(now), &world.arena, &result);
    for (size_t i = 0; i < result.count; i++)
        if (result.outcomes[i].session == handle)
            return result.outcomes[i];
    return (struct sched_outcome){ .verdict = SCHED_BEHIND };
}

/* ---- single cases ---- */

static void test_before_the_start(void **state)
{
    struct sched *s;
    uint32_t endless, late, early, behind;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("a", "cpu=8 cuda.device=4");
    gpus(4);
    s = start();
    assert_int_equal(book(s, &exam, "cpu=4 cuda.device=3", 100, 200, 0), 0);
    endless = add(s, 1, "cpu=1 cuda.device=2", 0, NULL);
    late = add(s, 2, "cpu=1 cuda.device=2", 101, NULL);
    early = add(s, 3, "cpu=1 cuda.device=2", 100, NULL);
    behind = add(s, 4, "cpu=1 cuda.device=1", 0, NULL);
    assert_int_equal(pass(s, 0, endless).verdict, SCHED_BOOKED);
    assert_int_equal(s->entries[late].verdict, SCHED_BOOKED);
    assert_int_equal(s->entries[early].status, ENTRY_PLACED); /* it is not held up */
    assert_int_equal(s->entries[behind].status, ENTRY_PLACED);
    sched_drop(s, early);
    assert_int_equal(pass(s, 200, endless).verdict, SCHED_PLACED);
    sched_free(s);
    end();
}

static void test_members(void **state)
{
    struct sched *s;
    struct sched_outcome out;
    uint32_t member, large, stranger;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("a", "cpu=8 cuda.device=4");
    gpus(4);
    (void)agent("b", "cpu=8 cuda.device=4");
    gpus(4);
    s = start();
    assert_int_equal(book(s, &exam, "cpu=4 cuda.device=2", 100, 200, 0), 0);
    member = add(s, 1, "cpu=1 cuda.device=1", 0, &exam);
    large = add(s, 2, "cpu=1 cuda.device=3", 0, &exam);
    assert_int_equal(pass(s, 99, member).verdict, SCHED_TOO_EARLY);
    out = pass(s, 100, member);
    assert_int_equal(out.verdict, SCHED_PLACED);
    assert_int_equal(out.agents[0], 0);
    assert_int_equal(out.chosen[0].count, 1); /* a device of the booking, by name */
    assert_true(out.chosen[0].is_binding);
    assert_true(out.chosen[0].parts[0].device == s->bookings[0].places[0].parts[0].device
                || out.chosen[0].parts[0].device == s->bookings[0].places[0].parts[1].device);
    assert_int_equal(s->entries[large].verdict, SCHED_NO_CAPACITY);
    sched_drop(s, large);
    /* others have what is not booked, on the same agent */
    stranger = add(s, 3, "cpu=5 cuda.device=1", 0, NULL);
    out = pass(s, 101, stranger);
    assert_int_equal(out.agents[0], 1);
    sched_drop(s, stranger);
    stranger = add(s, 3, "cpu=4 cuda.device=2", 0, NULL);
    assert_int_equal(pass(s, 101, stranger).agents[0], 0);
    /* it ends: what it keeps is free, its session goes on */
    sched_booking_remove(s, &exam);
    stranger = add(s, 4, "cpu=3 cuda.device=1", 0, NULL);
    assert_int_equal(pass(s, 102, stranger).agents[0], 0);
    sched_drop(s, member);
    stranger = add(s, 5, "cpu=1 cuda.device=1", 0, NULL);
    assert_int_equal(pass(s, 103, stranger).agents[0], 0);
    sched_free(s);
    end();
}

/* One that was told before restarts: running sessions are told after bookings. */
static void test_running_members(void **state)
{
    struct sched_session session;
    struct sched_part part;
    struct sched_place place = { .agent_id = "a", .parts = &part, .part_count = 1 };
    struct sched_running running = { .session = &session, .places = &place };
    struct sched *s;
    uint32_t handle;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("a", "cpu=8 cuda.device=2");
    gpus(2);
    s = start();
    assert_int_equal(book(s, &exam, "cpu=4 cuda.device=2", 100, 200, 150), 0);
    session = make_session(1, "cpu=3 cuda.device=1");
    session.booking = &exam;
    part = (struct sched_part){ s->bookings[0].places[0].parts[0].device, AMOUNT_ONE };
    assert_int_equal(sched_add_running(s, &running, &handle, NULL), 0);
    handle = add(s, 2, "cpu=2 cuda.device=1", 0, &exam);
    assert_int_equal(pass(s, 151, handle).verdict, SCHED_NO_ROOM); /* 1 cpu is left */
    sched_drop(s, handle);
    handle = add(s, 3, "cpu=1 cuda.device=1", 0, &exam);
    assert_int_equal(pass(s, 152, handle).verdict, SCHED_PLACED);
    handle = add(s, 4, "cpu=4", 0, NULL);
    assert_int_equal(pass(s, 153, handle).verdict, SCHED_PLACED);
    sched_free(s);
    end();
}

static void test_missing(void **state)
{
    struct sched_booking_obstacle obstacle;
    struct sched *s;
    uint32_t holder, member, stranger;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("a", "cpu=8 cuda.device=2");
    gpus(2);
    s = start();
    holder = add(s, 1, "cpu=2 cuda.device=1", 0, NULL);
    assert_int_equal(pass(s, 0, holder).verdict, SCHED_PLACED);
    assert_int_equal(book_at(s, &exam, "cpu=4 cuda.device=2", 1, 100, 200, 0, false, &obstacle),
                     -EBUSY);
    assert_string_equal(obstacle.agent_id, "a");
    assert_string_equal(obstacle.slot_name, "cuda.device");
    assert_int_equal(obstacle.needed, 2 * AMOUNT_ONE);
    assert_int_equal(obstacle.free, AMOUNT_ONE);
    assert_false(obstacle.is_beyond);
    assert_int_equal(obstacle.holder_count, 1);
    assert_int_equal(obstacle.holders[0], holder);
    assert_int_equal(book_at(s, &exam, "cpu=4 cuda.device=2", 1, 100, 200, 0, true, &obstacle), 0);
    /* whatever becomes free is the booking's */
    member = add(s, 2, "cpu=1 cuda.device=2", 0, &exam);
    stranger = add(s, 3, "cpu=1 cuda.device=1", 0, NULL);
    assert_int_equal(pass(s, 100, member).verdict, SCHED_NO_ROOM);
    sched_drop(s, holder);
    assert_int_equal(pass(s, 101, member).verdict, SCHED_PLACED);
    assert_int_equal(s->entries[stranger].status, ENTRY_WAITING);
    /* another booking of the same devices is refused and says of what */
    assert_int_equal(book_at(s, &other, "cuda.device=1", 1, 150, 300, 101, true, &obstacle),
                     -EBUSY);
    assert_int_equal(obstacle.booking_count, 1);
    assert_true(uuid_equals(&obstacle.bookings[0], &exam));
    assert_int_equal(book_at(s, &other, "cuda.device=3", 1, 500, 600, 101, true, &obstacle),
                     -EBUSY);
    assert_true(obstacle.is_beyond);
    assert_int_equal(book(s, &other, "cuda.device=1", 200, 300, 101), 0);
    sched_free(s);
    end();
}

/* An agent that is told anew keeps what is booked; one that comes later has it. */
static void test_agents(void **state)
{
    struct sched_part part = { 1, AMOUNT_ONE };
    struct sched_place place = { .agent_id = "b", .parts = &part, .part_count = 1 };
    struct sched_booking booking = { .id = exam,
                                     .name = "exam",
                                     .starts_usec = S(0),
                                     .ends_usec = S(100),
                                     .places = &place,
                                     .place_count = 1 };
    struct sched *s;
    uint32_t member, second, stranger;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("b", "cpu=8 cuda.device=2");
    gpus(2);
    booking.amounts = own("cpu=4 cuda.device=1");
    s = sched_new(world.types, &world.snap.options);
    assert_int_equal(sched_booking_set(s, &booking, 0, NULL), 0);
    member = add(s, 1, "cpu=2 cuda.device=1", 0, &exam);
    assert_int_equal(pass(s, 1, member).verdict, SCHED_NO_AGENT);
    assert_int_equal(sched_set_agent(s, &world.agents[0], NULL), 0);
    assert_int_equal(pass(s, 2, member).verdict, SCHED_PLACED);
    world.agents[0].is_closed = true;
    assert_int_equal(sched_set_agent(s, &world.agents[0], NULL), 0);
    world.agents[0].is_closed = false;
    stranger = add(s, 2, "cpu=4 cuda.device=1", 0, NULL);
    second = add(s, 3, "cpu=1", 0, &exam);
    assert_int_equal(pass(s, 3, stranger).verdict, SCHED_NO_AGENT);
    assert_int_equal(sched_set_agent(s, &world.agents[0], NULL), 0);
    assert_int_equal(pass(s, 4, stranger).verdict, SCHED_PLACED);
    assert_int_equal(s->entries[second].status, ENTRY_PLACED);
    assert_int_equal(s->cluster.nodes[s->entries[second].holds[0].node].booking, 1);
    booking.ends_usec = booking.starts_usec;
    assert_int_equal(sched_booking_set(s, &booking, 0, NULL), -EINVAL);
    sched_free(s);
    end();
}

/* With backfill a session that would run into a booking starts when it is over. */
static void test_start_times(void **state)
{
    struct sched_start_estimate *planned;
    struct sched *s;
    uint32_t endless;
    size_t count;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = true;
    (void)agent("a", "cpu=8");
    s = start();
    assert_int_equal(book(s, &exam, "cpu=6", 100, 200, 0), 0);
    endless = add(s, 1, "cpu=4", 0, NULL);
    assert_int_equal(pass(s, 0, endless).starts_usec, S(200));
    count = sched_estimate_starts(s, S(1), 10, &world.arena, &planned);
    assert_int_equal(count, 1);
    assert_int_equal(planned[0].start, SCHED_START_AT);
    assert_int_equal(planned[0].starts_usec, S(200));
    /* in the booking: after its session's end, but not after the booking's */
    (void)add(s, 2, "cpu=4", 30, &exam);
    assert_int_equal(pass(s, 100, endless).verdict, SCHED_BEHIND);
    (void)add(s, 3, "cpu=4", 0, &exam);
    (void)add(s, 4, "cpu=4", 0, &exam);
    count = sched_estimate_starts(s, S(101), 10, &world.arena, &planned);
    assert_int_equal(count, 3);
    assert_int_equal(planned[1].starts_usec, S(130));
    assert_int_equal(planned[2].start, SCHED_START_OPEN);
    sched_free(s);
    end();
}

/* ---- random lives ---- */

#define LIVES 300
#define STEPS 60
#define ALIVE_MAX 24
#define BOOKINGS 4

static uint64_t random_state;

static int64_t below(int64_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)(random_state >> 33) % n;
}

struct life {
    struct sched *s;
    int64_t now; /* seconds */
    int64_t row;
    struct alive {
        bool is_used, is_waiting, is_leaving, moves;
        uint32_t handle;
        int64_t ends, leaves; /* seconds; INT64_MAX = not known */
        struct sched_session session;
        struct uuid booking;
    } sessions[ALIVE_MAX];
    struct booking {
        bool is_used;
        struct uuid id;
        int64_t starts, ends;
    } bookings[BOOKINGS];
};

static struct life life;

/* What a hold of the scheduler takes of an agent's column, or of a device behind the columns. */
static int64_t taken(const struct hold *h, const struct slot_request *req, uint32_t agent,
                     size_t at)
{
    const struct cluster *c = &life.s->cluster;
    int64_t sum = 0;

    if (h->node == CLUSTER_NONE || c->nodes[h->node].agent != agent)
        return 0;
    if (at < c->width)
        return req->amounts[at];
    for (uint32_t i = 0; i < h->part_count; i++)
        sum += h->parts[i].device == at - c->width ? h->parts[i].amount : 0;
    return sum;
}

/* Does 'e' take this of what the agent has for all, not of its booking? */
static bool is_common(const struct sched_entry *e, size_t at)
{
    const struct booked *b = booked_find(life.s, e->booking);

    return !b || (at < life.s->cluster.width && !b->amounts.named[at]);
}

/* What bookings keep at a time. */
static int64_t kept_at(uint32_t agent, size_t at, int64_t usec)
{
    size_t width = life.s->cluster.width;
    int64_t sum = 0;

    for (size_t i = 0; i < life.s->booking_count; i++) {
        const struct booked *b = &life.s->bookings[i];

        for (uint32_t k = 0; usec >= b->starts_usec && usec < b->ends_usec && k < b->place_count;
             k++) {
            if (b->places[k].node != agent)
                continue;
            sum += at < width ? b->amounts.amounts[at] : 0;
            for (uint32_t d = 0; at >= width && d < b->places[k].part_count; d++)
                sum += b->places[k].parts[d].device == at - width ? b->places[k].parts[d].amount
                                                                  : 0;
        }
    }
    return sum;
}

/* What sessions outside of bookings hold at a time, if they end when they have to. with_promises:
 * also what is set aside for those that move; when these come they are looked at again.
 */
static int64_t held_at(uint32_t agent, size_t at, int64_t usec, bool with_promises)
{
    const struct sched *s = life.s;
    int64_t sum = 0;

    for (size_t i = 0; i < s->entry_count; i++) {
        const struct sched_entry *e = &s->entries[i];
        int64_t end = e->lifetime_usec ? e->started_usec + e->lifetime_usec : INT64_MAX;

        if (end <= S(life.now)) /* it has not started yet */
            end = S(life.now) + S(life.now + 1) - end;
        if (e->is_victim) /* it leaves before those that it leaves for come */
            end = S(life.now + 1);
        end = AQ_MIN(end, booked_end(s, e));
        if (!entry_is_holding(e) || usec >= end || !is_common(e, at))
            continue;
        for (uint32_t q = 0; q < e->req_count; q++)
            sum += taken(&e->holds[q], e->reqs[q], agent, at);
    }
    for (size_t i = 0; i < s->reservation_count; i++) {
        const struct reservation *r = &s->reservations[i];

        if ((r->lifetime_usec && usec >= S(life.now) + r->lifetime_usec)
            || (usec > S(life.now + 1) && !with_promises))
            continue;
        for (uint32_t q = 0; q < r->count; q++)
            if (!booked_find(s, r->reqs[q]->booking)) /* else it is inside */
                sum += taken(&r->holds[q], r->reqs[q], agent, at);
    }
    return sum;
}

static int64_t capacity(uint32_t agent, size_t at)
{
    const struct cluster *c = &life.s->cluster;

    return at < c->width ? c->nodes[agent].capacity[at]
                         : c->nodes[agent].devices[at - c->width].capacity;
}

/* The most that is taken of it at any time in [from, to) microseconds: it changes at starts of
 * bookings only, as all else only ends.
 */
static int64_t most_taken(uint32_t agent, size_t at, int64_t from, int64_t to, bool with_promises)
{
    int64_t most = kept_at(agent, at, from) + held_at(agent, at, from, with_promises);

    for (size_t i = 0; i < life.s->booking_count; i++) {
        int64_t start = life.s->bookings[i].starts_usec;

        if (start > from && start < to)
            most = AQ_MAX(most,
                          kept_at(agent, at, start) + held_at(agent, at, start, with_promises));
    }
    return most;
}

static size_t columns_and_devices(uint32_t agent)
{
    return life.s->cluster.width + life.s->cluster.nodes[agent].device_count;
}

static bool is_counted(uint32_t agent, size_t at)
{
    return at != life.s->cluster.columns && agent < life.s->cluster.node_count;
}

/* A booked part is not overfull once those that leave it have left. */
static void check_part(uint32_t node)
{
    const struct cluster_node *n = &life.s->cluster.nodes[node];
    size_t width = life.s->cluster.width;

    for (size_t at = 0; at < columns_and_devices(node); at++) {
        int64_t free = at < width ? n->free[at] : n->devices[at - width].free;

        for (size_t i = 0; is_counted(node, at) && i < life.s->entry_count; i++) {
            const struct sched_entry *e = &life.s->entries[i];

            for (uint32_t q = 0; entry_is_holding(e) && e->is_victim && q < e->req_count; q++)
                if (e->holds[q].node == node)
                    free += taken(&e->holds[q], e->reqs[q], n->agent, at);
        }
        assert_true(!is_counted(node, at) || (at < width && n->shared[at]) || free == SCHED_ABSENT
                    || free >= 0);
    }
}

/* Nothing is ever taken twice, now or later. */
static void check_sums(uint64_t seed)
{
    const struct cluster *c = &life.s->cluster;

    for (uint32_t n = 0; n < c->node_count; n++) {
        if (c->nodes[n].booking)
            continue;
        for (size_t at = 0; at < columns_and_devices(n); at++)
            if (is_counted(n, at))
                assert_row(most_taken(n, at, S(life.now + 1), INT64_MAX, false) <= capacity(n, at),
                           "life %d at %d: agent %s, column %d", (int)seed, (int)life.now,
                           c->nodes[n].id, (int)at);
    }
    for (size_t i = 0; i < life.s->entry_count; i++) { /* members are inside */
        const struct sched_entry *e = &life.s->entries[i];

        if (entry_is_holding(e) && booked_find(life.s, e->booking))
            for (uint32_t q = 0; q < e->req_count; q++)
                assert_int_equal(c->nodes[e->holds[q].node].booking, e->booking);
    }
    for (uint32_t n = 0; n < c->node_count; n++)
        if (c->nodes[n].booking && c->nodes[n].free[c->columns] != SCHED_ABSENT)
            check_part(n);
}

/* Is there room for these amounts on the agent during a time? Devices are whole. */
static bool has_room(uint32_t agent, const int64_t *amounts, int64_t from, int64_t to)
{
    const struct cluster *c = &life.s->cluster;

    for (size_t at = 0; at < c->columns; at++)
        if (amounts[at] > 0
            && most_taken(agent, at, from, to, true) + amounts[at] > capacity(agent, at))
            return false;
    for (size_t at = 0; at < c->columns; at++) {
        int64_t free = 0;

        if (c->names[at] != slot_name_intern("cuda.device", 11))
            continue;
        for (uint32_t d = 0; d < c->nodes[agent].device_count; d++)
            free += most_taken(agent, c->width + d, from, to, true) == 0 ? AMOUNT_ONE : 0;
        if (free < amounts[at])
            return false;
    }
    return true;
}

/* Who waits because of a booking has really no room that lasts, unless others left theirs since. */
static void check_waiting(uint64_t seed)
{
    const struct sched *s = life.s;

    for (size_t i = 0; i < s->entry_count; i++) {
        const struct sched_entry *e = &s->entries[i];
        int64_t end = e->lifetime_usec ? S(life.now) + e->lifetime_usec : INT64_MAX;

        if (e->status != ENTRY_WAITING || e->verdict != SCHED_BOOKED
            || e->tried_in_pass != s->pass_count || e->req_count > 1 || e->booking)
            continue;
        for (uint32_t n = 0; n < s->cluster.node_count; n++)
            assert_row(s->cluster.nodes[n].booking
                           || !has_room(n, e->reqs[0]->amounts, S(life.now), end),
                       "life %d at %d: row %d has room on %s", (int)seed, (int)life.now,
                       (int)e->row, s->cluster.nodes[n].id);
    }
}

static void life_begin(uint64_t seed)
{
    static const struct selector_ops *const selectors[] = { &sched_concentrated, &sched_dispersed,
                                                            &sched_bin_packing, &sched_round_robin,
                                                            &sched_fragmentation };

    memset(&life, 0, sizeof(life));
    random_state = seed * 7919 + 1;
    begin(below(3) ? &sched_fifo : &sched_drf, selectors[below(5)]);
    world.snap.options.backfill = below(2);
    world.snap.options.plans_to_start = below(2);
    world.snap.options.max_wait_usec = below(2) ? S(20) : 0;
    world.snap.options.preemption.enabled = below(3) == 0;
    world.snap.options.preemption.moves = below(3) == 0;
    for (int i = 0; i < 3; i++) {
        static const char *const ids[] = { "a", "b", "c" };

        agent(ids[i], "cpu=8 cuda.device=4")->capacity = own("cpu=8 cuda.device=4");
        gpus(4);
    }
    life.s = start();
}

static void random_amounts(char text[64], int64_t cpus, int64_t devices)
{
    (void)snprintf(text, 64, "cpu=%d cuda.device=%d", 1 + (int)below(cpus), (int)below(devices));
}

/* A booking is refused exactly if no agent has room for it. */
static void life_book(uint64_t seed)
{
    struct booking *b = &life.bookings[below(BOOKINGS)];
    struct sched_booking_obstacle obstacle;
    int64_t row[8] = { 0 };
    bool can_be = false;
    const struct slots *amounts;
    char text[64];

    if (b->is_used)
        return;
    random_amounts(text, 7, 5);
    if (below(3) == 0)
        (void)snprintf(text, sizeof(text), "cuda.device=%d", 1 + (int)below(4));
    *b = (struct booking){ .id = { { 1, (uint8_t)below(256), (uint8_t)below(256),
                                     (uint8_t)life.now } },
                           .starts = life.now + below(60) };
    b->ends = b->starts + 5 + below(60);
    amounts = own(text);
    cluster_fill_row(&life.s->cluster, amounts, 0, row);
    for (uint32_t n = 0; n < life.s->cluster.node_count; n++)
        can_be = can_be
                 || (!life.s->cluster.nodes[n].booking
                     && has_room(n, row, S(b->starts), S(b->ends)));
    b->is_used = book_at(life.s, &b->id, text, 1, b->starts, b->ends, life.now, false, &obstacle)
                 == 0;
    assert_row(b->is_used == can_be, "life %d at %d: '%s' from %d to %d", (int)seed, (int)life.now,
               text, (int)b->starts, (int)b->ends);
    for (int i = 0; i < 2; i++) /* the scheduler has copies */
        slots_done(&world.owned[--world.owned_count]);
}

static void life_add(void)
{
    struct alive *a = NULL;
    const struct booking *b = &life.bookings[below(BOOKINGS)];
    char text[64];

    for (size_t i = 0; i < ALIVE_MAX; i++)
        if (!life.sessions[i].is_used)
            a = &life.sessions[i];
    if (!a || world.owned_count + 8 > AQ_COUNT(world.owned)
        || world.kernel_count + 8 > AQ_COUNT(world.kernels))
        return;
    random_amounts(text, 4, 4);
    *a = (struct alive){ .is_used = true, .is_waiting = true, .ends = INT64_MAX };
    a->session = make_session(++life.row, text);
    a->session.lifetime_usec = below(3) ? S(1 + below(60)) : 0;
    if (below(4) == 0) { /* on several agents, or on one */
        world.kernels[world.kernel_count++] = a->session.kernels[0];
        a->session.kernel_count = 2;
        a->session.single_node = below(2);
    }
    a->session.job_priority = (int)below(3);
    a->session.is_preemptible = a->session.is_movable = below(2);
    a->booking = b->id;
    if (b->is_used && below(3) == 0)
        a->session.booking = &a->booking;
    assert_int_equal(sched_add(life.s, &a->session, &a->handle, NULL), 0);
}

static struct alive *alive_of(uint32_t handle)
{
    for (size_t i = 0; i < ALIVE_MAX; i++)
        if (life.sessions[i].is_used && life.sessions[i].handle == handle)
            return &life.sessions[i];
    fail();
    return NULL;
}

static void life_pass(void)
{
    struct sched_result result;

    sched_pass(life.s, S(life.now), &world.arena, &result);
    for (size_t i = 0; i < result.count; i++) {
        const struct sched_outcome *o = &result.outcomes[i];
        struct alive *a = alive_of(o->session);

        if (o->verdict == SCHED_PLACED) {
            a->is_waiting = false;
            a->ends = a->session.lifetime_usec ? life.now + a->session.lifetime_usec / S(1)
                                               : INT64_MAX;
        }
        for (size_t v = 0; o->verdict == SCHED_PREEMPTING && v < o->victim_count; v++) {
            struct alive *victim = alive_of(o->victims[v]);

            victim->is_leaving = true;
            victim->moves = o->targets != NULL;
            victim->leaves = life.now + 1 + below(15);
        }
    }
}

static void alive_drop(struct alive *a)
{
    sched_drop(life.s, a->handle);
    a->is_used = false;
}

/* Time goes on: sessions end at their limits at the latest, members with their bookings. */
static void life_go_on(void)
{
    life.now += 1 + below(8);
    for (size_t i = 0; i < ALIVE_MAX; i++) {
        struct alive *a = &life.sessions[i];

        if (!a->is_used)
            continue;
        if (a->is_leaving && (a->leaves <= life.now || a->ends <= life.now)) {
            bool comes_back = a->moves && a->ends > life.now;

            sched_drop(life.s, a->handle);
            a->is_used = comes_back;
            a->is_leaving = false;
            a->is_waiting = true;
            a->ends = INT64_MAX;
            if (comes_back)
                assert_int_equal(sched_add(life.s, &a->session, &a->handle, NULL), 0);
            else
                sched_unreserve(life.s, a->session.row);
        } else if (!a->is_waiting && (a->ends <= life.now || below(25) == 0)) {
            sched_unreserve(life.s, a->session.row);
            alive_drop(a);
        }
    }
    for (size_t i = 0; i < BOOKINGS; i++) {
        struct booking *b = &life.bookings[i];

        if (!b->is_used || (b->ends > life.now && below(40)))
            continue;
        for (size_t k = 0; k < ALIVE_MAX; k++)
            if (life.sessions[k].is_used && life.sessions[k].session.booking
                && uuid_equals(&life.sessions[k].booking, &b->id)) {
                sched_unreserve(life.s, life.sessions[k].session.row);
                alive_drop(&life.sessions[k]);
            }
        sched_booking_remove(life.s, &b->id);
        b->is_used = false;
    }
}

static void test_lives(void **state)
{
    size_t booked = 0, members = 0;

    (void)state;
    for (uint64_t seed = 0; seed < LIVES; seed++) {
        life_begin(seed);
        for (int step = 0; step < STEPS; step++) {
            if (below(4) == 0)
                life_book(seed);
            for (int64_t more = below(4); more > 0; more--)
                life_add();
            life_pass();
            check_sums(seed);
            if (!life.s->options.preemption.enabled && !life.s->options.preemption.moves)
                check_waiting(seed);
            for (size_t i = 0; i < life.s->entry_count; i++) {
                booked += life.s->entries[i].verdict == SCHED_BOOKED;
                members += entry_is_holding(&life.s->entries[i]) && life.s->entries[i].booking;
            }
            life_go_on();
        }
        sched_free(life.s);
        end();
    }
    assert_true(booked > LIVES && members > LIVES); /* it is not about nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_the_start),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_running_members),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_agents),
        cmocka_unit_test(test_start_times),
        cmocka_unit_test(test_lives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
