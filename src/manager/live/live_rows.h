/* SPDX-License-Identifier: Apache-2.0 */
/* live_rows.h - rows that many readers follow, each at its own pace
 *
 * A change gives its row the next number. A reader is the number up to which it has everything,
 * so a slow one costs no memory and is given the newest state, whatever it missed. A row
 * has two texts, each the members of a JSON object without its braces: what seldom changes, and
 * what is measured, which alone is written again when it alone has changed. Pure.
 */
#ifndef AQ_MANAGER_LIVE_LIVE_ROWS_H
#define AQ_MANAGER_LIVE_LIVE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "base/map.h"
#include "base/strbuf.h"

#define LIVE_GONE_MAX 1024 /* rows that were removed, which readers can still be told of */

struct live_row {
    struct list link;                /* by version */
    uint64_t version, fixed_version; /* of its last change; of that of 'fixed' */
    char *fixed, *measured;          /* NULL = it is gone */
    char key[];
};

/* How far a reader is; zeroed = it has nothing yet. */
struct live_place {
    uint64_t seen;
    uint64_t forgotten; /* rows' when it began: of these removals it needs to know nothing */
    bool has_begun;
    bool is_behind; /* its last message was cut: the next rows are whole */
};

struct live_rows {
    struct map by_key;
    struct list order;
    uint64_t version;
    uint64_t forgotten; /* removals up to this one are not known any more */
    size_t gone_count;
    /* The last message, which most readers are given likewise. */
    struct strbuf text;
    struct live_place text_from, text_to;
    uint64_t text_version; /* 0 = there is none */
};

void live_rows_init(struct live_rows *rows);
void live_rows_done(struct live_rows *rows);

/* Set a row; nothing if it has these texts. */
void live_rows_set(struct live_rows *rows, const char *key, const struct strbuf *fixed,
                   const struct strbuf *measured);
/* Nothing if there is none. */
void live_rows_remove(struct live_rows *rows, const char *key);
/* The rows, also those that are gone (fixed is NULL), in no order: 0, 1, ... until NULL. Setting
 * and removing leaves their places as they are; live_rows_forget() does not.
 */
const struct live_row *live_rows_get(const struct live_rows *rows, size_t i);
/* Let go of the oldest removals beyond LIVE_GONE_MAX. */
void live_rows_forget(struct live_rows *rows);

/* The next message of about 'size_max' bytes at most for a reader at 'place', which goes on with
 * it: {"type":"snapshot","topic":…,"set":{…}} for one that begins, or was away for too long, else
 * {"type":"change","topic":…,"set":{…},"gone":[…]}; "more" is true if another one follows. The text
 * is borrowed until the next call; NULL = there is nothing new.
 */
const struct strbuf *live_rows_write(struct live_rows *rows, const char *topic, size_t size_max,
                                     struct live_place *place);

#endif
