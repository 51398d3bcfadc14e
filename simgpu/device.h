/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - a graphics card made of one shared file
 *
 * Every process that loads the simulated libcuda.so.1 or libnvidia-ml.so.1
 * maps the file that SIMGPU_DEVICE names. In it are the cards, and for each
 * client process what it holds and what it has queued. A client holds a
 * record lock on its slot's byte, so Linux says who is dead, also across
 * pid namespaces; a process that needs memory or a list entry reclaims what the dead left.
 *
 * Time: nothing runs; each caller brings the card's state forward to now
 * (execution.c). Now is CLOCK_MONOTONIC, or, on a card made with 'virtual', a
 * clock of discrete events that its programs have in common (virtual_clock.c).
 */
#ifndef SIMGPU_DEVICE_H
#define SIMGPU_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_MAGIC 0x73696d67u
#define SIM_DEVICES_MAX 8
#define SIM_CLIENTS_MAX 160
#define SIM_STREAMS 16 /* hardware queues of a client on a card; streams share them */
#define SIM_RING 128   /* launches in a queue; the next one waits for room */
#define SIM_EVENTS 2048
#define SIM_BUCKETS 64
#define SIM_BUCKET_NS 20000000 /* use is remembered in pieces of 20 ms */

#define SIM_GRANULE ((uint64_t)2 << 20)
#define SIM_LARGE ((uint64_t)1 << 20) /* below this, allocations share granules */

enum sim_kind { SIM_KERNEL, SIM_EVENT, SIM_WAIT };

struct sim_item {
    int64_t left_ns; /* of a GPU kernel, on the processors it can use */
    uint32_t blocks;
    uint16_t kind;
    uint16_t event; /* to mark, or to wait for */
    uint64_t event_turn;
};

struct sim_queue {
    uint64_t pushed, done;
    struct sim_item items[SIM_RING];
};

struct sim_event {
    uint64_t recorded, done; /* turns: done once 'done' reaches the turn recorded */
    int64_t at_ns;
};

struct sim_use { /* by one client on one card */
    uint64_t memory, contexts;
    int64_t busy_ns;
    uint64_t launches;
    int64_t bucket_id[SIM_BUCKETS];
    int64_t bucket_ns[SIM_BUCKETS];
    struct sim_queue queues[SIM_STREAMS];
};

struct sim_client {
    int32_t pid;           /* as it counts itself; 0 = free */
    uint64_t program_mark; /* tells it from others that count themselves so */
    struct sim_event events[SIM_EVENTS];
    struct sim_use uses[SIM_DEVICES_MAX];
};

struct sim_device {
    unsigned char uuid[16];
    char name[64];
    uint64_t memory;
    uint32_t processors;
    uint32_t current; /* client that has the processors */
    int64_t now_ns, turn_end_ns;
};

/* The clock of a card made with 'virtual'; virtual_clock.c. A waiter is a thread that reads it. */
#define SIM_WAITERS_MAX 64

struct sim_waiter {
    int32_t pid, tid;   /* 0 = free */
    uint32_t is_asleep; /* a futex */
    uint32_t has_slept;
    int64_t wake_ns;
};

struct sim_time {
    uint32_t expected; /* waiters without whom it stands still; 0 = the real clock */
    uint32_t arrived;  /* how many of them have slept once */
    int64_t now_ns;
    pthread_mutex_t lock;
    struct sim_waiter waiters[SIM_WAITERS_MAX];
};

/* Errors on demand: every Nth call fails, 0 = none. */
struct sim_faults {
    uint32_t alloc_every, launch_every, nvml_delay_us, hide_process_list;
    uint64_t alloc_count, launch_count;
    char hidden_symbol[64];
};

/* What nvmlDeviceSetMemoryLimits_v1() was told. Kept and shown; nobody is refused
 * anything for it, as programs in containers do not know their cgroup's path.
 */
#define SIM_LIMITS_MAX 32

struct sim_limit {
    char cgroup[512]; /* "" = free */
    uint32_t device;
    uint64_t soft, hard;
};

/* Memory that processes share. While the client that made it holds it, it is in that
 * client's sum; after that it is in the card's, until nobody holds it and no file
 * descriptor of it is open (each has a lock at SIM_SHARED_LOCKS + its name).
 */
#define SIM_SHARED_MAX 1024
#define SIM_SHARED_LOCKS ((int64_t)1 << 40)

struct sim_shared {
    uint64_t serial, bytes; /* bytes 0 = free; counted in whole granules */
    uint32_t device;
    uint32_t maker; /* client + 1; 0 = has let go of it */
    uint64_t holders[(SIM_CLIENTS_MAX + 63) / 64];
};

struct sim_card {
    uint32_t magic, device_count;
    uint64_t context_bytes, module_bytes;
    int64_t slice_ns; /* of a client, while others wait */
    pthread_mutex_t lock;
    struct sim_time time;
    struct sim_faults faults;
    struct sim_device devices[SIM_DEVICES_MAX];
    struct sim_client clients[SIM_CLIENTS_MAX];
    struct sim_limit limits[SIM_LIMITS_MAX];
    uint64_t shared_serial;
    struct sim_shared shared[SIM_SHARED_MAX];
};

struct sim_options {
    uint32_t devices, processors;
    uint64_t memory, context_bytes, module_bytes;
    int64_t slice_ns;
    uint32_t expected; /* of the virtual clock; 0 = none */
};

/* Make the file. 0 or -errno. */
int sim_create(const char *path, const struct sim_options *options);

/* Map it; NULL with errno. 'fd' stays open for the locks. */
struct sim_card *sim_open(const char *path, int *ret_fd);

/* This process's card: maps the file and takes a slot once. NULL = no card. After
 * fork a child has none.
 */
struct sim_card *sim_card(void);
struct sim_client *sim_self(void);

/* False in the child of a process that had a slot. */
bool sim_is_parent(void);

/* The same without taking a client's slot: for who only looks. */
struct sim_card *sim_card_to_look(int *ret_fd);

void sim_lock(struct sim_card *card);
void sim_unlock(struct sim_card *card);

/* Free the slots of dead clients; under the lock. */
void sim_reclaim(struct sim_card *card, int fd);

/* A client's pid as the caller knows it; 0 = dead, -1 = the caller's namespace has no pid for it. */
int sim_pid_of(const struct sim_card *card, int fd, uint32_t client);

/* --- shared_alloc.c --- */

/* Memory that this process has in its sum becomes shared; its number, or -1. */
int sim_shared_make(uint32_t device, uint64_t bytes);

/* A name for it that is never another's, and what it names now; -1 = nothing. */
uint64_t sim_shared_name(int number);
int sim_shared_find(uint64_t name);

/* This process holds what has that name; false = it is gone. */
bool sim_shared_hold(uint64_t name, uint32_t *ret_device, uint64_t *ret_bytes);

/* It holds it no longer. What the maker had in its sum leaves it. */
void sim_shared_drop(int number);

/* A file descriptor that keeps it, and the name that is written on one; 0 = none. */
int sim_shared_open_fd(int number);
uint64_t sim_shared_read_fd(int fd);

/* Under the lock: take from it what dead clients held; what it has in the card's sum;
 * what a client holds that others have in their sums.
 */
void sim_shared_reclaim(struct sim_card *card);
uint64_t sim_shared_used(const struct sim_card *card, uint32_t device);
uint64_t sim_shared_by_others(const struct sim_card *card, uint32_t device, uint32_t client);

/* Memory that all clients hold; under the lock. */
uint64_t sim_memory_used(const struct sim_card *card, uint32_t device);

/* Change what this process holds. False = not enough memory on the card. */
bool sim_memory_take(uint32_t device, uint64_t bytes);
void sim_memory_give(uint32_t device, uint64_t bytes);

/* --- execution.c, under the lock --- */

int64_t sim_now_ns(void);

/* Bring a card to 'now'; returns when something will next be done, or INT64_MAX. */
int64_t sim_advance(struct sim_card *card, uint32_t device, int64_t now);

/* Percent of the last second in which the client, or any (-1), had the processors. */
uint32_t sim_utilization(const struct sim_card *card, uint32_t device, int client, int64_t now);

/* --- execution.c, takes the lock --- */

/* Queue an item of this process, waiting for room. Returns its number in the queue. */
uint64_t sim_push(uint32_t device, uint32_t queue, const struct sim_item *item);

/* Wait until a queue has done 'number' items, or an event its turn. */
void sim_wait_queue(uint32_t device, uint32_t queue, uint64_t number);
void sim_wait_event(uint32_t device, uint32_t event, uint64_t turn);
bool sim_is_event_done(uint32_t device, uint32_t event, uint64_t turn);
bool sim_is_queue_done(uint32_t device, uint32_t queue);

#endif
