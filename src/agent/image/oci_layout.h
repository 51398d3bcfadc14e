/* SPDX-License-Identifier: Apache-2.0 */
/* oci_layout.h - what is in the folder of an OCI image layout
 *
 * github.com/opencontainers/image-spec, image-layout.md. skopeo copies from a layout only what
 * its index.json names itself, so an image that is deeper gets a layout of its own, whose blobs
 * are a link to those of the folder. Used by worker threads.
 */
#ifndef AQ_AGENT_IMAGE_OCI_LAYOUT_H
#define AQ_AGENT_IMAGE_OCI_LAYOUT_H

#include "base/error.h"
#include "base/strbuf.h"

/* Append the text of index.json, or of the blob with this digest if 'digest' is not NULL; whether
 * it is that one the caller checks. -ENOENT, -EFBIG beyond IMAGE_CONFIG_MAX.
 */
int oci_layout_read(const char *layout, const char *digest, struct strbuf *out,
                    struct aq_error *err);

/* Recreate the folder 'path' as a layout with one image, "image": the manifest of 'layout' with
 * this digest and size.
 */
int oci_layout_make_view(const char *layout, const char *digest, size_t manifest_size,
                         const char *path, struct aq_error *err);

#endif
