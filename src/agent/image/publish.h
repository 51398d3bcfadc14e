/* SPDX-License-Identifier: Apache-2.0 */
/* publish.h - makes a pulled image durable; run by a worker thread
 *
 * The image's directory appears by a rename when all in it is on the disk; its
 * layers are there before. A name is one small file, replaced whole.
 */
#ifndef AQ_AGENT_IMAGE_PUBLISH_H
#define AQ_AGENT_IMAGE_PUBLISH_H

#include <stddef.h>

#include "base/error.h"

struct publication {
    const char *directory; /* of the store */
    const char *digest;    /* of the manifest */
    const char *name, *image_name_key, *architecture;
    const char *manifest, *config; /* as they came; NULL = the image is there already */
    const char *user;              /* to whom it is charged; "" = nobody */
    size_t manifest_len, config_len;
    const char *const *diff_ids; /* lowest first */
    size_t diff_count;
    const char *pull_directory; /* of no more use afterwards; may be NULL */
};

int publish(const struct publication *publication, struct aq_error *err);

#endif
