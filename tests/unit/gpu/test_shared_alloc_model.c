/* SPDX-License-Identifier: Apache-2.0 */
/* test_shared_alloc_model.c - every interleaving of an exporter, its importers and the agent
 *
 * Deaths, lost requests and lost answers included. Real are the process's part
 * (shared_alloc_process.h) and the agent's table (gpuhost/shared_alloc_table.h). Each
 * process is a coroutine that stops before and after each request and each call of the
 * driver. The tree of decisions is walked from its root again and again, with the
 * decisions so far as the path; a state that was seen before is not walked twice.
 */
#include "testing.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "gpu/charge.h"
#include "gpuhost/shared_alloc_table.h"
#include "shared_alloc_process.h"

#define PROCESSES 3
#define BYTES (3 * AQ_GPU_GRANULE)
#define TOKEN UINT64_C(77)
#define HANDLE UINT64_C(1)
#define STACK_SIZE (256 * 1024)
#define DEPTH_MAX 256
#define SEEN_BITS 22

/* ---- decisions ---- */

static struct {
    uint8_t taken[DEPTH_MAX], of[DEPTH_MAX];
    int len, at;
} path;

/* One of 'count' possibilities: all of them, one after the other. */
static int choose(int count)
{
    if (count <= 1)
        return 0;
    if (path.at == path.len) {
        assert_true(path.len < DEPTH_MAX);
        path.taken[path.len] = 0;
        path.of[path.len++] = (uint8_t)count;
    }
    return path.taken[path.at++];
}

/* The next path; false = that was the last one. */
static bool advance(void)
{
    while (path.len && path.taken[path.len - 1] + 1 == path.of[path.len - 1])
        path.len--;
    path.at = 0;
    return path.len && ++path.taken[path.len - 1];
}

static uint64_t seen[1u << SEEN_BITS];
static uint64_t states;

/* Of a state in which nothing has been decided yet. */
static bool is_new(uint64_t hash)
{
    uint64_t i = hash >> (64 - SEEN_BITS);

    hash |= 1;
    for (; seen[i]; i = (i + 1) & ((1u << SEEN_BITS) - 1))
        if (seen[i] == hash)
            return false;
    assert_true(++states < (1u << SEEN_BITS) / 4 * 3);
    seen[i] = hash;
    return true;
}

/* ---- the world ---- */

struct process {
    const struct shared_alloc_process *calls;
    ucontext_t context;
    uint8_t *stack;
    void (*script)(struct process *);
    bool keeps; /* does not give back */
    /* of this run */
    bool is_dead, is_noticed, is_done;
    bool has_object;  /* of the driver */
    bool holds;       /* and the program has been told so */
    uint64_t history; /* of what it was answered: where it is */
};

static struct process processes[PROCESSES + 1]; /* by slot */
static int process_count;
static struct process *running;
static ucontext_t scheduler;
static enum { WALKING, SETTLING, OVER } mode; /* OVER: who still runs only finds its end */
static bool is_sent;                          /* the letter with the token */
static int kills_left, losses_left;
static uint64_t runs;

static struct gpu_shared_allocs *table;
static struct aq_gpu_limits limits = { .magic = AQ_GPU_MAGIC,
                                       .device_count = 1,
                                       .devices = { { .memory_bytes = 100 * AQ_GPU_GRANULE } } };
static struct aq_gpu_usage usage;

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Let others go on. */
static void stop(uint64_t why)
{
    struct process *self = running;

    self->history = mix(self->history, why);
    if (mode == WALKING)
        (void)swapcontext(&self->context, &scheduler);
}

/* As region_server.c follows orders. */
static int follow(uint32_t slot, const struct aq_gpu_loan_order *order,
                  struct aq_gpu_loan_reply *ret)
{
    uint64_t charged = charge_of_slot(&usage, slot, 0),
             lent = gpu_shared_allocs_charged(table, slot, 0);

    switch (order->kind) {
    case AQ_GPU_LOAN_OFFER:
        if (!gpu_shared_allocs_has(table, order->token)
            && order->granules > charged - AQ_MIN(lent, charged))
            return -EINVAL;
        return gpu_shared_allocs_export(table, slot, order->device, order->token, order->granules);
    case AQ_GPU_LOAN_JOIN:
        return gpu_shared_allocs_join(table, slot, order->token, &ret->device, &ret->granules);
    default:
        return gpu_shared_allocs_leave(table, slot, order->token);
    }
}

static void settle_books(void)
{
    charge_set(&usage, 0, 0, gpu_shared_allocs_charged_to_container(table, 0));
}

enum { FOLLOWED, LOST, ANSWER_LOST, OUTCOMES };

static bool on_order(uint32_t slot, const struct aq_gpu_loan_order *order,
                     struct aq_gpu_loan_reply *ret)
{
    int outcome;

    stop(order->kind);
    if (mode == OVER)
        return false;
    outcome = choose(losses_left ? OUTCOMES : 1);
    losses_left -= outcome != FOLLOWED;
    *ret = (struct aq_gpu_loan_reply){ .magic = AQ_GPU_MAGIC };
    if (outcome != LOST) {
        ret->error = -follow(slot, order, ret);
        settle_books();
    }
    stop((uint64_t)outcome << 32 | (uint32_t)ret->error);
    return outcome == FOLLOWED && mode != OVER;
}

/* ---- what processes do ---- */

static void take_object(struct process *self)
{
    stop(0);
    self->has_object = true;
}

static void drop_object(struct process *self)
{
    stop(0);
    self->holds = false; /* the program has asked for it */
    self->has_object = false;
    stop(0);
}

static void make(struct process *self)
{
    struct ledger_entry entry;

    if (!self->calls->reserve(0, BYTES) || !self->calls->add(LEDGER_HANDLE, HANDLE, 0, BYTES, 0))
        return;
    take_object(self);
    self->holds = true;
    if (self->calls->lend(LEDGER_HANDLE, HANDLE, TOKEN) && mode == WALKING)
        is_sent = true;
    if (self->keeps)
        return;
    drop_object(self);
    if (self->calls->take(LEDGER_HANDLE, HANDLE, &entry))
        self->calls->release(&entry);
}

/* As ipc.c does it. */
static void borrow_once(struct process *self, bool keeps)
{
    struct ledger_entry part = { .link = TOKEN };
    bool joined = self->calls->join(TOKEN);

    take_object(self);
    if (!joined && !self->calls->pay(TOKEN, 0, BYTES, &part))
        return;
    self->holds = true;
    if (keeps || mode == OVER)
        return;
    drop_object(self);
    self->calls->release(&part);
}

static void borrow(struct process *self)
{
    borrow_once(self, self->keeps);
}

/* What was given back comes again. */
static void borrow_twice(struct process *self)
{
    borrow_once(self, false);
    if (mode == WALKING)
        borrow_once(self, self->keeps);
}

/* The letter has come, but the driver does not take it. */
static void fail_to_borrow(struct process *self)
{
    if (self->calls->join(TOKEN)) {
        stop(0);
        self->calls->leave(TOKEN);
    }
}

static void enter(int slot)
{
    struct process *self = &processes[slot];

    self->script(self);
    self->is_done = true;
    (void)swapcontext(&self->context, &scheduler);
}

/* ---- what must be true ---- */

static bool is_held(bool told)
{
    for (int i = 1; i <= process_count; i++)
        if (!processes[i].is_dead && (told ? processes[i].holds : processes[i].has_object))
            return true;
    return false;
}

static void describe(void)
{
    print_message("# after decisions");
    for (int i = 0; i < path.at; i++)
        print_message(" %d", path.taken[i]);
    print_message(": container %llu,", (unsigned long long)charge_of_slot(&usage, 0, 0));
    for (int i = 1; i <= process_count; i++)
        print_message(" %llu%s%s", (unsigned long long)charge_of_slot(&usage, (uint32_t)i, 0),
                      processes[i].has_object ? " (has it)" : "",
                      processes[i].is_dead ? " (dead)" : "");
    print_message("\n");
}

static void check_enough(void)
{
    if (is_held(true) && charge_sum(&usage, 0) < charge_granules(BYTES)) {
        describe();
        fail_msg("somebody holds memory that nobody pays for");
    }
}

/* All have done what they do. Who could not tell something tells it now. */
static void check_exact(void)
{
    uint64_t want = is_held(false) ? charge_granules(BYTES) : 0;

    losses_left = 0;
    mode = SETTLING;
    for (int i = 1; i <= process_count; i++)
        if (!processes[i].is_dead) {
            running = &processes[i];
            running->calls->settle();
        }
    if (charge_sum(&usage, 0) == want)
        return;
    describe();
    fail_msg("%llu granules are charged and %llu are held",
             (unsigned long long)charge_sum(&usage, 0), (unsigned long long)want);
}

/* ---- the walk ---- */

static uint64_t hash_of(const struct process *one, uint32_t slot)
{
    uint64_t flags = (uint64_t)one->is_dead | (uint64_t)one->is_noticed << 1
                     | (uint64_t)one->is_done << 2 | (uint64_t)one->has_object << 3
                     | (uint64_t)one->holds << 4;
    uint64_t hash = mix(one->history, flags);

    hash = mix(hash, charge_of_slot(&usage, slot, 0));
    hash = mix(hash, gpu_shared_allocs_charged(table, slot, 0));
    return mix(hash, gpu_shared_allocs_uncharged(table, slot, 0));
}

static uint64_t hash_of_world(void)
{
    uint64_t hash = mix((uint64_t)is_sent | (uint64_t)kills_left << 8 | (uint64_t)losses_left << 16,
                        gpu_shared_allocs_charged_to_container(table, 0));

    for (int i = 1; i <= process_count; i++)
        hash = mix(hash, hash_of(&processes[i], (uint32_t)i));
    return hash;
}

enum step { RUN, NOTICE, KILL };

static struct {
    enum step step;
    int slot;
} options[3 * PROCESSES];

/* What may happen next; how much of it goes on by itself comes in *ret_must. */
static int list_options(int *ret_must)
{
    int count = 0;

    for (int i = 1; i <= process_count; i++) {
        const struct process *one = &processes[i];

        if (!one->is_dead && !one->is_done && (is_sent || one->script == make)) {
            options[count].step = RUN;
            options[count++].slot = i;
        } else if (one->is_dead && !one->is_noticed) {
            options[count].step = NOTICE;
            options[count++].slot = i;
        }
    }
    *ret_must = count;
    for (int i = 1; i <= process_count && kills_left; i++)
        if (!processes[i].is_dead) {
            options[count].step = KILL;
            options[count++].slot = i;
        }
    return count;
}

static void take_step(enum step step, int slot)
{
    struct process *one = &processes[slot];

    switch (step) {
    case RUN:
        running = one;
        (void)swapcontext(&scheduler, &one->context);
        break;
    case NOTICE: /* as region_host_end_slot() */
        one->is_noticed = true;
        (void)gpu_shared_allocs_end_process(table, (uint32_t)slot);
        settle_books();
        charge_reclaim(&usage, (uint32_t)slot, 0);
        break;
    case KILL:
        one->is_dead = true;
        kills_left--;
        break;
    }
}

/* At the begin of its script. */
static void place(struct process *one, int slot)
{
    (void)getcontext(&one->context);
    one->context.uc_stack.ss_sp = one->stack;
    one->context.uc_stack.ss_size = STACK_SIZE;
    one->context.uc_link = NULL;
    makecontext(&one->context, (void (*)(void))enter, 1, slot);
}

static void begin(int kills, int losses)
{
    kills_left = kills;
    losses_left = losses;
    is_sent = false;
    mode = WALKING;
    memset(&usage.devices[0], 0, sizeof(usage.devices[0]));
    memset(usage.slots, 0, (PROCESSES + 1) * sizeof(usage.slots[0]));
    for (int i = 1; i <= process_count; i++) {
        struct process *one = &processes[i];

        (void)gpu_shared_allocs_end_process(table, (uint32_t)i);
        one->is_dead = one->is_noticed = one->is_done = one->has_object = one->holds = false;
        one->history = 0;
        one->calls->start(&limits, &usage, (uint32_t)i, on_order);
        place(one, i);
    }
}

/* Who was stopped for good, or never comes to its end, leaves its stack in order. */
static void finish(void)
{
    mode = OVER;
    for (int i = 1; i <= process_count; i++)
        if (!processes[i].is_done) {
            running = &processes[i];
            (void)swapcontext(&scheduler, &running->context);
        }
}

/* One way through, to its end or to where another has been. */
static void walk(int kills, int losses)
{
    int must, count, next;

    begin(kills, losses);
    runs++;
    for (;;) {
        count = list_options(&must);
        if (path.at == path.len && !is_new(hash_of_world()))
            break;
        /* when nothing goes on by itself, that is the end, or somebody dies yet */
        next = choose(must ? count : count + 1);
        if (next == count) {
            check_exact();
            break;
        }
        take_step(options[next].step, options[next].slot);
        check_enough();
    }
    finish();
}

/* ---- scenes ---- */

static const struct scene {
    const char *name;
    struct {
        void (*script)(struct process *self);
        bool keeps;
    } who[PROCESSES];
    int kills, losses;
} scenes[] = {
    { "both keep", { { make, true }, { borrow, true } }, 2, 3 },
    { "the lender keeps, the other gives twice",
      { { make, true }, { borrow_twice, false } },
      1,
      2 },
    { "the lender gives, the other borrows again",
      { { make, false }, { borrow_twice, true } },
      0,
      2 },
    { "the lender gives, the other keeps", { { make, false }, { borrow, true } }, 2, 3 },
    { "both give, one twice", { { make, false }, { borrow_twice, false } }, 1, 1 },
    { "not borrowed at last", { { make, false }, { fail_to_borrow, false } }, 2, 3 },
    { "two keep it", { { make, false }, { borrow, true }, { borrow, true } }, 1, 1 },
    { "one of two keeps it", { { make, false }, { borrow, false }, { borrow, true } }, 1, 1 },
    { "the lender keeps it", { { make, true }, { borrow, false }, { borrow, false } }, 1, 1 },
    { "one of two borrows",
      { { make, false }, { borrow, true }, { fail_to_borrow, false } },
      1,
      1 },
    { "any die", { { make, false }, { borrow, false }, { borrow, false } }, 2, 0 },
};

static void test_scenes(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(scenes); i++) {
        const struct scene *scene = &scenes[i];

        memset(seen, 0, sizeof(seen));
        states = runs = 0;
        process_count = scene->who[2].script ? 3 : 2;
        for (int j = 0; j < process_count; j++) {
            processes[j + 1].script = scene->who[j].script;
            processes[j + 1].keeps = scene->who[j].keeps;
        }
        path.len = path.at = 0;
        do
            walk(scene->kills, scene->losses);
        while (advance());
        print_message("# %s: %llu states in %llu runs\n", scene->name, (unsigned long long)states,
                      (unsigned long long)runs);
    }
}

static int load(void **state)
{
    const char *folder = getenv("ALIQUOT_TEST_MODULES");

    (void)state;
    assert_int_equal(gpu_shared_allocs_new(&table, NULL), 0);
    for (int i = 1; i <= PROCESSES; i++) {
        char path_of[512];
        void *module;

        (void)snprintf(path_of, sizeof(path_of), "%s/shared-alloc-process-%d.so",
                       folder ? folder : ".", i);
        module = dlopen(path_of, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(module);
        processes[i].calls = dlsym(module, "shared_alloc_process");
        assert_non_null(processes[i].calls);
        processes[i].stack = malloc(STACK_SIZE);
        assert_non_null(processes[i].stack);
    }
    return 0;
}

static int unload(void **state)
{
    (void)state;
    gpu_shared_allocs_free(table);
    for (int i = 1; i <= PROCESSES; i++)
        free(processes[i].stack);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scenes),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
