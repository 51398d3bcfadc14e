/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - what an image says about how to run it */
#include "agent/image/config.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "model/architecture.h"
#include "model/reference.h"

static int image_config_bad(struct aq_error *err, const char *member, const char *why)
{
    return aq_fail_field(err, EBADMSG, member, "the image's configuration: %s %s", member, why);
}

/* An absent or null member is NULL, as is "". */
static int image_config_get_text(const json_t *object, const char *member, struct arena *arena,
                                 const char **ret, struct aq_error *err)
{
    const json_t *value = json_object_get(object, member);
    const char *text = json_string_value(value);

    if (!value || json_is_null(value) || (text && !*text))
        return 0;
    if (!text)
        return image_config_bad(err, member, "is not text");
    *ret = arena_strdup(arena, text);
    return 0;
}

/* NULL-terminated; NULL, and 0, if there are none. */
static int config_get_texts(const json_t *object, const char *member, size_t max,
                            struct arena *arena, const char ***ret, size_t *ret_count,
                            struct aq_error *err)
{
    const json_t *value = json_object_get(object, member);
    size_t count = json_array_size(value);
    const char **texts;

    if (!value || json_is_null(value) || (json_is_array(value) && count == 0))
        return 0;
    if (!json_is_array(value))
        return image_config_bad(err, member, "is not a list");
    if (count > max)
        return image_config_bad(err, member, "has too many entries");
    texts = arena_array(arena, count + 1, sizeof(*texts));
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(value, i));

        if (!text)
            return image_config_bad(err, member, "has an entry that is not text");
        texts[i] = arena_strdup(arena, text);
    }
    *ret = texts;
    *ret_count = count;
    return 0;
}

static int config_get_labels(json_t *object, struct image_config *config, struct aq_error *err)
{
    json_t *labels = json_object_get(object, "Labels"), *value;
    const char *key;

    if (!labels || json_is_null(labels))
        return 0;
    if (!json_is_object(labels))
        return image_config_bad(err, "Labels", "is not an object");
    if (json_object_size(labels) > IMAGE_TEXTS_MAX)
        return image_config_bad(err, "Labels", "has too many entries");
    config->labels = arena_array(&config->arena, json_object_size(labels) + 1,
                                 sizeof(*config->labels));
    json_object_foreach(labels, key, value) {
        struct text_pair *label = &config->labels[config->label_count++];

        if (!json_is_string(value))
            return image_config_bad(err, "Labels", "has an entry that is not text");
        label->key = arena_strdup(&config->arena, key);
        label->value = arena_strdup(&config->arena, json_string_value(value));
    }
    return 0;
}

/* Few sessions run the image's own program: for the others a malformed one is ignored. */
static void config_get_program(json_t *run, struct image_config *config)
{
    const char *dir = json_string_value(json_object_get(run, "WorkingDir"));
    size_t count = 0;

    if (config_get_texts(run, "Entrypoint", IMAGE_TEXTS_MAX, &config->arena, &config->entrypoint,
                         &count, NULL)
        < 0)
        return;
    (void)config_get_texts(run, "Cmd", IMAGE_TEXTS_MAX, &config->arena, &config->cmd, &count, NULL);
    config->working_dir = dir && *dir == '/' ? arena_strdup(&config->arena, dir) : NULL;
}

static int config_get_run(json_t *run, struct image_config *config, struct aq_error *err)
{
    size_t count = 0, kept = 0;
    int r = config_get_texts(run, "Env", IMAGE_TEXTS_MAX, &config->arena, &config->env, &count,
                             err);

    for (size_t i = 0; i < count; i++)
        if (strchr(config->env[i], '=') && config->env[i][0] != '=')
            config->env[kept++] = config->env[i];
    if (count)
        config->env[kept] = NULL;
    config_get_program(run, config);
    return r < 0 ? r : config_get_labels(run, config, err);
}

static int image_config_get_layers(const json_t *root, struct image_config *config,
                                   struct aq_error *err)
{
    const json_t *rootfs = json_object_get(root, "rootfs");
    const char *type = json_string_value(json_object_get(rootfs, "type"));
    int r;

    if (!type || strcmp(type, "layers") != 0)
        return image_config_bad(err, "rootfs.type", "is not \"layers\"");
    r = config_get_texts(rootfs, "diff_ids", IMAGE_LAYERS_MAX, &config->arena, &config->diff_ids,
                         &config->diff_count, err);
    for (size_t i = 0; r == 0 && i < config->diff_count; i++)
        if (!digest_is_valid(config->diff_ids[i]))
            r = image_config_bad(err, "rootfs.diff_ids",
                                 "has an entry that is not a sha256 digest");
    if (r == 0 && config->diff_count == 0)
        r = image_config_bad(err, "rootfs.diff_ids",
                             "names no layer: this is no image of a root file system");
    return r;
}

int image_config_parse(const char *json, size_t len, struct image_config *ret, struct aq_error *err)
{
    struct image_config config = { .env = NULL };
    json_error_t where;
    json_t *root, *run;
    int r;

    if (len > IMAGE_CONFIG_MAX)
        return aq_fail(err, EFBIG, "the image's configuration has more than %u bytes",
                       IMAGE_CONFIG_MAX);
    root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &where);
    if (!json_is_object(root)) {
        json_decref(root);
        return aq_fail(err, EBADMSG, "the image's configuration is not a JSON object: %s",
                       root ? "it is something else" : where.text);
    }
    run = json_object_get(root, "config");
    r = image_config_get_text(root, "architecture", &config.arena, &config.architecture, err);
    config.architecture = architecture_of_image(config.architecture);
    if (r == 0)
        r = image_config_get_text(root, "os", &config.arena, &config.os, err);
    if (r == 0)
        r = image_config_get_text(root, "variant", &config.arena, &config.variant, err);
    if (r == 0 && json_is_object(run))
        r = config_get_run(run, &config, err);
    if (r == 0)
        r = image_config_get_layers(root, &config, err);
    json_decref(root);
    if (r < 0)
        image_config_done(&config);
    else
        *ret = config;
    return r;
}

void image_config_done(struct image_config *config)
{
    arena_done(&config->arena);
    *config = (struct image_config){ .env = NULL };
}

const char *image_config_label(const struct image_config *config, const char *key)
{
    for (size_t i = 0; i < config->label_count; i++)
        if (strcmp(config->labels[i].key, key) == 0)
            return config->labels[i].value;
    return NULL;
}
