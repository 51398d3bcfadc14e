/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h - what a registry says an image consists of
 *
 * OCI image manifests and indexes (github.com/opencontainers/image-spec,
 * manifest.md, image-index.md) and Docker's version 2 schema 2, which have the
 * same members. The bytes are untrusted.
 */
#ifndef AQ_AGENT_IMAGE_MANIFEST_H
#define AQ_AGENT_IMAGE_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/image/config.h"
#include "model/reference.h"

#define MANIFEST_ITEMS_MAX 1024

struct manifest_layer {
    char digest[DIGEST_TEXT_MAX];
    int64_t size_bytes; /* of the blob */
};

/* Of an index: an image, another index, or what is neither. */
struct manifest_item {
    char digest[DIGEST_TEXT_MAX];
    char os[32], architecture[32], variant[32]; /* "" = not said */
    bool has_platform;
    bool is_index;
    bool is_artifact;       /* such as an attestation: not to be run */
    char *name, *full_name; /* in a layout: the name as annotated, and as containerd has it; or
                               NULL */
};

struct manifest {
    bool is_index;
    struct manifest_item *items; /* of an index */
    size_t item_count;
    char config[DIGEST_TEXT_MAX];  /* of an image; so are the rest */
    struct manifest_layer *layers; /* lowest first */
    size_t layer_count;
    int64_t size_bytes; /* of all layers' blobs */
};

int manifest_parse(const char *json, size_t len, struct manifest *ret,
                   struct aq_error *err) AQ_UNTRUSTED;
void manifest_done(struct manifest *manifest);

#endif
