/* SPDX-License-Identifier: Apache-2.0 */
/* publish.c - makes a pulled image durable; run by a worker thread */
#include "agent/image/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/config.h"
#include "agent/image/store_layout.h"
#include "agent/image/implied_directories.h"
#include "base/fault.h"
#include "base/fs.h"

/* Topmost directories with the attributes that some layers leave out. */
static int publish_make_parents(const struct publication *p, const char *image,
                                struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/parents", image);
    char *layers[IMAGE_LAYERS_MAX] = { NULL };
    int r;

    for (size_t i = 0; i < p->diff_count; i++)
        layers[i] = aq_format("%s/layers/%s", p->directory, layout_digest_hex(p->diff_ids[i]));
    r = implied_directories_make((const char *const *)layers, p->diff_count, path, err);
    for (size_t i = 0; i < p->diff_count; i++)
        free(layers[i]);
    return AQ_MIN(r, 0);
}

static int publish_fill(const struct publication *p, const char *image, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = open(image, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r;

    if (fd < 0)
        return aq_fail_errno(err, "open '%s'", image);
    r = fs_write_quick(fd, "manifest.json", p->manifest, p->manifest_len, 0600, err);
    if (r == 0)
        r = fs_write_quick(fd, "config.json", p->config, p->config_len, 0600, err);
    if (r == 0)
        r = fs_write_quick(fd, "used", p->user, strlen(p->user), 0600, err);
    if (r == 0)
        r = publish_make_parents(p, image, err);
    if (r == 0 && syncfs(fd) < 0)
        r = aq_fail_errno(err, "sync '%s'", image);
    return r;
}

static int publish_sync_directory(const char *path, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 || fsync(fd) < 0 ? aq_fail_errno(err, "sync '%s'", path) : 0;
}

static int publish_image(const struct publication *p, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *images = aq_format("%s/images", p->directory);
    AQ_CLEANUP(aq_freep) char *made = aq_format("%s/images/" LAYOUT_UNFINISHED_PREFIX "%s",
                                                p->directory, layout_digest_hex(p->digest));
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/images/%s", p->directory,
                                                layout_digest_hex(p->digest));
    int r;

    if (access(path, F_OK) == 0)
        return 0; /* another name of it was pulled meanwhile */
    r = fs_remove_tree(AT_FDCWD, made, err);
    if (r == 0)
        r = fs_mkdirs(made, 0700, err);
    if (r == 0)
        r = publish_fill(p, made, err);
    AQ_FAULT("agent.image.written");
    if (r == 0 && rename(made, path) < 0)
        r = aq_fail_errno(err, "rename to '%s'", path);
    AQ_FAULT("agent.image.renamed");
    if (r == 0)
        r = publish_sync_directory(images, err);
    if (r < 0)
        (void)fs_remove_tree(AT_FDCWD, made, NULL);
    return r;
}

static int publish_name(const struct publication *p, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/names/%s", p->directory, p->image_name_key);
    AQ_CLEANUP(aq_freep) char *text = aq_format("%s\n%s\n%s\n", p->digest, p->architecture,
                                                p->name);

    return fs_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, err);
}

int publish(const struct publication *publication, struct aq_error *err)
{
    int r = publication->manifest ? publish_image(publication, err) : 0;

    if (r == 0)
        r = publish_name(publication, err);
    AQ_FAULT("agent.image.named");
    /* whatever stays of it costs only space */
    if (r == 0 && publication->pull_directory)
        (void)fs_remove_tree(AT_FDCWD, publication->pull_directory, NULL);
    return r;
}
