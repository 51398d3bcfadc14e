/* SPDX-License-Identifier: Apache-2.0 */
/* session_entry.h - a session in memory, with what its agents said of its kernels
 *
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_CORE_STATE_SESSION_ENTRY_H
#define AQ_MANAGER_CORE_STATE_SESSION_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "manager/core/images.h"
#include "manager/core/state/durable.h"
#include "model/cluster_network.h"
#include "model/resource_opts.h"
#include "model/session.h"
#include "sched/scheduler.h"

struct account;
struct agent_entry;
struct array_entry;
struct aq_error;
struct booking_entry;
struct core;
struct idle_entry;
struct measured;
struct replica_entry;
struct resize;
struct resource_group_entry;
struct session_use_entry;

#define SESSION_GROUP_NAME_MAX 64 /* bytes of session_spec.session_group */
#define PRIORITY_COUNT 101
#define PRIORITY_DEFAULT 10

/* What the kernel's agent last said about its present attempt. */
enum fact {
    FACT_NONE,
    FACT_CREATING,
    FACT_BOOTSTRAPPING, /* its bootstrap script runs */
    FACT_RUNNING,
    FACT_ENDED,
    FACT_ERROR,
    FACT_ABSENT
};

struct kernel_entry {
    struct session_entry *entry;   /* that it belongs to */
    const struct slots *requested; /* of its kernel */
    uint32_t heartbeat;            /* agent_entry.heartbeat that last had it */
    struct list agent_link;        /* in agent_entry.kernels while it holds */
    int64_t held_usec;             /* wall clock: since then; 0 = before this manager's life */
    enum fact fact;
    bool has_exit;
    int exit_code;
    char *outputs;      /* JSON of what its program has handed on; NULL = nothing */
    int64_t ended_usec; /* monotonic: when its end was reported; 0 = not */
    const char *reason; /* static */
    char *alloc, *service_ports, *error; /* JSON; error: {"kind","field","text"} */
    bool error_is_transient;             /* another try may work */
    bool error_is_image;                 /* what failed is the image, not the start */
    bool is_pulling;                     /* its agent fetches the image */
    struct core_image_progress pull;     /* how far, while it does */
    char *pull_failure;                  /* error of its last try, while it does; NULL = none */
    int64_t pulled_usec;                 /* monotonic, when that was over; 0 = it was not seen */
    char *
        limit_violations; /* limit_violation.c: what its agent found, a line each; NULL = nothing */
    int64_t sent_usec;    /* monotonic: the order of this attempt was sent; 0 = not since the
                                agent connected */
    uint32_t network_version; /* that its agent was told last of the network between agents */
    bool is_ready;            /* its agent holds it until it is released */
    int64_t release_usec;     /* monotonic: the release was sent; 0 = as sent_usec */
    bool destroy_sent, kill_sent;
    struct {
        bool is_known; /* the group's scheduler has it apart from its session, as 'handle' */
        uint32_t handle;
        bool is_preempted;  /* it is to make room for a session */
        int64_t retry_usec; /* monotonic, PENDING: not to be placed before; 0 = at once */
        uint32_t failures;  /* since failed_usec, monotonic */
        int64_t failed_usec;
    } single; /* of a running session: scheduling/kernel_queue.c, session/elastic.c */
    struct measured *measured; /* NULL = never */
    struct {
        double cpu, accelerator, network; /* sums of 'count' samples */
        uint32_t count;
        int64_t since_usec;  /* monotonic: of the first */
        int64_t judged_usec; /* monotonic: when such a sum was looked at last; 0 = never */
    } use;                   /* idle_entry.c */
};

/* What the group's scheduler knows of a session. */
enum sched_membership { MEMBERSHIP_NONE, MEMBERSHIP_WAITING, MEMBERSHIP_HOLDING };

struct session_entry {
    struct session s; /* first: a struct session * of memory is a struct session_entry * */
    struct durable durable;
    struct list all_link;                            /* core.sessions, by row */
    struct array_entry *array;                       /* that it is an element of; NULL = none */
    struct list array_link;                          /* in its living */
    bool array_waiting, array_begun, array_admitted; /* counted as such there, and the next */
    bool
        array_held; /* PENDING, parked: as many elements as its array lets run at once do, or will */
    struct booking_entry *booking; /* in which it runs; NULL = none, or it has finished */
    struct list booking_link;      /* in its sessions */
    struct replica_entry *replica; /* model_service_entry.h; NULL = it is no replica */
    struct resource_group_entry *resource_group;
    struct account *accounts[SCHED_ACCOUNT_KINDS];
    struct list account_links[SCHED_ACCOUNT_KINDS]; /* account.members while it holds */
    int64_t bytes;                                  /* its part of its user's session_bytes */
    bool is_in_usage;                               /* it is in those */
    int64_t since_usec;                             /* monotonic, when this status was applied */
    struct {
        bool wants_restart;
        bool end_is_forced;
        const char *end_reason; /* static; wanted end, NULL = none */
        struct list waiters;    /* struct waiter: commands that wait for a status */
    } commands;                 /* session/control.c: what users want of it */
    struct {
        int64_t backoff_usec; /* monotonic: not to be started before; 0 = at once */
        char *failed_agent;   /* where its last start failed; NULL = none did */
    } retry;                  /* session/retry.c */
    struct {
        bool is_reading, is_read;  /* from the store, what follows; until the status changes */
        struct session_spec *spec; /* all of it; NULL = s.spec is */
        char *dotfiles;            /* of its owners: kernel_spec.dotfiles; NULL = none */
        char *bootstrap;           /* of its keypair, where it has none itself; NULL = none */
        char *network; /* session/session_network.c: the list of 'network_version', NULL = none */
        uint32_t network_version;
        struct arena arena;         /* of 'roles' */
        struct cluster_role *roles; /* of 'spec'; NULL = none, or not parsed */
        size_t role_count;
    } start; /* session/agent_command.c */
    struct {
        struct list link; /* PENDING: in waiting or parked of its group, or parked of an account */
        struct list lacking_link; /* in lacking of its group: it runs, and kernels of it wait */
        bool is_parked;
        bool was_skipped;                      /* a pass could have started it, were it not busy */
        enum sched_verdict verdict, explained; /* PENDING: last pass's, and what the row says */
        int64_t verdict_usec;                  /* monotonic */
        int64_t again_usec; /* monotonic: it holds up others, look at it again then */
        int64_t
            eligible_usec; /* realtime: when a rule last stopped holding it back; 0 = none did */
    } queue;               /* scheduling/queue.c, pass.c */
    struct {
        struct list change_link; /* in resource_group_entry.changes: the scheduler is to be told */
        enum sched_membership membership;
        uint32_t handle; /* there, unless MEMBERSHIP_NONE */
        bool is_placing; /* a placement is under way */
        bool is_outside; /* the scheduler cannot hold what it holds */
    } sched;             /* scheduling/sched_sync*.c */
    struct {
        bool is_preempting; /* PENDING: the scheduler holds a place until others have left it */
        bool is_preempted;  /* it is to leave for the session 'by' */
        struct uuid by;
        int64_t next_pass_usec; /* monotonic, PENDING: who is too young to be preempted now may be
                                   old enough then */
    } preemption;               /* scheduling/preemption.c */
    struct {
        struct cluster_range subnet; /* bits 0 = none is taken */
        uint32_t version;            /* counts changes of which kernels are where */
    } network;                       /* subnets.c, session/session_network.c */
    struct {
        char **agents;   /* per kernel: where it will start; NULL = none is reserved */
        bool is_unsaved; /* PENDING: its row does not say so yet */
    } reservation;       /* scheduling/reservation.c */
    struct {
        uint32_t tries;            /* passes in vain that its scheduler no longer knows of */
        uint32_t tries_written;    /* of all, those that are in the store */
        int64_t written_usec;      /* monotonic */
        int64_t turn_usec;         /* the same: when it may write; 0 = it has not asked */
        uint32_t tries_base;       /* of all, those before the present run of SCHED_NO_ROOM */
        bool has_rows;             /* the store may have some of it */
    } attempts;                    /* scheduling/attempts.c */
    struct resize *resize;         /* session/resize.c; NULL = none is wanted */
    struct session_use_entry *use; /* session_use.c; NULL = nobody has worked in it */
    struct idle_entry *idle;       /* idle_entry.c; NULL = nothing is known yet */
    struct kernel_entry kernels[]; /* as s.kernels */
};

static inline struct session_entry *session_entry_of(const struct session *s)
{
    return (struct session_entry *)(void *)s;
}

/* The session of that id in memory; NULL = there is none. */
struct session_entry *session_entry_find(const struct core *core, const struct uuid *id);

/* It does not start before this time of the wall clock: its own, or that of its booking; 0 = at
 * once.
 */
int64_t session_entry_starts_usec(const struct session_entry *l);

/* What it asks for as schedulers are told, without accounts and owner, in core->scratch; of its
 * kernels those that hold something ('holding'), or all, up to its minimum.
 */
void session_entry_describe(struct core *core, struct session_entry *l, bool holding,
                            struct sched_session *ret);

/* As it says itself, else as its resource group does. */
enum splitting session_entry_splitting(const struct session_entry *l);

/* One that nobody finds, of the contents of 's'. */
struct session_entry *session_entry_new(struct core *core, struct session *s);

/* Take the contents of 's' into memory. */
struct session_entry *session_entry_add(struct core *core, struct session *s);

/* Out of every list and index; freed as a durable object that is retired. */
void session_entry_retire(struct core *core, struct session_entry *l);

/* What was read for its start. */
void session_entry_forget_start(struct session_entry *l);

/* The memory, and all that it owns; it is in no list any more. NULL is not allowed. */
void session_entry_free(struct session_entry *l);

/* Its domain is renamed; account_rename_domain() comes with it. */
void session_entry_rename_domain(struct core *core, struct session_entry *l, const char *name);

/* Another name ('name' is copied), unique for its user. */
void session_entry_rename(struct core *core, struct session_entry *l, const char *name);

/* A kernel begins or ends to hold its agent's resources; the wall clock's time, 0 = long ago. */
void session_entry_hold(struct core *core, struct session_entry *l, size_t rank, int64_t at_usec);

void session_entry_release(struct core *core, struct session_entry *l, size_t rank,
                           int64_t at_usec);

/* Forget what was said and sent about a kernel. */
void session_entry_forget_facts(struct kernel_entry *k);

/* ---- memory ----
 *
 * An estimate of what a session takes from its creation to its end: itself, its kernels and its
 * texts. Counted by user and together, when it is created and when a manager loads it.
 */

/* What it takes. */
int64_t session_bytes_of(const struct session *s);

/* May a session of this user (a SCHED_USER) take as much more? -EDQUOT says which limit is
 * reached, and what to do.
 */
int session_bytes_check(const struct core *core, const struct account *user, int64_t bytes,
                        struct aq_error *err);

/* It takes as much from now on, or gives it back if 'bytes' is negative. */
void session_bytes_add(struct core *core, struct account *user, int64_t bytes);

#endif
