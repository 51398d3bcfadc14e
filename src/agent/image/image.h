/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - images on this node
 *
 * One object per agent, on its libuv loop: give it a name (model/reference.h),
 * get a counted image whose layers are unpacked directories in overlayfs form.
 * Layers are shared between images; two requests for one image are one pull.
 * Nothing here blocks the loop: skopeo fetches and aliquot-unpack unpacks in
 * processes of their own, the rest is done in worker threads. Everything
 * belongs to the loop's thread; callbacks never come from within a call.
 *
 * What is in the store (store_layout.h) is complete and durable; what was begun is
 * gone on with after a restart of the agent.
 */
#ifndef AQ_AGENT_IMAGE_IMAGE_H
#define AQ_AGENT_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "agent/image/config.h"
#include "agent/settings/settings.h"
#include "base/list.h"
#include "base/map.h"
#include "model/reference.h"

struct images;
struct image_request;

enum image_policy {
    IMAGE_PULL_MISSING, /* fetch only what is not here */
    IMAGE_PULL_ALWAYS,  /* ask the registry whether the name means something else now */
    IMAGE_PULL_NEVER,   /* -ENOENT unless it is here */
};

struct image {
    const char *reference;     /* canonical, as it was asked for */
    const char *digest;        /* of the manifest; NULL for host and rootfs */
    const char *const *lowers; /* directories for overlayfs, topmost first; absolute */
    size_t lower_count;        /* at least 1 */
    const char *const *hidden; /* NULL-terminated: files and directories of the node that no program
                                  may see; only the image "host" has any */
    const struct image_config *config;
    int64_t size_bytes; /* of the unpacked files; 0 for host and rootfs */
    struct map *known;  /* former answers of image_has(); NULL for host and rootfs, which change */
};

/* Is there anything at this absolute path? Links on the way are followed inside the image; one at
 * the end counts, wherever it leads. Each kernel asks the same: the answers for an image of the store
 * are kept with it.
 */
bool image_has(const struct image *image, const char *path);
/* Is it IMAGE_OF_FILES? */
bool image_is_for_files(const struct image *image);
void image_unref(struct image *image);
AQ_DEFINE_CLEANUP(struct image, image_unref)

/* Retrying: the registry failed; the step is repeated after a pause. */
enum image_phase { IMAGE_RESOLVING, IMAGE_RETRYING, IMAGE_FETCHING, IMAGE_UNPACKING };
const char *image_phase_name(enum image_phase phase); /* "resolving" … */

struct image_progress {
    enum image_phase phase;
    int64_t done_bytes, total_bytes; /* of compressed layers; 0 of 0 while resolving */
    const struct aq_error *failure;  /* IMAGE_RETRYING: of the last try; else NULL */
};

/* on_ready() or on_failed(), exactly once, unless the request is cancelled. */
struct image_events {
    void (*on_progress)(void *data, const struct image_progress *progress); /* may be NULL */
    void (*on_ready)(void *data, struct image *image); /* the caller's reference */
    void (*on_failed)(void *data, const struct aq_error *err);
};

/* Open or make the store; 'settings' is borrowed. */
int images_new(uv_loop_t *loop, const struct settings *settings, struct images **ret,
               struct aq_error *err);

/* Processes that fetch images have this group, by which the network's rules know them. */
void images_set_pull_group(struct images *images, uint32_t group);

/* What registries are logged in with: the text of a containers-auth.json(5), NULL = nothing. Kept
 * in a file of the store until they are given again; [image] auth-file of the node is taken
 * instead. Blocks for as long as the file is written.
 */
int images_set_logins(struct images *images, const char *text, struct aq_error *err);

/* What the user who names an image is told of a failure: the cause, as one of a few sentences, and
 * not what answered at the registry's address. Where the fetch reaches more than containers do, the
 * cause is withheld, too, unless an administrator has named the registry: both would show the
 * node's network.
 */
void image_hide_failure(const struct images *images, const char *name,
                        const struct aq_error *failure, struct aq_error *ret);

/* Called from the loop when images or names have come or gone. */
void images_set_on_change(struct images *images, void (*on_change)(void *data), void *data);

/* Ends pulls (what they fetched stays) without callbacks; images that are
 * still held stay usable. The loop ends when all is closed. NULL is fine.
 */
void images_free(struct images *images);
AQ_DEFINE_CLEANUP(struct images, images_free)

/* 'events' is borrowed until the end. 'architecture' NULL = this machine's;
 * else as in uname(2) or as in OCI ("amd64"). Refused at once: -EINVAL for
 * a bad name, -EACCES for one that [image] allow does not admit.
 */
int images_get(struct images *images, const char *reference, const char *architecture,
               enum image_policy policy, const struct image_events *events, void *data,
               struct image_request **ret, struct aq_error *err);

/* The image is for a session of this user, to whom it is charged; without it, it is nobody's. At
 * once after images_get().
 */
void image_request_charge(struct image_request *request, const char *user);

/* No callback follows. A pull that nobody waits for any more ends; what it
 * has fetched is used by the next.
 */
void images_cancel(struct image_request *request);

/* What is here already, at once: by the name it was got by, or by its digest
 * ("sha256:…"). For kernels that are found again after a restart. -ENOENT.
 */
int images_find(struct images *images, const char *name, struct image **ret, struct aq_error *err);

struct image_info {
    const char *digest, *architecture;
    const char *const *names; /* what it is called; may be none */
    size_t name_count;
    int64_t size_bytes;
    int64_t fetched_usec, used_usec; /* wall clock; used 0 = never */
    unsigned holds;                  /* handles on it: 0 = it may be removed */
    const struct image_config *config;
};

/* Each image of the store in turn; host and root file systems are none. Everything
 * is borrowed for the call. Stops, and returns the same, when 'fn' gives < 0.
 */
int images_each(struct images *images, int (*fn)(void *data, const struct image_info *info),
                void *data);

/* Remove an image and the layers that no other needs. -ENOENT, -EBUSY while
 * somebody holds it. *ret_bytes: what that frees.
 */
int images_remove(struct images *images, const char *name, int64_t *ret_bytes,
                  struct aq_error *err);

/* Who waits for room on the disk. */
struct image_room {
    struct list link; /* list_remove() while it waits: no callback follows */
    void (*on_made)(void *data);
    void *data;
};

/* On the file system of the agent's state, let what no session uses give way to 'bytes' more. True:
 * it is being removed, and the waiter is told when it is gone, to measure again. False: that
 * would not do, and nothing is removed.
 */
bool images_make_room(struct images *images, int64_t bytes, struct image_room *waiter);

/* What of that file system is promised to others, and no image takes; asked for when one comes. */
void images_set_promised(struct images *images, int64_t (*promised)(void *data), void *data);

/* Remove what is unused and too old or too much ([image] keep-age, keep-size);
 * with 'all', everything that is unused. Returns the bytes that frees. This
 * happens by itself, too.
 */
int64_t images_collect(struct images *images, bool all);

#endif
