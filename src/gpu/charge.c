/* SPDX-License-Identifier: Apache-2.0 */
/* charge.c - charging memory by one compare-and-swap that survives SIGKILL */
#include "gpu/charge.h"

#define SEQ_MASK (((uint64_t)1 << AQ_GPU_CHARGE_SEQ_BITS) - 1)
#define SLOT_MASK (((uint64_t)1 << AQ_GPU_CHARGE_SLOT_BITS) - 1)
#define GRANULE_MASK (((uint64_t)1 << AQ_GPU_CHARGE_GRANULE_BITS) - 1)
#define SLOT_SHIFT AQ_GPU_CHARGE_SEQ_BITS
#define GRANULE_SHIFT (AQ_GPU_CHARGE_SEQ_BITS + AQ_GPU_CHARGE_SLOT_BITS)

/* How often a swap that lost is tried again. A process waits for the others of its own
 * container; the agent waits for nobody who changes the words on purpose.
 */
#define TRIES_PROCESS UINT32_MAX
#define TRIES_AGENT 1000

static uint64_t charge_load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void charge_store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static uint64_t charge_granules_of(uint64_t word)
{
    return word >> GRANULE_SHIFT;
}

/* 'state' and 'intent': granules above the sequence number */
static int64_t charge_slot_granules(uint64_t part)
{
    return (int64_t)part >> AQ_GPU_CHARGE_SEQ_BITS;
}

static uint64_t charge_slot_device(int64_t granules, uint64_t seq)
{
    return ((uint64_t)granules << AQ_GPU_CHARGE_SEQ_BITS) | (seq & SEQ_MASK);
}

/* Note that operation 'seq' has taken effect, unless a later one is noted:
 * sequence numbers are compared on the circle. False = no tries are left.
 */
static bool charge_note_seen(uint64_t *seen, uint64_t seq, uint32_t *tries)
{
    uint64_t old = charge_load(seen);

    for (; ((seq - old) & SEQ_MASK) - 1 < SEQ_MASK / 2; --*tries) {
        if (*tries <= 1)
            return false;
        if (__atomic_compare_exchange_n(seen, &old, seq, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return true;
    }
    return true;
}

/* Change the counter by 'granules' and mark it with (slot, seq). False = the
 * sum would pass 'limit' or the word's width, or no tries are left.
 */
static bool charge_swap(struct aq_gpu_usage *usage, uint32_t slot, uint32_t device,
                        int64_t granules, uint64_t limit, uint64_t seq, uint32_t tries)
{
    uint64_t *word = &usage->devices[device].charged;
    uint64_t mark = ((uint64_t)slot << SLOT_SHIFT) | (seq & SEQ_MASK), old = charge_load(word);

    for (; tries > 0; tries--) {
        int64_t sum = (int64_t)charge_granules_of(old) + granules;
        uint32_t last = (uint32_t)(old >> SLOT_SHIFT & SLOT_MASK);

        if (granules > 0 && (uint64_t)sum > limit)
            return false;
        if (sum < 0)
            sum = 0; /* someone scribbled */
        if (last != slot && last < AQ_GPU_SLOTS_MAX
            && !charge_note_seen(&usage->slots[last].devices[device].seen, old & SEQ_MASK, &tries))
            return false;
        if (__atomic_compare_exchange_n(word, &old, ((uint64_t)sum << GRANULE_SHIFT) | mark, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return true;
    }
    return false;
}

static bool charge_change(struct aq_gpu_usage *usage, uint32_t slot, uint32_t device,
                          int64_t granules, uint64_t limit, uint32_t tries)
{
    struct aq_gpu_slot_device *own = &usage->slots[slot].devices[device];
    uint64_t state = charge_load(&own->state), seq = (state + 1) & SEQ_MASK;
    int64_t held = charge_slot_granules(state);

    charge_store(&own->intent, charge_slot_device(granules, seq));
    if (!charge_swap(usage, slot, device, granules, limit, seq, tries)) {
        charge_store(&own->intent, charge_slot_device(0, state)); /* it never happened */
        return false;
    }
    held += granules;
    charge_store(&own->state, charge_slot_device(held < 0 ? 0 : held, seq));
    return true;
}

bool charge_reserve(struct aq_gpu_usage *usage, uint32_t slot, uint32_t device, uint64_t granules,
                    uint64_t limit)
{
    if (limit > GRANULE_MASK)
        limit = GRANULE_MASK;
    if (granules > limit)
        return false;
    return granules == 0
           || charge_change(usage, slot, device, (int64_t)granules, limit, TRIES_PROCESS);
}

void charge_release(struct aq_gpu_usage *usage, uint32_t slot, uint32_t device, uint64_t granules)
{
    uint64_t held = charge_of_slot(usage, slot, device);

    if (granules > held)
        granules = held;
    if (granules)
        (void)charge_change(usage, slot, device, -(int64_t)granules, GRANULE_MASK, TRIES_PROCESS);
}

uint64_t charge_sum(const struct aq_gpu_usage *usage, uint32_t device)
{
    return charge_granules_of(charge_load(&usage->devices[device].charged));
}

uint64_t charge_of_slot(const struct aq_gpu_usage *usage, uint32_t slot, uint32_t device)
{
    int64_t held = charge_slot_granules(charge_load(&usage->slots[slot].devices[device].state));

    return held < 0 || held > (int64_t)GRANULE_MASK ? 0 : (uint64_t)held;
}

/* Bring 'state' up to date with an operation that its process did not finish. */
static void charge_finish(struct aq_gpu_usage *usage, uint32_t slot, uint32_t device)
{
    struct aq_gpu_slot_device *own = &usage->slots[slot].devices[device];
    uint64_t state = charge_load(&own->state), intent = charge_load(&own->intent),
             seq = intent & SEQ_MASK, word;
    int64_t held = charge_slot_granules(state);

    if (seq == (state & SEQ_MASK))
        return;
    word = charge_load(&usage->devices[device].charged); /* before 'seen': that is written first */
    if ((word >> SLOT_SHIFT & SLOT_MASK) == slot && (word & SEQ_MASK) == seq)
        held += charge_slot_granules(intent);
    else if ((charge_load(&own->seen) & SEQ_MASK) == seq)
        held += charge_slot_granules(intent);
    charge_store(&own->state, charge_slot_device(held < 0 ? 0 : held, seq));
}

void charge_set(struct aq_gpu_usage *usage, uint32_t slot, uint32_t device, uint64_t granules)
{
    uint64_t held;

    charge_finish(usage, slot, device);
    held = charge_of_slot(usage, slot, device);
    if (granules != held)
        (void)charge_change(usage, slot, device, (int64_t)granules - (int64_t)held, GRANULE_MASK,
                            TRIES_AGENT);
}

void charge_reclaim(struct aq_gpu_usage *usage, uint32_t slot, uint32_t device)
{
    struct aq_gpu_slot_device *dead = &usage->slots[slot].devices[device];
    uint64_t held;

    if (slot == 0 || slot >= AQ_GPU_SLOTS_MAX || device >= AQ_GPU_DEVICES_MAX)
        return;
    charge_finish(usage, slot, device);
    held = charge_of_slot(usage, slot, device);
    if (held)
        (void)charge_change(usage, slot, device, -(int64_t)held, GRANULE_MASK, TRIES_AGENT);
    __atomic_store_n(&dead->busy_ns, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&dead->contexts, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&dead->used_ns, 0, __ATOMIC_RELAXED);
}
