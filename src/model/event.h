/* SPDX-License-Identifier: Apache-2.0 */
/* event.h - every change of durable state, as a value
 *
 * A change is proposed as a batch of events, written by the store in one
 * transaction (all or nothing), and after the commit applied to memory in
 * commit order by the one function apply_event(). The same function fills
 * memory at start from *_LOADED events. A status event carries the (status,
 * version) that it was decided on; if the row has moved on, the whole batch
 * is refused with -ESTALE and the proposer decides again from memory.
 */
#ifndef AQ_MODEL_EVENT_H
#define AQ_MODEL_EVENT_H

#include "base/arena.h"
#include "model/agent.h"
#include "model/accounts.h"
#include "model/audit.h"
#include "model/booking.h"
#include "model/idle.h"
#include "model/model_service.h"
#include "model/session.h"
#include "model/session_array.h"

enum event_kind {
    EVENT_SESSION_CREATED,   /* session: whole, with kernels; becomes the batch's */
    EVENT_SESSION_STATUS,    /* session_status */
    EVENT_SESSION_RENAMED,   /* session_renamed */
    EVENT_SESSION_PRIORITY,  /* session_priority */
    EVENT_SESSION_FORCED,    /* session_id: forced = true */
    EVENT_SESSION_EXPLAINED, /* memory and row: reason + status_data of a PENDING session */
    EVENT_SESSION_DISMISSED, /* session_change.id, in ERROR: default lists leave it out; of the row
                                alone, and the first time counts */
    EVENT_SESSION_ACCESSED,  /* session_change.id, at 'at_usec'; of the row alone */
    EVENT_SESSION_IDLE,      /* session_idle: how long it is kept while nobody uses it, or a
                                warning that it will end */
    EVENT_SESSION_ATTEMPT,   /* attempt; of the rows alone */
    EVENT_RUN_ENDED,         /* run_ended; of the rows alone */
    EVENT_ATTEMPTS_PRUNED,   /* prune; of the rows alone */
    EVENT_ARRAY_CREATED,     /* array: becomes the batch's */
    EVENT_ARRAY_CHANGED,     /* array_change */
    EVENT_BOOKING_CREATED,   /* booking: becomes the batch's */
    EVENT_BOOKING_CHANGED,   /* booking: whole; its version is that of before + 1 */
    EVENT_SERVICE_CREATED,   /* service: becomes the batch's */
    EVENT_SERVICE_CHANGED,   /* service: whole; its version is that of before + 1 */
    EVENT_SERVICE_TOKEN_ADDED,   /* service_token */
    EVENT_SERVICE_TOKEN_REMOVED, /* service_token: revoked or expired */
    EVENT_SERVICE_TOKEN_USED,    /* service_token: so much more of it was used */
    EVENT_REPLICA_CHANGED,       /* replica_change */
    EVENT_KERNEL_STATUS,         /* kernel_status */
    EVENT_KERNEL_RESIZED,        /* kernel_resized */
    EVENT_AGENT_SAVED,           /* agent: insert or update of the whole row */
    EVENT_AGENT_STATUS,          /* agent_status */
    EVENT_AGENT_REMOVED,         /* agent_id */
    EVENT_SLOT_TYPE_KNOWN,       /* slot_type */
    EVENT_DOMAIN_SAVED,
    EVENT_DOMAIN_RENAMED, /* domain_renamed: in all rows that hold the name */
    EVENT_PROJECT_SAVED,
    EVENT_USER_SAVED,
    EVENT_KEYPAIR_SAVED,
    EVENT_KEYPAIR_REMOVED,
    EVENT_KEYPAIR_USED, /* keypair.access_key, at 'at_usec'; of the rows alone */
    EVENT_KEYPAIR_POLICY_SAVED,
    EVENT_RESOURCE_GROUP_SAVED,
    EVENT_ACCOUNT_PURGED,   /* purge_account */
    EVENT_REQUEST_ANSWERED, /* answered; of the rows alone */
    EVENT_AUDITED,          /* audited, whose texts are the arena's; of the rows alone */
    EVENT_ROWS_ADDED,       /* rows_added; of the rows alone */
    EVENT_KIND_COUNT
};

/* Whose row is removed for good, with what is attached to it. It must be inactive (a user:
 * deleted) and without live sessions; -EBUSY else.
 */
enum purge_kind {
    PURGE_USER,           /* with keypairs and memberships; id */
    PURGE_PROJECT,        /* with memberships; id */
    PURGE_DOMAIN,         /* with projects; has no users; name */
    PURGE_POLICY,         /* no keypair has it; name */
    PURGE_RESOURCE_GROUP, /* name */
};

struct event_purge {
    enum purge_kind kind;
    struct uuid id;
    char *name; /* owned by the event; NULL where the id says it */
};

struct event_session_status {
    struct uuid id;
    enum session_status from, to;
    uint32_t version;   /* before; after = version + 1 */
    const char *reason; /* NULL keeps what is there, but none goes along to RUNNING;
                                   ignored if one of a terminating state is already set (first
                                   wins) */
    char *status_data;  /* JSON or NULL to keep; owned by the event */
    char *subnet;       /* NULL keeps, see session_gives_subnet_back(); owned by the event */
    enum session_result result; /* RESULT_UNDEFINED keeps */
    bool has_retry;             /* false keeps */
    struct retry_record retry;
    bool has_rerun; /* false keeps */
    struct rerun_record rerun;
    struct uuid array_id; /* that the session is an element of; nil = none */
    /* A replica that ends as a failure: counted for this revision of its service, unless it was
     * before. 0 = it is none.
     */
    int64_t failed_revision;
};

struct event_kernel_status {
    struct uuid id; /* kernel */
    struct uuid session_id;
    enum kernel_status from, to;
    uint32_t version;
    const char *reason;  /* static or owned by the batch's arena */
    char *agent_id;      /* set when reserved; "" clears; NULL keeps */
    char *alloc;         /* JSON of chosen or granted devices; "" clears; NULL keeps */
    char *service_ports; /* JSON of what it publishes; NULL keeps */
    bool has_exit;
    int exit_code;
    char *outputs;    /* JSON of the values it has handed on; NULL keeps; owned by the event */
    uint32_t attempt; /* 0 keeps */
    char *last_stat;  /* JSON of what it used, at its end; NULL keeps */
};

/* How far an array is. Members that are 0 keep what is there, but for next, made and skipped. */
struct event_array_change {
    struct uuid id;
    uint32_t version; /* before; after = version + 1 */
    int64_t next, made, skipped;
    bool has_removed;
    struct array_set removed; /* owned by the event */
    bool drops_dependencies;  /* they are met */
    int64_t cancelled_usec, ended_usec;
};

enum replica_part {
    REPLICA_READY = 1u << 0,
    REPLICA_DRAINING = 1u << 1,
    REPLICA_RATIO = 1u << 2,
    REPLICA_HALF = 1u << 3,
    REPLICA_FAILED = 1u << 4, /* counted for its revision, once */
};

struct store_tx;

struct event {
    enum event_kind kind;
    int64_t at_usec;
    int64_t number;   /* of the first of what clients are told of it, the others follow: set by the
                       store when it writes them */
    bool ends_logins; /* of a saved user or keypair: logins by browsers go with the change */
    union {
        struct session session;
        struct event_session_status session_status;
        struct event_kernel_status kernel_status;
        struct session_array *array; /* owned by the event */
        struct event_array_change array_change;
        struct {
            struct booking *row; /* owned by the event */
            int64_t used_usec;   /* loaded: when the last session of it that ran has ended */
        } booking;
        struct {
            struct model_service *row; /* owned by the event */
            int64_t last_replica;      /* loaded: highest number of a replica so far */
            bool has_revision;         /* the last of its revisions is new */
            int64_t *dropped;          /* revisions that are not kept any longer; of the arena */
            size_t dropped_count;
            const char *reason; /* for people; of the batch's arena; NULL = it was requested */
            bool is_rollout;    /* only where a rollout is, and its goal: without a reason the
                                   history does not show it */
        } service;
        struct {
            struct uuid service_id;
            struct model_service_token token; /* owned by the event; REMOVED, USED: only its id */
            int64_t requests, spent;          /* USED: more than before */
        } service_token;
        struct {
            struct uuid id; /* of the session */
            unsigned what;  /* bits of enum replica_part: the others are kept */
            struct session_replica to;
        } replica_change;
        struct {
            struct uuid id;
            char name[SESSION_NAME_MAX + 1];
            int priority;
            char *reason, *status_data;
        } session_change; /* RENAMED, PRIORITY, FORCED, EXPLAINED, DISMISSED, ACCESSED */
        struct {
            struct uuid id;
            unsigned what; /* bits of enum session_idle_part: the others are kept */
            struct session_idle to;
            const char *warning; /* static: the reason for which it will end; NULL = none */
        } session_idle;
        struct {
            int64_t row;        /* of the session */
            const char *kind;   /* static: what the scheduler answered */
            int64_t count;      /* that many more attempts with this answer */
            int64_t first_usec; /* of them; the last one's time is at_usec */
            bool is_first;      /* the session has no others yet; false = not known */
            char *detail;       /* JSON; NULL keeps what is there */
        } attempt;
        struct {
            int64_t row;          /* of the session, which goes back to the queue */
            uint32_t number;      /* 1 = its first attempt */
            int64_t started_usec; /* 0 = its program did not start */
            const char *reason;   /* static; the attempt ended at at_usec */
            bool has_exit;
            int exit_code;
            uint32_t rank; /* of the kernel whose end it was */
            uint32_t kernel_attempt;
            char *agent_id; /* of that kernel; NULL = none */
            char *text;     /* what else is to be said; NULL = nothing */
            char *usage;    /* JSON of what it used; NULL = not measured */
        } run_ended;
        struct {
            int64_t before_usec; /* attempts of sessions that ended before */
            int64_t keep;        /* and of all but so many latest sessions, of those that ended */
        } prune;
        struct {
            struct uuid id; /* of the kernel, which is RUNNING */
            struct uuid session_id;
            uint32_t version;       /* before; after = version + 1 */
            struct slots requested; /* what it holds now */
            char *alloc;            /* NULL keeps */
        } kernel_resized;
        struct agent agent;
        struct {
            char id[AGENT_ID_MAX + 1];
            enum agent_status to;
            const char *reason;
        } agent_status; /* STATUS, REMOVED */
        struct {
            const char *name; /* interned */
            enum slot_type type;
        } slot_type;
        struct domain domain;
        struct {
            char *from, *to; /* owned by the event */
        } domain_renamed;
        struct project project;
        struct {
            struct user user;
            char *password_hash;
        } user;                 /* NULL keeps */
        struct keypair keypair; /* the store seals secret_key */
        struct keypair_policy policy;
        struct resource_group resource_group;
        struct event_purge purge_account;
        struct {
            const char *access_key, *request_key, *digest, *body; /* borrowed */
            int status;
        } answered;
        struct audit_entry audited;
        struct {
            /* Writes what has no event of its own, in the batch's transaction and after the
             * events before it; on a thread of the store, perhaps more than once.
             */
            int (*write)(struct store_tx *tx, void *data, struct aq_error *err);
            void *data;        /* borrowed */
            bool keeps_access; /* nothing of who may use which resource groups */
        } rows_added;
    };
};

struct event_batch {
    struct event *events;
    size_t count, cap;
    struct arena arena; /* for text that events borrow (reasons) */
};

struct event_batch *event_batch_new(void);
/* Frees whatever the events own and that apply did not take. */
void event_batch_free(struct event_batch *batch);
AQ_DEFINE_CLEANUP(struct event_batch, event_batch_free)

/* A zeroed event of this kind at the end. */
struct event *event_batch_add(struct event_batch *batch, enum event_kind kind, int64_t at_usec);

#endif
