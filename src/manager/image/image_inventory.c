/* SPDX-License-Identifier: Apache-2.0 */
/* The images on the nodes, merged over all agents. */
#include "manager/image/image_inventory.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "manager/image/image_catalogue.h"

/* One row for each digest, in the order of first sight by agents' ids. */
struct image_inventory {
    json_t *rows;      /* array */
    json_t *by_digest; /* digest -> row */
};

static void image_inventory_add_texts(json_t *to, const json_t *from)
{
    size_t i, k;
    json_t *text, *known;

    json_array_foreach((json_t *)(uintptr_t)from, i, text) {
        bool is_known = false;

        json_array_foreach(to, k, known)
            is_known = is_known || json_equal(known, text);
        if (!is_known)
            (void)json_array_append(to, text);
    }
}

static json_t *image_inventory_add_row(struct image_inventory *inventory, const json_t *image)
{
    static const char *const same[] = { "digest", "architecture", "size_bytes", "labels" };
    json_t *row = json_pack("{s:[],s:[],s:b}", "names", "agents", "in_use", 0);
    int64_t fetched_usec = json_integer_value(json_object_get(image, "fetched_at"));
    char text[CLOCK_ISO_MAX];

    for (size_t i = 0; i < AQ_COUNT(same); i++)
        (void)json_object_set(row, same[i], json_object_get(image, same[i]));
    (void)json_object_set_new(row, "fetched_at",
                              fetched_usec ? json_string(clock_format_iso(fetched_usec, text))
                                           : json_null());
    (void)json_array_append_new(inventory->rows, row);
    (void)json_object_set(inventory->by_digest, json_string_value(json_object_get(image, "digest")),
                          row);
    return row;
}

/* 'agent_id' NULL: it is in a registry. */
static void image_inventory_add(struct image_inventory *inventory, const char *agent_id,
                                const json_t *image)
{
    const char *digest = json_string_value(json_object_get(image, "digest"));
    json_t *row = digest ? json_object_get(inventory->by_digest, digest) : NULL;

    if (!digest)
        return; /* of an agent of a later version */
    if (!row)
        row = image_inventory_add_row(inventory, image);
    if (json_integer_value(json_object_get(image, "holds")))
        (void)json_object_set_new(row, "in_use", json_true());
    if (agent_id)
        (void)json_array_append_new(json_object_get(row, "agents"), json_string(agent_id));
    image_inventory_add_texts(json_object_get(row, "names"), json_object_get(image, "names"));
}

static void image_inventory_add_agent(struct image_inventory *inventory, const struct core *core,
                                      const char *agent_id)
{
    json_t *images = json_load_string(core_get_agent_images(core, agent_id), 0), *image;
    size_t i;

    json_array_foreach(images, i, image)
        image_inventory_add(inventory, agent_id, image);
    json_decref(images);
}

static void image_inventory_add_catalogue(struct image_inventory *inventory, const struct api *api)
{
    json_auto_t *catalogue = image_catalogue_shown(api);
    const char *name;
    json_t *images, *image;
    size_t i;

    json_object_foreach(catalogue, name, images)
        json_array_foreach(images, i, image)
            image_inventory_add(inventory, NULL, image);
}

json_t *image_inventory(const struct api *api, const char *agent_id)
{
    struct image_inventory inventory = { json_array(), json_object() };
    const struct agent *agent;

    for (size_t i = 0; (agent = core_get_agent(api->core, i)); i++)
        if (!agent_id || strcmp(agent_id, agent->id) == 0)
            image_inventory_add_agent(&inventory, api->core, agent->id);
    if (!agent_id)
        image_inventory_add_catalogue(&inventory, api);
    json_decref(inventory.by_digest);
    return inventory.rows;
}
