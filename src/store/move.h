/* SPDX-License-Identifier: Apache-2.0 */
/* move.h - a database into another one, of whatever engine */
#ifndef AQ_STORE_MOVE_H
#define AQ_STORE_MOVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/pace.h"

/* 'done' of 'total' rows; 'table' is the one at work. */
typedef void (*store_move_report_fn)(void *data, const char *table, int64_t done, int64_t total);

struct store_move {
    const char *from, *to;       /* paths or URIs */
    const char *key_path;        /* file of the sealing key, of both */
    bool dry_run;                /* look only, write nothing */
    store_move_report_fn report; /* NULL = none */
    void *data;
    int64_t rows; /* returned: how many there are */
};

/* Copy all rows of 'from', which no manager may have open, into 'to', which has
 * none or those of a copy that broke off, and compare. 'from' stays as it is;
 * until all rows are there 'to' cannot be opened. Errors as of store_open() and
 * -EEXIST: 'to' has another cluster's rows; -EUCLEAN: the copies differ.
 */
int store_move(struct store_move *move, struct aq_error *err);

/* A consistent copy of 'from', which a manager may have open and write to, into
 * a new file of SQLite (mode 0600), with pauses if there is a 'pace'. -EEXIST; -EPROTO:
 * 'from' is of another version.
 */
int store_copy(const char *from, const char *file, struct pace *pace, struct aq_error *err);

/* Open a copy that nobody else uses, with its key: is every page good, and the
 * ledger? 'ret_rows' = how many there are. -EUCLEAN says what is not.
 */
int store_verify(const char *file, const char *key_path, int64_t *ret_rows, struct aq_error *err);

/* The database is a cluster's as it was when the backup was made (SETTING_RESTORED). */
int store_mark_restored(const char *where, const char *key_path, int64_t made_usec,
                        struct aq_error *err);

#endif
