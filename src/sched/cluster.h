/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.h - the agents as columns of amounts, their states, and where requests fit
 *
 * Amounts are int64_t in one column per known slot type and a last one that
 * counts kernels, so that trying an agent is a few comparisons. Agents whose
 * architecture, free amounts and devices are equal share a state; a choice
 * looks at each state once, however many agents are in it, and what was found
 * about a (request, state) pair is kept as long as the state lives. A state
 * lists its agents by id, so ties go to the first id. Equal requests are one
 * object, too: ten thousand sessions that ask for the same are one request.
 *
 * Devices: an agent that lists the devices of a slot has room for an amount
 * of it only if the amount fits on one device; what exceeds a whole device is
 * divided into equal parts on as few devices as can hold them whole. A request
 * that may be split can have any parts, where there is no other way. Devices
 * may be of a model, and requests may name the models they accept. One with a
 * quantum gives multiples of that; the parts of an amount come from devices of
 * one quantum, the largest that will do, as in alloc/alloc_map.h. Without devices only
 * the sum counts.
 *
 * A booked part of an agent is a node of its own, with the agent's devices and what is booked of
 * each. Only requests of the booking's sessions fit there, and they fit nowhere else. Of columns
 * that the booking does not name, it shares what the agent has free.
 *
 * Deterministic; no clock, no I/O. Indexes of agents and requests are stable
 * while they exist. Not for threads.
 */
#ifndef AQ_SCHED_CLUSTER_H
#define AQ_SCHED_CLUSTER_H

#include "base/map.h"
#include "sched/sched.h"

#define CLUSTER_NONE UINT32_MAX
#define CLUSTER_MODELS_MAX 64
#define CLUSTER_QUANTA_MAX 64
#define CLUSTER_VOLUMES_MAX 64

struct cluster_device {
    int64_t free, capacity;
    uint16_t column;
    uint8_t model;   /* index in cluster.models, 0 = not known */
    uint8_t quantum; /* index in cluster.quanta, 0 = any amount */
    uint32_t unused; /* 0: devices are compared as bytes */
};

/* Agents with equal contents. Never changes but for its members. */
struct node_state {
    uint64_t hash;
    uint32_t generation; /* differs from any other's that had or will have this index */
    uint32_t booking;    /* of which it is a part; 0 = whole agents */
    uint16_t architecture;
    uint16_t device_count;
    uint64_t volumes;  /* bits of those that it mounts */
    uint32_t *members; /* node indexes, by id */
    uint32_t member_count, member_cap;
    int64_t *free;                  /* cluster.width amounts, then the devices */
    struct cluster_device *devices; /* by column, model, capacity, most free last */
};

struct cluster_node {
    char *id; /* NULL = not in use */
    uint32_t state;
    uint32_t agent;                 /* the node of the whole agent; itself unless it is a part */
    uint32_t number;                /* of the agent, in the order in which agents came */
    uint32_t booking;               /* of which it is a part; 0 = a whole agent */
    uint32_t first_part, next_part; /* parts of an agent; CLUSTER_NONE = the end */
    bool *shared; /* of a part, per column: what is free there is what its agent has free */
    uint16_t architecture;
    uint16_t device_count;
    uint64_t volumes;
    uint16_t network;       /* class, as cluster.networks numbers them from 1; 0 = none */
    char *topology;         /* NULL = not known */
    bool is_capacity_known; /* 'capacity' is what it offers */
    int64_t *free, *capacity;
    struct cluster_device *devices; /* as the agent listed them */
};

/* What was found about a request and a state. */
struct fit {
    uint32_t generation; /* of the state; valid only with the cluster's epoch */
    uint32_t epoch;
    double score;   /* selector's; for those that compare, how many slots are unutilized */
    int32_t device; /* to take a single part from, in the state's order; -1 = best fit */
    bool has_room;
    bool is_split; /* only because the request may be split; others are preferred */
    bool is_bound; /* 'score' is what it is at most, 'device' not yet known */
};

/* What must go to one agent as a whole. */
struct slot_request {
    uint32_t id, users;
    uint32_t kernels;
    uint32_t booking;      /* it fits on parts of this booking alone; 0 = on whole agents */
    uint16_t architecture; /* 0 = any */
    bool may_split;        /* any division will do, if the one above finds no room */
    bool *named;           /* per column: the request names it, be it 0 */
    uint64_t models;       /* bits of accepted models */
    uint64_t volumes;      /* bits of those that the agent has to mount */
    int64_t *amounts;      /* per column, kernels included */
    uint16_t *order;       /* columns as selectors compare them */
    uint16_t order_count;
    const char *unknown;       /* a slot wanted that no agent ever had, or NULL */
    uint64_t no_room_version;  /* cluster.free_version when it fitted nowhere; 0 = not so */
    uint64_t booked_version;   /* cluster.free_version when it fitted nowhere beside bookings, */
    int64_t booked_stay_usec;  /* for as long as that, or longer */
    uint64_t capacity_version; /* cluster.agents_changed + 1 as 'capacity' was counted; 0 = never */
    int64_t capacity;          /* how many of it the agents could hold if they were empty */
    struct fit *fits;          /* by state */
    uint32_t fit_count;
};

struct cluster {
    size_t columns, width;    /* slots; and with the column of kernels */
    const char **names;       /* of the columns, sorted */
    int64_t *device_capacity; /* per column: the largest device seen; 0 = none */
    size_t cpu_column;        /* SIZE_MAX = none */
    const char *const *slot_priority;
    size_t slot_priority_count;
    struct cluster_node *nodes;
    size_t node_count, node_cap;
    uint32_t agent_count;   /* nodes that are whole agents */
    struct map nodes_by_id; /* id -> index + 1, of whole agents */
    uint32_t *free_parts;   /* nodes of parts that are closed */
    size_t free_part_count, free_part_cap;
    struct node_state *states;
    size_t state_count, state_cap;
    uint32_t *free_states;
    size_t free_state_count, free_state_cap;
    int64_t *free_table; /* free amounts of states, column by column: see cluster_free() */
    size_t free_table_cap;
    uint32_t *index; /* hash table: state + 1 */
    size_t index_size, used_state_count;
    uint32_t next_generation, epoch;
    uint64_t agents_changed;
    uint64_t free_version; /* counts changes by which something became free; from 1 */
    struct slot_request **requests;
    size_t request_count, request_cap, idle_requests;
    struct map requests_by_key;
    const char *models[CLUSTER_MODELS_MAX]; /* owned; [0] = "" */
    size_t model_count;
    const char *volumes[CLUSTER_VOLUMES_MAX]; /* owned */
    size_t volume_count;
    int64_t quanta[CLUSTER_QUANTA_MAX]; /* [0] = 0 */
    size_t quantum_count;
    char **architectures; /* [0] = "" */
    size_t architecture_count, architecture_cap;
    char **networks; /* classes */
    size_t network_count, network_cap;
    struct cut_list *cuts; /* by node, see reach.h */
    size_t cut_cap, cut_pairs;
    struct topology *topology;      /* topology.h; NULL = to be made again */
    struct cluster_device *scratch; /* as many as any agent has */
    size_t scratch_cap;
    struct strbuf key; /* scratch */
};

void cluster_init(struct cluster *c, const struct slot_types *types,
                  const char *const *slot_priority, size_t slot_priority_count);
void cluster_done(struct cluster *c);

/* ---- agents ---- */

/* Add it or replace what is known of it. -EINVAL for devices that
 * cannot be: more free than they have, a slot nobody knows.
 */
int cluster_set_agent(struct cluster *c, const struct sched_agent *agent, uint32_t *ret_node,
                      struct aq_error *err);
uint32_t cluster_find_agent(const struct cluster *c, const char *id);

struct device_part {
    uint32_t device;
    int64_t amount;
};

/* A node for what 'booking' (not 0) keeps of the whole agent 'agent': these amounts of the named
 * columns and these parts of its devices. Other columns without devices are shared with the agent.
 * It takes nothing if the agent does not. Returns the node.
 */
uint32_t cluster_open_part(struct cluster *c, uint32_t agent, uint32_t booking,
                           const int64_t *amounts, const bool *named,
                           const struct device_part *parts, uint32_t count);
/* Nothing fits on it any more, and what is given back there is not its agent's. Its index may be
 * used again.
 */
void cluster_close_part(struct cluster *c, uint32_t part);

/* ---- requests ---- */

/* Bits of volumes. Those that there is place for no more are all CLUSTER_VOLUME_UNKNOWN, which no
 * agent has.
 */
#define CLUSTER_VOLUME_UNKNOWN (UINT64_C(1) << (CLUSTER_VOLUMES_MAX - 1))
uint64_t cluster_volumes(struct cluster *c, const char *const *volumes, size_t count);

struct slot_request_spec {
    const struct slots *const *kernels;
    size_t kernel_count; /* that go to one agent together */
    const char *architecture;
    const char *const *models; /* NULL = any */
    size_t model_count;
    const char *const *volumes;
    size_t volume_count;
    uint32_t booking;
    bool may_split;
};
/* The one request that asks for this, with a user more. */
struct slot_request *slot_request_get(struct cluster *c, const struct slot_request_spec *spec);
void slot_request_release(struct cluster *c, struct slot_request *req);

/* ---- fit ---- */

/* Compute it again; only for the next. */
const struct fit *cluster_compute_fit(const struct cluster *c, struct slot_request *req,
                                      uint32_t state, const struct selector *selector);
/* Whether an agent in this state has room, and how good it is. The first may give only a bound. */
static inline const struct fit *cluster_fit_bound(const struct cluster *c, struct slot_request *req,
                                                  uint32_t state, const struct selector *selector)
{
    if (state < req->fit_count && req->fits[state].generation == c->states[state].generation
        && req->fits[state].epoch == c->epoch)
        return &req->fits[state];
    return cluster_compute_fit(c, req, state, selector);
}
const struct fit *cluster_fit(const struct cluster *c, struct slot_request *req, uint32_t state,
                              const struct selector *selector);
/* What each state has free of one column, by state; SCHED_ABSENT for those without members. */
static inline const int64_t *cluster_free(const struct cluster *c, size_t column)
{
    return &c->free_table[column * c->free_table_cap];
}
/* The column that rules out most agents. */
size_t cluster_lead_column(const struct cluster *c, const struct slot_request *req);
/* Is the agent of the architecture asked for, mounts it the volumes, and is it, or is it a part of,
 * what the request's booking keeps?
 */
bool cluster_matches(const struct cluster *c, const struct slot_request *req, uint32_t node);

/* Devices that 'req' would take of a state, in its order: indexes and amounts
 * into 'ret' (room for all devices). The count, or -ENOSPC.
 */
int fit_choose_devices(const struct cluster *c, const struct slot_request *req,
                       const struct cluster_device *devices, size_t count, int device,
                       struct device_part *ret);
/* How many of 'req' these amounts and devices, sorted as a state's, could hold at once: at least as
 * many as they do, UINT16_MAX at most.
 */
uint32_t fit_count_row(const struct cluster *c, const struct slot_request *req, const int64_t *free,
                       const struct cluster_device *devices, size_t device_count);
/* Whether these amounts and devices, sorted as a state's, fit. */
bool fit_check_row(const struct cluster *c, const struct slot_request *req, const int64_t *free,
                   const struct cluster_device *devices, size_t device_count);
/* What devices lack to hold an amount: so many of them are needed ('parts') with 'each' free. */
struct shortage {
    int64_t missing; /* how much more would do */
    int64_t parts, each;
    int64_t ready;   /* devices that have as much free */
    int64_t usable;  /* devices that could have it */
    int64_t most;    /* free on the best of those that are not ready; -1 = all are */
    uint32_t device; /* which that is: its 'unused' */
    int64_t sum;     /* free on all of them together */
    int64_t finest;  /* no device divides the amount: the least quantum of any; else 0 */
    bool is_whole;   /* a part is a device */
};
/* Of devices of one column, with their places in 'unused'; they are sorted. False if nothing is
 * missing.
 */
bool fit_find_shortage(const struct cluster *c, const struct slot_request *req,
                       struct cluster_device *devices, size_t count, int64_t amount,
                       struct shortage *ret);
/* Into the order of a state's devices. */
void cluster_sort_devices(struct cluster_device *devices, size_t count);

/* Take what 'req' asks for of an agent; the parts are of its devices in its
 * own order (free() them). Where they do not fit, amounts go below 0 and no
 * device is taken.
 */
void cluster_hold(struct cluster *c, uint32_t node, const struct slot_request *req, int device,
                  struct device_part **ret_parts, uint32_t *ret_count);
/* The same with known parts; and back. */
void cluster_hold_parts(struct cluster *c, uint32_t node, const struct slot_request *req,
                        const struct device_part *parts, uint32_t count);
void cluster_release(struct cluster *c, uint32_t node, const struct slot_request *req,
                     const struct device_part *parts, uint32_t count);

/* Every (request, state) pair must be looked at again: a selector has learned. */
static inline void cluster_forget_fits(struct cluster *c)
{
    c->epoch++;
}

/* The amounts per column, 'absent' where 'slots' (may be NULL) has none. */
void cluster_fill_row(const struct cluster *c, const struct slots *slots, int64_t absent,
                      int64_t *row);
size_t cluster_column(const struct cluster *c, const char *slot_name); /* SIZE_MAX = none */

#endif
