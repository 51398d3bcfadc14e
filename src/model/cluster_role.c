/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_role.c - kernels of a session that are not like its main one */
#include "model/cluster_role.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"
#include "model/wire_fields.h"

#define CLUSTER_ROLE_NAME_MAX 15

#define AT(member) offsetof(struct cluster_role, member)
static const struct wire_field cluster_role_fields[] = {
    { "name", WIRE_TEXT, AT(name) },
    { "count", WIRE_NUMBER, AT(count) },
    { "image", WIRE_TEXT, AT(image) },
    { "command", WIRE_TEXT, AT(command) },
    { "bootstrap", WIRE_TEXT, AT(bootstrap) },
    { "environ", WIRE_PAIRS, AT(environ) },
    WIRE_FIELDS_END,
};
#undef AT

bool cluster_role_is_name(const char *name)
{
    size_t len = strlen(name);

    return len > 0 && len <= CLUSTER_ROLE_NAME_MAX && islower((unsigned char)name[0])
           && islower((unsigned char)name[len - 1])
           && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

int cluster_role_check(const struct cluster_role *role, struct aq_error *err)
{
    const struct session_spec spec = { .image = role->image,
                                       .command = role->command,
                                       .bootstrap = role->bootstrap,
                                       .environ = role->environ };
    char field[sizeof(err->field)];
    int r;

    if (!role->name || !cluster_role_is_name(role->name) || strcmp(role->name, "main") == 0)
        return aq_fail_field(err, EINVAL, "roles.role",
                             "'%.64s' is no role: up to %d small letters, digits and '-', a letter "
                             "first and last, and not main",
                             role->name ? role->name : "", CLUSTER_ROLE_NAME_MAX);
    if ((r = session_spec_check(&spec, err)) < 0 && err) {
        memcpy(field, err->field, sizeof(field));
        (void)snprintf(err->field, sizeof(err->field), "roles.%.60s", field);
    }
    return r;
}

void cluster_role_set_field(const char *role, struct aq_error *err)
{
    static const char of_session[] = "config.resources.";
    char slot[sizeof(err->field)];

    if (err && strcmp(err->field, "clusterSize") == 0)
        (void)snprintf(err->field, sizeof(err->field), "roles.%.15s.count", role);
    if (!err || strncmp(err->field, of_session, strlen(of_session)) != 0)
        return;
    (void)snprintf(slot, sizeof(slot), "%s", err->field + strlen(of_session));
    (void)snprintf(err->field, sizeof(err->field), "roles.%.15s.resources.%.40s", role, slot);
}

void cluster_roles_write(const struct cluster_role *roles, size_t count, struct jsonw *w)
{
    jsonw_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        jsonw_object_begin(w);
        (void)wire_fields_write(cluster_role_fields, &roles[i], 0, w, NULL); /* no JSON */
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

int cluster_roles_parse(const char *roles, struct arena *arena, struct cluster_role **ret,
                        size_t *ret_count, struct aq_error *err)
{
    json_auto_t *list = roles ? json_load_string(roles, JSON_REJECT_DUPLICATES) : NULL;
    size_t count = json_array_size(list);
    struct cluster_role *all = arena_array(arena, count + 1, sizeof(*all));
    int r = 0;

    *ret = all;
    *ret_count = count;
    if ((roles && !json_is_array(list)) || count > CLUSTER_ROLES_MAX)
        return aq_fail_field(err, EINVAL, "roles", "a session's roles are no list");
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = wire_fields_read(cluster_role_fields, json_array_get(list, i), 0, arena, &all[i], err);
        if (r == 0 && (!all[i].name || !all[i].image))
            r = aq_fail_field(err, EINVAL, "roles", "a role has no name, or no image");
    }
    return r;
}

void cluster_role_apply(const struct cluster_role *roles, size_t count, const char *role,
                        struct session_spec *spec)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(roles[i].name, role) == 0) {
            spec->image = roles[i].image;
            spec->command = roles[i].command;
            spec->bootstrap = roles[i].bootstrap;
            spec->environ = roles[i].environ;
        }
}
