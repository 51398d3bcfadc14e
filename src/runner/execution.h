/* SPDX-License-Identifier: Apache-2.0 */
/* execution.h - code that is run in a container, and what becomes of it
 *
 * "aliquot-runner --execute", a further command of the container, passes bytes between its
 * standard streams and the container's executor, which it starts if there is none. The executor
 * keeps the interpreters with their state, the queue of runs and what they have written, so
 * that nothing is lost while nobody asks. It is a process of the container's user: who asks it
 * believes nothing of what it says.
 *
 * A request is a line "VERB ID MSEC LANGUAGE LENGTH [LIMIT]\n" and LENGTH bytes; "-" = none:
 *
 *   run        query: the bytes are code, which may take LIMIT milliseconds; 0 = any time
 *   batch      three commands, each ended by NUL: clean, build, exec; "" = skip, "*" = the usual
 *   continue   what has come since
 *   input      the bytes are the answer to waiting-input
 *   interrupt  SIGINT to what runs
 *   complete   the bytes are JSON {"code", "row", "col", "line", "post"}
 *   apps       which there are, and how they are
 *   app        somebody wants to connect to the app ID: the bytes are JSON (apps.h)
 *   end-app    end the app ID
 *
 * Each gets one line of JSON, after MSEC at most: {"status": STATUS, "exit_code": N or null,
 * "is_password": BOOL, "console": [[TYPE, TEXT]...]}, where media have [TYPE, [MIME, TEXT]];
 * {"suggestions": [TEXT...]}; what apps.h says; or {"error": TEXT}. Of apps it comes when it is
 * decided.
 *
 * Runs go one after the other. Statuses are the members of execution_status_names.
 */
#ifndef AQ_RUNNER_EXECUTION_H
#define AQ_RUNNER_EXECUTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/strbuf.h"

#define EXECUTION_ID_MAX 64
#define EXECUTION_LANGUAGE_MAX 16
#define EXECUTION_CODE_MAX (1 << 20)
#define EXECUTION_RUNS_MAX 64           /* that wait, run or have not been read to their end */
#define EXECUTION_OUTPUT_MAX (4 << 20)  /* bytes that are kept: then who writes waits */
#define EXECUTION_REPLY_MAX (128 << 10) /* bytes of output in a reply, but for larger media */
#define EXECUTION_MEDIA_MAX (512 << 10) /* bytes of a picture, as JSON has them */
#define EXECUTION_LINE_MAX (1 << 20)    /* bytes of a reply's line: more than all that it can be */
#define EXECUTION_LIMIT_MAX (INT64_C(366) * 86400 * 1000)
#define EXECUTION_LEFT_MSEC 60000 /* nobody has asked for so long: output is dropped */

enum execution_kind {
    EXECUTION_STDOUT,
    EXECUTION_STDERR,
    EXECUTION_MEDIA, /* MIME type, NUL, text */
    EXECUTION_HTML,
    EXECUTION_LOG,
    EXECUTION_STATUS, /* not a record of the console: the status is 'code's */
};

enum execution_status {
    EXECUTION_CONTINUED,
    EXECUTION_WAITING_INPUT,
    EXECUTION_CLEAN_FINISHED,
    EXECUTION_BUILD_FINISHED,
    EXECUTION_FINISHED,
    EXECUTION_TIMEOUT, /* the end, too: it was killed */
};

extern const char *const execution_status_names[];

enum execution_verb {
    EXECUTION_RUN,
    EXECUTION_BATCH,
    EXECUTION_CONTINUE,
    EXECUTION_INPUT,
    EXECUTION_INTERRUPT,
    EXECUTION_COMPLETE,
    EXECUTION_APPS,
    EXECUTION_APP,
    EXECUTION_END_APP,
};

struct execution_request {
    enum execution_verb verb;
    char id[EXECUTION_ID_MAX + 1];
    char language[EXECUTION_LANGUAGE_MAX + 1];
    int64_t wait_msec;
    int64_t limit_msec; /* 0 = none */
    size_t len;         /* of what follows the line */
};

/* The line without its end. False if it makes no sense. */
bool execution_parse(char *line, struct execution_request *ret) AQ_UNTRUSTED;

/* ---- a run ---- */

struct execution_record {
    struct list link;
    enum execution_kind kind;
    enum execution_status status; /* of EXECUTION_STATUS */
    int exit_code;
    struct strbuf text;
};

struct interpreter;

struct execution {
    struct list link;
    char id[EXECUTION_ID_MAX + 1];
    struct interpreter *interpreter; /* borrowed; of a query */
    bool is_batch;
    struct strbuf code; /* or three commands, each with its NUL */
    unsigned step;      /* of a batch: the one that runs */
    int build_code;     /* of a batch */
    bool is_waiting, is_password;
    bool is_over; /* its last record is there */
    bool is_dropping;
    int64_t asked_msec; /* monotonic: when somebody did */
    int64_t limit_msec; /* 0 = none */
    int64_t until_msec; /* monotonic; 0 = it has not begun, or has no limit */
    struct list records;
    size_t kept; /* bytes of these */
};

struct execution *execution_new(const struct execution_request *request, const char *bytes,
                                int64_t now_msec); /* NULL = no memory */
void execution_free(struct execution *run);

/* Keep what was written. Of no memory and what nobody asks for it is dropped, and told. */
void execution_add(struct execution *run, enum execution_kind kind, const char *bytes, size_t len);

/* A step of it has ended; with FINISHED and TIMEOUT the run. */
void execution_add_status(struct execution *run, enum execution_status status, int exit_code);

/* Must who writes wait? */
bool execution_is_full(const struct execution *run);

/* Is there a status to tell other than "continued"? */
bool execution_has_status(const struct execution *run);

/* Take what was kept, up to the first status, as the line of a reply. True if it was the last
 * of the run.
 */
bool execution_take(struct execution *run, struct strbuf *out);

#endif
