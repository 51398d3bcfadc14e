/* SPDX-License-Identifier: Apache-2.0 */
/* pull.h - one image on its way, from the inside
 *
 * pull_resolve.c asks what the image is, pull_fetch.c fetches what is missing,
 * pull_unpack.c unpacks and publishes it; each begins the next. pull_retry.c repeats a
 * step that the registry failed, pull_continue.c goes on with layers that were cut. pull.c has the
 * waiting callers and the end of a pull. All on the loop of the images, except for what pull_work()
 * is given.
 */
#ifndef AQ_AGENT_IMAGE_PULL_H
#define AQ_AGENT_IMAGE_PULL_H

#include "agent/image/index_choice.h"
#include "agent/image/pull_directory.h"
#include "agent/image/publish.h"
#include "agent/image/images_internal.h"

struct pull {
    struct list link;
    struct images *images;
    struct list requests;
    struct reference ref;
    char *architecture;
    char *key; /* of the name */
    enum image_phase phase;
    bool is_started, is_asking_config, is_over;
    bool is_fetching;  /* or further: the directory of the digest is this pull's */
    bool is_following; /* another name's, which has that directory */
    struct tool *tool;
    struct strbuf manifest_text, config_text;
    char digest[DIGEST_TEXT_MAX], asked[DIGEST_TEXT_MAX]; /* asked: "" = the name */
    struct index_choice choice;                           /* if the name is that of an index */
    struct manifest manifest;
    struct image_config config;
    struct pull_directory directory;
    struct pull_waiter *waiters; /* for each layer */
    size_t waiting;              /* of them, to come */
    struct aq_error err;         /* of a layer */
    int tries;
    unsigned failures;                /* of the registry, in a row */
    struct aq_error failure;          /* the last of these */
    bool was_cut;                     /* a try to fetch layers failed */
    bool is_copied;                   /* skopeo has ended successfully */
    bool is_declined;                 /* aliquot-fetch cannot be used for this registry */
    struct strbuf report;             /* output of aliquot-fetch */
    int64_t began_usec;               /* monotonic, as all of these */
    void (*again)(struct pull *pull); /* after the pause that timer measures */
    int64_t done_bytes, told_bytes, missing_bytes, was_missing_bytes;
    size_t was_missing_count;
    struct image_room room; /* it waits for that */
    int64_t factor;         /* of a blob's size, for what is in it */
    /* in the worker thread */
    uv_work_t work;
    bool is_working;
    void (*after)(struct pull *pull, const struct aq_error *err);
    struct aq_error work_err;
    struct publication publication;
    uv_timer_t timer; /* while blobs are fetched, and before another try */
    uv_work_t measuring;
    bool is_measuring;
    int64_t measured_bytes;
    int64_t moved_bytes, moved_usec; /* the last measurement that differed, and when it did */
    bool is_too_long;                /* by the same measurement */
};

struct pull_waiter {
    struct layer_waiter waiter;
    struct pull *pull;
    struct image_layer *layer; /* NULL = the layer is there more than once */
    char *blob;                /* path, while it waits */
    bool is_waiting;
};

/* The four steps. What fails later than the call ends in pull_failed(). */
int pull_resolve(struct pull *pull, struct aq_error *err);
void pull_fetch(struct pull *pull);
/* pull_fetch(), or if another name of the image is on its way, nothing but the name after that. */
void pull_fetch_once(struct pull *pull);
void pull_unpack(struct pull *pull);
/* 'is_new': the image itself is to be published, too; else only its name. */
void pull_publish(struct pull *pull, bool is_new);

/* Start aliquot-fetch for the missing layers; pull_fetch_copy() follows. Errors as tool_start(). */
void pull_continue(struct pull *pull, struct aq_error *err);
/* Start skopeo for what is missing, then pull_unpack(). Errors as tool_start(). */
void pull_fetch_copy(struct pull *pull, struct aq_error *err);
/* The step failed: it is repeated, room is made, or the pull ends with 'err'. */
void pull_fetch_failed(struct pull *pull, struct aq_error *err);

/* What is to be fetched, now that the configuration is known. The pull is a user
 * of each layer from here on, so nobody removes them.
 */
void pull_plan(struct pull *pull);
/* Whether layer 'i' is to be unpacked, or its blob to be compared with the diff-id. */
bool pull_must_unpack(const struct pull *pull, size_t i);
/* The disk is full: more is in the blobs than was thought. -EINPROGRESS: unused images give way,
 * and it is fetched again. -ENOSPC: nothing gives way; 'err' as room_make() has it.
 */
int pull_make_room(struct pull *pull, struct aq_error *err);

/* The registry failed a step. True: 'again' is called after a pause. False: the failure is
 * permanent, or tries or time are used up, and 'err' says how many tries there were.
 */
bool pull_retry(struct pull *pull, void (*again)(struct pull *pull), struct aq_error *err);

/* 'fn' in a thread, then 'after' with pull->work_err, unless the pull is over. */
void pull_work(struct pull *pull, uv_work_cb fn,
               void (*after)(struct pull *pull, const struct aq_error *err));
/* Whose image it is: the first who asked for it; NULL = nobody's. */
const char *pull_user(const struct pull *pull);
/* To all who wait for it, if anything is new. */
void pull_tell(struct pull *pull, enum image_phase phase, int64_t done_bytes);
/* Answer all who wait, and end it. */
void pull_ready(struct pull *pull, struct image_record *record);
void pull_failed(struct pull *pull, const struct aq_error *err);
/* Frees a pull that is over when its threads have ended. */
void pull_let_go(struct pull *pull);

#endif
