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

#define MANIFEST_PLATFORMS_MAX 1024

struct manifest_layer {
    char digest[DIGEST_TEXT_MAX];
    int64_t size_bytes; /* of the blob */
};

struct manifest_platform {
    char digest[DIGEST_TEXT_MAX];
    char os[32], architecture[32], variant[32]; /* "" = not said */
};

struct manifest {
    bool is_index;
    struct manifest_platform *platforms; /* of an index */
    size_t platform_count;
    char config[DIGEST_TEXT_MAX];  /* of an image; so are the rest */
    struct manifest_layer *layers; /* lowest first */
    size_t layer_count;
    int64_t size_bytes; /* of all layers' blobs */
};

int manifest_parse(const char *json, size_t len, struct manifest *ret,
                   struct aq_error *err) AQ_UNTRUSTED;
void manifest_done(struct manifest *manifest);

/* The image of an index for Linux on this architecture (OCI name). -ENOENT,
 * saying which there are.
 */
int manifest_pick(const struct manifest *index, const char *architecture, const char **ret,
                  struct aq_error *err);

/* OCI's name of an architecture: uname(2)'s "x86_64" is "amd64". What is not
 * known is itself.
 */
const char *manifest_architecture(const char *name);

#endif
