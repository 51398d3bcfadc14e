/* SPDX-License-Identifier: Apache-2.0 */
/* Images that registries have, as their last scans found them. */
#include "manager/image/image_catalogue.h"

#include "manager/call/object_setting.h"
#include "manager/cluster/cluster.h"
#include "manager/image/image_feature.h"

#define SETTING_CATALOGUE "image.catalogue"

int image_catalogue_load(struct api *api, struct aq_error *err)
{
    return object_setting_load(core_store(api->core), SETTING_CATALOGUE, &api->image->catalogue,
                               err);
}

json_t *image_catalogue_shown(const struct api *api)
{
    json_t *shown = json_object(), *images;
    const char *name;

    json_object_foreach(api->image->catalogue, name, images)
        if (json_object_get(cluster_registries(api), name))
            (void)json_object_set(shown, name, images);
    return shown;
}

static int image_catalogue_audit(struct store_tx *tx, const json_t *found,
                                 const struct audit_who *by, struct aq_error *err)
{
    const char *name;
    json_t *images;
    int r = 0;

    json_object_foreach((json_t *)(uintptr_t)found, name, images) {
        json_auto_t *after = json_pack("{s:I}", "images", (json_int_t)json_array_size(images));

        if (r == 0)
            r = object_setting_audit(tx, by, "registry-images", name, NULL, after, err);
    }
    return r;
}

int image_catalogue_write(struct store_tx *tx, const json_t *found, const struct audit_who *by,
                          json_t **ret_all, struct aq_error *err)
{
    json_auto_t *all = NULL, *tree = NULL;
    const char *name;
    void *next;
    json_t *images;
    int r = object_setting_read(tx, SETTING_CATALOGUE, &all, err);

    if (r == 0)
        r = registry_tree_read(tx, &tree, err);
    if (r < 0)
        return r;
    (void)json_object_update(all, (json_t *)(uintptr_t)found);
    json_object_foreach_safe(all, next, name, images) if (!json_object_get(tree, name))(void)
        json_object_del(all, name);
    r = object_setting_write(tx, SETTING_CATALOGUE, all, ret_all, err);
    return r < 0 ? r : image_catalogue_audit(tx, found, by, err);
}

void image_catalogue_replace(struct api *api, json_t *all)
{
    json_decref(api->image->catalogue);
    api->image->catalogue = all;
}
