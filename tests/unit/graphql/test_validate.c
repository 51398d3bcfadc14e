/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule with documents that it accepts and refuses, by the whole message
 * and place. "" = accepted.
 */
#include "testing.h"

#include "graphql/request.h"
#include "graphql/validate/validate.h"
#include "zoo_data.h"

static const struct {
    const char *rule, *query, *message, *place; /* of the first error, "line:column ..." */
} rows[] = {
    { "ExecutableDefinitions", "{ cat { id } }", "", "" },
    { "ExecutableDefinitions", "type Foo { a: Int } { cat { id } }",
      "The \"Foo\" definition is not executable.", "1:1" },
    { "ExecutableDefinitions", "schema { query: Query } query { cat { id } }",
      "The schema definition is not executable.", "1:1" },
    { "UniqueOperationNames", "query A { size } query B { size }", "", "" },
    { "UniqueOperationNames", "query A { size } query A { big }",
      "There can be only one operation named \"A\".", "1:7 1:24" },
    { "LoneAnonymousOperation", "{ size }", "", "" },
    { "LoneAnonymousOperation", "{ size } query B { size }",
      "This anonymous operation must be the only defined operation.", "1:1" },
    { "SingleFieldSubscriptions", "subscription { tick }", "", "" },
    { "SingleFieldSubscriptions",
      "subscription S { ...F } fragment F on Subscription { tick tick }", "", "" },
    { "SingleFieldSubscriptions",
      "subscription S { tick ...F } fragment F on Subscription { tock a: tick "
      "}",
      "Subscription \"S\" must select only one top level field.", "1:59 1:64" },
    { "SingleFieldSubscriptions", "subscription { tick tock }",
      "Anonymous Subscription must select only one top level field.", "1:21" },
    { "SingleFieldSubscriptions", "subscription { __typename }",
      "Anonymous Subscription must not select an introspection top level "
      "field.",
      "1:16" },
    { "KnownTypeNames", "query($a: Int) { echo(int: $a) }", "", "" },
    { "KnownTypeNames", "query($a: Unknown) { size }", "Unknown type \"Unknown\".", "1:11" },
    { "KnownTypeNames", "{ ... on Quary { size } }",
      "Unknown type \"Quary\". Did you mean \"Query\"?", "1:10" },
    { "KnownTypeNames", "fragment F on Catt { id } { cat { ...F } }",
      "Unknown type \"Catt\". Did you mean \"Cat\"?", "1:15" },
    { "FragmentsOnCompositeTypes", "{ ... on Query { size } }", "", "" },
    { "FragmentsOnCompositeTypes", "{ cat { ... on Size { x } } }",
      "Fragment cannot condition on non composite type \"Size\".", "1:16" },
    { "FragmentsOnCompositeTypes", "fragment F on Int { x } { ...F }",
      "Fragment \"F\" cannot condition on non composite type \"Int\".", "1:15" },
    { "VariablesAreInputTypes", "query($a: Shape) { echo(shape: $a) }", "", "" },
    { "VariablesAreInputTypes", "query($b: [Dog!]!) { size }",
      "Variable \"$b\" cannot be non-input type \"[Dog!]!\".", "1:11" },
    { "ScalarLeafs", "{ cat { id } size }", "", "" },
    { "ScalarLeafs", "{ cat }",
      "Field \"cat\" of type \"Cat\" must have a selection of subfields. Did you "
      "mean \"cat { ... }\"?",
      "1:3" },
    { "ScalarLeafs", "{ size { x } }",
      "Field \"size\" must not have a selection since type \"Size\" has no "
      "subfields.",
      "1:8" },
    { "ScalarLeafs", "{ animals }",
      "Field \"animals\" of type \"[Animal]\" must have a selection of subfields. "
      "Did you mean \"animals { ... }\"?",
      "1:3" },
    { "FieldsOnCorrectType", "{ cat { name } }", "", "" },
    { "FieldsOnCorrectType", "{ cat { nam } }",
      "Cannot query field \"nam\" on type \"Cat\". Did you mean \"name\"?", "1:9" },
    { "FieldsOnCorrectType", "{ animals { name } }",
      "Cannot query field \"name\" on type \"Animal\". Did you mean to use an "
      "inline fragment on \"Named\", \"Cat\", or \"Dog\"?",
      "1:13" },
    { "FieldsOnCorrectType", "{ node(id: \"x\") { name } }",
      "Cannot query field \"name\" on type \"Node\". Did you mean to use an "
      "inline fragment on \"Named\", \"Cat\", or \"Dog\"?",
      "1:19" },
    { "FieldsOnCorrectType", "{ node(id: \"x\") { lives } }",
      "Cannot query field \"lives\" on type \"Node\". Did you mean to use an "
      "inline fragment on \"Cat\"?",
      "1:19" },
    { "FieldsOnCorrectType", "{ cat { __schema { queryType { name } } } }",
      "Cannot query field \"__schema\" on type \"Cat\".", "1:9" },
    { "FieldsOnCorrectType", "{ cat { zzzzzz } }", "Cannot query field \"zzzzzz\" on type \"Cat\".",
      "1:9" },
    { "UniqueFragmentNames",
      "{ ...F ...G } fragment F on Query { size } fragment G on Query { big }", "", "" },
    { "UniqueFragmentNames", "{ ...F } fragment F on Query { size } fragment F on Query { big }",
      "There can be only one fragment named \"F\".", "1:19 1:48" },
    { "KnownFragmentNames", "{ ...F } fragment F on Query { size }", "", "" },
    { "KnownFragmentNames", "{ ...G }", "Unknown fragment \"G\".", "1:6" },
    { "NoUnusedFragments", "{ ...F } fragment F on Query { ...G } fragment G on Query { size }", "",
      "" },
    { "NoUnusedFragments", "{ size } fragment F on Query { size }", "Fragment \"F\" is never used.",
      "1:10" },
    { "PossibleFragmentSpreads",
      "{ cat { ... on Node { id } ... on Cat { id } } animals { ... on Named "
      "{ name } } }",
      "", "" },
    { "PossibleFragmentSpreads", "{ cat { ... on Dog { id } } }",
      "Fragment cannot be spread here as objects of type \"Cat\" can never be "
      "of type \"Dog\".",
      "1:9" },
    { "PossibleFragmentSpreads", "{ dog { ...C } } fragment C on Cat { id }",
      "Fragment \"C\" cannot be spread here as objects of type \"Dog\" can never "
      "be of type \"Cat\".",
      "1:9" },
    { "PossibleFragmentSpreads", "{ animals { ... on Owner { id } } }",
      "Fragment cannot be spread here as objects of type \"Animal\" can never "
      "be of type \"Owner\".",
      "1:13" },
    { "PossibleFragmentSpreads", "{ strict { ... on Node { id } } }",
      "Fragment cannot be spread here as objects of type \"Strict\" can never "
      "be of type \"Node\".",
      "1:12" },
    { "NoFragmentCycles",
      "{ ...A ...B } fragment A on Query { ...B } fragment B on Query { size "
      "}",
      "", "" },
    { "NoFragmentCycles", "{ ...A } fragment A on Query { ...A }",
      "Cannot spread fragment \"A\" within itself.", "1:32" },
    { "NoFragmentCycles",
      "{ ...A } fragment A on Query { ...B } fragment B on Query { ...C } "
      "fragment C on Query { ...A }",
      "Cannot spread fragment \"A\" within itself via \"B\", \"C\".", "1:32 1:61 1:90" },
    { "UniqueVariableNames",
      "query($a: Int, $b: [[Int]]) { must(a: 1) echo(int: $a, required: 1, "
      "matrix: $b) }",
      "", "" },
    { "UniqueVariableNames", "query($a: Int, $a: Int, $a: String) { echo(int: $a) }",
      "There can be only one variable named \"$a\".", "1:8 1:17 1:26" },
    { "NoUndefinedVariables", "query($a: Int) { ...F } fragment F on Query { echo(int: $a) }", "",
      "" },
    { "NoUndefinedVariables", "query Q { echo(int: $a) }",
      "Variable \"$a\" is not defined by operation \"Q\".", "1:21 1:1" },
    { "NoUndefinedVariables", "{ ...F } fragment F on Query { echo(json: [{ a: $b }]) }",
      "Variable \"$b\" is not defined.", "1:49 1:1" },
    { "NoUnusedVariables", "query($a: Boolean!) { size @skip(if: $a) }", "", "" },
    { "NoUnusedVariables", "query Q($a: Int) { size }",
      "Variable \"$a\" is never used in operation \"Q\".", "1:9" },
    { "NoUnusedVariables", "query($a: Int) { size }", "Variable \"$a\" is never used.", "1:7" },
    { "KnownDirectives", "query @tag { cat { id @skip(if: true) @tag } }", "", "" },
    { "KnownDirectives", "{ cat @foo { id } }", "Unknown directive \"@foo\".", "1:7" },
    { "KnownDirectives", "query @skip(if: true) { size }",
      "Directive \"@skip\" may not be used on QUERY.", "1:7" },
    { "KnownDirectives", "{ ... @tag { size } }",
      "Directive \"@tag\" may not be used on INLINE_FRAGMENT.", "1:7" },
    { "UniqueDirectivesPerLocation", "{ cat { id @tag @tag(name: \"b\") } }", "", "" },
    { "UniqueDirectivesPerLocation", "{ size @skip(if: true) @skip(if: false) }",
      "The directive \"@skip\" can only be used once at this location.", "1:8 1:24" },
    { "KnownArgumentNames", "{ cat { lives(left: true) } }", "", "" },
    { "KnownArgumentNames", "{ cat { lives(lef: true) } }",
      "Unknown argument \"lef\" on field \"Cat.lives\". Did you mean \"left\"?", "1:15" },
    { "KnownArgumentNames", "{ size @skip(if: true, iff: false) }",
      "Unknown argument \"iff\" on directive \"@skip\". Did you mean \"if\"?", "1:24" },
    { "KnownArgumentNames", "{ size(a: 1) }", "Unknown argument \"a\" on field \"Query.size\".",
      "1:8" },
    { "UniqueArgumentNames", "{ echo(int: 1, float: 1) }", "", "" },
    { "UniqueArgumentNames", "{ must(a: 1, a: 2) }", "There can be only one argument named \"a\".",
      "1:8 1:14" },
    { "UniqueArgumentNames", "{ size @tag(name: \"a\", name: \"b\") }",
      "There can be only one argument named \"name\".", "1:13 1:24" },
    { "ValuesOfCorrectType",
      "{ echo(int: 1, float: 1, string: \"s\", bool: true, id: 1, ids: [\"a\"], "
      "matrix: [[1, null], null], size: LARGE, json: {a: [1, B]}) }",
      "", "" },
    { "ValuesOfCorrectType", "{ echo(int: \"x\") }",
      "Int cannot represent non-integer value: \"x\"", "1:13" },
    { "ValuesOfCorrectType", "{ echo(int: 12345678901) }",
      "Int cannot represent non 32-bit signed integer value: 12345678901", "1:13" },
    { "ValuesOfCorrectType", "{ echo(float: \"y\") }",
      "Float cannot represent non numeric value: \"y\"", "1:15" },
    { "ValuesOfCorrectType", "{ echo(string: 3) }", "String cannot represent a non string value: 3",
      "1:16" },
    { "ValuesOfCorrectType", "{ echo(bool: 1) }", "Boolean cannot represent a non boolean value: 1",
      "1:14" },
    { "ValuesOfCorrectType", "{ echo(id: 1.5) }",
      "ID cannot represent a non-string and non-integer value: 1.5", "1:12" },
    { "ValuesOfCorrectType", "{ echo(ids: [null]) }", "Expected value of type \"ID!\", found null.",
      "1:14" },
    { "ValuesOfCorrectType", "{ echo(size: LARG) }",
      "Value \"LARG\" does not exist in \"Size\" enum. Did you mean the enum "
      "value \"LARGE\"?",
      "1:14" },
    { "ValuesOfCorrectType", "{ echo(size: \"LARGE\") }",
      "Enum \"Size\" cannot represent non-enum value: \"LARGE\". Did you mean the "
      "enum value \"LARGE\"?",
      "1:14" },
    { "ValuesOfCorrectType", "{ echo(shape: 3) }", "Expected value of type \"Shape\", found 3.",
      "1:15" },
    { "ValuesOfCorrectType", "{ echo(shape: { points: { y: 1 } }) }",
      "Field \"Point.x\" of required type \"Int!\" was not provided.", "1:25" },
    { "ValuesOfCorrectType", "{ echo(shape: { points: { x: 1 }, nam: \"n\" }) }",
      "Field \"nam\" is not defined by type \"Shape\". Did you mean \"name\"?", "1:35" },
    { "ValuesOfCorrectType", "{ echo(required: null) }",
      "Expected value of type \"Int!\", found null.", "1:18" },
    { "ValuesOfCorrectType", "{ echo(choice: {}) }",
      "OneOf Input Object \"Choice\" must specify exactly one key.", "1:16" },
    { "ValuesOfCorrectType", "{ echo(choice: { a: null }) }",
      "Field \"Choice.a\" must be non-null.", "1:16" },
    { "ValuesOfCorrectType", "{ echo(string: \"\"\"block\"\"\", int: [1]) }",
      "Int cannot represent non-integer value: [1]", "1:34" },
    { "ValuesOfCorrectType", "query($a: Int = \"x\") { echo(int: $a) }",
      "Int cannot represent non-integer value: \"x\"", "1:17" },
    { "ProvidedRequiredArguments", "{ must(a: 1) echo }", "", "" },
    { "ProvidedRequiredArguments", "{ must }",
      "Field \"must\" argument \"a\" of type \"Int!\" is required, but it was not "
      "provided.",
      "1:3" },
    { "ProvidedRequiredArguments", "{ size @skip }",
      "Directive \"@skip\" argument \"if\" of type \"Boolean!\" is required, but it "
      "was not provided.",
      "1:8" },
    { "VariablesInAllowedPosition",
      "query($a: Int!, $b: Int = 1) { must(a: $a) m: must(a: $b) echo(int: "
      "$a, required: $b) }",
      "", "" },
    { "VariablesInAllowedPosition", "query($a: Int) { must(a: $a) }",
      "Variable \"$a\" of type \"Int\" used in position expecting type \"Int!\".", "1:7 1:26" },
    { "VariablesInAllowedPosition", "query($a: Int = null) { must(a: $a) }",
      "Variable \"$a\" of type \"Int\" used in position expecting type \"Int!\".", "1:7 1:33" },
    { "VariablesInAllowedPosition", "query($a: String) { echo(int: $a) }",
      "Variable \"$a\" of type \"String\" used in position expecting type \"Int\".", "1:7 1:31" },
    { "VariablesInAllowedPosition", "query($a: [Int]) { echo(matrix: $a) }",
      "Variable \"$a\" of type \"[Int]\" used in position expecting type "
      "\"[[Int]]\".",
      "1:7 1:33" },
    { "VariablesInAllowedPosition", "query($a: Int) { echo(choice: { a: $a }) }",
      "Variable \"a\" must be non-nullable to be used for OneOf Input Object "
      "\"Choice\".",
      "1:31" },
    { "VariablesInAllowedPosition", "query($a: [ID]) { echo(ids: $a) }",
      "Variable \"$a\" of type \"[ID]\" used in position expecting type \"[ID!]\".", "1:7 1:29" },
    { "OverlappingFieldsCanBeMerged",
      "{ cat { id id a: name } animals { ... on Cat { x: name } ... on Dog { "
      "x: barks } } }",
      "", "" },
    { "OverlappingFieldsCanBeMerged", "{ cat { id: name id } }",
      "Fields \"id\" conflict because \"name\" and \"id\" are different fields. Use "
      "different aliases on the fields to fetch both if this was intentional.",
      "1:9 1:18" },
    { "OverlappingFieldsCanBeMerged", "{ cat { a: lives(left: true) a: lives(left: false) } }",
      "Fields \"a\" conflict because they have differing arguments. Use "
      "different aliases on the fields to fetch both if this was intentional.",
      "1:9 1:30" },
    { "OverlappingFieldsCanBeMerged",
      "{ animals { ... on Cat { x: lives } ... on Dog { x: barks } } }",
      "Fields \"x\" conflict because they return conflicting types \"Int\" and "
      "\"String\". Use different aliases on the fields to fetch both if this "
      "was intentional.",
      "1:26 1:50" },
    { "OverlappingFieldsCanBeMerged",
      "{ ...A ...B } fragment A on Query { x: cat { id } } fragment B on "
      "Query { x: dog { id } }",
      "Fields \"x\" conflict because \"cat\" and \"dog\" are different fields. Use "
      "different aliases on the fields to fetch both if this was intentional.",
      "1:37 1:75" },
    { "OverlappingFieldsCanBeMerged", "{ cat { owner { n: name } owner { n: id } } }",
      "Fields \"owner\" conflict because subfields \"n\" conflict because \"name\" "
      "and \"id\" are different fields. Use different aliases on the fields to "
      "fetch both if this was intentional.",
      "1:9 1:17 1:27 1:35" },
    { "OverlappingFieldsCanBeMerged", "{ a: echo(json: {b: [1]}) a: echo(json: {b: [2]}) }",
      "Fields \"a\" conflict because they have differing arguments. Use "
      "different aliases on the fields to fetch both if this was intentional.",
      "1:3 1:27" },
    { "UniqueInputFieldNames", "{ echo(json: { a: 1, b: { a: 1 } }) }", "", "" },
    { "UniqueInputFieldNames", "{ echo(json: { a: { b: 1, b: 2 } }) }",
      "There can be only one input field named \"b\".", "1:21 1:27" },
    { "MaxIntrospectionDepth", "{ __schema { types { fields { type { fields { name } } } } } }", "",
      "" },
    { "MaxIntrospectionDepth",
      "{ __schema { types { fields { type { fields { type { interfaces { name "
      "} } } } } } } }",
      "Maximum introspection depth exceeded", "1:3" },
};

/* The places of an error as "1:2 3:4". */
static void show_places(const json_t *error, char *out, size_t size)
{
    size_t i, len = 0;
    json_t *place;

    out[0] = '\0';
    json_array_foreach(json_object_get(error, "locations"), i, place) {
        len += (size_t)snprintf(out + len, size - len, "%s%d:%d", i ? " " : "",
                                (int)json_integer_value(json_object_get(place, "line")),
                                (int)json_integer_value(json_object_get(place, "column")));
    }
}

/* The number of errors; what a reply says about them is in 'out'. */
static int check(struct gql_engine *engine, const char *query, size_t len, struct strbuf *out)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct errors errors = { .arena = &arena };
    struct gql_document *doc = document_parse(query, len, &engine->conf.limits, false, &errors);
    struct jsonw w = jsonw_make(out);

    if (doc)
        (void)document_validate(doc, &engine->conf, engine->scalars, &errors);
    document_unref(doc);
    jsonw_object_begin(&w);
    errors_write(&errors, query, len, &w);
    jsonw_object_end(&w);
    return (int)errors.count;
}

static void test_rules(void **state)
{
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(NULL, 0);

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        int count = check(engine, rows[i].query, strlen(rows[i].query), &out);
        json_t *reply = count > 0 ? json_loads(out.data, 0, NULL) : NULL;
        json_t *error = json_array_get(json_object_get(reply, "errors"), 0);
        const char *message = json_string_value(json_object_get(error, "message"));
        char places[256];

        show_places(error, places, sizeof(places));
        assert_row((count == 0) == !*rows[i].message, "%s: %s\n%s", rows[i].rule, rows[i].query,
                   out.data);
        assert_row(!error || strcmp(message, rows[i].message) == 0, "%s: %s\n got %s\nwant %s",
                   rows[i].rule, rows[i].query, message, rows[i].message);
        assert_row(!error || strcmp(places, rows[i].place) == 0, "%s: %s\n at %s", rows[i].rule,
                   rows[i].query, places);
        json_decref(reply);
    }
}

/* Backend.AI's web UI drops fields from its documents, and keeps what only these used. */
static void test_lenient(void **state)
{
    static const struct {
        const char *query, *want;
    } cases[] = {
        { "{ size } fragment F on Query { size }", "{\"data\":{\"size\":" },
        { "query Q", "{\"data\":{\"__typename\":\"Query\"}}" },
        { "query Q($a: Int)", "Variable \\\"$a\\\" is never used in operation \\\"Q\\\"." },
        { "mutation M", "{\"data\":{\"__typename\":\"Mutation\"}}" },
        { "subscription S", "must not select an introspection top level field" },
        { "query Q fragment F on Query { size }", "Expected \\\"{\\\", found Name" },
        { "{ size", "Expected Name, found <EOF>" },
        { "{ size } fragment F on Query { none }", "Cannot query field \\\"none\\\"" },
        { "", "Unexpected <EOF>" },
    };
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_lenient_engine();

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

        (void)zoo_run(engine, cases[i].query, NULL, NULL, &out);
        assert_row(strstr(out.data, cases[i].want), "%s: %s", cases[i].query, out.data);
    }
}

/* Errors after the hundredth are not looked for. */
static void test_many_errors(void **state)
{
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(NULL, 0);
    AQ_CLEANUP(strbuf_donep) struct strbuf query = STRBUF_INIT, out = STRBUF_INIT;

    (void)state;
    strbuf_addc(&query, '{');
    for (int i = 0; i < 200; i++)
        strbuf_addf(&query, " unknown%d", i);
    strbuf_addc(&query, '}');
    assert_int_equal(check(engine, query.data, query.len, &out), 101);
    assert_non_null(strstr(out.data, "{\"message\":\"Too many validation errors, error limit "
                                     "reached. Validation aborted.\"}]}"));
}

static void test_limits(void **state)
{
    static const struct gql_limits limits = {
        .bytes = 400,
        .tokens = 60,
        .nesting = 8,
        .depth = 4,
        .fields = 10,
        .aliases = 3,
        .directives = 2,
        .cost = 50,
        .work = 500,
    };
    static const struct {
        const char *query, *message; /* a part of the reply */
    } cases[] = {
        { "{ cat { id } }", "{\"data\":" },
        { "{ cat { owner { pets { __typename } } } }", "{\"data\":" },
        { "{ cat { owner { pets { ... on Cat { owner { id } } } } } }",
          "too many levels of fields: "
          "at most 4" },
        { "{ ...A } fragment A on Query { cat { ...B } } fragment B on Cat { owner { ...C } } "
          "fragment C on Owner { pets { ... on Cat { owner { id } } } }",
          "too many levels of fields" },
        { "{ a: size b: size c: size d: size }", "too many aliases: at most 3" },
        { "{ cat { a: id b: id } ...A ...A } fragment A on Query { c: size d: size }",
          "too many aliases" },
        { "{ cat { id @skip(if: true) name @skip(if: true) lives @skip(if: true) } }",
          "too many directives: at most 2" },
        { "{ size ...A ...A ...A } fragment A on Query { big json slow size }",
          "too many fields: at most 10" },
        { "{ owners(limit: 50) { id } }", "too high a cost of list sizes and fields: at most 50" },
        { "{ owners { cats(first: 9) { id name lives } } }", "too high a cost" },
        { "{ owners { id name } }", "{\"data\":" },
        { "{ echo(matrix: [[[[[[[[[1]]]]]]]]]) }", "nested more than 8 levels" },
        { "{ a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a "
          "a a a a a a a a a a a a a a a a a a a a a }",
          "Document contains more that 60 tokens. Parsing aborted.\",\"locations\":[{\"line\":1" },
    };
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(&limits, 0);
    AQ_CLEANUP(strbuf_donep) struct strbuf query = STRBUF_INIT, reply = STRBUF_INIT;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

        (void)zoo_run(engine, cases[i].query, NULL, NULL, &out);
        assert_row(strstr(out.data, cases[i].message), "%s\n%s", cases[i].query, out.data);
    }
    for (int i = 0; i < 401; i++)
        strbuf_addc(&query, ' ');
    (void)zoo_run(engine, query.data, NULL, NULL, &reply);
    assert_non_null(strstr(reply.data, "larger than 400 bytes"));
}

/* The text with # for a number and @ for the next one. */
static void add_numbered(struct strbuf *out, const char *text, int number)
{
    for (; *text; text++) {
        if (*text == '#' || *text == '@')
            strbuf_addf(out, "%d", number + (*text == '@'));
        else
            strbuf_addc(out, *text);
    }
}

/* Untrusted documents that would keep the server busy end soon, with an error. */
static void test_hostile(void **state)
{
    static const struct gql_limits limits = GQL_LIMITS_DEFAULT;
    static const struct {
        const char *name, *before, *each, *after;
        int times;
        const char *want;
    } cases[] = {
        { "a million aliases", "{", "a#:size ", "}", 1000000, "larger than" },
        { "many aliases", "{", "a#:size ", "}", 6000, "too many aliases" },
        { "many tokens", "{", "a#:size ", "}", 30000, "20000 tokens" },
        { "depth 1,000", "{", "cat{owner{pets{... on Cat{", "}", 1000, "nested more than 200" },
        { "deep lists", "{echo(json:", "[", "}", 1000, "nested more than 200" },
        { "deep types", "query($a:", "[", "Int){size}", 100, "Syntax Error" },
        { "the same field", "{", "cat{id name} ", "}", 2000, "Validation aborted." },
        { "spreads", "{ ...F0 } fragment F0 on Query{size}", "fragment F@ on Query{...F#}", "",
          3000, "error" },
        { "circles", "{ ...F0 } fragment F0 on Query{...F2999}", "fragment F@ on Query{...F#}", "",
          2999, "error" },
        { "nested overlap", "{ ...F0 ...F0 } fragment F0 on Query{size}",
          "fragment F@ on Query{cat{owner{id}} ...F# ...F0}", "", 900, "error" },
        { "a big number", "{must(a:", "9", ")}", 100000, "non 32-bit" },
        { "a long string", "{must(a:\"", "0123456789", "\")}", 100000, "Int cannot represent" },
        { "a long name", "{ ", "abcdefghij", " }", 100000, "Cannot query field" },
    };
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(&limits, 4);

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf query = STRBUF_INIT, out = STRBUF_INIT;

        strbuf_adds(&query, cases[i].before);
        for (int n = 0; n < cases[i].times; n++)
            add_numbered(&query, cases[i].each, n);
        strbuf_adds(&query, cases[i].after);
        (void)zoo_run(engine, query.data, NULL, NULL, &out);
        assert_row(strstr(out.data, cases[i].want), "%s: %.300s", cases[i].name, out.data);
        assert_row(out.len < 200000, "%s: %zu bytes", cases[i].name, out.len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),       cmocka_unit_test(test_lenient),
        cmocka_unit_test(test_many_errors), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_hostile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
