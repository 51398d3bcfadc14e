/* SPDX-License-Identifier: Apache-2.0 */
/* manager_row.h - the managers of a cluster
 *
 * For functions given to store_write(), store_call() and, those that only look, to store_read().
 * A manager that was removed keeps a row without addresses, so that it does not lead again by the
 * database alone; it is not listed.
 */
#ifndef AQ_STORE_MANAGER_ROW_H
#define AQ_STORE_MANAGER_ROW_H

#include "base/host_port.h"
#include "store/store.h"

#define MANAGER_NAME_MAX 56 /* bytes; with its prefix it is an id of the link */
#define MANAGER_API_MAX 256
#define MANAGER_VERSION_MAX 33

struct manager_row {
    char name[MANAGER_NAME_MAX + 1];
    char link[HOST_PORT_MAX];  /* host:port for agents and other managers */
    char api[MANAGER_API_MAX]; /* URL for clients */
    char version[MANAGER_VERSION_MAX];
    int64_t joined_usec;
};

/* It joins, perhaps again, perhaps in place of another machine. */
int manager_row_join(struct store_tx *tx, const struct manager_row *row, struct aq_error *err);

/* Is there one of this name, that was not removed? 1 or 0. */
int manager_row_exists(struct store_tx *tx, const char *name, struct aq_error *err);

/* It runs: its addresses and version; the first manager gets its row so. 1, or 0 if it was removed.
 */
int manager_row_refresh(struct store_tx *tx, const struct manager_row *row, struct aq_error *err);

/* 1, or 0 if there is none of this name. */
int manager_row_remove(struct store_tx *tx, const char *name, struct aq_error *err);

/* Calls 'visit' for each by name; a negative result stops. */
int manager_row_list(struct store_tx *tx, int (*visit)(void *data, const struct manager_row *row),
                     void *data, struct aq_error *err);

/* Number of the present leader, and since when it leads (wall clock). 0 and 0 of a file. */
int manager_row_read_epoch(struct store_tx *tx, int64_t *ret_epoch, int64_t *ret_taken_usec,
                           struct aq_error *err);

#endif
