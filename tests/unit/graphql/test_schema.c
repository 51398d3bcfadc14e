/* SPDX-License-Identifier: Apache-2.0 */
/* Schema text into tables and back, as printSchema() of graphql-js prints it. */
#include "testing.h"

#include <errno.h>

#include "zoo_data.h"

static const struct {
    const char *text, *printed;
} accepted[] = {
    { "type Query { a: Int }", "type Query {\n"
                               "  a: Int\n"
                               "}" },
    { "\"d\" type Query { \"f\" a(\"x\" b: Int = 1, c: [String!]! = [\"x\"]): Int! b(c: "
      "Int = 2): ID c: [[Float]!] }",
      "\"\"\"d\"\"\"\n"
      "type Query {\n"
      "  \"\"\"f\"\"\"\n"
      "  a(\n"
      "    \"\"\"x\"\"\"\n"
      "    b: Int = 1\n"
      "    c: [String!]! = [\"x\"]\n"
      "  ): Int!\n"
      "  b(c: Int = 2): ID\n"
      "  c: [[Float]!]\n"
      "}" },
    { "schema { query: Q mutation: M } type Q { a: Int } type M { b: Int }", "schema {\n"
                                                                             "  query: Q\n"
                                                                             "  mutation: M\n"
                                                                             "}\n"
                                                                             "\n"
                                                                             "type Q {\n"
                                                                             "  a: Int\n"
                                                                             "}\n"
                                                                             "\n"
                                                                             "type M {\n"
                                                                             "  b: Int\n"
                                                                             "}" },
    { "\"about\" schema { query: Query } type Query { a: Int }", "\"\"\"about\"\"\"\n"
                                                                 "schema {\n"
                                                                 "  query: Query\n"
                                                                 "}\n"
                                                                 "\n"
                                                                 "type Query {\n"
                                                                 "  a: Int\n"
                                                                 "}" },
    { "scalar S @specifiedBy(url: \"https://x\") type Query { a: S @deprecated b: "
      "Int @deprecated(reason: \"old \\\"one\\\"\") }",
      "scalar S @specifiedBy(url: \"https://x\")\n"
      "\n"
      "type Query {\n"
      "  a: S @deprecated\n"
      "  b: Int @deprecated(reason: \"old \\\"one\\\"\")\n"
      "}" },
    { "interface I { a: Int } interface J implements I { a: Int } type Query "
      "implements J & I { a: Int } union U = Query | T type T { u: U }",
      "interface I {\n"
      "  a: Int\n"
      "}\n"
      "\n"
      "interface J implements I {\n"
      "  a: Int\n"
      "}\n"
      "\n"
      "type Query implements J & I {\n"
      "  a: Int\n"
      "}\n"
      "\n"
      "union U = Query | T\n"
      "\n"
      "type T {\n"
      "  u: U\n"
      "}" },
    { "enum E { \"one\" A B @deprecated } input I { \"x\" a: Int = 1 b: [E!] = [A, "
      "B] c: K = {a: 2} } type Query { a(i: I, f: Float = 1.5, g: Float = 1e30, "
      "id: ID = 5, s: String = \"a\\nb\", n: Int = null, e: E = B, l: [Int] = 3): "
      "Int } input K { a: Int b: Int = 7 }",
      "enum E {\n"
      "  \"\"\"one\"\"\"\n"
      "  A\n"
      "  B @deprecated\n"
      "}\n"
      "\n"
      "input I {\n"
      "  \"\"\"x\"\"\"\n"
      "  a: Int = 1\n"
      "  b: [E!] = [A, B]\n"
      "  c: K = {a: 2, b: 7}\n"
      "}\n"
      "\n"
      "type Query {\n"
      "  a(i: I, f: Float = 1.5, g: Float = 1e+30, id: ID = 5, s: String = "
      "\"a\\nb\", n: Int = null, e: E = B, l: [Int] = [3]): Int\n"
      "}\n"
      "\n"
      "input K {\n"
      "  a: Int\n"
      "  b: Int = 7\n"
      "}" },
    { "\"\"\"\n"
      "  many\n"
      "    lines\n"
      "\"\"\"\n"
      "type Query { \"a very long description that does not fit into seventy "
      "characters of one line\" a: Int \"ends with quote\\\"\" b: Int \" leading "
      "space\" c: Int }",
      "\"\"\"\n"
      "many\n"
      "  lines\n"
      "\"\"\"\n"
      "type Query {\n"
      "  \"\"\"\n"
      "  a very long description that does not fit into seventy characters of "
      "one line\n"
      "  \"\"\"\n"
      "  a: Int\n"
      "\n"
      "  \"\"\"\n"
      "  ends with quote\"\n"
      "  \"\"\"\n"
      "  b: Int\n"
      "\n"
      "  \"\"\" leading space\"\"\"\n"
      "  c: Int\n"
      "}" },
    { "directive @d(\"x\" a: Int = 1) repeatable on QUERY | FIELD directive @e on "
      "OBJECT type Query @e { a: Int }",
      "directive @d(\n"
      "  \"\"\"x\"\"\"\n"
      "  a: Int = 1\n"
      ") repeatable on QUERY | FIELD\n"
      "\n"
      "directive @e on OBJECT\n"
      "\n"
      "type Query {\n"
      "  a: Int\n"
      "}" },
    { "extend type Query { b: Int } type Query { a: Int } extend schema { "
      "mutation: M } schema { query: Query } type M { a: Int } extend enum E { "
      "B } enum E { A } extend union U = M union U = Query extend input I { b: "
      "Int } input I { a: Int } extend interface N { b: Int } interface N { a: "
      "Int } scalar S",
      "schema {\n"
      "  query: Query\n"
      "  mutation: M\n"
      "}\n"
      "\n"
      "type Query {\n"
      "  a: Int\n"
      "  b: Int\n"
      "}\n"
      "\n"
      "type M {\n"
      "  a: Int\n"
      "}\n"
      "\n"
      "enum E {\n"
      "  A\n"
      "  B\n"
      "}\n"
      "\n"
      "union U = Query | M\n"
      "\n"
      "input I {\n"
      "  a: Int\n"
      "  b: Int\n"
      "}\n"
      "\n"
      "interface N {\n"
      "  a: Int\n"
      "  b: Int\n"
      "}\n"
      "\n"
      "scalar S" },
    { "input C @oneOf { a: Int b: String } type Query { a(c: C): Int }", "input C @oneOf {\n"
                                                                         "  a: Int\n"
                                                                         "  b: String\n"
                                                                         "}\n"
                                                                         "\n"
                                                                         "type Query {\n"
                                                                         "  a(c: C): Int\n"
                                                                         "}" },
    { "scalar JSON type Query { a(j: JSON = \"x\"): JSON }", "scalar JSON\n"
                                                             "\n"
                                                             "type Query {\n"
                                                             "  a(j: JSON = \"x\"): JSON\n"
                                                             "}" },
};

static void test_print(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(accepted); i++) {
        AQ_CLEANUP(gql_schema_freep) struct gql_schema *schema = NULL;
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct aq_error err = { 0 };

        assert_row(gql_schema_parse(accepted[i].text, strlen(accepted[i].text), &schema, &err) == 0,
                   "%s\n%s", accepted[i].text, err.text);
        gql_schema_print(schema, &out);
        assert_row(strcmp(out.data, accepted[i].printed) == 0, "%s\n got\n%s", accepted[i].text,
                   out.data);
    }
}

static const struct {
    const char *text, *message;
} refused[] = {
    { "type Query { a: Nope }", "1:17: Unknown type \"Nope\"." },
    { "type Query { a: Int } { a }", "1:23: A schema document cannot hold operations and "
                                     "fragments." },
    { "type A { a: Int }", "Query root type must be provided." },
    { "schema { query: A } input A { a: Int }",
      "1:17: The query root type must be an object type, not A." },
    { "type Query { a: Int } type Query { a: Int }",
      "1:28: There can be only one type named \"Query\"." },
    { "type Query { a: Int a: Int }", "1:21: Field \"Query.a\" can only be defined once." },
    { "type Query { a(b: Int, b: Int): Int }", "1:24: Argument \"b\" can only be defined once." },
    { "type Query { a: Int } enum E { A A }",
      "1:34: Enum value \"E.A\" can only be defined once." },
    { "type Query { __a: Int }", "1:14: Name \"__a\" must not begin with \"__\", which is reserved "
                                 "by GraphQL introspection." },
    { "type Query { a: I } input I { a: Int }",
      "1:6: The type of Query.a must be an output type, I is not." },
    { "type Query { a(b: Query): Int }",
      "1:6: The type of Query.a(b:) must be an input type, Query is not." },
    { "type Query", "1:6: Type Query must define one or more fields." },
    { "type Query { a: Int } union U", "1:29: Union type U must define one or more member types." },
    { "type Query { a: Int } union U = Int",
      "1:29: Union type U can only include Object types, it cannot include Int." },
    { "type Query implements I { a: Int } interface I { b: Int }",
      "1:6: Interface field I.b expected but Query does not provide it." },
    { "type Query implements I { b: String } interface I { b: Int }",
      "1:6: Interface field I.b is of a type that Query.b is not." },
    { "type Query implements I { b(c: Int!): Int } interface I { b: Int }",
      "1:6: Object field Query.b includes required argument c that is missing from the Interface "
      "field I.b." },
    { "type Query implements J { a: Int } interface I { a: Int } interface J implements I { a: Int }",
      "1:6: Type Query must implement I because it is implemented by J." },
    { "type Query { a: Int } interface I implements I { a: Int }",
      "1:33: Type I cannot implement itself because it would create a circular reference." },
    { "type Query implements Query { a: Int }",
      "1:6: Type Query must only implement Interface types, it cannot implement Query." },
    { "type Query { a: Int } input I { i: I! }",
      "1:29: Cannot reference Input Object \"I\" within itself through a series of non-null "
      "fields." },
    { "type Query { a: Int } input I { i: I = {} }",
      "1:29: Default values of input type \"I\" need each other." },
    { "type Query { a(b: Int = \"x\"): Int }",
      "1:25: Default value of \"b\" is not of type \"Int\"." },
    { "type Query { a: Int @nope }", "1:21: Unknown directive \"@nope\"." },
    { "type Query @skip(if: true) { a: Int }",
      "1:12: Directive \"@skip\" may not be used on OBJECT." },
    { "scalar S @specifiedBy type Query { a: S }",
      "1:10: Directive \"@specifiedBy\" argument \"url\" of type \"String!\" is required, but it was "
      "not provided." },
    { "type Query { a(b: Int! @deprecated): Int }", "1:6: Required Query.a(b:) cannot be "
                                                    "deprecated." },
    { "extend type Nope { a: Int } type Query { a: Int }",
      "1:13: Cannot extend type \"Nope\" because it is not defined." },
    { "extend input Query { b: Int } type Query { a: Int }",
      "1:1: Cannot extend type \"Query\" as another kind of type." },
    { "type Query { a: Int } input I @oneOf { a: Int! }",
      "1:29: OneOf input field I.a must be nullable." },
    { "directive @a(b: Query) on FIELD type Query { a: Int }",
      "The type of @a(b:) must be an input type, Query is not." },
    { "type Query {", "1:13: Syntax Error: Expected Name, found <EOF>." },
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(refused); i++) {
        struct gql_schema *schema = NULL;
        struct aq_error err = { 0 };
        int r = gql_schema_parse(refused[i].text, strlen(refused[i].text), &schema, &err);

        assert_row(r == -EINVAL && !schema, "%s", refused[i].text);
        assert_row(strcmp(err.text, refused[i].message) == 0, "%s\n got %s", refused[i].text,
                   err.text);
    }
}

/* The tables made at build time are those made at run time. */
static void test_compiled(void **state)
{
    AQ_CLEANUP(gql_schema_freep) struct gql_schema *schema = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf compiled = STRBUF_INIT, parsed = STRBUF_INIT;
    struct aq_error err = { 0 };

    (void)state;
    gql_schema_print(&zoo_schema, &compiled);
    assert_int_equal(gql_schema_parse(compiled.data, compiled.len, &schema, &err), 0);
    gql_schema_print(schema, &parsed);
    assert_string_equal(compiled.data, parsed.data);
    assert_int_equal(schema->type_count, zoo_schema.type_count);
    assert_int_equal(schema->field_count, ZOO_FIELD_COUNT);
    for (uint32_t i = 0; i < schema->type_count; i++) {
        const char *name = schema->types[i]->name;
        const struct gql_type *type = gql_type_find(&zoo_schema, name, strlen(name));

        assert_row(type && type->id == i + 1 && type->kind == schema->types[i]->kind
                       && type->possible_count == schema->types[i]->possible_count,
                   "%s", name);
        for (uint32_t f = 0; f < type->field_count; f++)
            assert_row(gql_field_find(type, type->fields[f].name, strlen(type->fields[f].name))
                           == &type->fields[f],
                       "%s.%s", name, type->fields[f].name);
    }
    assert_null(gql_type_find(&zoo_schema, "Ca", 2));
    assert_null(gql_type_find(&zoo_schema, "Cats", 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_compiled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
