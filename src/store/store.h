/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - everything durable, behind one writer thread and a few readers
 *
 * The store keeps one SQL database. It knows no event loop: its opener
 * gives a 'wake' function, which the store's threads call when completions
 * wait, and then calls store_dispatch() on its own thread. All completion
 * callbacks run inside store_dispatch(), store_flush() or store_close(), on
 * the calling thread; those of commits and writes in commit order.
 *
 * One thread writes. It takes whatever is queued, runs each piece within a
 * savepoint of one transaction and commits once (to disk, with fsync), so
 * that concurrent requests share a commit, a refused piece leaves the others
 * intact, and a callback with result 0 means durable. If the commit itself
 * fails, every piece of it fails with that error and nothing has changed;
 * later commits are tried afresh.
 */
#ifndef AQ_STORE_STORE_H
#define AQ_STORE_STORE_H

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "model/event.h"

struct leader_claim;
struct store;

struct store_conf {
    const char *path;         /* the database file; missing directories are made (0700). Or
                                 postgresql://..., see store_is_server() */
    const char *key_path;     /* file of the sealing key; NULL = PATH.key, of a file */
    const char *address;      /* of this program, for another one that finds the database taken;
                                 NULL = the name of this machine and the process */
    void (*wake)(void *data); /* from any thread of the store; NULL if the owner polls
                                 with store_dispatch() or store_flush() */
    void *wake_data;
    void (*lost)(void *data, const struct aq_error *err); /* with wake_data, from
                                 store_dispatch(), once: the database is another manager's, or
                                 older than what was acknowledged. Nothing can be written any
                                 more; load again. NULL = say nothing */
    const struct leader_claim *claim; /* of a manager that leads, see leadership.h; copied. NULL =
                                         a program without standbys. Only for a server */
    int64_t epoch; /* as leadership_take() gave it; 0 = take the row if it is free or its holder is
                      dead: without a beat for 5 s and without sessions on the server */
    int64_t epoch_floor; /* of an epoch that is taken here; 0 = the next one is enough */
};

/* Is the database on a server, not in a file? */
bool store_is_server(const char *path);

/* Open or create the database, take its lock, bring the schema up to date and
 * start the threads. On a server it beats until store_beat() is called for the first time, so that
 * it is not taken over while it loads. Errors, each with what to do next: -EBUSY another process
 * has it, -EOWNERDEAD another manager took it over after conf->epoch was taken, -EHOSTDOWN the server cannot be reached, -EUCLEAN damaged or changed by hand, -EPROTO
 * made by a newer program, -EACCES the key file can be read by others, -EKEYREJECTED it is
 * missing or another one, -ENOSPC, -EIO.
 */
int store_open(const struct store_conf *conf, struct store **ret, struct aq_error *err);

/* Finish what is queued, run the outstanding callbacks, stop the threads. On a server the row
 * manager_lease is given up, so that a standby leads at once.
 */
void store_close(struct store *store);
AQ_DEFINE_CLEANUP(struct store, store_close)

/* Run the callbacks of what has finished. The thread that opened the store. */
void store_dispatch(struct store *store);

/* Wait until everything queued so far has finished, and dispatch it. For
 * programs without a loop, tests and shutdown.
 */
void store_flush(struct store *store);

/* A line, "what: why", for each setting of the database's server by which what was
 * acknowledged may get lost, as of the start; "" of a file. Borrowed.
 */
const char *store_get_risks(const struct store *store);

/* Since when the database's server cannot be reached (wall clock, microseconds), as of some
 * seconds ago; 0 = it can, or the database is a file. What is in memory holds, and is all that
 * can be read. Any thread.
 */
int64_t store_get_away_usec(const struct store *store);

/* Is the disk of a database in a file so full that only ends of sessions and the like should be
 * written? 0 = no, or a server; else ENOSPC, EDQUOT, or EROFS: nothing can be written. Any thread.
 */
int store_find_lack(struct store *store);

/* Was the file system of a database in a file read-only when it was opened? It is read until it is
 * opened again; writes fail with -EROFS. Any thread.
 */
bool store_is_frozen(const struct store *store);

/* 64 hexadecimal digits that only the database's key file and 'purpose' decide. */
int store_derive(const struct store *store, const char *purpose, char ret[65],
                 struct aq_error *err);

/* ---- leading (of a file: 0, and nothing) ---- */

/* Which leader of the cluster this store writes as. Any thread. */
int64_t store_get_epoch(const struct store *store);

/* The number of the last acknowledged commit. Any thread. */
int64_t store_get_beat(const struct store *store);

/* Ask for a commit of nothing, unless something is queued: a sign that the caller's loop runs, for
 * standbys. The thread that opened the store, every 250 ms.
 */
void store_beat(struct store *store);

/* Monotonic: when the last acknowledged commit was begun. Until 5 s later no standby has taken the
 * database over. Any thread.
 */
int64_t store_get_renewed_usec(const struct store *store);

/* Which manager is to lead after store_close(); NULL = any. Copied. */
void store_set_successor(struct store *store, const char *name);

/* ---- events ---- */

/* 'batch' belongs to the callback: to apply when 'result' is 0, then to free.
 * Otherwise nothing of it was written. Results of a refused batch:
 *   -ESTALE  a session or kernel is no longer in the (status, version) that
 *            the event was decided on; decide again
 *   -EEXIST a live session of this user has the name (field "name"), or a unique e-mail, user or
 *   project name
 *   -EALREADY  a request that is to be answered once was answered before
 *   -ENOENT  something that an event names does not exist
 *   -ENOSPC, -EBUSY, -EIO, -EUCLEAN  the database; all of the commit failed
 *   -EHOSTDOWN  the database's server was away for 30 s
 */
typedef void (*store_commit_fn)(void *data, int result, const struct aq_error *err,
                                struct event_batch *batch);

/* Queue a batch; it is written whole or not at all. A session created with row 0 gets its row
 * (creation order, never reused) in the event.
 *
 * What a row becomes, and memory must too: the reason that came with
 * TERMINATING stays; running_usec is the time of the last change to RUNNING;
 * an agent's lost_usec is set by LOST and cleared by any other status; an
 * explanation of a session that is no longer PENDING is dropped; a keypair
 * saved without a secret keeps its own. A kernel takes its requested slots in
 * the ledger when it enters a holding state and frees them when it leaves.
 */
void store_commit(struct store *store, struct event_batch *batch, store_commit_fn done, void *data);

/* ---- other reads and writes ---- */

struct store_tx; /* a transaction in which a function below runs */

/* Runs on a thread of the store; result and 'err' go to the callback. */
typedef int (*store_tx_fn)(struct store_tx *tx, void *data, struct aq_error *err);
typedef void (*store_done_fn)(void *data, int result, const struct aq_error *err);

/* Run 'fn' on a read-only connection in a worker thread, in one transaction
 * (one consistent view). The calls for it are in query.h.
 */
void store_read(struct store *store, store_tx_fn fn, store_done_fn done, void *data);

/* Run 'fn' on the writer's thread, in order with the commits and in a
 * savepoint like them: if it fails nothing of it is kept. It sees exactly what
 * was queued before. Must be short. The calls for it are in token.h and query.h.
 */
void store_write(struct store *store, store_tx_fn fn, store_done_fn done, void *data);

/* The same, waiting for the end without running callbacks of others; for
 * start-up and programs without a loop. Returns what 'fn' returned or the
 * error of the commit.
 */
int store_call(struct store *store, store_tx_fn fn, void *data, struct aq_error *err);

/* ---- loading ---- */

/* What the visitor does not take out of the event (apply's way: zero the
 * members it keeps) is freed after it returns. A negative result stops.
 */
typedef int (*store_visit_fn)(void *data, struct event *event, struct aq_error *err);

/* Every live object as one event, in this order: EVENT_SLOT_TYPE_KNOWN,
 * _DOMAIN_SAVED, _PROJECT_SAVED, _KEYPAIR_POLICY_SAVED, _RESOURCE_GROUP_SAVED,
 * _USER_SAVED, _KEYPAIR_SAVED (secret in clear), _AGENT_SAVED (TERMINATED ones
 * too), then EVENT_SESSION_CREATED for each non-terminal session by row, with
 * its kernels as they are now. On the calling thread, before anything is
 * queued.
 */
int store_load(struct store *store, store_visit_fn visit, void *data, struct aq_error *err);

/* Parts of it inside a store_read() or store_write() function, for audits, which hold neither the
 * writer nor the loop for as long as all of it takes. The registry is all but the sessions, which
 * are loaded by their rows; those that have ended are left out.
 */
int store_load_registry(struct store_tx *tx, store_visit_fn visit, void *data,
                        struct aq_error *err);
int store_load_sessions(struct store_tx *tx, const int64_t *rows, size_t count,
                        store_visit_fn visit, void *data, struct aq_error *err);
/* The rows of all sessions that have not ended, ascending; free() it. */
int store_list_living(struct store_tx *tx, int64_t **ret, size_t *ret_count, struct aq_error *err);

/* ---- care ---- */

/* Compare the ledger with the kernels: a live row exactly for each slot of a
 * kernel that holds, on the kernel's agent, with the amount it requested; no
 * agent over what it offers. One line of text per finding is appended to
 * 'out'; returns how many, or -errno.
 */
int store_audit_ledger(struct store_tx *tx, struct strbuf *out, struct aq_error *err);

/* Check every page of the database; findings as above. Reads all of it. */
int store_audit_file(struct store_tx *tx, struct strbuf *out, struct aq_error *err);

/* Give a database on a server to the manager that asks next, which may be a standby: the manager
 * that leads writes no more, and ends. -EINVAL of a file.
 */
int store_take_over(const char *path, struct aq_error *err);

#endif
