/* SPDX-License-Identifier: Apache-2.0 */
/* template_overlay.c - members of a request over those of a template */
#include <errno.h>
#include <string.h>

#include "manager/template/template.h"

/* A member of 'base' to be changed, made if there is none. */
static json_t *template_ensure(json_t *base, const char *key, json_t *(*make)(void))
{
    json_t *member = json_object_get(base, key);

    if (!member)
        (void)json_object_set_new(base, key, member = make());
    return member;
}

/* Folders of both; none if the request has an empty list and an empty map. Clients that were told
 * nothing send the list alone.
 */
static void template_overlay_mounts(json_t *base, const json_t *names, const json_t *map)
{
    json_t *all = template_ensure(base, "mounts", json_array);
    json_t *paths = template_ensure(base, "mount_map", json_object);
    json_t *name, *known;
    size_t i, k;

    if (json_is_array(names) && !json_array_size(names) && json_is_object(map)
        && !json_object_size(map)) {
        (void)json_array_clear(all);
        (void)json_object_clear(paths);
    }
    json_array_foreach(names, i, name) {
        json_array_foreach(all, k, known)
            if (json_equal(known, name))
                break;
        if (k == json_array_size(all))
            (void)json_array_append(all, name);
    }
    if (json_object_size(map))
        (void)json_object_update(paths, (json_t *)(uintptr_t)map);
}

static void template_overlay_member(const struct field *field, const char *key, json_t *base,
                                    json_t *value)
{
    bool is_map = field->type == FIELD_PAIRS || field->type == FIELD_OBJECT;

    if (!json_is_object(value) || (!is_map && field->type != FIELD_STRUCT)
        || (is_map && !json_object_size(value)))
        (void)json_object_set(base, key, value);
    else if (field->type == FIELD_STRUCT)
        template_overlay(field->sub, template_ensure(base, key, json_object), value);
    else
        (void)json_object_update(template_ensure(base, key, json_object), value);
}

void template_overlay(const struct field *table, json_t *base, const json_t *over)
{
    const json_t *names = NULL, *map = NULL;
    json_t *value;
    const char *name;

    json_object_foreach((json_t *)(uintptr_t)over, name, value) {
        const struct field *field = field_find(table, name);
        size_t len = field ? strcspn(field->names, "|") : 0;
        char key[64] = "";

        if (json_is_null(value))
            continue;
        if (len < sizeof(key) && field)
            memcpy(key, field->names, len);
        if (!field)
            (void)json_object_set(base, name, value); /* it will be refused */
        else if (strcmp(key, "mounts") == 0)
            names = value;
        else if (strcmp(key, "mount_map") == 0)
            map = value;
        else
            template_overlay_member(field, key, base, value);
    }
    if (json_array_size(names) || map)
        template_overlay_mounts(base, names, map);
}
