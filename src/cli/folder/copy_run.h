/* SPDX-License-Identifier: Apache-2.0 */
/* copy_run.h - a copy under way: what copy_transfer.c, copy_send.c and copy_fetch.c share
 *
 * Each slot has one request under way. What it works on are the items [at, end) of the list: one
 * file, or several small ones at once; up to 'stop' it goes on with single ones, as several were
 * refused together.
 */
#ifndef AQ_CLI_FOLDER_COPY_RUN_H
#define AQ_CLI_FOLDER_COPY_RUN_H

#include <uv.h>

#include "base/clock.h"
#include "cli/client.h"
#include "cli/folder/copy_transfer.h"
#include "cli/output/progress.h"
#include "cli/signals.h"
#include "transfer/tree_writer.h"

#define COPY_SLOTS 4
#define COPY_SMALL (UINT64_C(256) << 10) /* a file up to this goes with others */

struct copy_run;

struct copy_slot {
    struct copy_run *run;
    struct exchange *exchange; /* NULL = nothing is under way */
    size_t at, end, stop;
    int64_t retry_usec;       /* 0 = it does not wait */
    unsigned tries, renewals; /* since something came of it */
    uint64_t counted;         /* bytes of the items that are counted as done */
    bool has_found;           /* what an earlier copy had brought was counted */
    bool is_broken;           /* here: 'err' says why */
    struct aq_error err;
    int status;                                                /* of the answer; 0 = none yet */
    struct strbuf answer;                                      /* that is no success */
    int (*answered)(struct copy_slot *, struct aq_error *err); /* a success has come whole */
    int fd;          /* of the file that is sent or written */
    uint64_t offset; /* in it */
    /* upload */
    bool is_sent;
    /* download */
    int parent; /* the directory of the file */
    char part[TREE_WRITER_PART_MAX],
        mark[TREE_WRITER_PART_MAX + 6]; /* the file meanwhile, and its ETag's */
    char etag[200];
    struct tar_reader *archive;
    struct tree_writer *writer;
    size_t expected; /* the next item of the archive */
};

struct copy_run {
    struct copy_transfer *t;
    uv_loop_t *loop;
    struct client *client;
    struct copy_slot slots[COPY_SLOTS];
    size_t next, large_count; /* of the list: the large files come first */
    struct strbuf url, token; /* of the storage host, up to the last "/" */
    bool needs_token;
    int64_t lost_usec; /* of cli_awaits_manager(), for the token */
    uv_timer_t tick;
    bool is_ticking;
    struct cli_signals signals;
    struct progress progress;
    int64_t begun_usec, moved_usec, shown_usec; /* moved: a byte last came or went */
    uint64_t total, done, found;                /* bytes; found = that were there before */
    bool is_lost;                               /* and it was said */
    bool is_over;
    int r;
    struct aq_error err;
};

struct copy_item *copy_slot_item(const struct copy_slot *slot);

/* The item's path below the token's. */
const char *copy_run_name(const struct copy_run *run, const struct copy_item *item);

/* So many bytes more of the slot's items are through; 'found' ones were there before. */
void copy_slot_moved(struct copy_slot *slot, uint64_t bytes);
void copy_slot_found(struct copy_slot *slot, uint64_t bytes);

/* The item fails; others go on. */
void copy_run_fail_item(struct copy_run *run, struct copy_item *item, const char *why);

/* What breaks the slot's work off is here, not at the storage host. */
void copy_slot_break(struct copy_slot *slot, const struct aq_error *err);

/* Send a request about the slot's items: "?token=..." and 'query' after the last part of the path.
 */
int copy_slot_send(struct copy_slot *slot, enum method method, const char *last, const char *query,
                   const char *headers, const struct strbuf *body, const struct exchange_ops *ops,
                   int (*answered)(struct copy_slot *, struct aq_error *err), struct aq_error *err);
void copy_on_head(struct exchange *exchange, const struct message_head *head, void *data);
void copy_on_body(struct exchange *exchange, const char *bytes, size_t len, void *data);
void copy_on_end(struct exchange *exchange, const struct aq_error *err, void *data);

/* Begin with the slot's items. 1 = nothing is left to be asked for; -errno: the (one) item fails.
 */
int copy_send_begin(struct copy_slot *slot, struct aq_error *err);
int copy_fetch_begin(struct copy_slot *slot, struct aq_error *err);

#endif
