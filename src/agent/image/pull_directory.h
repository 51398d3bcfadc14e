/* SPDX-License-Identifier: Apache-2.0 */
/* pull_directory.h - the directory of a pull on disk; used by worker threads
 *
 * The directory of a pull is an OCI layout that skopeo fills. A layer that is
 * unpacked already gets a placeholder of the blob's size there (a hole with
 * mode 0), so that skopeo, which asks only whether a blob is there, does not
 * fetch it again.
 *
 * Layers whose download was cut are continued by aliquot-fetch. Beside the layout are for it:
 *
 *   missing       lines "DIGEST SIZE" of the missing layers
 *   part-HEX      the first bytes of the layer with this digest
 *   kept-NAME     the first bytes of a layer that skopeo fetched as NAME: a second name, as skopeo
 *                 removes its own when it fails
 */
#ifndef AQ_AGENT_IMAGE_PULL_DIRECTORY_H
#define AQ_AGENT_IMAGE_PULL_DIRECTORY_H

#include "agent/image/manifest.h"

#define PULL_MISSING_FILE "missing"
#define PULL_MISSING_MAX (1 << 17) /* bytes of that file */
#define PULL_PART_PREFIX "part-"
#define PULL_KEPT_PREFIX "kept-"

struct pull_layer {
    char digest[DIGEST_TEXT_MAX]; /* of the blob */
    int64_t size_bytes;
    bool is_here; /* unpacked */
};

struct pull_directory {
    char *path;
    bool keeps_parts; /* partial files of an earlier try are of use */
    bool has_parts;   /* there were some when it was prepared */
    bool is_view; /* skopeo copies from a layout of its own in it (oci_layout.h), not by the name */
    struct pull_layer *layers;
    size_t layer_count;
    size_t missing_count;                  /* of blobs, when it was prepared; so is the next */
    const struct pull_layer *only_missing; /* if it is just one */
};

/* Make the directory, remove partial files unless they are of use, put placeholders. *ret_missing:
 * bytes to be fetched; those in partial files are here.
 */
int pull_directory_prepare(struct pull_directory *directory, int64_t *ret_missing,
                           struct aq_error *err);

/* Write PULL_MISSING_FILE. */
int pull_directory_write_missing(const struct pull_directory *directory, struct aq_error *err);

/* Give the files that skopeo is writing their second names. */
void pull_directory_keep_parts(const struct pull_directory *directory);

/* Bytes of blobs that are there, also of those that are being fetched; never more than all have by
 * the manifest. *ret_too_many: more come than that.
 */
int64_t pull_directory_measure(const struct pull_directory *directory, bool *ret_too_many);

/* "FOLDER/blobs/sha256/HEX"; caller frees. */
char *pull_directory_blob_path(const struct pull_directory *directory, const char *digest);

/* "FOLDER/source": the layout of its own. Caller frees. */
char *pull_directory_view_path(const struct pull_directory *directory);

/* Remove a blob that is not what it should be. */
void pull_directory_remove_blob(const struct pull_directory *directory, const char *digest);

#endif
