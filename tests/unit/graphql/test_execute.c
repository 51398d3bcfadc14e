/* SPDX-License-Identifier: Apache-2.0 */
/* Replies, whole, for queries over the zoo; batches, waiting, the cache. */
#include "testing.h"

#include <errno.h>

#include "replies.h"

static const struct zoo_row rows[] = {
    { "{ cat { id name } }", NULL, "{\"data\":{\"cat\":{\"id\":\"c0\",\"name\":\"Tom\"}}}" },
    { "{ a: cat { name id } size: slow b: cat { x: id } a: cat { lives "
      "} }",
      NULL,
      "{\"data\":{\"a\":{\"name\":\"Tom\",\"id\":\"c0\",\"lives\":7},\"size\":\"not slow "
      "at all\",\"b\":{\"x\":\"c0\"}}}" },
    { "{ animals { __typename ... on Cat { id name lives owner { name } "
      "} ... on Dog { id barks(times: 3, at: \"x\") size owner { id } } } "
      "}",
      NULL,
      "{\"errors\":[{\"message\":\"Fields \\\"owner\\\" conflict because they "
      "return conflicting types \\\"Owner\\\" and \\\"Owner!\\\". Use different "
      "aliases on the fields to fetch both if this was "
      "intentional.\",\"locations\":[{\"line\":1,\"column\":51},{\"line\":1,"
      "\"column\":114}]}]}" },
    { "query($a: Int = 4) { owners(limit: 2) { id pets { __typename "
      "...A } cats(first: $a) { id friends { ...A } } } } fragment A on "
      "Named { name id }",
      NULL,
      "{\"data\":{\"owners\":[{\"id\":\"1\",\"pets\":[{\"__typename\":\"Cat\","
      "\"name\":\"Tom\",\"id\":\"c0\"},{\"__typename\":\"Dog\",\"name\":\"Rex\","
      "\"id\":\"d0\"},null],\"cats\":[{\"id\":\"c0\",\"friends\":[{\"name\":\"Rex\","
      "\"id\":\"d0\"},{\"name\":\"Stray\",\"id\":\"d1\"}]},{\"id\":\"c1\","
      "\"friends\":null}]},{\"id\":\"2\",\"pets\":[{\"__typename\":\"Cat\","
      "\"name\":null,\"id\":\"c1\"}],\"cats\":[{\"id\":\"c0\","
      "\"friends\":[{\"name\":\"Rex\",\"id\":\"d0\"},{\"name\":\"Stray\",\"id\":\"d1\"}]},"
      "{\"id\":\"c1\",\"friends\":null}]}]},\"errors\":[{\"message\":\"Cannot "
      "return null for non-nullable field "
      "Cat.friends.\",\"locations\":[{\"line\":1,\"column\":90}],"
      "\"path\":[\"owners\",0,\"cats\",1,\"friends\",1]},{\"message\":\"Cannot "
      "return null for non-nullable field "
      "Cat.friends.\",\"locations\":[{\"line\":1,\"column\":90}],"
      "\"path\":[\"owners\",1,\"cats\",1,\"friends\",1]}]}" },
    { "query($a: Int = 4) { owners(limit: 2) { id pets { __typename "
      "...A } cats(first: $a) { id friends { ...A } } } } fragment A on "
      "Named { name id }",
      "{\"a\":1}",
      "{\"data\":{\"owners\":[{\"id\":\"1\",\"pets\":[{\"__typename\":\"Cat\","
      "\"name\":\"Tom\",\"id\":\"c0\"},{\"__typename\":\"Dog\",\"name\":\"Rex\","
      "\"id\":\"d0\"},null],\"cats\":[{\"id\":\"c0\",\"friends\":[{\"name\":\"Rex\","
      "\"id\":\"d0\"},{\"name\":\"Stray\",\"id\":\"d1\"}]}]},{\"id\":\"2\","
      "\"pets\":[{\"__typename\":\"Cat\",\"name\":null,\"id\":\"c1\"}],"
      "\"cats\":[{\"id\":\"c0\",\"friends\":[{\"name\":\"Rex\",\"id\":\"d0\"},"
      "{\"name\":\"Stray\",\"id\":\"d1\"}]}]}]}}" },
    { "mutation { a: set(value: 1) get b: set(value: -1) c: set(value: "
      "2) }",
      NULL,
      "{\"data\":null,\"errors\":[{\"message\":\"below "
      "zero\",\"locations\":[{\"line\":1,\"column\":33}],\"path\":[\"b\"]}]}" },
    { "mutation { a: set(value: 1) get again: get b: set(value: 2) n: "
      "get }",
      NULL, "{\"data\":{\"a\":1,\"get\":1,\"again\":1,\"b\":2,\"n\":2}}" },
    { "mutation { a: set(value: 1) fail b: set(value: 2) }", NULL,
      "{\"data\":null,\"errors\":[{\"message\":\"Cannot return null for "
      "non-nullable field Mutation.fail.\",\"locations\":[{\"line\":1,"
      "\"column\":29}],\"path\":[\"fail\"]}]}" },
    { "{ strict { maybe } }", NULL,
      "{\"data\":{\"strict\":{\"maybe\":null}},\"errors\":[{\"message\":\"Int "
      "cannot represent non-integer value: "
      "\\\"x\\\"\",\"locations\":[{\"line\":1,\"column\":12}],\"path\":[\"strict\","
      "\"maybe\"]}]}" },
    { "{ s2: strict { list maybe } }", NULL,
      "{\"data\":{\"s2\":null},\"errors\":[{\"message\":\"Cannot return null for "
      "non-nullable field Strict.list.\",\"locations\":[{\"line\":1,"
      "\"column\":16}],\"path\":[\"s2\",\"list\",1]}]}" },
    { "{ s3: strict { maybe value } cat { id } }", NULL,
      "{\"data\":{\"s3\":null,\"cat\":{\"id\":\"c0\"}},\"errors\":[{\"message\":\"Int "
      "cannot represent non-integer value: "
      "\\\"x\\\"\",\"locations\":[{\"line\":1,\"column\":16}],\"path\":[\"s3\","
      "\"maybe\"]},{\"message\":\"Cannot return null for non-nullable field "
      "Strict.value.\",\"locations\":[{\"line\":1,\"column\":22}],\"path\":[\"s3\","
      "\"value\"]}]}" },
    { "{ owner { id strict { nested { maybe } } } size }", NULL,
      "{\"data\":{\"owner\":{\"id\":\"1\",\"strict\":null},\"size\":null},"
      "\"errors\":[{\"message\":\"nothing is nested in "
      "1\",\"locations\":[{\"line\":1,\"column\":23}],\"path\":[\"owner\",\"strict\","
      "\"nested\"]},{\"message\":\"Enum \\\"Size\\\" cannot represent value: "
      "\\\"HUGE\\\"\",\"locations\":[{\"line\":1,\"column\":44}],"
      "\"path\":[\"size\"]}]}" },
    { "{ json size slow }", NULL,
      "{\"data\":{\"json\":{\"a\":[1,null]},\"size\":null,\"slow\":\"not slow at "
      "all\"},\"errors\":[{\"message\":\"Enum \\\"Size\\\" cannot represent "
      "value: \\\"HUGE\\\"\",\"locations\":[{\"line\":1,\"column\":8}],"
      "\"path\":[\"size\"]}]}" },
    { "{ node(id: \"c0\") { __typename id ... on Cat { lives(left: false) "
      "} } }",
      NULL, "{\"data\":{\"node\":{\"__typename\":\"Cat\",\"id\":\"c0\",\"lives\":9}}}" },
    { "{ node(id: \"owner\") { id } }", NULL,
      "{\"data\":{\"node\":null},\"errors\":[{\"message\":\"Runtime Object type "
      "\\\"Owner\\\" is not a possible type for "
      "\\\"Node\\\".\",\"locations\":[{\"line\":1,\"column\":3}],"
      "\"path\":[\"node\"]}]}" },
    { "{ node(id: \"untyped\") { id } }", NULL,
      "{\"data\":{\"node\":null},\"errors\":[{\"message\":\"Abstract type "
      "\\\"Node\\\" must resolve to an Object type at runtime for field "
      "\\\"Query.node\\\". Either the \\\"Node\\\" type should provide a "
      "\\\"resolveType\\\" function or each possible type should provide an "
      "\\\"isTypeOf\\\" function.\",\"locations\":[{\"line\":1,\"column\":3}],"
      "\"path\":[\"node\"]}]}" },
    { "{ node(id: 7) { id } }", NULL, "{\"data\":{\"node\":null}}" },
    { "query($i: Int!) { must(a: $i) }", NULL,
      "{\"errors\":[{\"message\":\"Variable \\\"$i\\\" of required type \\\"Int!\\\" "
      "was not provided.\",\"locations\":[{\"line\":1,\"column\":7}]}]}" },
    { "query($i: Int!) { must(a: $i) }", "{\"i\":null}",
      "{\"errors\":[{\"message\":\"Variable \\\"$i\\\" of non-null type \\\"Int!\\\" "
      "must not be null.\",\"locations\":[{\"line\":1,\"column\":7}]}]}" },
    { "query($i: Int = 3) { must(a: $i) }", NULL, "{\"data\":{\"must\":\"a=3\"}}" },
    { "query($i: Int = 3) { must(a: $i) }", "{\"i\":null}",
      "{\"data\":{\"must\":null},\"errors\":[{\"message\":\"Argument \\\"a\\\" of "
      "non-null type \\\"Int!\\\" must not be "
      "null.\",\"locations\":[{\"line\":1,\"column\":30}],\"path\":[\"must\"]}]}" },
    { "query($b: Boolean!) { cat { id @skip(if: $b) name @include(if: "
      "$b) ... @include(if: $b) { lives } ...F @skip(if: $b) } } "
      "fragment F on Cat { x: lives }",
      "{\"b\":true}", "{\"data\":{\"cat\":{\"name\":\"Tom\",\"lives\":7}}}" },
    { "query($b: Boolean!) { cat { id @skip(if: $b) name @include(if: "
      "$b) ... @include(if: $b) { lives } ...F @skip(if: $b) } } "
      "fragment F on Cat { x: lives }",
      "{\"b\":false}", "{\"data\":{\"cat\":{\"id\":\"c0\",\"x\":7}}}" },
    { "query($b: Boolean = true) { size @skip(if: $b) slow }", NULL,
      "{\"data\":{\"slow\":\"not slow at all\"}}" },
    { "query($b: Boolean = true) { slow @skip(if: $b) big }", "{\"b\":null}",
      "{\"data\":null,\"errors\":[{\"message\":\"Argument \\\"if\\\" of non-null "
      "type \\\"Boolean!\\\" must not be "
      "null.\",\"locations\":[{\"line\":1,\"column\":44}]}]}" },
    { "query($b: Boolean = true) { cat { id name @skip(if: $b) } slow }", "{\"b\":null}",
      "{\"data\":{\"cat\":null,\"slow\":\"not slow at "
      "all\"},\"errors\":[{\"message\":\"Argument \\\"if\\\" of non-null type "
      "\\\"Boolean!\\\" must not be "
      "null.\",\"locations\":[{\"line\":1,\"column\":53}],\"path\":[\"cat\"]}]}" },
    { "{ slow @skip(if: true) @include(if: true) }", NULL, "{\"data\":{}}" },
    { "{ __typename cat { __typename } animals { __typename } t: "
      "__typename }",
      NULL,
      "{\"data\":{\"__typename\":\"Query\",\"cat\":{\"__typename\":\"Cat\"},"
      "\"animals\":[{\"__typename\":\"Cat\"},{\"__typename\":\"Dog\"},null,"
      "{\"__typename\":\"Cat\"},null,{\"__typename\":\"Dog\"}],\"t\":\"Query\"},"
      "\"errors\":[{\"message\":\"this one ran "
      "away\",\"locations\":[{\"line\":1,\"column\":33}],\"path\":[\"animals\","
      "4]}]}" },
    { "{ __type(name: \"Nope\") { name } __schema { queryType { name } "
      "mutationType { name } subscriptionType { name } description } }",
      NULL,
      "{\"data\":{\"__type\":null,\"__schema\":{\"queryType\":{\"name\":\"Query\"},"
      "\"mutationType\":{\"name\":\"Mutation\"},"
      "\"subscriptionType\":{\"name\":\"Subscription\"},\"description\":\"A "
      "schema with every feature of the language.\"}}}" },
    { "{ __type(name: \"Shape\") { kind inputFields { name defaultValue "
      "type { kind ofType { name kind } } } fields { name } enumValues "
      "{ name } } }",
      NULL,
      "{\"data\":{\"__type\":{\"kind\":\"INPUT_OBJECT\","
      "\"inputFields\":[{\"name\":\"points\",\"defaultValue\":\"[{x: 1, y: "
      "7}]\",\"type\":{\"kind\":\"NON_NULL\",\"ofType\":{\"name\":null,"
      "\"kind\":\"LIST\"}}},{\"name\":\"name\",\"defaultValue\":\"\\\"s\\\"\","
      "\"type\":{\"kind\":\"SCALAR\",\"ofType\":null}},{\"name\":\"size\","
      "\"defaultValue\":\"LARGE\",\"type\":{\"kind\":\"ENUM\",\"ofType\":null}},"
      "{\"name\":\"inner\",\"defaultValue\":null,"
      "\"type\":{\"kind\":\"INPUT_OBJECT\",\"ofType\":null}}],\"fields\":null,"
      "\"enumValues\":null}}}" },
    { "{ __type(name: \"Size\") { enumValues { name } all: "
      "enumValues(includeDeprecated: true) { name isDeprecated "
      "deprecationReason } } }",
      NULL,
      "{\"data\":{\"__type\":{\"enumValues\":[{\"name\":\"SMALL\"},"
      "{\"name\":\"LARGE\"}],\"all\":[{\"name\":\"SMALL\",\"isDeprecated\":false,"
      "\"deprecationReason\":null},{\"name\":\"MEDIUM\",\"isDeprecated\":true,"
      "\"deprecationReason\":\"nobody "
      "is\"},{\"name\":\"LARGE\",\"isDeprecated\":false,"
      "\"deprecationReason\":null}]}}}" },
    { "{ __type(name: \"Named\") { interfaces { name } possibleTypes { "
      "name } fields { name } } u: __type(name: \"Animal\") { "
      "possibleTypes { name } fields { name } } d: __type(name: \"Dog\") "
      "{ fields { name } all: fields(includeDeprecated: true) { name "
      "isDeprecated args { name defaultValue } } } c: __type(name: "
      "\"Choice\") { isOneOf } j: __type(name: \"JSON\") { specifiedByURL "
      "isOneOf } }",
      NULL,
      "{\"data\":{\"__type\":{\"interfaces\":[{\"name\":\"Node\"}],"
      "\"possibleTypes\":[{\"name\":\"Cat\"},{\"name\":\"Dog\"}],"
      "\"fields\":[{\"name\":\"id\"},{\"name\":\"name\"}]},"
      "\"u\":{\"possibleTypes\":[{\"name\":\"Cat\"},{\"name\":\"Dog\"}],"
      "\"fields\":null},\"d\":{\"fields\":[{\"name\":\"id\"},{\"name\":\"name\"},"
      "{\"name\":\"barks\"},{\"name\":\"size\"},{\"name\":\"owner\"}],"
      "\"all\":[{\"name\":\"id\",\"isDeprecated\":false,\"args\":[]},"
      "{\"name\":\"name\",\"isDeprecated\":false,\"args\":[]},{\"name\":\"barks\","
      "\"isDeprecated\":false,\"args\":[{\"name\":\"times\",\"defaultValue\":\"2\"},"
      "{\"name\":\"at\",\"defaultValue\":null}]},{\"name\":\"size\","
      "\"isDeprecated\":false,\"args\":[]},{\"name\":\"owner\","
      "\"isDeprecated\":false,\"args\":[]},{\"name\":\"old\","
      "\"isDeprecated\":true,\"args\":[]}]},\"c\":{\"isOneOf\":true},"
      "\"j\":{\"specifiedByURL\":\"https://www.json.org\",\"isOneOf\":null}}}" },
    { "{ __schema { directives { name isRepeatable locations args { "
      "name defaultValue type { name kind } } } } }",
      NULL,
      "{\"data\":{\"__schema\":{\"directives\":[{\"name\":\"tag\","
      "\"isRepeatable\":true,\"locations\":[\"FIELD\",\"QUERY\","
      "\"VARIABLE_DEFINITION\",\"FRAGMENT_SPREAD\"],\"args\":[{\"name\":\"name\","
      "\"defaultValue\":\"\\\"x\\\"\",\"type\":{\"name\":null,\"kind\":\"NON_NULL\"}},"
      "{\"name\":\"many\",\"defaultValue\":null,\"type\":{\"name\":null,"
      "\"kind\":\"LIST\"}}]},{\"name\":\"include\",\"isRepeatable\":false,"
      "\"locations\":[\"FIELD\",\"FRAGMENT_SPREAD\",\"INLINE_FRAGMENT\"],"
      "\"args\":[{\"name\":\"if\",\"defaultValue\":null,\"type\":{\"name\":null,"
      "\"kind\":\"NON_NULL\"}}]},{\"name\":\"skip\",\"isRepeatable\":false,"
      "\"locations\":[\"FIELD\",\"FRAGMENT_SPREAD\",\"INLINE_FRAGMENT\"],"
      "\"args\":[{\"name\":\"if\",\"defaultValue\":null,\"type\":{\"name\":null,"
      "\"kind\":\"NON_NULL\"}}]},{\"name\":\"deprecated\",\"isRepeatable\":false,"
      "\"locations\":[\"FIELD_DEFINITION\",\"ARGUMENT_DEFINITION\","
      "\"INPUT_FIELD_DEFINITION\",\"ENUM_VALUE\"],\"args\":[{\"name\":\"reason\","
      "\"defaultValue\":\"\\\"No longer "
      "supported\\\"\",\"type\":{\"name\":\"String\",\"kind\":\"SCALAR\"}}]},"
      "{\"name\":\"specifiedBy\",\"isRepeatable\":false,"
      "\"locations\":[\"SCALAR\"],\"args\":[{\"name\":\"url\",\"defaultValue\":null,"
      "\"type\":{\"name\":null,\"kind\":\"NON_NULL\"}}]},{\"name\":\"oneOf\","
      "\"isRepeatable\":false,\"locations\":[\"INPUT_OBJECT\"],\"args\":[]}]}}}" },
    { "subscription { tick }", NULL, "{\"data\":{\"tick\":null}}" },
    { "{ ...A } fragment A on Query { ...B cat { id } } fragment B on "
      "Query { cat { name } dog { ...C } } fragment C on Named { name "
      "... on Dog { size } }",
      NULL,
      "{\"data\":{\"cat\":{\"name\":\"Tom\",\"id\":\"c0\"},\"dog\":{\"name\":\"Rex\","
      "\"size\":\"LARGE\"}}}" },
    { "{ nope }", NULL,
      "{\"errors\":[{\"message\":\"Cannot query field \\\"nope\\\" on type "
      "\\\"Query\\\". Did you mean "
      "\\\"node\\\"?\",\"locations\":[{\"line\":1,\"column\":3}]}]}" },
    { "{", NULL,
      "{\"errors\":[{\"message\":\"Syntax Error: Expected Name, found "
      "<EOF>.\",\"locations\":[{\"line\":1,\"column\":2}]}]}" },
};

static void test_replies(void **state)
{
    (void)state;
    zoo_check(rows, AQ_COUNT(rows));
}

static void test_operations(void **state)
{
    static const char query[] = "query A { slow } mutation B { get }";
    static const struct {
        const char *query, *operation, *reply;
    } cases[] = {
        { query, "A", "{\"data\":{\"slow\":\"not slow at all\"}}" },
        { query, "B", "{\"data\":{\"get\":0}}" },
        { query, NULL,
          "{\"errors\":[{\"message\":\"Must provide operation name if query contains "
          "multiple operations.\"}]}" },
        { query, "C", "{\"errors\":[{\"message\":\"Unknown operation named \\\"C\\\".\"}]}" },
        { "fragment F on Query { slow }", NULL,
          "{\"errors\":[{\"message\":\"Fragment \\\"F\\\" is never used.\",\"locations\":[{\"line\":"
          "1,\"column\":1}]}]}" },
    };
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(NULL, 0);

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

        zoo_reset();
        (void)zoo_run(engine, cases[i].query, NULL, cases[i].operation, &out);
        assert_string_equal(out.data, cases[i].reply);
    }
}

/* However many objects, each field at a place is resolved by one call. */
static void test_batches(void **state)
{
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(NULL, 0);
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    zoo_reset();
    (void)zoo_run(engine, "{ owners { cats { owner { id } } } }", NULL, NULL, &out);
    assert_int_equal(zoo_seen.owner_calls, 1);
    assert_int_equal(zoo_seen.owner_parents, 6);
    zoo_reset();
    (void)zoo_run(engine,
                  "{ animals { ... on Cat { owner { id } } ... on Dog { o: owner { id } } } }",
                  NULL, NULL, &out);
    assert_int_equal(zoo_seen.owner_calls, 2); /* one for each type */
    assert_int_equal(zoo_seen.owner_parents, 4);
}

static void test_selects(void **state)
{
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(NULL, 0);
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    (void)zoo_run(engine, "{ owner { ...F } } fragment F on Owner { id ... { x: cats { id } } }",
                  NULL, NULL, &out);
    assert_true(zoo_seen.cats_selected);
    (void)zoo_run(engine, "{ owner { id cats @skip(if: true) { id } } }", NULL, NULL, &out);
    assert_false(zoo_seen.cats_selected);
}

static void on_done(void *data, const struct gql_result *result)
{
    *(struct gql_result *)data = *result;
}

static void start_slow(struct gql_engine *engine, const char *query, struct strbuf *out,
                       struct gql_result *result)
{
    const struct gql_params params = { .query = query, .query_len = strlen(query) };

    zoo_reset();
    zoo_seen.slow_later = true;
    *result = (struct gql_result){ .code = 1 };
    gql_execute(engine, &params, out, on_done, result);
}

static void test_waiting(void **state)
{
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(NULL, 0);
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct gql_result result;

    (void)state;
    start_slow(engine, "{ slow cat { id } }", &out, &result);
    assert_int_equal(result.code, 1);
    zoo_seen.slow->results[0] = gql_text("at last");
    gql_call_done(zoo_seen.slow);
    assert_int_equal(result.code, 0);
    assert_string_equal(out.data, "{\"data\":{\"slow\":\"at last\",\"cat\":{\"id\":\"c0\"}}}");
}

/* However short the turns are, the reply is the same; who does not ask for pauses has none. */
static void test_turns(void **state)
{
    static const struct gql_limits limits = { .turn = 10 };
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(&limits, 0);
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *whole = zoo_engine(NULL, 0);
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, want = STRBUF_INIT;
    static const char query[] = "{ a: owners { id cats { id name owner { id } } } "
                                "b: owners { id cats { id name } } }";

    (void)state;
    zoo_reset();
    assert_int_equal(zoo_run(whole, query, NULL, NULL, &want).code, 0);
    assert_int_equal(zoo_seen.pauses, 0);
    assert_int_equal(zoo_run(engine, query, NULL, NULL, &out).code, 0);
    assert_true(zoo_seen.pauses >= 3);
    assert_string_equal(out.data, want.data);
}

static void test_a_reply_has_a_limit(void **state)
{
    static const struct gql_limits limits = { .reply = 60 };
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(&limits, 0);
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct gql_result result;

    (void)state;
    zoo_reset();
    result = zoo_run(engine, "{ owners { id cats { id name } } }", NULL, NULL, &out);
    assert_int_equal(result.code, 0);
    assert_int_equal(result.errors, 1);
    assert_string_equal(out.data, "{\"data\":null,\"errors\":[{\"message\":\"The reply would have "
                                  "more than 60 bytes: ask for fewer rows or fields.\"}]}");
    strbuf_truncate(&out, 0);
    assert_int_equal(zoo_run(engine, "{ cat { id } }", NULL, NULL, &out).errors, 0);
}

/* Two requests at once, ended in the other order; one failing. */
static void test_two_waiting(void **state)
{
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(NULL, 4);
    AQ_CLEANUP(strbuf_donep) struct strbuf out1 = STRBUF_INIT, out2 = STRBUF_INIT;
    struct gql_result result1, result2;
    struct gql_call *first;

    (void)state;
    start_slow(engine, "{ slow }", &out1, &result1);
    first = zoo_seen.slow;
    start_slow(engine, "{ slow }", &out2, &result2);
    zoo_seen.slow->results[0] = gql_text("two");
    gql_call_done(zoo_seen.slow);
    assert_string_equal(out2.data, "{\"data\":{\"slow\":\"two\"}}");
    (void)gql_call_fail(first, "no %s", "answer");
    gql_call_done(first);
    assert_string_equal(out1.data,
                        "{\"data\":{\"slow\":null},\"errors\":[{\"message\":\"no answer\","
                        "\"locations\":[{\"line\":1,\"column\":3}],\"path\":[\"slow\"]}]}");
}

static void test_cache(void **state)
{
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(NULL, 2);
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, big = STRBUF_INIT;
    struct gql_stats stats;

    (void)state;
    zoo_reset();
    (void)zoo_run(engine, "{ slow }", NULL, NULL, &out);
    (void)zoo_run(engine, "{ slow }", NULL, NULL, &out);
    (void)zoo_run(engine, "{ nope }", NULL, NULL, &out);
    gql_engine_get_stats(engine, &stats);
    assert_int_equal(stats.documents, 1);
    assert_int_equal(stats.hits, 1);
    assert_int_equal(stats.misses, 2);
    assert_in_range(stats.bytes, 1, 4096);
    (void)zoo_run(engine, "{ a: slow }", NULL, NULL, &out);
    (void)zoo_run(engine, "{ slow }", NULL, NULL, &out); /* the newer one of two */
    (void)zoo_run(engine, "{ b: slow }", NULL, NULL, &out);
    (void)zoo_run(engine, "{ slow }", NULL, NULL, &out);
    gql_engine_get_stats(engine, &stats);
    assert_int_equal(stats.documents, 2);
    assert_int_equal(stats.hits, 3);

    strbuf_addc(&big, '{');
    for (int i = 0; i < 1000; i++)
        strbuf_addf(&big, " a%d: slow", i);
    strbuf_addc(&big, '}');
    (void)zoo_run(engine, big.data, NULL, NULL, &out);
    gql_engine_get_stats(engine, &stats);
    assert_in_range(stats.bytes, 1, 2 * 65536);
    assert_int_equal(stats.hits, 3);
    (void)zoo_run(engine, big.data, NULL, NULL, &out);
    gql_engine_get_stats(engine, &stats);
    assert_int_equal(stats.hits, 3); /* too large to be kept */
}

static void test_params(void **state)
{
    static const struct {
        const char *body, *field; /* NULL = accepted */
    } cases[] = {
        { "{\"query\":\"{a}\"}", NULL },
        { "{\"query\":\"{a}\",\"variables\":null,\"operationName\":null}", NULL },
        { "{\"query\":\"{a}\",\"variables\":{\"a\":1},\"operation_name\":\"A\"}", NULL },
        { "{}", "query" },
        { "{\"query\":1}", "query" },
        { "{\"query\":\"{a}\",\"variables\":[]}", "variables" },
        { "{\"query\":\"{a}\",\"operationName\":1}", "operationName" },
        { "[]", "" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        json_t *body = json_loads(cases[i].body, 0, NULL);
        struct gql_params params;
        struct aq_error err = { 0 };
        int r = gql_params_from_json(body, &params, &err);

        assert_row(r == (cases[i].field ? -EINVAL : 0), "%s", cases[i].body);
        assert_row(!cases[i].field || strcmp(err.field, cases[i].field) == 0, "%s", cases[i].body);
        json_decref(body);
    }
}

/* A request that outgrows its memory gives no reply, and nothing is lost. */
static void test_memory_limit(void **state)
{
    static const struct gql_limits limits = { .memory = 6000 };
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(&limits, 0);
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct gql_result result;

    (void)state;
    zoo_reset();
    result = zoo_run(engine, "{ __schema { types { fields { args { name type { name } } } } } }",
                     NULL, NULL, &out);
    assert_int_equal(result.code, -ENOMEM);
    assert_string_equal(out.data, "");
    assert_int_equal(zoo_run(engine, "{ slow }", NULL, NULL, &out).code, 0);
}

/* Twice as many objects at each second level: the request ends within one step past its limit,
 * and another that waits meanwhile goes on.
 */
static void test_memory_of_many_objects(void **state)
{
    static const struct gql_limits limits = { .memory = 1 << 20 };
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(&limits, 0);
    AQ_CLEANUP(strbuf_donep) struct strbuf query = STRBUF_INIT, out = STRBUF_INIT,
                                           other_out = STRBUF_INIT;
    struct gql_result result, other;
    struct gql_call *slow;

    (void)state;
    start_slow(engine, "{ slow }", &other_out, &other);
    slow = zoo_seen.slow;
    strbuf_adds(&query, "{ owner");
    for (int i = 0; i < 40; i++)
        strbuf_adds(&query, " { cats { owner");
    strbuf_adds(&query, " { id }");
    for (int i = 0; i < 40; i++)
        strbuf_adds(&query, " } }");
    strbuf_adds(&query, " }");
    result = zoo_run(engine, query.data, NULL, NULL, &out);
    assert_int_equal(result.code, -ENOMEM);
    assert_string_equal(out.data, "");
    assert_in_range(zoo_seen.memory, 1, limits.memory);

    slow->results[0] = gql_text("at last");
    gql_call_done(slow);
    assert_int_equal(other.code, 0);
    assert_string_equal(other_out.data, "{\"data\":{\"slow\":\"at last\"}}");
}

/* The rows of a variable's list are refused before there is memory for them. */
static void test_memory_of_variables(void **state)
{
    static const struct gql_limits limits = { .memory = 1 << 20 };
    static const char *const queries[] = { "query($v: [ID!]) { echo(ids: $v) }",
                                           "query($v: JSON) { echo(json: $v) }",
                                           "query($v: Shape) { echo(shape: $v) }" };
    AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(&limits, 0);
    AQ_CLEANUP(strbuf_donep) struct strbuf list = STRBUF_INIT;

    (void)state;
    for (int i = 0; i < 100000; i++)
        strbuf_adds(&list, i ? ",{}" : "[{}");
    strbuf_addc(&list, ']');
    for (size_t i = 0; i < AQ_COUNT(queries); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf variables = STRBUF_INIT, out = STRBUF_INIT;

        strbuf_addf(&variables, i == 2 ? "{\"v\":{\"points\":%s}}" : "{\"v\":%s}", list.data);
        zoo_reset();
        assert_row(zoo_run(engine, queries[i], variables.data, NULL, &out).code == -ENOMEM, "%zu",
                   i);
        assert_string_equal(out.data, "");
    }
}

/* Memory ends at every place once: a whole reply, or none and nothing lost. */
static void test_memory_ends_anywhere(void **state)
{
    static const char *const queries[] = {
        ("query($a: Int = 2, $s: Shape) { owners(limit: $a) { id pets { __typename ...A } cats(first: "
         "1) { owner { name } } } echo(shape: $s, json: { a: [1, { b: 2 }] }, ids: 3) } fragment A "
         "on Named { name id }"),
        ("{ animals { ... on Cat { a: id } ... on Dog { a: name } } x: nope ...F } fragment F on "
         "Query { x: size ...G }"),
        "mutation { set(value: 1) b: set(value: -1) }",
    };
    static const char variables[] = "{\"s\":{\"points\":[{\"x\":1},{\"x\":\"bad\"}],\"nam\":1}}";

    (void)state;
    for (size_t limit = 16; limit < 40000; limit += limit < 4000 ? 16 : 512) {
        struct gql_limits limits = { .memory = limit };
        AQ_CLEANUP(gql_engine_freep) struct gql_engine *engine = zoo_engine(&limits, 2);

        for (size_t i = 0; i < 2 * AQ_COUNT(queries); i++) {
            AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
            struct gql_result result;

            zoo_reset();
            result = zoo_run(engine, queries[i / 2], i % 2 ? variables : NULL, NULL, &out);
            assert_row(result.code == 0 || result.code == -ENOMEM, "%zu", limit);
            assert_row((result.code == 0) == (out.len > 0), "%zu: %s", limit, out.data);
        }
    }
}

static void test_missing_resolver(void **state)
{
    struct gql_resolver resolvers[ZOO_FIELD_COUNT];
    struct gql_conf conf = { .schema = &zoo_schema, .resolvers = resolvers };
    struct gql_engine *engine = NULL;
    struct aq_error err = { 0 };

    (void)state;
    memcpy(resolvers, zoo_resolvers, sizeof(resolvers));
    resolvers[ZOO_FIELD_Dog_barks].how = GQL_HOW_NONE;
    assert_int_equal(gql_engine_new(&conf, &engine, &err), -EINVAL);
    assert_string_equal(err.text, "GraphQL field Dog.barks has no resolver");
}

static void test_int_of_64_bits(void **state)
{
    struct gql_resolver resolvers[ZOO_FIELD_COUNT];
    struct gql_conf conf = { .schema = &zoo_schema, .resolvers = resolvers };
    struct gql_engine *engine = NULL;
    struct aq_error err = { 0 };

    (void)state;
    memcpy(resolvers, zoo_resolvers, sizeof(resolvers));
    resolvers[ZOO_FIELD_Cat_lives].how = GQL_HOW_INT64;
    assert_int_equal(gql_engine_new(&conf, &engine, &err), -EINVAL);
    assert_string_equal(err.text, "GraphQL field Cat.lives is an Int, with 64 bits");
    assert_int_equal(gql_int_clamped(INT64_C(36500) * 86400).integer, INT32_MAX);
    assert_int_equal(gql_int_clamped(INT64_MIN).integer, INT32_MIN);
    assert_int_equal(gql_int_clamped(-5).integer, -5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_selects),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_a_reply_has_a_limit),
        cmocka_unit_test(test_two_waiting),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_params),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_memory_of_many_objects),
        cmocka_unit_test(test_memory_of_variables),
        cmocka_unit_test(test_memory_ends_anywhere),
        cmocka_unit_test(test_missing_resolver),
        cmocka_unit_test(test_int_of_64_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
