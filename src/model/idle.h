/* SPDX-License-Identifier: Apache-2.0 */
/* idle.h - which session ends because nobody uses it, and when: the rules, without clock and memory
 *
 * Three checks look at a running session. Network: nobody worked in it, and it did not compute,
 * for a time. Utilization: it used little of what it holds, on the average of a time window.
 * Lifetime: it has run as long as it may. The first that comes to its end ends the session. What
 * cannot be measured ends nothing. Times are microseconds, monotonic unless they are durations.
 */
#ifndef AQ_MODEL_IDLE_H
#define AQ_MODEL_IDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/idle_window.h"
#include "model/status.h"

enum idle_check { IDLE_NETWORK, IDLE_UTILIZATION, IDLE_LIFETIME, IDLE_CHECKS };

#define REASON_IDLE_TIMEOUT "idle-timeout"
#define REASON_IDLE_UTILIZATION "idle-utilization"
#define REASON_IDLE_LIFETIME "idle-session-lifetime"

/* "network_timeout", "utilization", "session_lifetime". */
const char *idle_check_name(enum idle_check check);
/* The reason of sessions that the check ends: REASON_IDLE_... */
const char *idle_check_reason(enum idle_check check);

/* ---- settings ---- */

#define IDLE_WARNINGS_MAX 4

struct idle_threshold {
    char metric[48]; /* "cpu_util", "mem", "cuda_util" ... */
    double percent;  /* an average below is too little */
};

/* What holds in the whole cluster; of the configuration tree (idle_settings_put()). */
struct idle_settings {
    bool says_enabled; /* the next two are said; else network checks follow policies alone */
    bool is_network_on, is_utilization_on;
    uint32_t network_types, utilization_types; /* bits of enum session_type */
    int64_t network_usec;                      /* of policies that leave it to this */
    int64_t packet_usec;       /* a connection that was silent for so long is not in use */
    int64_t window_usec;       /* of utilization */
    int64_t window_grace_usec; /* after a session began to run, before its window begins */
    int64_t user_grace_usec;   /* after a user was created, before limits of their sessions count */
    bool ends_if_any_is_low;   /* thresholds-check-operator: or; else all have to be */
    struct idle_threshold thresholds[IDLE_METRICS_MAX];
    size_t threshold_count;
    int64_t traffic_bytes; /* to apps of a session within a minute; less does not count as use */
    double cpu_percent;    /* of one core: a kernel that uses more computes; 0 = is not asked */
    double accelerator_percent;               /* likewise */
    int64_t warnings_usec[IDLE_WARNINGS_MAX]; /* before the end, the longest first; 0 = no more */
    int64_t notice_usec;
};

void idle_settings_defaults(struct idle_settings *ret);

/* Take the value of a key below "config/idle/". 1, 0 if the key means nothing here, or -EINVAL
 * without a field: what the value must be.
 */
int idle_settings_put(struct idle_settings *settings, const char *key, const char *value,
                      struct aq_error *err);

/* ---- what is kept of a session ---- */

/* As its row has it, by the wall clock; zeroed = it has none. */
struct session_idle {
    bool is_busy;            /* it was in use when this was written */
    int64_t active_usec;     /* the end of its last use; 0 = it began to run then */
    int64_t began_usec;      /* to run, where that is not session.running_usec; else 0 */
    int64_t extended_usec;   /* when it was extended last, ... */
    int64_t extension_usec;  /* ... for how long from then on, ... */
    int64_t extensions_usec; /* ... and for how long all in all */
    int64_t exempted_usec;   /* when an administrator exempted it; 0 = nobody has, ... */
    int64_t exemption_usec;  /* ... and for how long; 0 = until its end */
};

/* What changes at a time. */
enum session_idle_part {
    SESSION_IDLE_USE = 1u << 0,       /* up to began_usec */
    SESSION_IDLE_EXTENSION = 1u << 1, /* those of its name */
    SESSION_IDLE_EXEMPTION = 1u << 2
};

/* Take these parts of 'from'. */
void session_idle_take(struct session_idle *to, const struct session_idle *from, unsigned what);

/* ---- limits of a session ---- */

/* What its keypair's policy and its resource group say. */
struct idle_policy {
    int64_t timeout_usec;                            /* 0 = never, < 0 = as the settings say */
    int64_t lifetime_usec;                           /* 0 = without limit */
    int64_t group_timeout_usec, group_lifetime_usec; /* 0 = the group says nothing */
};

/* 0 = this check is off. */
struct idle_limits {
    int64_t network_usec, window_usec, lifetime_usec;
};

/* The smaller one of policy and group counts. Inference sessions have none. */
struct idle_limits idle_limits_find(const struct idle_settings *settings,
                                    const struct idle_policy *policy, enum session_type type);

/* ---- the judgment ---- */

struct idle_facts {
    int64_t now_usec;
    int64_t began_usec;    /* to run */
    int64_t grace_usec;    /* its user counts as new until then; 0 = does not */
    int64_t active_usec;   /* it was in use, or computed; at least began_usec */
    int64_t extended_usec; /* somebody wants it kept until then; 0 = nobody */
    int64_t low_usec;      /* since then the window's averages are too low; 0 = are not */
    bool is_exempt;        /* an administrator keeps it */
    bool is_unmeasured;    /* whether it computes is not known now */
    uint32_t has;          /* bits: it has the resource of this threshold */
    const struct idle_window *window; /* NULL = nothing was measured */
};

enum idle_state {
    IDLE_OFF,     /* this check does not look at it */
    IDLE_KEPT,    /* it is in use, or cannot be judged */
    IDLE_GRACE,   /* is not judged before 'at_usec' */
    IDLE_EXPIRES, /* ends at 'at_usec' unless something happens */
    IDLE_EXPIRED  /* is to end; 'at_usec' has come */
};

struct idle_verdict {
    enum idle_state state;
    int64_t at_usec;
};

struct idle_report {
    struct idle_verdict checks[IDLE_CHECKS];
    int64_t base_usec;  /* limits count from here, at the earliest */
    bool is_low;        /* the window's averages so far are too low */
    enum idle_check by; /* what ends it first; IDLE_CHECKS = nothing does as far as is known */
    int64_t at_usec;    /* when; 0 = not known */
};

void idle_judge(const struct idle_settings *settings, const struct idle_limits *limits,
                const struct idle_facts *facts, struct idle_report *ret);

#endif
