/* SPDX-License-Identifier: Apache-2.0 */
/* store_testing.h - a store in a directory of its own, and rows to put into it
 *
 * With ALIQUOT_TEST_POSTGRES, a URI with %s where the database's name belongs, the
 * database is one of its own on that server.
 */
#ifndef AQ_TESTS_UNIT_STORE_TESTING_H
#define AQ_TESTS_UNIT_STORE_TESTING_H

#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/strbuf.h"
#include "store/sql.h"
#include "store/store.h"

struct bench {
    char dir[64];
    char path[256]; /* of the file, or the URI */
    char key_path[96];
    struct store *store;
    struct uuid user_id, project_id;
};

/* Is the database on a server? */
bool bench_is_server(void);
/* In a directory of its own; the database is not there yet. */
struct bench *bench_new(void);
/* What the store's connection would be, beside it. */
struct sql *bench_open_sql(const struct bench *b);
/* The same under a name on the server; NULL = none. */
struct sql *bench_open_session(const struct bench *b, const char *name);
void bench_run_sql(const struct bench *b, const char *script);
/* The number that a query gives; wait until it is not 0. */
int64_t bench_ask_sql(const struct bench *b, const char *query);
void bench_await_sql(const struct bench *b, const char *query);
/* The exit status of a child, or minus the signal that ended it. */
int bench_reap(pid_t pid);
struct store_conf bench_conf(const struct bench *b);
void bench_open(struct bench *b);
void bench_close(struct bench *b);
void bench_reopen(struct bench *b);

/* ---- committing and waiting ---- */

struct outcome {
    int result;
    struct aq_error err;
    bool came;
};

/* Fills a struct outcome and frees the batch. */
void on_committed(void *data, int result, const struct aq_error *err, struct event_batch *batch);
/* Commit and wait; the result of the commit. */
int bench_commit(struct bench *b, struct event_batch *batch, struct aq_error *err);

/* ---- rows ---- */

struct slots make_slots(int64_t cpu, int64_t mem);
void add_accounts(struct event_batch *batch, const struct uuid *user_id,
                  const struct uuid *project_id);
struct event *add_agent(struct event_batch *batch, const char *id);

/* A pending session with 'kernels' kernels of 1 cpu and 1 GiB. */
struct session *add_session(struct event_batch *batch, const struct bench *b, const char *name,
                            size_t kernels);
struct event *add_status(struct event_batch *batch, const struct uuid *id, enum session_status from,
                         enum session_status to, uint32_t version, const char *reason);
struct event *add_kernel_status(struct event_batch *batch, const struct uuid *session,
                                const struct uuid *id, enum kernel_status from,
                                enum kernel_status to, uint32_t version);

/* ---- what a load gives, as text ---- */

/* For store_load(): one loaded event into the strbuf 'data'. */
int write_event(void *data, struct event *e, struct aq_error *err);

/* All that a load gives; free() it. */
char *bench_dump(struct bench *b);

/* ---- set-up ---- */

int bench_setup(void **state);
int bench_teardown(void **state);

/* Run 'tests', of which the last 'file_count' are about files, not servers. */
#define BENCH_RUN(tests, file_count)       \
    _cmocka_run_group_tests(#tests, tests, \
                            AQ_COUNT(tests) - (bench_is_server() ? (file_count) : 0), NULL, NULL)

#endif
