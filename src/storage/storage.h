/* SPDX-License-Identifier: Apache-2.0 */
/* storage.h - the storage host as a whole: its volumes, its clients, its manager, and what they
 * share
 *
 * It keeps nothing that a restart loses: folders and uploads are files, tokens are signed, and all
 * else the manager knows. Loop's thread, but for what work.h runs.
 */
#ifndef AQ_STORAGE_STORAGE_H
#define AQ_STORAGE_STORAGE_H

#include "front/server.h"
#include "http/quota.h"
#include "storage/rights.h"
#include "storage/settings.h"
#include "storage/token.h"
#include "storage/usage.h"
#include "storage/volume.h"
#include "storage/work.h"

struct volume {
    struct storage *storage;
    char name[TOKEN_VOLUME_MAX + 1];
    struct volume_dir dir;
    struct work_lane lanes[WORK_LANES];
    struct work purge;
    bool is_purging, must_purge;  /* under way; and again afterwards */
    bool was_purged;              /* since the start */
    bool is_sweeping, must_sweep; /* the same for uploads that were given up */
    struct work measure;
    bool is_measuring;
    struct volume_room { /* bytes of its file system; 0 = not known */
        uint64_t used, capacity;
    } room, room_found;
};

struct storage {
    uv_loop_t *loop;
    struct front *front;
    const struct settings *settings;
    unsigned char key[TOKEN_KEY_SIZE];
    struct volume *volumes;
    size_t volume_count;
    struct usage_table *usage;
    struct rights *rights;
    struct front_server http;
    struct origin_rules origins;
    struct defer *sweep;             /* the next time */
    struct defer *measure;           /* the same for the volumes' room */
    struct defer *news;              /* the same for sizes of folders; NULL = there are none */
    struct defer *recount;           /* the same for folders to count; NULL = there are none */
    struct list uploads;             /* struct tus: requests that write */
    struct list waiting;             /* the same: that wait for the end of one of these */
    struct list asked;               /* struct asked: what the manager waits for */
    size_t transfer_count, op_count; /* under way */
    struct quota users, folders;     /* what each has of the transfers */
    struct {
        uint64_t uploads, downloads, refused, ops; /* since the start */
        uint64_t bytes_in, bytes_out;
    } counts;
};

extern const struct front_type storage_type;

/* NULL = there is none of this name. */
struct volume *storage_find_volume(const struct storage *storage, const char *name);

/* Remove in the background what was dropped in the volume. */
void storage_purge(struct volume *volume);

/* A folder was, or may have been, changed for this user: its size is measured soon. */
void storage_touch(struct volume *volume, const struct uuid *folder, const struct uuid *user);

/* Something has ended that the storage's own end waits for. */
void storage_settle(struct storage *storage);

/* ---- manager.c ---- */

/* front_type.on_connected(), on_message() and on_disconnected() of a storage host. */
void manager_on_connected(void *self);
void manager_on_message(void *self, const struct message *msg);
void manager_on_disconnected(void *self);

/* Have the manager told of sizes of folders that have changed, in a moment. */
void manager_tell_sizes(struct storage *storage);

/* ---- asked.c ---- */

struct msg_storage_ask;
/* Do what the manager asks, and answer it. */
void op_begin(struct storage *storage, const struct msg_storage_ask *ask);
/* Nobody waits for it: what has not begun never does, and a count ends; other work goes on. */
void op_cancel(struct storage *storage, const struct uuid *id);

/* ---- tus.c, unpack.c, download.c, reply.c, tree_token.c ---- */

extern const struct route tus_routes[], unpack_routes[], download_routes[];
extern const size_t tus_route_count, unpack_route_count, download_route_count;

/* The token of the request's query, and its volume. One of an upload may have expired, if
 * something of it is there: it goes on for a week at most. -EACCES, -EINVAL, -ENOENT.
 */
int storage_read_token(struct storage *storage, struct request *req, bool is_upload,
                       struct token *ret, struct volume **ret_volume, bool *ret_is_expired,
                       struct aq_error *err);

/* A token of a tree becomes that of the file in it that the query says: "path", of an upload also
 * "size", "modified" (microseconds), "mode" and "upload", an id of the client's choice. -EINVAL
 * names one.
 */
int storage_enter_tree(const struct url_query *query, struct token *token,
                       struct aq_error *err) AQ_UNTRUSTED;

/* What a transfer counts for; zeroed until storage_take_share(). */
struct storage_share {
    struct quota_client *user, *folder;
};

/* A transfer whose own memory is freed, and which is off all lists: it is answered, then leaves. */
struct storage_transfer {
    struct storage *storage;
    struct request *req;
    struct storage_share share;
};

/* A transfer more: false after answering that there are too many. One that entered leaves once,
 * after its answer, as that may free the storage and its server.
 */
bool storage_enter(struct storage *storage, struct request *req);
/* Count it for the token's user and folder. -EAGAIN if one of them has its share of all transfers
 * (http/quota.h).
 */
int storage_take_share(struct storage *storage, const struct token *token,
                       struct storage_share *ret, struct aq_error *err);
void storage_leave(struct storage_transfer *transfer);

/* Have what a token's folder holds known, if it has a quota: as usage_hold(). */
int storage_hold_usage(struct volume *volume, const struct token *token, struct usage_hold *hold,
                       void (*ready)(struct usage_hold *hold, const struct aq_error *err),
                       struct aq_error *err);

/* A problem document with this status. */
void storage_refuse(struct storage *storage, struct request *req, int status, const char *text);
/* The same by the error. */
void storage_fail(struct storage *storage, struct request *req, const struct aq_error *err);

#endif
