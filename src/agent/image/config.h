/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - what an image says about how to run it
 *
 * The OCI image configuration (github.com/opencontainers/image-spec,
 * config.md; Docker's has the same members) as far as it matters here:
 * User does not, as a session has its own. The bytes are untrusted: sizes and
 * counts are limited, texts have no NUL.
 */
#ifndef AQ_AGENT_IMAGE_CONFIG_H
#define AQ_AGENT_IMAGE_CONFIG_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text_pair.h"

#define IMAGE_CONFIG_MAX (4u << 20) /* bytes, of configurations and of manifests */
#define IMAGE_LAYERS_MAX 128        /* overlayfs in older kernels takes no more */
#define IMAGE_TEXTS_MAX 4096        /* variables, arguments, labels */

struct image_config {
    const char **env;                        /* "NAME=value", NULL-terminated; NULL = none */
    const char **entrypoint, **cmd;          /* its own program, NULL-terminated; NULL = none */
    const char *working_dir;                 /* of that; absolute, or NULL */
    const char *architecture, *os, *variant; /* OCI names; NULL = not said */
    struct text_pair *labels;
    size_t label_count;
    const char **diff_ids; /* of the layers, lowest first */
    size_t diff_count;
    struct arena arena; /* owns all of it */
};

int image_config_parse(const char *json, size_t len, struct image_config *ret,
                       struct aq_error *err) AQ_UNTRUSTED;
void image_config_done(struct image_config *config);

/* NULL if there is none. */
const char *image_config_label(const struct image_config *config, const char *key);

#endif
