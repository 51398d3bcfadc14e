#include "graphql/validate.h"

#include "graphql/limits.h"

bool document_validate(struct gql_document *doc, const struct gql_schema *schema,
                       const gql_scalar_fn *scalars, const struct gql_limits *limits,
                       struct errors *errors)
{
    struct usage **usages = arena_array(errors->arena, doc->definition_count, sizeof(*usages));

    (void)scalars;
    if (!usages || !document_annotate(doc, schema, errors->arena, usages)) {
        errors->no_memory = true;
        return false;
    }
    return limits_check_size(doc, limits, errors);
}
