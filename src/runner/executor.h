/* SPDX-License-Identifier: Apache-2.0 */
/* executor.h - the executor of a container: the queue of runs, the apps, and who asks for them
 *
 * One process with one thread, which execute.c starts; execution.h says what can be asked of it.
 */
#ifndef AQ_RUNNER_EXECUTOR_H
#define AQ_RUNNER_EXECUTOR_H

#include "base/error.h"
#include "runner/apps.h"
#include "runner/interpreter.h"

struct executor {
    int epoll;
    struct watch listener, signals;
    struct list clients, runs; /* runs in their order; those that have ended may be anywhere */
    size_t client_count, run_count;
    struct execution *current;
    struct language languages[LANGUAGES_MAX];
    struct interpreter interpreters[LANGUAGES_MAX]; /* one for each */
    size_t language_count;
    struct interpreter batch;    /* for commands of batches */
    struct interpreter *running; /* the current run's; NULL = none */
    struct apps apps;
};

/* Serve who connects to the listening socket, until the process is killed. 'folder' is for
 * files with code. -errno if it could not begin.
 */
int executor_serve(int listener, const char *folder, struct aq_error *err);

/* ---- runs ---- */

int64_t executor_now(void); /* monotonic, milliseconds */

/* The interpreter of this language, "-" = the usual one; NULL = there is none. */
struct interpreter *executor_choose(struct executor *ex, const char *language);

struct execution *executor_find(const struct executor *ex, const char *id); /* NULL = none */
void executor_drop_run(struct executor *ex, struct execution *run);

/* Begin what can be begun. */
void executor_advance(struct executor *ex);

/* ---- clients ---- */

/* Somebody has connected; of 'listener'. */
void executor_clients_accept(struct watch *watch, uint32_t events);

/* Take the requests that are there, and answer what can be. When the next answer is due,
 * monotonic milliseconds; INT64_MAX = when something happens.
 */
int64_t executor_clients_serve(struct executor *ex, int64_t now);

/* Suggestions have come, JSON of a list: for who asked first. */
void executor_clients_suggest(struct executor *ex, const char *json, size_t len);

#endif
