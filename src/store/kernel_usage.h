/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_usage.h - which kernels held what in a time, and what they used
 *
 * For functions given to store_read().
 */
#ifndef AQ_STORE_KERNEL_USAGE_H
#define AQ_STORE_KERNEL_USAGE_H

#include "store/query.h"

#define KERNEL_USAGE_PROJECTS_MAX 100

struct kernel_usage_query {
    int64_t from_usec, until_usec;
    const char *domain;         /* NULL = of all */
    const struct uuid *user_id; /* NULL = everybody's */
    const struct uuid *project_ids;
    size_t project_count; /* 0 = of all; at most KERNEL_USAGE_PROJECTS_MAX */
};

/* One amount that a kernel held; texts are borrowed for the call. Of a session that was removed
 * there is what it held, and whose it was.
 */
struct kernel_usage {
    int64_t session_row, rank; /* by which the kernel is known */
    struct uuid kernel_id;     /* nil = removed */
    struct uuid project_id;
    const char *domain, *project, *session, *access_key, *email, *agent, *image;
    const char *spec, *status, *last_stat;               /* NULL = none */
    int64_t created_usec, terminated_usec, changed_usec; /* terminated 0 = not yet */
    const char *slot;
    int64_t amount;
    int64_t from_usec, until_usec; /* until 0 = it is still held */
};
/* Returns 0, or -errno to stop. */
typedef int (*kernel_usage_fn)(void *data, const struct kernel_usage *row);

/* All amounts that were held for some of that time, by removed sessions too: by project, session
 * and kernel, those of a kernel in the order in which it got them.
 */
int store_read_kernel_usage(struct store_tx *tx, const struct kernel_usage_query *query,
                            kernel_usage_fn visit, void *data, struct aq_error *err);

#endif
