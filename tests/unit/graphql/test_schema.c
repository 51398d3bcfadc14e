/* SPDX-License-Identifier: Apache-2.0 */
/* Schema text into tables, as introspection shows them; finding things in them. */
#include "replies.h"
#include "shapes.h"

#define TYPE "{ kind name ofType { kind name ofType { kind name ofType { kind name } } } }"

static const struct zoo_row rows[] = {
    { "{ __schema { description queryType { name } mutationType { name } subscriptionType { name } "
      "types { name kind } } }",
      NULL,
      "{\"data\":{\"__schema\":{\"description\":\"about\",\"queryType\":{\"name\":\"Query\"},"
      "\"mutationType\":{\"name\":\"Change\"},\"subscriptionType\":null,"
      "\"types\":[{\"name\":\"Query\",\"kind\":\"OBJECT\"},{\"name\":\"Int\","
      "\"kind\":\"SCALAR\"},{\"name\":\"String\",\"kind\":\"SCALAR\"},{\"name\":\"Float\","
      "\"kind\":\"SCALAR\"},{\"name\":\"ID\",\"kind\":\"SCALAR\"},{\"name\":\"Change\","
      "\"kind\":\"OBJECT\"},{\"name\":\"S\",\"kind\":\"SCALAR\"},{\"name\":\"I\","
      "\"kind\":\"INTERFACE\"},{\"name\":\"J\",\"kind\":\"INTERFACE\"},{\"name\":\"U\","
      "\"kind\":\"UNION\"},{\"name\":\"T\",\"kind\":\"OBJECT\"},{\"name\":\"E\","
      "\"kind\":\"ENUM\"},{\"name\":\"In\",\"kind\":\"INPUT_OBJECT\"},{\"name\":\"K\","
      "\"kind\":\"INPUT_OBJECT\"},{\"name\":\"One\",\"kind\":\"INPUT_OBJECT\"},"
      "{\"name\":\"Boolean\",\"kind\":\"SCALAR\"},{\"name\":\"__Schema\",\"kind\":\"OBJECT\"},"
      "{\"name\":\"__Type\",\"kind\":\"OBJECT\"},{\"name\":\"__TypeKind\",\"kind\":\"ENUM\"},"
      "{\"name\":\"__Field\",\"kind\":\"OBJECT\"},{\"name\":\"__InputValue\","
      "\"kind\":\"OBJECT\"},{\"name\":\"__EnumValue\",\"kind\":\"OBJECT\"},"
      "{\"name\":\"__Directive\",\"kind\":\"OBJECT\"},{\"name\":\"__DirectiveLocation\","
      "\"kind\":\"ENUM\"}]}}}" },
    { "{ __type(name: \"Query\") { description isOneOf interfaces { name } fields { name "
      "description } } }",
      NULL,
      "{\"data\":{\"__type\":{\"description\":\"d\",\"isOneOf\":null,"
      "\"interfaces\":[{\"name\":\"J\"},{\"name\":\"I\"}],\"fields\":[{\"name\":\"a\","
      "\"description\":\"f\"},{\"name\":\"d\",\"description\":null},{\"name\":\"one\","
      "\"description\":null},{\"name\":\"b\",\"description\":null},{\"name\":\"c\","
      "\"description\":null}]}}}" },
    { "{ __type(name: \"Query\") { fields(includeDeprecated: true) { name isDeprecated "
      "deprecationReason type " TYPE " } } }",
      NULL,
      "{\"data\":{\"__type\":{\"fields\":[{\"name\":\"a\",\"isDeprecated\":false,"
      "\"deprecationReason\":null,\"type\":{\"kind\":\"NON_NULL\",\"name\":null,"
      "\"ofType\":{\"kind\":\"SCALAR\",\"name\":\"Int\",\"ofType\":null}}},{\"name\":\"d\","
      "\"isDeprecated\":false,\"deprecationReason\":null,\"type\":{\"kind\":\"SCALAR\","
      "\"name\":\"Int\",\"ofType\":null}},{\"name\":\"old\",\"isDeprecated\":true,"
      "\"deprecationReason\":\"No longer supported\",\"type\":{\"kind\":\"SCALAR\","
      "\"name\":\"S\",\"ofType\":null}},{\"name\":\"older\",\"isDeprecated\":true,"
      "\"deprecationReason\":\"old \\\"one\\\"\",\"type\":{\"kind\":\"SCALAR\",\"name\":\"Int\","
      "\"ofType\":null}},{\"name\":\"one\",\"isDeprecated\":false,\"deprecationReason\":null,"
      "\"type\":{\"kind\":\"SCALAR\",\"name\":\"Int\",\"ofType\":null}},{\"name\":\"b\","
      "\"isDeprecated\":false,\"deprecationReason\":null,\"type\":{\"kind\":\"SCALAR\","
      "\"name\":\"ID\",\"ofType\":null}},{\"name\":\"c\",\"isDeprecated\":false,"
      "\"deprecationReason\":null,\"type\":{\"kind\":\"LIST\",\"name\":null,"
      "\"ofType\":{\"kind\":\"NON_NULL\",\"name\":null,\"ofType\":{\"kind\":\"LIST\","
      "\"name\":null,\"ofType\":{\"kind\":\"SCALAR\",\"name\":\"Float\"}}}}}]}}}" },
    { "{ __type(name: \"Query\") { fields { name args { name description defaultValue type " TYPE
      " } } } }",
      NULL,
      "{\"data\":{\"__type\":{\"fields\":[{\"name\":\"a\",\"args\":[{\"name\":\"b\","
      "\"description\":\"x\",\"defaultValue\":\"1\",\"type\":{\"kind\":\"SCALAR\","
      "\"name\":\"Int\",\"ofType\":null}},{\"name\":\"c\",\"description\":null,"
      "\"defaultValue\":\"[\\\"x\\\"]\",\"type\":{\"kind\":\"NON_NULL\",\"name\":null,"
      "\"ofType\":{\"kind\":\"LIST\",\"name\":null,\"ofType\":{\"kind\":\"NON_NULL\","
      "\"name\":null,\"ofType\":{\"kind\":\"SCALAR\",\"name\":\"String\"}}}}}]},{\"name\":\"d\","
      "\"args\":[{\"name\":\"i\",\"description\":null,\"defaultValue\":null,"
      "\"type\":{\"kind\":\"INPUT_OBJECT\",\"name\":\"In\",\"ofType\":null}},{\"name\":\"f\","
      "\"description\":null,\"defaultValue\":\"1.5\",\"type\":{\"kind\":\"SCALAR\","
      "\"name\":\"Float\",\"ofType\":null}},{\"name\":\"g\",\"description\":null,"
      "\"defaultValue\":\"1e+30\",\"type\":{\"kind\":\"SCALAR\",\"name\":\"Float\","
      "\"ofType\":null}},{\"name\":\"h\",\"description\":null,\"defaultValue\":\"3\","
      "\"type\":{\"kind\":\"SCALAR\",\"name\":\"Float\",\"ofType\":null}},{\"name\":\"id\","
      "\"description\":null,\"defaultValue\":\"5\",\"type\":{\"kind\":\"SCALAR\",\"name\":\"ID\","
      "\"ofType\":null}},{\"name\":\"s\",\"description\":null,"
      "\"defaultValue\":\"\\\"a\\\\nb\\\"\",\"type\":{\"kind\":\"SCALAR\",\"name\":\"String\","
      "\"ofType\":null}},{\"name\":\"n\",\"description\":null,\"defaultValue\":\"null\","
      "\"type\":{\"kind\":\"SCALAR\",\"name\":\"Int\",\"ofType\":null}},{\"name\":\"e\","
      "\"description\":null,\"defaultValue\":\"B\",\"type\":{\"kind\":\"ENUM\",\"name\":\"E\","
      "\"ofType\":null}},{\"name\":\"l\",\"description\":null,\"defaultValue\":\"[3]\","
      "\"type\":{\"kind\":\"LIST\",\"name\":null,\"ofType\":{\"kind\":\"SCALAR\","
      "\"name\":\"Int\",\"ofType\":null}}},{\"name\":\"j\",\"description\":null,"
      "\"defaultValue\":\"\\\"\303\251\360\237\230\200\\\"\",\"type\":{\"kind\":\"SCALAR\","
      "\"name\":\"S\",\"ofType\":null}},{\"name\":\"k\",\"description\":null,"
      "\"defaultValue\":\"[\\\"A\\\", -1.25, true]\",\"type\":{\"kind\":\"SCALAR\","
      "\"name\":\"S\",\"ofType\":null}},{\"name\":\"x\",\"description\":null,"
      "\"defaultValue\":\"1e-7\",\"type\":{\"kind\":\"SCALAR\",\"name\":\"Float\","
      "\"ofType\":null}}]},{\"name\":\"one\",\"args\":[{\"name\":\"o\",\"description\":null,"
      "\"defaultValue\":null,\"type\":{\"kind\":\"INPUT_OBJECT\",\"name\":\"One\","
      "\"ofType\":null}}]},{\"name\":\"b\",\"args\":[{\"name\":\"c\",\"description\":null,"
      "\"defaultValue\":\"2\",\"type\":{\"kind\":\"SCALAR\",\"name\":\"Int\",\"ofType\":null}}]},"
      "{\"name\":\"c\",\"args\":[]}]}}}" },
    { "{ change: __type(name: \"Change\") { fields { description } } s: __type(name: \"S\") { "
      "description specifiedByURL } }",
      NULL,
      "{\"data\":{\"change\":{\"fields\":[{\"description\":\"ends with quote\\\"\"}]},"
      "\"s\":{\"description\":\"many\\n  lines\\n\\n\\\"\\\"\\\"quoted\\\"\\\"\\\"\","
      "\"specifiedByURL\":\"https://x\"}}}" },
    { "{ __type(name: \"I\") { possibleTypes { name } } j: __type(name: \"J\") { interfaces { name "
      "} fields { name } possibleTypes { name } } u: __type(name: \"U\") { possibleTypes { name } } "
      "}",
      NULL,
      "{\"data\":{\"__type\":{\"possibleTypes\":[{\"name\":\"Query\"}]},"
      "\"j\":{\"interfaces\":[{\"name\":\"I\"}],\"fields\":[{\"name\":\"a\"},{\"name\":\"b\"}],"
      "\"possibleTypes\":[{\"name\":\"Query\"}]},\"u\":{\"possibleTypes\":[{\"name\":\"Query\"},"
      "{\"name\":\"Change\"},{\"name\":\"T\"}]}}}" },
    { "{ __type(name: \"E\") { enumValues(includeDeprecated: true) { name description isDeprecated "
      "deprecationReason } } }",
      NULL,
      "{\"data\":{\"__type\":{\"enumValues\":[{\"name\":\"A\",\"description\":\"one\","
      "\"isDeprecated\":false,\"deprecationReason\":null},{\"name\":\"B\",\"description\":null,"
      "\"isDeprecated\":true,\"deprecationReason\":\"No longer supported\"},{\"name\":\"C\","
      "\"description\":null,\"isDeprecated\":false,\"deprecationReason\":null}]}}}" },
    { "{ __type(name: \"In\") { inputFields { name description defaultValue } } one: __type(name: "
      "\"One\") { isOneOf inputFields { name } } }",
      NULL,
      "{\"data\":{\"__type\":{\"inputFields\":[{\"name\":\"a\",\"description\":\"x\","
      "\"defaultValue\":\"1\"},{\"name\":\"b\",\"description\":null,\"defaultValue\":\"[A, B]\"},"
      "{\"name\":\"c\",\"description\":null,\"defaultValue\":\"{a: 2, b: 7}\"},{\"name\":\"d\","
      "\"description\":null,\"defaultValue\":\"[{b: 7}]\"}]},\"one\":{\"isOneOf\":true,"
      "\"inputFields\":[{\"name\":\"a\"},{\"name\":\"b\"}]}}}" },
    { "{ __schema { directives { name isRepeatable locations args { name defaultValue } } "
      "} }",
      NULL,
      "{\"data\":{\"__schema\":{\"directives\":[{\"name\":\"d\",\"isRepeatable\":true,"
      "\"locations\":[\"QUERY\",\"FIELD\"],\"args\":[{\"name\":\"a\",\"defaultValue\":\"1\"}]},"
      "{\"name\":\"e\",\"isRepeatable\":false,\"locations\":[\"OBJECT\"],\"args\":[]},"
      "{\"name\":\"include\",\"isRepeatable\":false,\"locations\":[\"FIELD\",\"FRAGMENT_SPREAD\","
      "\"INLINE_FRAGMENT\"],\"args\":[{\"name\":\"if\",\"defaultValue\":null}]},"
      "{\"name\":\"skip\",\"isRepeatable\":false,\"locations\":[\"FIELD\",\"FRAGMENT_SPREAD\","
      "\"INLINE_FRAGMENT\"],\"args\":[{\"name\":\"if\",\"defaultValue\":null}]},"
      "{\"name\":\"deprecated\",\"isRepeatable\":false,\"locations\":[\"FIELD_DEFINITION\","
      "\"ARGUMENT_DEFINITION\",\"INPUT_FIELD_DEFINITION\",\"ENUM_VALUE\"],"
      "\"args\":[{\"name\":\"reason\",\"defaultValue\":\"\\\"No longer supported\\\"\"}]},"
      "{\"name\":\"specifiedBy\",\"isRepeatable\":false,\"locations\":[\"SCALAR\"],"
      "\"args\":[{\"name\":\"url\",\"defaultValue\":null}]},{\"name\":\"oneOf\","
      "\"isRepeatable\":false,\"locations\":[\"INPUT_OBJECT\"],\"args\":[]}]}}}" },
};

static void test_tables(void **state)
{
    struct gql_resolver resolvers[SHAPES_FIELD_COUNT];
    const struct gql_conf conf = { .schema = &shapes_schema, .resolvers = resolvers };
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = NULL;
    struct aq_error err = { 0 };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(resolvers); i++)
        resolvers[i] = (struct gql_resolver)GQL_ALWAYS_NULL;
    assert_int_equal(gql_engine_new(&conf, &engine, &err), 0);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

        (void)zoo_run(engine, rows[i].query, NULL, NULL, &out);
        assert_row(strcmp(out.data, rows[i].reply) == 0, "%s\n got %s\nwant %s", rows[i].query,
                   out.data, rows[i].reply);
    }
}

static void test_names_find_what_they_name(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < zoo_schema.type_count; i++) {
        const struct gql_type *type = zoo_schema.types[i];

        assert_row(gql_type_find(&zoo_schema, type->name, strlen(type->name)) == type, "%s",
                   type->name);
        assert_int_equal(type->id, i + 1);
        for (uint32_t f = 0; f < type->field_count; f++)
            assert_row(gql_field_find(type, type->fields[f].name, strlen(type->fields[f].name))
                           == &type->fields[f],
                       "%s.%s", type->name, type->fields[f].name);
    }
    assert_int_equal(zoo_schema.field_count, ZOO_FIELD_COUNT);
    assert_null(gql_type_find(&zoo_schema, "Ca", 2));
    assert_null(gql_type_find(&zoo_schema, "Cats", 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_names_find_what_they_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
