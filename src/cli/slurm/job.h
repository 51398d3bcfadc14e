/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - sessions as jobs of Slurm: their numbers, names and states
 *
 * A session's number is its job_id (docs/rest.md).
 */
#ifndef AQ_CLI_SLURM_JOB_H
#define AQ_CLI_SLURM_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "model/session.h"

enum job_state {
    JOB_PENDING,
    JOB_RUNNING,
    JOB_CONFIGURING,
    JOB_COMPLETING,
    JOB_COMPLETED,
    JOB_CANCELLED,
    JOB_FAILED,
    JOB_TIMEOUT,
    JOB_NODE_FAIL,
    JOB_PREEMPTED,
    JOB_OUT_OF_MEMORY,
    JOB_STATE_COUNT
};

/* "PENDING" and "PD". */
const char *job_state_name(enum job_state state);
const char *job_state_code(enum job_state state);

/* One name or code, in any case. 0 or -EINVAL. */
int job_state_parse(const char *text, size_t len, enum job_state *ret);

bool job_state_is_ended(enum job_state state);

struct job {
    const json_t *row;    /* of the manager's list, of an array if 'set'; borrowed */
    int64_t id;           /* its own number; of a set that of the array */
    const char *array_id; /* of an element or a set; NULL = neither; borrowed from 'row' */
    int64_t array_number; /* the same; 0 = not known */
    int64_t index;        /* of an element; -1 = of a set */
    char *set;            /* "3-99%8", elements of an array without a session; owned by the list */
    char name[SESSION_NAME_MAX + 1];
    enum job_state state;
    const char *user, *account, *partition, *comment; /* never NULL, borrowed from 'row' */
    const char *reason;                               /* a word of Slurm's */
    int64_t submit_usec, start_usec, end_usec;        /* 0 = not yet; begin if it is set */
    int64_t limit_sec;                                /* 0 = none */
    int64_t cpus, mem_bytes, gpus, nodes;             /* over all nodes */
    int64_t priority;
    int exit_code, signal;
    int64_t now_usec;
};

/* Members of rows that cost the manager more than the others. */
enum {
    JOB_NEEDS_LIMIT = 1u << 0, /* the time limit */
    JOB_NEEDS_OWNER = 1u << 1, /* user and account */
    JOB_NEEDS_USAGE = 1u << 2, /* what it used, once it has ended */
    JOB_NEEDS_DEPENDENCY = 1u << 3,
    JOB_NEEDS_RESERVATION = 1u << 4,
};

/* Append the members of rows that job_read() takes, with commas between. */
void job_members(unsigned needs, struct strbuf *out);

/* 'row' must outlive *ret. -EPROTO. */
int job_read(const json_t *row, int64_t now_usec, struct job *ret, struct aq_error *err);

/* The elements 'set', owned by the caller, of an array, which wait or were cancelled: a job as
 * Slurm has it. As job_read().
 */
int job_read_set(const json_t *array, char *set, bool is_cancelled, int64_t now_usec,
                 struct job *ret, struct aq_error *err);

/* How long it has run, in seconds. */
int64_t job_elapsed_sec(const struct job *job);

#endif
