/* SPDX-License-Identifier: Apache-2.0 */
/* images_internal.h - the image store from the inside
 *
 * images.c is most of the public face; index.c knows which images and names there
 * are; layers.c the unpacked layers; pull.c and its steps (pull.h) bring one image,
 * with fetch.c (skopeo) and pull_directory.c (its directory); publish.c makes what was
 * pulled a durable image; gc.c removes, and room.c decides what gives way to what.
 */
#ifndef AQ_AGENT_IMAGE_IMAGES_INTERNAL_H
#define AQ_AGENT_IMAGE_IMAGES_INTERNAL_H

#include "agent/image/manifest.h"
#include "agent/image/image_record.h"
#include "agent/image/tool.h"
#include "base/list.h"
#include "base/map.h"

struct images {
    uv_loop_t *loop;
    const struct settings *settings;
    uint32_t pull_group; /* of processes that fetch; 0 = as ours */
    char *directory;     /* store_layout.h */
    char *unpack_program, *fetch_program;
    struct map records; /* digest -> struct image_record, one reference each */
    struct map names;   /* image_name_key() -> struct image_name */
    struct map layers;  /* diff-id -> struct image_layer */
    struct list requests;
    struct list pulls;     /* running and waiting, oldest first */
    struct list unpacking; /* layers that wait for a process */
    size_t unpack_count;   /* processes that unpack */
    struct list garbage;   /* gc.c: trees to be removed */
    bool is_removing;
    struct list waiting;  /* struct image_room: until the garbage is gone */
    int64_t keep_free;    /* of the settings, or what they imply */
    bool is_beside_state; /* on the file system of the agent's state */
    int64_t (*promised)(void *data);
    void *promised_data;
    unsigned mark; /* room.c: of the layers that were counted */
    uv_work_t removal;
    uv_timer_t soon;      /* answers what is here already */
    uv_timer_t use_timer; /* says which images are in use */
    uv_timer_t unpack_soon;
    uv_timer_t gc_timer;
    void (*on_change)(void *data);
    void *change_data;
    bool is_changed;
    int open; /* handles and work that must end before the memory goes */
    bool is_closing;
};

/* What a name meant when it was last asked for. */
struct image_name {
    char *text;                  /* canonical reference */
    struct image_record *record; /* borrowed: it is in the index while a name means it */
};

struct pull;

struct image_request {
    struct list link;    /* images->requests */
    struct list waiting; /* pull->requests */
    struct images *images;
    struct pull *pull;                 /* NULL = none */
    const struct image_events *events; /* NULL = cancelled */
    void *data;
    struct reference ref;
    char *architecture;         /* OCI name */
    char *user;                 /* NULL = nobody */
    struct image_record *found; /* to be answered soon; one reference */
    uv_fs_t check;
    bool is_checking;
};

/* Answer it; it is gone. */
void image_request_ready(struct image_request *request, struct image_record *record);
void image_request_failed(struct image_request *request, const struct aq_error *err);
/* One thing that had to end before images_free() was complete has ended. */
void images_let_go(struct images *images);
/* Tell the owner soon that images have come or gone. */
void images_changed(struct images *images);
/* The first handle on an image has come or the last has gone: tell the owner before long.
 * NULL = the image is in no index, and nobody is told.
 */
void images_use_changed(struct images *images);
/* STATE/images/rest; caller frees. */
char *images_path(const struct images *images, const char *rest);
/* A record of the index by name or digest, borrowed. -ENOENT, -EINVAL. */
int images_lookup(struct images *images, const char *name, struct image_record **ret,
                  struct aq_error *err);

/* ---- index.c ---- */

int index_load(struct images *images, struct aq_error *err);
void index_done(struct images *images);
struct image_record *index_find(struct images *images, const char *name, const char *architecture);
/* Let the name mean the record from now on, in memory. */
void index_bind(struct images *images, const char *name, const char *architecture,
                struct image_record *record);
/* The record of a directory images/HEX; its layers are used by it. */
int index_read_record(struct images *images, const char *hex, struct image_record **ret,
                      struct aq_error *err);
/* Out of the index and its names with it; its layers lose a user. */
void index_drop(struct images *images, struct image_record *record);
/* "sha256:HEX" of bytes. */
void digest_compute(const void *bytes, size_t len, char ret[DIGEST_TEXT_MAX]);
/* Under which key and file a name is kept: it means one thing for each architecture. */
char *image_name_key(const char *name, const char *architecture);

/* ---- layers.c ---- */

struct layer_waiter {
    struct list link;
    void (*on_done)(void *data, const struct aq_error *err); /* err->code 0 = it is here */
    void (*on_progress)(void *data);
    void *data;
    const char *blob, *blob_digest; /* path and digest; the caller's until it was told */
};

struct image_layer {
    struct images *images;
    char *diff_id;
    unsigned users; /* records and pulls */
    bool is_here;
    char *verified;     /* digest of the blob that was last found to have this diff-id; or NULL */
    int64_t size_bytes; /* of its files */
    int64_t seen_usec;  /* when it was last used, if it has no users */
    unsigned mark;      /* room.c: it was counted */
    unsigned spare;     /* room.c: of its users, those that may go */
    /* while it is being unpacked */
    struct list queue; /* images->unpacking */
    struct list waiters;
    struct tool *tool;
    char *blob, *blob_digest;
    int64_t done_bytes; /* of the blob */
    struct strbuf line; /* of the tool's output */
    struct aq_error err;
    bool is_done;
};

/* Every directory of layers/ is a layer; what was begun is removed. */
int layers_load(struct images *images, struct aq_error *err);
void layers_done(struct images *images);
/* The layer, with one more user. */
struct image_layer *layer_use(struct images *images, const char *diff_id);
void layer_unuse(struct image_layer *layer);
/* Is it unpacked, and is this blob known to contain it? An image claims the diff-ids of its blobs:
 * a blob that was not read may contain something else.
 */
bool layer_is_of_blob(const struct image_layer *layer, const char *blob_digest);
/* Unpack the waiter's blob, or compare it with the diff-id where the layer is here. Waiters of one
 * blob share the work, those of another blob follow. The waiter is told, never from within.
 */
void layer_unpack_blob(struct image_layer *layer, struct layer_waiter *waiter);
/* The waiter is not told any more; without waiters the work ends. */
void layer_leave(struct image_layer *layer, struct layer_waiter *waiter);

/* ---- pull.c ---- */

/* Let the request wait for a pull of its image, begun if there is none. */
int pull_join(struct images *images, struct image_request *request, struct aq_error *err);
void pull_leave(struct pull *pull, struct image_request *request);
bool pulls_have(const struct images *images, const char *digest);

/* ---- gc.c ---- */

/* The record and its layers, if nobody needs them. -EBUSY. */
int gc_remove(struct images *images, struct image_record *record, int64_t *ret_bytes,
              struct aq_error *err);
void gc_start(struct images *images);
/* Does no session use it, and none that was asked for, nor a pull? */
bool gc_is_idle(const struct images *images, const struct image_record *record);
/* Was it used before that one, or is there none? */
bool gc_is_older(const struct image_record *record, const struct image_record *than);
/* What pulls left that nobody goes on with, and layers of no image. */
void gc_remove_leftovers(struct images *images);
/* Remove a tree that has no meaning, when there is time. */
void gc_add_garbage(struct images *images, const char *path);

/* ---- room.c ---- */

struct room_wish {
    int64_t bytes;       /* to be freed */
    const char *user;    /* whose image is to come; NULL = nobody's, or none is */
    int64_t image_bytes; /* what that will take */
    bool is_estimate;    /* less is better than nothing */
};

/* Whether images are on the file system of the state, and what they keep free. */
void room_init(struct images *images);
/* What images leave free on their file system now. */
int64_t room_kept(const struct images *images);
/* What they may take yet; below 0 if less than that is free. */
int64_t room_available(const struct images *images);
/* Let what is unused give way. -EINPROGRESS: it is being removed, and the waiter is told when it
 * is gone, to measure again. -ENOSPC: that would not do, and nothing is removed; 'err' is set only
 * if the user's share is why.
 */
int room_make(struct images *images, const struct room_wish *wish, struct image_room *waiter,
              struct aq_error *err);
/* The garbage is gone: tell who waits. */
void room_made(struct images *images);

/* ---- fetch.c ---- */

/* registries.conf from the settings, if they need one. */
int fetch_write_registries(struct images *images, struct aq_error *err);
int fetch_manifest(struct images *images, const struct reference *ref, const char *digest,
                   const struct tool_events *events, void *data, struct tool **ret,
                   struct aq_error *err);
int fetch_config(struct images *images, const struct reference *ref, const char *digest,
                 const struct tool_events *events, void *data, struct tool **ret,
                 struct aq_error *err);
/* 'view': of a layout, the folder with just this image; NULL = as the name says. */
int fetch_blobs(struct images *images, const struct reference *ref, const char *digest,
                const char *view, const char *directory, const struct tool_events *events,
                void *data, struct tool **ret, struct aq_error *err);
/* aliquot-fetch for the missing layers of the directory of a pull (pull_directory.h). */
int fetch_layers(struct images *images, const struct reference *ref, const char *directory,
                 const struct tool_events *events, void *data, struct tool **ret,
                 struct aq_error *err);
/* Fill 'err' for a failure with this code; 'text' is from the program. */
int fetch_fail_code(const struct reference *ref, int code, const char *text, struct aq_error *err);
/* What skopeo's complaint means. */
int fetch_failed(const struct reference *ref, int status, const char *complaint,
                 struct aq_error *err);

#endif
