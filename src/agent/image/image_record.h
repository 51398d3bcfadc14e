/* SPDX-License-Identifier: Apache-2.0 */
/* image_record.h - one image of the store in memory
 *
 * A record is one image, whatever names it has; it lives as long as the index
 * or a handle (struct image) needs it. Its file says which layers it is made
 * of, so it is written after them and removed before them.
 */
#ifndef AQ_AGENT_IMAGE_IMAGE_RECORD_H
#define AQ_AGENT_IMAGE_IMAGE_RECORD_H

#include "agent/image/image.h"

struct images;

struct image_record {
    struct images *images; /* whose index it is in; NULL = none, or not any more */
    unsigned refs;         /* the index's one and one for each handle */
    unsigned holds;        /* handles: while there are any, nothing is removed */
    bool is_said_used;     /* there were some when it was listed last */
    char *digest;          /* of the manifest; NULL for host and rootfs */
    struct image_config config;
    struct map known; /* of struct image */
    char **lowers;    /* topmost first */
    size_t lower_count;
    const char **hidden; /* NULL-terminated; the texts are borrowed */
    int64_t size_bytes;
    int64_t fetched_usec, used_usec; /* wall clock */
    char *stamp;                     /* a file whose time says when it was used last; NULL = none */
    char *user;                      /* to whom it is charged, as the stamp says; NULL = nobody */
    bool is_above_share;             /* room.c: its user has more than a share */
};

struct image_record *image_record_new(void); /* one reference */
void image_record_unref(struct image_record *record);
AQ_DEFINE_CLEANUP(struct image_record, image_record_unref)

/* A handle on it. */
struct image *image_record_hold(struct image_record *record, const char *reference);

/* It is this user's from now on, who has used it last; what is nobody's stays so. */
void image_record_charge(struct image_record *record, const char *user);

/* A record for a root file system as it is. 'state' is the agent's directory,
 * borrowed, which "host" hides.
 */
struct image_record *image_record_new_local(const struct reference *ref, const char *state);

#endif
