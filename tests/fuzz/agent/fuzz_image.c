/* SPDX-License-Identifier: Apache-2.0 */
/* What registries say of images: whatever is accepted keeps its promises. */
#include <stdint.h>
#include <string.h>

#include "agent/image/config.h"
#include "agent/image/index_choice.h"
#include "agent/image/manifest.h"
#include "model/reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

static void check_config(const char *text, size_t size)
{
    struct image_config config = { .env = NULL };
    struct aq_error err = { 0 };

    if (image_config_parse(text, size, &config, &err) < 0) {
        require(err.text[0]);
        return;
    }
    for (const char **at = config.env; at && *at; at++)
        require(strchr(*at, '=') != NULL);
    require(config.diff_count > 0 && config.diff_count <= IMAGE_LAYERS_MAX);
    for (size_t i = 0; i < config.diff_count; i++)
        require(digest_is_valid(config.diff_ids[i]));
    for (size_t i = 0; i < config.label_count; i++)
        require(image_config_label(&config, config.labels[i].key) == config.labels[i].value);
    image_config_done(&config);
}

static void check_manifest(const char *text, size_t size)
{
    struct manifest manifest = { .is_index = false };
    struct aq_error err = { 0 };
    struct index_choice choice;
    char digest[DIGEST_TEXT_MAX];

    if (manifest_parse(text, size, &manifest, &err) < 0) {
        require(err.text[0]);
        return;
    }
    if (!manifest.is_index) {
        require(digest_is_valid(manifest.config) && manifest.size_bytes >= 0);
        require(manifest.layer_count > 0 && manifest.layer_count <= IMAGE_LAYERS_MAX);
    } else {
        index_choice_init(&choice, "amd64", NULL, 3);
        require(index_choice_add(&choice, &manifest, &err) == 0);
        while (index_choice_next(&choice, digest, &err) == 0)
            require(digest_is_valid(digest));
        require(err.text[0]);
        index_choice_done(&choice);
        (void)index_choice_check_names(&manifest, &err);
    }
    manifest_done(&manifest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_manifest((const char *)data, size);
    check_config((const char *)data, size);
    return 0;
}
