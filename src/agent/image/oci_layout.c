/* SPDX-License-Identifier: Apache-2.0 */
/* oci_layout.c - what is in the folder of an OCI image layout */
#include "agent/image/oci_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/config.h"
#include "agent/image/store_layout.h"
#include "base/fs.h"
#include "base/jsonw.h"

int oci_layout_read(const char *layout, const char *digest, struct strbuf *out,
                    struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = digest ? aq_format("%s/blobs/sha256/%s", layout,
                                                         layout_digest_hex(digest))
                                             : aq_format("%s/index.json", layout);
    AQ_CLEANUP(aq_closep) int fd = -1;
    char opened[64];
    struct stat st;

    fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return aq_fail_as(err, errno, errno == ENOENT ? "image-not-found" : "image-pull-failed",
                          "image", "'%s' of the layout cannot be read: %s",
                          path + strlen(layout) + 1, strerror(errno));
    if (!S_ISREG(st.st_mode)) /* a pipe would block the thread */
        return aq_fail_as(err, EINVAL, "image-damaged", "image", "'%s' of the layout is no file",
                          path + strlen(layout) + 1);
    (void)snprintf(opened, sizeof(opened), "/proc/self/fd/%d", fd);
    return fs_read(AT_FDCWD, opened, IMAGE_CONFIG_MAX, out, err);
}

static void oci_layout_write_index(struct strbuf *out, const char *digest, size_t size)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_int(&w, "schemaVersion", 2);
    jsonw_key(&w, "manifests");
    jsonw_array_begin(&w);
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "mediaType", "application/vnd.oci.image.manifest.v1+json");
    jsonw_member_str(&w, "digest", digest);
    jsonw_member_int(&w, "size", (int64_t)size);
    jsonw_key(&w, "annotations");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "org.opencontainers.image.ref.name", "image");
    jsonw_object_end(&w);
    jsonw_object_end(&w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
}

int oci_layout_make_view(const char *layout, const char *digest, size_t manifest_size,
                         const char *path, struct aq_error *err)
{
    static const char version[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
    AQ_CLEANUP(strbuf_donep) struct strbuf index = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *blobs = aq_format("%s/blobs", layout);
    AQ_CLEANUP(aq_closep) int fd = -1;
    int r;

    oci_layout_write_index(&index, digest, manifest_size);
    r = fs_remove_tree(AT_FDCWD, path, err);
    if (r == 0)
        r = fs_mkdirs(path, 0700, err);
    if (r < 0)
        return r;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || symlinkat(blobs, fd, "blobs") < 0)
        return aq_fail_errno(err, "make '%s'", path);
    r = fs_write_quick(fd, "oci-layout", version, sizeof(version) - 1, 0600, err);
    return r < 0 ? r : fs_write_quick(fd, "index.json", index.data, index.len, 0600, err);
}
