/* SPDX-License-Identifier: Apache-2.0 */
/* Image as a node, and images by names and ids. The objects are struct image_row. */
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "manager/image/image.h"
#include "manager/call/graphql/node.h"
#include "manager/image/image_aliases.h"
#include "manager/image/image_feature.h"
#include "model/reference.h"

struct uuid gql_image_id(const char *reference, const char *architecture)
{
    AQ_CLEANUP(aq_freep) char *key = aq_format("%s@%s", reference, architecture);

    return gql_uuid_of_name(key);
}

const struct image_row *gql_images_find(const struct gql_call *call,
                                        const struct gql_images *images, const char *name)
{
    const struct api *api = ((const struct gql_context *)call->context)->api;
    const struct image_row *found = NULL;
    size_t low = 0, high = images->count;
    struct reference ref;

    if (!name || reference_parse(image_aliases_resolve(api, name), NULL, &ref, NULL) < 0)
        return NULL;
    while (low < high) { /* the first of this name or a later one: keys begin with names */
        size_t middle = low + (high - low) / 2;

        if (strcmp(images->items[middle].key, ref.text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < images->count && strncmp(images->items[low].key, ref.text, strlen(ref.text)) == 0;
         low++)
        if (!found && strcmp(images->items[low].reference, ref.text) == 0)
            found = &images->items[low];
    reference_done(&ref);
    return found;
}

static const char *gql_image_id_of(const void *row, char scratch[64])
{
    (void)scratch;
    return ((const struct image_row *)row)->id;
}

const struct image_row *gql_images_find_id(const struct gql_call *call,
                                           const struct gql_images *images, const char *text)
{
    const char *type, *id = relay_global_id_parse(call->arena, text, &type);

    for (size_t i = 0; i < images->count; i++)
        if (strcmp(images->items[i].id, id) == 0 || strcmp(images->items[i].key, id) == 0)
            return &images->items[i];
    return NULL;
}

static int gql_image_get_node(struct gql_call *call, const char *id, uint32_t type)
{
    struct gql_images images;

    gql_images_load(call, &images);
    call->results[0] = gql_object_of(type, gql_images_find_id(call, &images, id));
    return GQL_DONE;
}

#define IN_ROW(member) .offset = offsetof(struct image_row, member)
static const struct filter_field gql_image_fields[] = {
    { "id", "", FILTER_STRING, IN_ROW(id) },
    { "name", "", FILTER_STRING, IN_ROW(name) },
    { "namespace", "", FILTER_STRING, IN_ROW(name) },
    { "humanized_name", "", FILTER_STRING, IN_ROW(name) },
    { "base_image_name", "", FILTER_STRING, IN_ROW(base_name) },
    { "tag", "", FILTER_STRING, IN_ROW(tag) },
    { "version", "", FILTER_STRING, IN_ROW(version) },
    { "registry", "", FILTER_STRING, IN_ROW(registry) },
    { "architecture", "", FILTER_STRING, IN_ROW(architecture) },
    { "digest", "", FILTER_STRING, IN_ROW(digest) },
    { "size_bytes", "", FILTER_INT, IN_ROW(size_bytes) },
};

const struct gql_node image_node = {
    .type = SCHEMA_TYPE_ImageNode,
    .id_of = gql_image_id_of,
    .get = gql_image_get_node,
    .fields = gql_image_fields,
    .field_count = AQ_COUNT(gql_image_fields),
    .permissions = &image_permissions,
};

static int gql_image_list_nodes(struct gql_call *call)
{
    struct gql_value statuses = call->args[SCHEMA_ARG_Queries_image_nodes_filter_by_statuses];
    struct gql_images images;
    struct aq_error err = { 0 };
    bool may;

    if (permission_check(call->context, &image_permissions,
                         gql_arg_text(call, SCHEMA_ARG_Queries_image_nodes_permission), &may, &err)
        < 0)
        return gql_call_fail(call, "%s", err.text);
    gql_images_load(call, &images);
    if (!may || !gql_image_asks_alive(statuses))
        images.count = 0;
    call->results[0] = gql_node_connect(call, &image_node, images.items, sizeof(*images.items),
                                        (uint32_t)images.count);
    return GQL_DONE;
}

static struct gql_value gql_image_get_type(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(((const struct image_row *)parent)->is_operation ? "service" : "compute");
}

static const struct gql_entry image_node_entries[] = {
    { SCHEMA_FIELD_Queries_image_nodes,
      GQL_CALL_COST(gql_image_list_nodes, GQL_COST_WALK, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_customized_images, GQL_FIXED_EMPTY },
    { SCHEMA_FIELD_ImageNode_row_id, GQL_ALWAYS_NULL },
    { SCHEMA_FIELD_ImageNode_type, GQL_GET(gql_image_get_type) },
};
GQL_ENTRIES_END(image_node);
