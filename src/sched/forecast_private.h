/* forecast_private.h - what the files behind a forecast do for each other */
#ifndef AQ_SCHED_FORECAST_PRIVATE_H
#define AQ_SCHED_FORECAST_PRIVATE_H

#include "sched/state_private.h"

struct step {
    int64_t from_usec;
    int64_t *free;          /* width amounts, then what each device has free */
};

struct line {
    struct step *steps;
    uint32_t count, cap;
    uint32_t version;       /* changes of the line; from 1 */
};

#define TIMES_BUCKETS 1024

struct forecast {
    struct sched *s;
    struct arena *arena;
    int64_t now_usec;
    bool is_plan;           /* nothing starts: unknown lifetimes have no end, nothing is held */
    struct line *lines;     /* per node */
    uint32_t *by_id;        /* nodes */
    uint32_t node_count;
    struct times *times[TIMES_BUCKETS]; /* see forecast.c */
    int64_t *least;         /* scratch: one step's amounts */
    struct device *devices; /* scratch */
    struct part *parts;
};

static inline int64_t time_add(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* ---- line.c ---- */

/* Every agent with what it has free now, for ever. 0 or -ENOMEM, as the others. */
int lines_init(struct forecast *p);
/* Add (1) or take (-1) what 'req' asks for during [from, to); 'from' is not before now. */
int line_add(struct forecast *p, uint32_t node, const struct request *req,
             const struct part *parts, uint32_t part_count, int64_t from, int64_t to, int sign);
/* Can 'req' be there from step 'first' until 'to'? The same devices all the time, so what counts
 * is the least of each. If not, *ret_last is a step before whose end it cannot begin.
 */
bool line_fits(struct forecast *p, uint32_t node, const struct request *req, uint32_t first,
               int64_t to, uint32_t *ret_last);
/* Not before 'from'; INT64_MAX if never, or not before 'until'. */
int64_t line_earliest(struct forecast *p, uint32_t node, const struct request *req,
                      int64_t lifetime, int64_t from, int64_t until);
/* Take 'req' from 'at' on for 'lifetime'; where and which devices goes into *ret, which holds
 * nothing. 'device' is the state's that a single part would best be of, if it is free as long as
 * that; -1 = any.
 */
int line_take(struct forecast *p, uint32_t node, const struct request *req, int64_t lifetime,
              int64_t at, int32_t device, struct hold *ret);

#endif
