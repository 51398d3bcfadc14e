/* SPDX-License-Identifier: Apache-2.0 */
/* node_files.c - see node_files.h */
#include "k8s/plugin/node_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/installed.h"
#include "base/strbuf.h"

#define LIBRARY_INSIDE "/opt/kernel/libaliquot-gpu.so"
#define SOCKET_FOLDER_INSIDE "/run/aliquot" /* of AQ_GPU_SOCKET */
#define LIBRARY_MAX (16u << 20)

void node_files_done(struct node_files *files)
{
    free(files->library);
    free(files->preload);
    free(files->socket_folder);
    *files = (struct node_files){ .library = NULL };
}

static int node_files_write(const char *path, const char *bytes, size_t len, mode_t mode,
                            struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf there = STRBUF_INIT;

    if (fs_read(AT_FDCWD, path, LIBRARY_MAX, &there, NULL) == 0 && there.len == len
        && memcmp(there.data, bytes, len) == 0)
        return 0;
    return fs_write_atomic(AT_FDCWD, path, bytes, len, mode, err);
}

static int node_files_copy(const char *from, const char *to, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf bytes = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *found = from ? NULL : installed_find("libaliquot-gpu.so");
    int r;

    if (!from && !found)
        return aq_fail_field(
            err, ENOENT, "gpu.library",
            "libaliquot-gpu.so is missing: nothing would hold pods to their parts");
    r = fs_read(AT_FDCWD, from ? from : found, LIBRARY_MAX, &bytes, err);
    return r < 0 ? r : node_files_write(to, bytes.data, bytes.len, 0755, err);
}

int node_files_make(const char *folder, const char *library, struct node_files *ret,
                    struct aq_error *err)
{
    static const char preload[] = LIBRARY_INSIDE "\n";
    struct node_files files = { .library = aq_format("%s/libaliquot-gpu.so", folder),
                                .preload = aq_format("%s/ld.so.preload", folder),
                                .socket_folder = aq_format("%s/socket", folder) };
    int r = fs_mkdirs(files.socket_folder, 0755, err);

    if (r == 0)
        r = node_files_copy(library, files.library, err);
    if (r == 0)
        r = node_files_write(files.preload, preload, sizeof(preload) - 1, 0644, err);
    if (r < 0)
        node_files_done(&files);
    else
        *ret = files;
    return r;
}

void node_files_mounts(const struct node_files *files,
                       struct container_mount ret[NODE_FILES_MOUNTS])
{
    ret[0] = (struct container_mount){ .source = files->library, .target = LIBRARY_INSIDE };
    ret[1] = (struct container_mount){ .source = files->preload, .target = "/etc/ld.so.preload" };
    ret[2] = (struct container_mount){ .source = files->socket_folder,
                                       .target = SOCKET_FOLDER_INSIDE };
}
