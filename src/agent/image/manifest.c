/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - what a registry says an image consists of */
#include "agent/image/manifest.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

#define OCI "application/vnd.oci.image."
#define DOCKER "application/vnd.docker."

static int manifest_bad(struct aq_error *err, const char *why)
{
    return aq_fail_field(err, EBADMSG, "manifest", "the image's manifest %s", why);
}

static int manifest_get_digest(const json_t *object, char ret[DIGEST_TEXT_MAX],
                               struct aq_error *err)
{
    const char *digest = json_string_value(json_object_get(object, "digest"));

    if (!digest || !digest_is_valid(digest))
        return manifest_bad(err, "has a part without a sha256 digest");
    (void)strcpy(ret, digest);
    return 0;
}

/* ---- an image ---- */

static int manifest_check_layer_type(const json_t *layer, struct aq_error *err)
{
    static const char *const known[] = {
        OCI "layer.v1.tar",
        OCI "layer.v1.tar+gzip",
        OCI "layer.v1.tar+zstd",
        DOCKER "image.rootfs.diff.tar",
        DOCKER "image.rootfs.diff.tar.gzip",
        DOCKER "image.rootfs.diff.tar.zstd",
    };
    const char *type = json_string_value(json_object_get(layer, "mediaType"));

    for (size_t i = 0; type && i < AQ_COUNT(known); i++)
        if (strcmp(type, known[i]) == 0)
            return 0;
    return aq_fail_field(err, EBADMSG, "manifest",
                         "the image has a layer of the type '%.120s', which cannot be unpacked",
                         type ? type : "");
}

static int manifest_get_layers(const json_t *root, struct manifest *manifest, struct aq_error *err)
{
    const json_t *layers = json_object_get(root, "layers");
    size_t count = json_array_size(layers);

    if (count == 0)
        return manifest_bad(err, "has no layers");
    if (count > IMAGE_LAYERS_MAX)
        return aq_fail_field(err, EBADMSG, "manifest",
                             "the image has %zu layers and may have %d: join some of them", count,
                             IMAGE_LAYERS_MAX);
    manifest->layers = calloc(count, sizeof(*manifest->layers));
    if (!manifest->layers)
        return aq_fail_oom(err);
    for (size_t i = 0; i < count; i++) {
        const json_t *layer = json_array_get(layers, i), *size = json_object_get(layer, "size");
        struct manifest_layer *item = &manifest->layers[manifest->layer_count++];
        int r = manifest_get_digest(layer, item->digest, err);

        if (r == 0)
            r = manifest_check_layer_type(layer, err);
        if (r < 0)
            return r;
        item->size_bytes = json_integer_value(size);
        if (!json_is_integer(size) || item->size_bytes < 0
            || item->size_bytes > INT64_MAX / IMAGE_LAYERS_MAX / 16)
            return manifest_bad(err, "has a layer without a size");
        manifest->size_bytes += item->size_bytes;
    }
    return 0;
}

/* ---- an index ---- */

static void manifest_copy_word(const json_t *object, const char *member, char ret[32])
{
    const char *text = json_string_value(json_object_get(object, member));

    (void)snprintf(ret, 32, "%s", text ? text : "");
}

static int manifest_get_platforms(const json_t *root, struct manifest *manifest,
                                  struct aq_error *err)
{
    const json_t *list = json_object_get(root, "manifests");
    size_t count = json_array_size(list);

    if (count == 0 || count > MANIFEST_PLATFORMS_MAX)
        return manifest_bad(err, "names no images or too many");
    manifest->is_index = true;
    manifest->platforms = calloc(count, sizeof(*manifest->platforms));
    if (!manifest->platforms)
        return aq_fail_oom(err);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        const json_t *platform = json_object_get(item, "platform");
        struct manifest_platform *place = &manifest->platforms[manifest->platform_count++];
        int r = manifest_get_digest(item, place->digest, err);

        if (r < 0)
            return r;
        manifest_copy_word(platform, "os", place->os);
        manifest_copy_word(platform, "architecture", place->architecture);
        manifest_copy_word(platform, "variant", place->variant);
    }
    return 0;
}

int manifest_pick(const struct manifest *index, const char *architecture, const char **ret,
                  struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf others = STRBUF_INIT;

    for (size_t i = 0; i < index->platform_count; i++) {
        const struct manifest_platform *platform = &index->platforms[i];

        if (strcmp(platform->os, "linux") == 0
            && strcmp(platform->architecture, architecture) == 0) {
            *ret = platform->digest;
            return 0;
        }
        if (others.len < 120)
            strbuf_addf(&others, "%s%s/%s", others.len ? ", " : "", platform->os,
                        platform->architecture);
    }
    return aq_fail_as(err, ENOENT, "image-architecture", "architecture",
                      "the image is not there for linux/%s, only for %s", architecture,
                      others.data);
}

/* ---- both ---- */

static int manifest_parse_root(const json_t *root, struct manifest *manifest, struct aq_error *err)
{
    const char *type = json_string_value(json_object_get(root, "mediaType"));
    int r;

    if (json_integer_value(json_object_get(root, "schemaVersion")) != 2)
        return manifest_bad(err,
                            "is not of schema version 2; push the image again with a newer tool");
    if (type && strncmp(type, OCI, strlen(OCI)) != 0
        && strncmp(type, DOCKER "distribution.manifest.", strlen(DOCKER "distribution.manifest.")))
        return manifest_bad(err, "is of an unknown type");
    if (json_object_get(root, "manifests"))
        return manifest_get_platforms(root, manifest, err);
    r = manifest_get_digest(json_object_get(root, "config"), manifest->config, err);
    return r < 0 ? r : manifest_get_layers(root, manifest, err);
}

int manifest_parse(const char *json, size_t len, struct manifest *ret, struct aq_error *err)
{
    struct manifest manifest = { .is_index = false };
    json_t *root;
    int r;

    if (len > IMAGE_CONFIG_MAX)
        return aq_fail(err, EFBIG, "the image's manifest has more than %u bytes", IMAGE_CONFIG_MAX);
    root = json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL);
    r = json_is_object(root) ? manifest_parse_root(root, &manifest, err)
                             : manifest_bad(err, "is not a JSON object");
    json_decref(root);
    if (r < 0)
        manifest_done(&manifest);
    else
        *ret = manifest;
    return r;
}

void manifest_done(struct manifest *manifest)
{
    free(manifest->platforms);
    free(manifest->layers);
    *manifest = (struct manifest){ .is_index = false };
}

const char *manifest_architecture(const char *name)
{
    static const char *const names[][2] = {
        { "x86_64", "amd64" },        { "aarch64", "arm64" }, { "armv7l", "arm" },
        { "armv6l", "arm" },          { "i386", "386" },      { "i686", "386" },
        { "loongarch64", "loong64" },
    };

    for (size_t i = 0; i < AQ_COUNT(names); i++)
        if (strcmp(name, names[i][0]) == 0)
            return names[i][1];
    return name;
}
