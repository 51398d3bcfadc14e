/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - what a registry says an image consists of */
#include "agent/image/manifest.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "model/architecture.h"

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
        /* in the registry as any other, unless they say where else they are */
        OCI "layer.nondistributable.v1.tar",
        OCI "layer.nondistributable.v1.tar+gzip",
        OCI "layer.nondistributable.v1.tar+zstd",
        DOCKER "image.rootfs.foreign.diff.tar",
        DOCKER "image.rootfs.foreign.diff.tar.gzip",
    };
    const char *type = json_string_value(json_object_get(layer, "mediaType"));
    bool is_known = false;

    for (size_t i = 0; type && i < AQ_COUNT(known); i++)
        is_known = is_known || strcmp(type, known[i]) == 0;
    if (!is_known)
        return aq_fail_field(err, EBADMSG, "manifest",
                             "the image has a layer of the type '%.120s', which cannot be unpacked",
                             type ? type : "");
    if (json_array_size(json_object_get(layer, "urls")))
        return aq_fail_field(err, EBADMSG, "manifest",
                             "the image has a layer that is kept elsewhere than in its registry "
                             "('urls'): build it again on a base without such layers");
    return 0;
}

/* Charts, models, signatures and more are stored as if they were images. */
static int manifest_check_config_type(const json_t *root, struct aq_error *err)
{
    const char *type = json_string_value(
        json_object_get(json_object_get(root, "config"), "mediaType"));
    const char *artifact = json_string_value(json_object_get(root, "artifactType"));

    if (!type || strncmp(type, OCI "config.", strlen(OCI "config.")) == 0
        || strcmp(type, DOCKER "container.image.v1+json") == 0)
        return 0;
    return aq_fail_field(err, EBADMSG, "manifest",
                         "this is no image that could be run, but an artifact of the type '%.120s'",
                         artifact && *artifact ? artifact : type);
}

static int manifest_get_layers(const json_t *root, struct manifest *manifest, struct aq_error *err)
{
    const json_t *layers = json_object_get(root, "layers");
    size_t count = json_array_size(layers);

    if (count == 0)
        return manifest_bad(err, "has no layers: there is nothing in it that could be run");
    if (count > IMAGE_LAYERS_MAX)
        return aq_fail_field(err, EBADMSG, "manifest",
                             "the image has %zu layers and may have %d: join some of them", count,
                             IMAGE_LAYERS_MAX);
    manifest->layers = aq_alloc_array(count, sizeof(*manifest->layers));
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

static void manifest_copy_word(const char *text, char ret[32])
{
    (void)snprintf(ret, 32, "%s", text ? text : "");
}

static const char *manifest_get_text(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

/* buildx puts attestations beside the images that they are about. */
static bool manifest_is_artifact(const json_t *item, const struct manifest_item *place)
{
    const json_t *annotations = json_object_get(item, "annotations");

    return json_object_get(annotations, "vnd.docker.reference.type")
           || (strcmp(place->os, "unknown") == 0 && strcmp(place->architecture, "unknown") == 0)
           || (json_object_get(item, "artifactType") && !place->has_platform);
}

static int manifest_get_item(const json_t *item, struct manifest_item *place, struct aq_error *err)
{
    const json_t *platform = json_object_get(item, "platform");
    const json_t *annotations = json_object_get(item, "annotations");
    const char *type = json_string_value(json_object_get(item, "mediaType"));
    int r = manifest_get_digest(item, place->digest, err);

    if (r < 0)
        return r;
    manifest_copy_word(manifest_get_text(platform, "os"), place->os);
    manifest_copy_word(architecture_of_image(manifest_get_text(platform, "architecture")),
                       place->architecture);
    manifest_copy_word(manifest_get_text(platform, "variant"), place->variant);
    place->has_platform = place->os[0] || place->architecture[0];
    place->is_index = type
                      && (strcmp(type, OCI "index.v1+json") == 0
                          || strcmp(type, DOCKER "distribution.manifest.list.v2+json") == 0);
    place->is_artifact = manifest_is_artifact(item, place);
    place->name = aq_strdup(manifest_get_text(annotations, "org.opencontainers.image.ref.name"));
    place->full_name = aq_strdup(manifest_get_text(annotations, "io.containerd.image.name"));
    return 0;
}

static int manifest_get_items(const json_t *root, struct manifest *manifest, struct aq_error *err)
{
    const json_t *list = json_object_get(root, "manifests");
    size_t count = json_array_size(list);
    int r = 0;

    if (count == 0 || count > MANIFEST_ITEMS_MAX)
        return manifest_bad(err, "names no images or too many");
    manifest->is_index = true;
    manifest->items = aq_alloc_array(count, sizeof(*manifest->items));
    for (size_t i = 0; r == 0 && i < count; i++)
        r = manifest_get_item(json_array_get(list, i), &manifest->items[manifest->item_count++],
                              err);
    return r;
}

/* ---- both ---- */

static int manifest_parse_root(const json_t *root, struct manifest *manifest, struct aq_error *err)
{
    const json_t *version = json_object_get(root, "schemaVersion");
    bool is_index = json_object_get(root, "manifests") != NULL;
    int r;

    if (version && json_integer_value(version) != 2)
        return manifest_bad(err,
                            "is not of schema version 2; push the image again with a newer tool");
    /* its type is what it has: mediaType may be missing, and need not agree with the registry's */
    if (is_index && (json_object_get(root, "config") || json_object_get(root, "layers")))
        return manifest_bad(err, "is that of an image and of an index at once");
    if (is_index)
        return manifest_get_items(root, manifest, err);
    r = manifest_check_config_type(root, err);
    if (r == 0)
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
    for (size_t i = 0; i < manifest->item_count; i++) {
        free(manifest->items[i].name);
        free(manifest->items[i].full_name);
    }
    free(manifest->items);
    free(manifest->layers);
    *manifest = (struct manifest){ .is_index = false };
}
