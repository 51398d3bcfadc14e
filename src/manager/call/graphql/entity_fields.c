/* SPDX-License-Identifier: Apache-2.0 */
/* Members of entities as fields of GraphQL types. */
#include "manager/call/graphql/entity_fields.h"

#include <stdlib.h>
#include <string.h>

#include "manager/call/graphql/resolve.h"

static struct gql_value entity_fields_get_slots(struct gql_get *get, const void *parent)
{
    return gql_slots(get, (const struct slots *)((const char *)parent + get->offset));
}

/* Null where there is no limit. */
static struct gql_value entity_fields_get_limit(struct gql_get *get, const void *parent)
{
    int limit = *(const int *)((const char *)parent + get->offset);

    return limit > 0 ? gql_int(limit) : gql_null();
}

static struct gql_value entity_fields_get_size(struct gql_get *get, const void *parent)
{
    const char *bytes = *(const char *const *)((const char *)parent + get->offset);

    return bytes ? gql_int(strtoll(bytes, NULL, 10)) : gql_null();
}

static struct gql_resolver entity_fields_resolver(const struct field *field,
                                                  const struct gql_field_def *def)
{
    struct gql_resolver resolver = { .offset = (uint32_t)field->offset };

    switch (field->type) {
    case FIELD_BOOL:
        resolver.how = GQL_HOW_BOOL;
        break;
    case FIELD_INT32:
        resolver.how = field->flags & FIELD_NO_LIMIT ? GQL_HOW_GET : GQL_HOW_INT32;
        if (resolver.how == GQL_HOW_GET)
            resolver.get = entity_fields_get_limit;
        break;
    case FIELD_INT:
        resolver.how = def->type.type->scalar == GQL_SCALAR_INT ? GQL_HOW_COUNT : GQL_HOW_INT64;
        break;
    case FIELD_UUID:
        resolver.how = GQL_HOW_UUID;
        break;
    case FIELD_SLOTS:
        resolver.how = GQL_HOW_GET;
        resolver.get = entity_fields_get_slots;
        break;
    case FIELD_SIZE:
        resolver.how = GQL_HOW_GET;
        resolver.get = entity_fields_get_size;
        break;
    case FIELD_CHARS:
        resolver.how = GQL_HOW_CHARS;
        break;
    default:
        resolver.how = GQL_HOW_TEXT;
        break;
    }
    return resolver;
}

void entity_fields_resolve(struct gql_resolver *resolvers, const struct gql_type *type,
                           const struct entity *entity)
{
    char buf[FIELD_NAME_MAX];

    for (const struct field *field = entity->fields; field->names; field++) {
        const char *name = field_backendai_name(field, buf);
        const struct gql_field_def *def = gql_field_find(type, name, strlen(name));

        if (def && field->type != FIELD_SEALED && resolvers[def->id].how == GQL_HOW_NONE)
            resolvers[def->id] = entity_fields_resolver(field, def);
    }
}
