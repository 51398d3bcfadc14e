/* SPDX-License-Identifier: Apache-2.0 */
/* layer_fetch.h - one missing layer of a pull from its registry, continued where it was cut
 *
 * Used by aliquot-fetch, one thread. Names in the directory of the pull: pull_directory.h.
 */
#ifndef AQ_AGENT_IMAGE_LAYER_FETCH_H
#define AQ_AGENT_IMAGE_LAYER_FETCH_H

#include "agent/image/manifest.h"
#include "registry/registry_client.h"

struct layer_fetch_source {
    struct registry_client *client;
    const char *repository;
    int directory; /* of the pull; borrowed */
};

/* Make "blobs/sha256/HEX", unless it exists, from the layer's partial file or one that skopeo left,
 * and the rest of the bytes. After a failure the partial file stays for the next call, but not if
 * its digest was wrong. -EBADMSG: the registry's bytes are not those of the manifest; -ECONNRESET
 * etc. as registry_client_read(), -ENOSPC.
 */
int layer_fetch(const struct layer_fetch_source *source, const struct manifest_layer *layer,
                struct aq_error *err);

/* Remove the files that skopeo left in the directory of a pull, once no layer is missing. */
void layer_fetch_remove_kept(int directory);

#endif
