/* SPDX-License-Identifier: Apache-2.0 */
/* store_internal.h - what store.c and store_open.c share */
#ifndef AQ_STORE_STORE_INTERNAL_H
#define AQ_STORE_STORE_INTERNAL_H

#include <pthread.h>

#include "base/list.h"
#include "store/lease.h"
#include "store/reserve.h"
#include "store/store.h"
#include "store/transaction.h"

#define STORE_READERS 2

struct store {
    char *where;         /* path or URI */
    struct strbuf risks; /* as of the start: store_get_risks() */
    const struct sql_ops *engine;
    void (*wake)(void *data);
    void (*lost)(void *data, const struct aq_error *err);
    void *wake_data;
    int lock_fd;      /* of "PATH.lock"; -1 = of a server, or it could not be made */
    int file_lock_fd; /* of the database; closed after its connections: see store_open.c */
    bool is_frozen;   /* a file on a read-only file system */
    char *reserve_path;
    struct reserve reserve;
    struct seal *seal;
    struct store_tx tx; /* of the writer */
    struct lease lease; /* of a server */
    char *successor;    /* store_set_successor() */
    int64_t next_seq, next_event;
    _Atomic bool has_dotfiles; /* there may be one */

    pthread_mutex_t writing; /* held while the writer's connection is in use */
    pthread_mutex_t lock;    /* of all below */
    pthread_cond_t write_queued, read_queued, finished_some;
    struct list writes, reads, finished; /* struct piece */
    time_t probe_sec;      /* monotonic: when a reader asks whether a server is there */
    size_t write_count;    /* pieces in 'writes' */
    size_t write_wanted;   /* the writer waits for so many; SIZE_MAX = for none */
    size_t taken;          /* pieces in the transaction under way */
    size_t expected;       /* at that many it is committed at once */
    int64_t patience_nsec; /* for which it waits for more when there are none */
    int64_t commit_nsec;   /* when its commit began */
    size_t outstanding;    /* queued and not finished */
    int log_state;         /* LOG_... */
    bool stopping;
    bool beats_itself;          /* until store_beat() is called */
    bool is_beat_queued;        /* or written just now */
    bool is_lost, is_lost_told; /* the database is another manager's now */
    struct aq_error lost_err;

    pthread_t threads[1 + STORE_READERS];
    size_t thread_count;
};

/* Move pieces to those that wait for store_dispatch(). Threads of the store. */
void store_finish_pieces(struct store *st, struct list *pieces, size_t count);

/* ---- reader.c ---- */

/* The thread of a reader; 'data' is the store. */
void *reader_loop(void *data);

/* Run 'fn' as a reader does, on the calling thread and a connection for this once. */
int reader_call(struct store *st, store_tx_fn fn, void *data, struct aq_error *err);

/* ---- store_open.c ---- */

/* Lock, key, what an unclean end left of a file, migrations: the writer's
 * connection is ready then. What was opened is the caller's to close in any
 * case.
 */
int store_open_database(struct store *st, const struct store_conf *conf, struct aq_error *err);

/* Give a server's row manager_lease up, if this store has it and the server is there. */
void store_open_release(struct store *st);
/* store_tx_fn: is the key that of the database? -EKEYREJECTED. */
int store_open_check_key(struct store_tx *tx, void *data, struct aq_error *err);
/* The same without writing: -ENOENT if the database has no such constant yet. */
int store_open_compare_key(struct store_tx *tx, struct aq_error *err);

/* Note in the lock file that the database was closed in order. */
void store_open_mark_clean(struct store *st);

#endif
