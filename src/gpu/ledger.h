/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.h - what this process holds on its devices
 *
 * Reserve before the driver allocates; enter the object afterwards, or
 * release. Objects are found by the driver's pointer or handle. Allocations
 * below LEDGER_LARGE share granules as they do in the driver, which packs
 * them: their sum is rounded up, not each of them. All calls are safe from
 * any thread; none calls the driver.
 */
#ifndef AQ_GPU_LEDGER_H
#define AQ_GPU_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#define LEDGER_LARGE ((uint64_t)1 << 20)

enum ledger_kind {
    LEDGER_MEMORY,      /* cuMemAlloc and the like; key: pointer */
    LEDGER_POOL_MEMORY, /* from a pool, which pays; 'link': the pool */
    LEDGER_POOL,        /* what a pool has reserved */
    LEDGER_HANDLE,      /* physical memory of cuMemCreate; 'refs': owners and mappings */
    LEDGER_MAPPING,     /* an address range of a handle, 'link'; 'bytes': its length */
    LEDGER_TILE,        /* of a sparse array, 'bytes' its address; 'link': the handle */
    LEDGER_ARRAY,
    LEDGER_MIPMAP,
    LEDGER_CONTEXT,
    LEDGER_GRAPH,    /* an executable graph; 'bytes': what its memory nodes need at once */
    LEDGER_OPENED,   /* another process's memory, by its pointer here */
    LEDGER_EXTERNAL, /* of another interface */
    /* held with other processes, by its token (shared_alloc.h); 'link': bytes charged to others */
    LEDGER_SHARED,
    LEDGER_PENDING_RELEASE, /* left, but the agent has not acknowledged it */
};

struct ledger_entry {
    uint64_t key;
    uint64_t bytes; /* charged, as reserved */
    uint64_t link;  /* of memory: the token of the shared allocation that is charged for it, or 0 */
    uint32_t refs;
    uint8_t kind;
    uint8_t device;
    uint8_t is_used;
};

/* Charge 'bytes' on 'device'; false = it would pass the slice, or there is no
 * region. Rejections are counted where the agent sees them.
 */
bool ledger_reserve(uint32_t device, uint64_t bytes);
void ledger_release(uint32_t device, uint64_t bytes);

/* Change a charge that was made after the fact: true size known, pool grown.
 * False = it grew past the slice and stays as it was.
 */
bool ledger_resize(uint32_t device, uint64_t from, uint64_t to);

/* Contexts and code together are 'bytes' now. Same result as ledger_resize. */
bool ledger_set_overhead(uint32_t device, uint64_t bytes);
uint64_t ledger_overhead(uint32_t device);

/* All that this process is charged for, overhead included. */
uint64_t ledger_charged(uint32_t device);

/* Enter an object with refs 1; false = no memory for the table. */
bool ledger_add(enum ledger_kind kind, uint64_t key, uint32_t device, uint64_t bytes,
                uint64_t link);

/* Small allocations in granules that are charged already, with one lock less:
 * would 'bytes' fit? Then enter the object and charge it; false = no memory for
 * the table, or another thread was quicker and the slice is full. Take a plain
 * allocation out; '*ret_released' = it was small, is not shared and leaves no granule
 * empty, so its charge is gone already.
 */
bool ledger_fits_small(uint32_t device, uint64_t bytes);
bool ledger_add_small(uint64_t key, uint32_t device, uint64_t bytes);
bool ledger_take_plain(uint64_t key, struct ledger_entry *ret, bool *ret_released);

/* Look one up; take it out; set its bytes or link. False = unknown. */
bool ledger_get(enum ledger_kind kind, uint64_t key, struct ledger_entry *ret);
bool ledger_take(enum ledger_kind kind, uint64_t key, struct ledger_entry *ret);
bool ledger_set(enum ledger_kind kind, uint64_t key, uint64_t bytes, uint64_t link);

/* An object that grows and shrinks by itself is charged 'bytes' now, in place
 * of what it was charged and of 'spare', reserved for it beforehand. Both are
 * whole granules. False = unknown, or past the slice: then 'spare' is given
 * back and the object's charge stays.
 */
bool ledger_follow(enum ledger_kind kind, uint64_t key, uint64_t bytes, uint64_t spare);

/* One owner more. */
bool ledger_ref(enum ledger_kind kind, uint64_t key);

/* One owner less. True = it was the last one, and the object is taken out; its charge
 * is the caller's to release.
 */
bool ledger_unref(enum ledger_kind kind, uint64_t key, struct ledger_entry *ret);

/* The object of 'kind' whose range of 'bytes' from its key contains 'address'. */
bool ledger_find_range(enum ledger_kind kind, uint64_t address, struct ledger_entry *ret);

/* Call 'visit' for each object of 'kind'; it may not call the ledger. */
void ledger_each(enum ledger_kind kind, void (*visit)(const struct ledger_entry *entry, void *data),
                 void *data);

/* In the child after fork. */
void ledger_after_fork(void);

#endif
