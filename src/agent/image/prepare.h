/* prepare.h - the disk's part of a pull, for a worker thread
 *
 * The folder of a pull is an OCI layout that skopeo fills. A layer that is
 * unpacked already gets a placeholder of the blob's size there (a hole with
 * mode 0), so that skopeo, which asks only whether a blob is there, does not
 * fetch it again.
 */
#ifndef AQ_AGENT_IMAGE_PREPARE_H
#define AQ_AGENT_IMAGE_PREPARE_H

#include "agent/image/manifest.h"

struct pull_layer {
    char digest[DIGEST_TEXT_MAX]; /* of the blob */
    int64_t size_bytes;
    bool is_here;                 /* unpacked */
};

struct pull_folder {
    char *path;
    struct pull_layer *layers;
    size_t layer_count;
};

/* Make the folder, remove halves of blobs, put placeholders. *ret_missing:
 * bytes to be fetched. -ENOSPC if they and 'keep_free' do not fit, and then
 * *ret_missing is set too.
 */
int prepare_folder(const struct pull_folder *folder, int64_t keep_free, int64_t *ret_missing,
                   struct aq_error *err);

/* Bytes of blobs that are there, also of those that are being fetched. */
int64_t prepare_measure(const struct pull_folder *folder);

/* "FOLDER/blobs/sha256/HEX"; caller frees. */
char *prepare_blob_path(const struct pull_folder *folder, const char *digest);

/* Remove a blob that is not what it should be. */
void prepare_remove_blob(const struct pull_folder *folder, const char *digest);

#endif
