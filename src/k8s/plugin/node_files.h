/* SPDX-License-Identifier: Apache-2.0 */
/* node_files.h - what containers with a part of a GPU are given of this node, read-only
 *
 * The preload library, the /etc/ld.so.preload that loads it in front of the driver, and the folder
 * of the socket on which it asks for its limits: containers have a folder and no socket, so that
 * the socket may be made again.
 */
#ifndef AQ_K8S_PLUGIN_NODE_FILES_H
#define AQ_K8S_PLUGIN_NODE_FILES_H

#include "base/error.h"
#include "model/container_part.h"

#define NODE_FILES_MOUNTS 3

struct node_files {
    char *library, *preload, *socket_folder;
};

/* Make them in 'folder'; 'library' NULL = the one beside the program. A library that is there
 * already and the same stays, one that differs is replaced: containers that run keep theirs.
 * -ENOENT with what is missing, -errno.
 */
int node_files_make(const char *folder, const char *library, struct node_files *ret,
                    struct aq_error *err);
void node_files_done(struct node_files *files);

void node_files_mounts(const struct node_files *files,
                       struct container_mount ret[NODE_FILES_MOUNTS]);

#endif
