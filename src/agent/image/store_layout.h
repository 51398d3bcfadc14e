/* SPDX-License-Identifier: Apache-2.0 */
/* store_layout.h - where the image store keeps what
 *
 *   layers/HEX/fs/          an unpacked layer in overlayfs form; HEX is of its diff-id
 *   layers/HEX/layer.json   its sizes
 *   layers/HEX/implied      directories that the layer needs but does not describe, each
 *                           with a NUL after it; "" is its root
 *   images/HEX/record.json  an image; HEX is of its manifest's digest
 *   images/HEX/manifest.json, config.json   as the registry gave them
 *   images/HEX/used         whose time says when it was used last, and whose text is the user to
 *                           whom it is charged; empty = nobody
 *   images/HEX/parents/     a topmost layer, if implied directories need their true
 *                           attributes (implied_directories.h)
 *   names/HEX               "DIGEST\nNAME\n": what a name means; HEX is of the name's sha256
 *   files/                  the empty root of sessions for files
 *   pulls/HEX/              a pull that was begun: an OCI layout with the blobs so far
 *                           (pull_directory.h)
 *   registries.conf         made from the settings at each start
 *   .new-…, .gone-…         being made or removed; of no meaning
 *
 * All of it on one file system. Layers come before the record that needs
 * them and go after it.
 */
#ifndef AQ_AGENT_IMAGE_STORE_LAYOUT_H
#define AQ_AGENT_IMAGE_STORE_LAYOUT_H

#define LAYOUT_UNFINISHED_PREFIX ".new-"
#define LAYOUT_REMOVED_PREFIX ".gone-"
#define LAYOUT_NAME_MAX 80

/* The hex digits of a digest "sha256:HEX". */
static inline const char *layout_digest_hex(const char *digest)
{
    return digest + 7;
}

#endif
