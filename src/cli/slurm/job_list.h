/* SPDX-License-Identifier: Apache-2.0 */
/* job_list.h - the jobs that an option such as -j, -u or -t means, as the manager has them */
#ifndef AQ_CLI_SLURM_JOB_LIST_H
#define AQ_CLI_SLURM_JOB_LIST_H

#include "cli/cli.h"
#include "cli/slurm/job.h"
#include "cli/slurm/job_ids.h"

/* Lists have commas between; NULL = any. */
struct job_query {
    const char *ids, *names, *users, *partitions, *accounts;
    const char *states; /* "all" is all */
    bool is_all_users;  /* everyone's, where the caller may see them; else the caller's own */
    bool has_ended;     /* also jobs that ended after 'since_usec' */
    int64_t since_usec, until_usec; /* submitted before the latter; 0 = any */
    bool must_exist;                /* each of 'ids', else it is an error */
    bool is_expanded; /* each element that waits is a job; else all of an array's are one */
    unsigned needs;   /* JOB_NEEDS_ */
};

struct job_list {
    json_t *rows;   /* of all that follows */
    json_t *arrays; /* rows of arrays by id, likewise */
    struct job *jobs;
    size_t count, cap;
};

/* job_fetch.c: read the rows of sessions and arrays that may match, into rows and arrays. */
int job_list_fetch(struct cli *cli, const struct job_query *query, const struct job_ids *ids,
                   bool everyone, unsigned needs, struct job_list *ret, struct aq_error *err);

/* In the order of their numbers. *ret is to be released in any case, and zeroed before. */
int job_list_read(struct cli *cli, const struct job_query *query, struct job_list *ret,
                  struct aq_error *err);
void job_list_done(struct job_list *list);

#endif
