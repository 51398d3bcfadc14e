/* record.h - an image that is here, inside this folder
 *
 * A record is one image, whatever names it has; it lives as long as the index
 * or a handle (struct image) needs it. Its file says which layers it is made
 * of, so it is written after them and removed before them.
 */
#ifndef AQ_AGENT_IMAGE_RECORD_H
#define AQ_AGENT_IMAGE_RECORD_H

#include "agent/image/image.h"

struct record {
    unsigned refs;            /* the index's one and one for each handle */
    unsigned holds;           /* handles: while there are any, nothing is removed */
    char *digest;             /* of the manifest; NULL for host and rootfs */
    struct image_config config;
    char **lowers;            /* topmost first */
    size_t lower_count;
    const char **hidden;      /* NULL-terminated; the texts are borrowed */
    int64_t size_bytes;
    int64_t fetched_usec, used_usec; /* wall clock */
    char *stamp;              /* a file whose time says when it was used last; NULL = none */
};

struct record *record_new(void); /* one reference; NULL = no memory */
void record_unref(struct record *record);
AQ_DEFINE_CLEANUP(struct record, record_unref)

/* A handle on it. NULL = no memory. */
struct image *record_hold(struct record *record, const char *reference);

/* A record for a root file system as it is. 'state' is the agent's folder,
 * borrowed, which "host" hides. -ENOMEM.
 */
int record_new_local(const struct reference *ref, const char *state, struct record **ret,
                     struct aq_error *err);

#endif
