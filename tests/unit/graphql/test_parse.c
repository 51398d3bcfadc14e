/* SPDX-License-Identifier: Apache-2.0 */
/* Every production of the grammar, accepted and refused with the whole
 * message and place. "" = accepted.
 */
#include "testing.h"

#include "graphql/parser.h"

static const struct {
    const char *production, *text, *message;
    unsigned line, column;
} rows[] = {
    { "Document", "{ a } query B { b } fragment C on D { c } type E { f: G }", "", 0, 0 },
    { "Document", "", "Syntax Error: Unexpected <EOF>.", 1, 1 },
    { "Ignored", "\357\273\277{ a,,,\tb #comment\r\n c\r}", "", 0, 0 },
    { "Ignored", "{ a ? }", "Syntax Error: Unexpected character: \"?\".", 1, 5 },
    { "Ignored", "{ a \303\251 }", "Syntax Error: Unexpected character: U+00E9.", 1, 5 },
    { "Ignored", "{ a(b: 'x') }",
      "Syntax Error: Unexpected single quote character ('), did you mean "
      "to use a double quote (\")?",
      1, 8 },
    { "OperationDefinition", "query A { b } mutation { c } subscription S { d }", "", 0, 0 },
    { "OperationDefinition", "query", "Syntax Error: Expected \"{\", found <EOF>.", 1, 6 },
    { "OperationDefinition", "queri { a }", "Syntax Error: Unexpected Name \"queri\".", 1, 1 },
    { "OperationDefinition", "query A B { c }", "Syntax Error: Expected \"{\", found Name \"B\".",
      1, 9 },
    { "SelectionSet", "{ a { b c { d } } }", "", 0, 0 },
    { "SelectionSet", "{ }", "Syntax Error: Expected Name, found \"}\".", 1, 3 },
    { "SelectionSet", "{ a { } }", "Syntax Error: Expected Name, found \"}\".", 1, 7 },
    { "SelectionSet", "{ a", "Syntax Error: Expected Name, found <EOF>.", 1, 4 },
    { "Field", "{ a b: c d(e: 1) @f { g } }", "", 0, 0 },
    { "Field", "{ a: }", "Syntax Error: Expected Name, found \"}\".", 1, 6 },
    { "Field", "{ \"a\" }", "Syntax Error: Expected Name, found String \"a\".", 1, 3 },
    { "Field", "{ a b: c: d }", "Syntax Error: Expected Name, found \":\".", 1, 9 },
    { "Arguments", "{ a(b: 1, c: 2 d: 3) }", "", 0, 0 },
    { "Arguments", "{ a() }", "Syntax Error: Expected Name, found \")\".", 1, 5 },
    { "Arguments", "{ a(b) }", "Syntax Error: Expected \":\", found \")\".", 1, 6 },
    { "Arguments", "{ a(b: ) }", "Syntax Error: Unexpected \")\".", 1, 8 },
    { "FragmentSpread", "{ ...A ...B @c }", "", 0, 0 },
    { "FragmentSpread", "{ ...on }", "Syntax Error: Expected Name, found \"}\".", 1, 9 },
    { "FragmentSpread", "{ ... 1 }", "Syntax Error: Expected \"{\", found Int \"1\".", 1, 7 },
    { "InlineFragment", "{ ... on A { b } ... { c } ... @d { e } }", "", 0, 0 },
    { "InlineFragment", "{ ... on A }", "Syntax Error: Expected \"{\", found \"}\".", 1, 12 },
    { "InlineFragment", "{ ... on { a } }", "Syntax Error: Expected Name, found \"{\".", 1, 10 },
    { "FragmentDefinition", "fragment A on B @c { d }", "", 0, 0 },
    { "FragmentDefinition", "fragment on on B { a }", "Syntax Error: Unexpected Name \"on\".", 1,
      10 },
    { "FragmentDefinition", "fragment A { b }", "Syntax Error: Expected \"on\", found \"{\".", 1,
      12 },
    { "FragmentDefinition", "fragment A on { b }", "Syntax Error: Expected Name, found \"{\".", 1,
      15 },
    { "Variables", "query ($a: Int, $b: [Int!]! = [1] @c, $d: E = {f: G}) { h }", "", 0, 0 },
    { "Variables", "query () { a }", "Syntax Error: Expected \"$\", found \")\".", 1, 8 },
    { "Variables", "query ($a) { b }", "Syntax Error: Expected \":\", found \")\".", 1, 10 },
    { "Variables", "query (a: Int) { b }", "Syntax Error: Expected \"$\", found Name \"a\".", 1,
      8 },
    { "Variables", "query ($a: Int = $b) { c }",
      "Syntax Error: Unexpected variable \"$b\" in constant value.", 1, 18 },
    { "Variables", "query ($a: Int = $) { c }", "Syntax Error: Unexpected \"$\".", 1, 18 },
    { "Variables", "query ($a: [Int) { c }", "Syntax Error: Expected \"]\", found \")\".", 1, 16 },
    { "Variables", "query ($a: Int!!) { c }", "Syntax Error: Expected \"$\", found \"!\".", 1, 16 },
    { "IntValue", "{ a(b: [0, -1, 123, 9999999999999999999999]) }", "", 0, 0 },
    { "IntValue", "{ a(b: 00) }", "Syntax Error: Invalid number, unexpected digit after 0: \"0\".",
      1, 9 },
    { "IntValue", "{ a(b: -) }", "Syntax Error: Invalid number, expected digit but got: \")\".", 1,
      9 },
    { "IntValue", "{ a(b: 1x) }", "Syntax Error: Invalid number, expected digit but got: \"x\".", 1,
      9 },
    { "IntValue", "{ a(b: +1) }", "Syntax Error: Unexpected character: \"+\".", 1, 8 },
    { "FloatValue", "{ a(b: [0.0, -1.5, 1e3, 1E-3, 1.5e+10]) }", "", 0, 0 },
    { "FloatValue", "{ a(b: 1.) }", "Syntax Error: Invalid number, expected digit but got: \")\".",
      1, 10 },
    { "FloatValue", "{ a(b: .5) }", "Syntax Error: Unexpected character: \".\".", 1, 8 },
    { "FloatValue", "{ a(b: 1e) }", "Syntax Error: Invalid number, expected digit but got: \")\".",
      1, 10 },
    { "FloatValue", "{ a(b: 1.5.5) }",
      "Syntax Error: Invalid number, expected digit but got: \".\".", 1, 11 },
    { "FloatValue", "{ a(b: 1.5e3x) }",
      "Syntax Error: Invalid number, expected digit but got: \"x\".", 1, 13 },
    { "StringValue", "{ a(b: [\"\", \"x\", \"\\u00e9\\n\", \"\\uD83D\\uDE00\", \"\\u{1F600}\"]) }",
      "", 0, 0 },
    { "StringValue", "{ a(b: \"x) }", "Syntax Error: Unterminated string.", 1, 13 },
    { "StringValue", "{ a(b: \"x\n\") }", "Syntax Error: Unterminated string.", 1, 10 },
    { "StringValue", "{ a(b: \"\\q\") }",
      "Syntax Error: Invalid character escape sequence: \"\\q\".", 1, 9 },
    { "StringValue", "{ a(b: \"\\u12\") }",
      "Syntax Error: Invalid Unicode escape sequence: \"\\u12\")\".", 1, 9 },
    { "StringValue", "{ a(b: \"\\uD83D\") }",
      "Syntax Error: Invalid Unicode escape sequence: \"\\uD83D\".", 1, 9 },
    { "StringValue", "{ a(b: \"\\uDE00\") }",
      "Syntax Error: Invalid Unicode escape sequence: \"\\uDE00\".", 1, 9 },
    { "StringValue", "{ a(b: \"\\u{110000}\") }",
      "Syntax Error: Invalid Unicode escape sequence: \"\\u{110000}\".", 1, 9 },
    { "StringValue", "{ a(b: \"\\u{}\") }",
      "Syntax Error: Invalid Unicode escape sequence: \"\\u{}\".", 1, 9 },
    { "StringValue", "{ a(b: \"\\u{123456789}\") }",
      "Syntax Error: Invalid Unicode escape sequence: \"\\u{123456789\".", 1, 9 },
    { "BlockString", "{ a(b: \"\"\"x \"y\" \\\"\"\" z\"\"\") }", "", 0, 0 },
    { "BlockString", "{ a(b: \"\"\"x) }", "Syntax Error: Unterminated string.", 1, 15 },
    { "BooleanNullEnum", "{ a(b: true, c: false, d: null, e: RED, f: on) }", "", 0, 0 },
    { "BooleanNullEnum", "{ a(b: ) }", "Syntax Error: Unexpected \")\".", 1, 8 },
    { "ListValue", "{ a(b: [], c: [1 [2], $d]) }", "", 0, 0 },
    { "ListValue", "{ a(b: [1) }", "Syntax Error: Unexpected \")\".", 1, 10 },
    { "ListValue", "{ a(b: [}) }", "Syntax Error: Unexpected \"}\".", 1, 9 },
    { "ObjectValue", "{ a(b: {}, c: {d: 1, e: {f: $g}}) }", "", 0, 0 },
    { "ObjectValue", "{ a(b: {c 1}) }", "Syntax Error: Expected \":\", found Int \"1\".", 1, 11 },
    { "ObjectValue", "{ a(b: {c: 1) }", "Syntax Error: Expected Name, found \")\".", 1, 13 },
    { "ObjectValue", "{ a(b: {\"c\": 1}) }", "Syntax Error: Expected Name, found String \"c\".", 1,
      9 },
    { "Directives", "{ a @b @c(d: 1) }", "", 0, 0 },
    { "Directives", "{ a @ }", "Syntax Error: Expected Name, found \"}\".", 1, 7 },
    { "Directives", "{ a @b() }", "Syntax Error: Expected Name, found \")\".", 1, 8 },
    { "Directives", "query ($a: Int @b(c: $d)) { e }",
      "Syntax Error: Unexpected variable \"$d\" in constant value.", 1, 22 },
    { "TypeReference", "query ($a: [[Int!]]!) { b }", "", 0, 0 },
    { "TypeReference", "query ($a: []) { b }", "Syntax Error: Expected Name, found \"]\".", 1, 13 },
    { "TypeReference", "query ($a: !Int) { b }", "Syntax Error: Expected Name, found \"!\".", 1,
      12 },
    { "Description", "\"\"\"d\"\"\" type E { f: G }", "", 0, 0 },
    { "Description", "\"a\" query B { c }",
      "Syntax Error: Unexpected description, descriptions are supported "
      "only on type definitions.",
      1, 1 },
    { "Description", "query (\"d\" $a: Int) { b }",
      "Syntax Error: Expected \"$\", found String \"d\".", 1, 8 },
    { "Description", "\"a\" { b }", "Syntax Error: Unexpected \"{\".", 1, 5 },
    { "Description", "\"a\" extend type B { c: D }",
      "Syntax Error: Unexpected description, descriptions are supported "
      "only on type definitions.",
      1, 1 },
    { "Description", "\"a\" 3", "Syntax Error: Unexpected Int \"3\".", 1, 5 },
    { "Description", "\"a\" foo",
      "Syntax Error: Unexpected description, descriptions are supported "
      "only on type definitions.",
      1, 1 },
    { "SchemaDefinition",
      "\"d\" schema @a { query: B mutation: C subscription: D } extend "
      "schema { query: X } extend schema @a",
      "", 0, 0 },
    { "SchemaDefinition", "schema { }", "Syntax Error: Expected Name, found \"}\".", 1, 10 },
    { "SchemaDefinition", "schema", "Syntax Error: Expected \"{\", found <EOF>.", 1, 7 },
    { "SchemaDefinition", "schema { foo: A }", "Syntax Error: Unexpected Name \"foo\".", 1, 10 },
    { "SchemaDefinition", "extend schema", "Syntax Error: Unexpected <EOF>.", 1, 14 },
    { "ScalarType", "\"d\" scalar A @b extend scalar A @c", "", 0, 0 },
    { "ScalarType", "scalar", "Syntax Error: Expected Name, found <EOF>.", 1, 7 },
    { "ScalarType", "extend scalar A", "Syntax Error: Unexpected <EOF>.", 1, 16 },
    { "ObjectType",
      "\"d\" type A implements B & C @d { \"e\" f(g: H = 1 @i): J @k } type L "
      "extend type A implements & M",
      "", 0, 0 },
    { "ObjectType", "type A { }", "Syntax Error: Expected Name, found \"}\".", 1, 10 },
    { "ObjectType", "type A { b }", "Syntax Error: Expected \":\", found \"}\".", 1, 12 },
    { "ObjectType", "type A { b: }", "Syntax Error: Expected Name, found \"}\".", 1, 13 },
    { "ObjectType", "type A { b(): C }", "Syntax Error: Expected Name, found \")\".", 1, 12 },
    { "ObjectType", "type A implements { b: C }", "Syntax Error: Expected Name, found \"{\".", 1,
      19 },
    { "ObjectType", "extend type A", "Syntax Error: Unexpected <EOF>.", 1, 14 },
    { "InterfaceType", "interface A implements B { c: D } extend interface A @b", "", 0, 0 },
    { "InterfaceType", "interface", "Syntax Error: Expected Name, found <EOF>.", 1, 10 },
    { "InterfaceType", "extend interface A", "Syntax Error: Unexpected <EOF>.", 1, 19 },
    { "UnionType", "union A = B | C union D = | E union F extend union A = G", "", 0, 0 },
    { "UnionType", "union A = ", "Syntax Error: Expected Name, found <EOF>.", 1, 11 },
    { "UnionType", "union A = B |", "Syntax Error: Expected Name, found <EOF>.", 1, 14 },
    { "UnionType", "extend union A", "Syntax Error: Unexpected <EOF>.", 1, 15 },
    { "EnumType", "enum A { \"b\" B @c C } extend enum A { D }", "", 0, 0 },
    { "EnumType", "enum A { }", "Syntax Error: Expected Name, found \"}\".", 1, 10 },
    { "EnumType", "enum A { true }",
      "Syntax Error: Name \"true\" is reserved and cannot be used for an "
      "enum value.",
      1, 10 },
    { "EnumType", "enum A { B: C }", "Syntax Error: Expected Name, found \":\".", 1, 11 },
    { "EnumType", "extend enum A", "Syntax Error: Unexpected <EOF>.", 1, 14 },
    { "InputType", "input A { \"b\" b: C = 1 @d } extend input A { e: F }", "", 0, 0 },
    { "InputType", "input A { }", "Syntax Error: Expected Name, found \"}\".", 1, 11 },
    { "InputType", "input A { b(c: D): E }", "Syntax Error: Expected \":\", found \"(\".", 1, 12 },
    { "InputType", "extend input A", "Syntax Error: Unexpected <EOF>.", 1, 15 },
    { "DirectiveDefinition",
      "\"d\" directive @a(b: C = 1) repeatable on FIELD | QUERY directive "
      "@d on | SCHEMA",
      "", 0, 0 },
    { "DirectiveDefinition", "directive a on FIELD",
      "Syntax Error: Expected \"@\", found Name \"a\".", 1, 11 },
    { "DirectiveDefinition", "directive @a on", "Syntax Error: Expected Name, found <EOF>.", 1,
      16 },
    { "DirectiveDefinition", "directive @a on NOWHERE",
      "Syntax Error: Unexpected Name \"NOWHERE\".", 1, 17 },
    { "DirectiveDefinition", "directive @a FIELD",
      "Syntax Error: Expected \"on\", found Name \"FIELD\".", 1, 14 },
    { "DirectiveDefinition", "extend directive @a", "Syntax Error: Unexpected Name \"directive\".",
      1, 8 },
};

/* Whether a reply shows the first error there, and nowhere else. */
static bool is_at(const struct errors *errors, const char *text, unsigned line, unsigned column)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    char want[80];

    errors_write(errors, text, strlen(text), &w);
    (void)snprintf(want, sizeof(want), "\"locations\":[{\"line\":%u,\"column\":%u}]", line, column);
    return strstr(out.data, want) != NULL;
}

static void test_grammar(void **state)
{
    static const struct gql_limits limits;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        AQ_CLEANUP(document_unrefp) struct gql_document *doc = NULL;
        struct errors errors = { .arena = &arena };
        size_t len = strlen(rows[i].text);

        doc = document_parse(rows[i].text, len, &limits, false, &errors);
        assert_row(!doc == !!*rows[i].message, "%s: %s\n%s", rows[i].production, rows[i].text,
                   doc ? "" : errors.first->message);
        if (doc)
            continue;
        assert_row(strcmp(errors.first->message, rows[i].message) == 0, "%s: %s\n got %s",
                   rows[i].production, rows[i].text, errors.first->message);
        assert_row(is_at(&errors, rows[i].text, rows[i].line, rows[i].column), "%s: not at %u:%u",
                   rows[i].text, rows[i].line, rows[i].column);
    }
}

/* What strings mean: escapes, block strings and their common indentation. */
static void test_strings(void **state)
{
    static const struct {
        const char *text, *value;
    } strings[] = {
        { "\"\"", "" },
        { "\"a\\tb\\n\\\"\\\\\\/\\b\\f\\r\"", "a\tb\n\"\\/\b\f\r" },
        { "\"\\u00e9 \\uD83D\\uDE00 \\u{1F600} \\u{1}x\"", "\xc3\xa9 \xf0\x9f\x98\x80 "
                                                           "\xf0\x9f\x98\x80 \x01x" },
        { "\"\"\"\"\"\"", "" },
        { "\"\"\" one line \"\"\"", " one line " },
        { "\"\"\"\n    Hello,\n      World!\n\n    Yours,\n      GraphQL.\n  \"\"\"",
          "Hello,\n  World!\n\nYours,\n  GraphQL." },
        { "\"\"\"first\n    second\n      third\"\"\"", "first\nsecond\n  third" },
        { "\"\"\"\r\n\tx\r\ty\r\n\"\"\"", "x\ny" },
        { "\"\"\"contains \\\"\"\" quotes\"\"\"", "contains \"\"\" quotes" },
        { "\"\"\"raw \\n \\u00e9\"\"\"", "raw \\n \\u00e9" },
        { "\"\"\"\n\n   \n\"\"\"", "" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(strings); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct errors errors = { .arena = &arena };
        struct lexer lexer = { strings[i].text, (uint32_t)strlen(strings[i].text), 0, &arena,
                               &errors };
        struct token token;

        assert_row(lexer_next(&lexer, &token), "%s", strings[i].text);
        assert_row(strcmp(token.text, strings[i].value) == 0, "%s gives %s", strings[i].text,
                   token.text);
        assert_int_equal(lexer.at, lexer.len);
    }
}

/* Resolvers have texts as C strings: NUL would cut them. */
static void test_nul(void **state)
{
    static const struct {
        const char *text;
        size_t len;
    } strings[] = {
#define TEXT(literal) { literal, sizeof(literal) - 1 }
        TEXT("\"nula\\u0000other\""),
        TEXT("\"\\u{0}\""),
        TEXT("\"a\\u{0000}b\""),
        TEXT("\"\\\\\\u0000\""),
        TEXT("\"a\0b\""),
        TEXT("\"a\0"),
        TEXT("\"\"\"a\0b\"\"\""),
        TEXT("\"\"\"\\\"\"\"\0\"\"\""),
        TEXT("\"\"\"a\0"),
#undef TEXT
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(strings); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct errors errors = { .arena = &arena };
        struct lexer lexer = { strings[i].text, (uint32_t)strings[i].len, 0, &arena, &errors };
        struct token token;

        assert_row(!lexer_next(&lexer, &token), "%s", strings[i].text);
        assert_string_equal(errors.first->message,
                            "Syntax Error: A string must not contain NUL (U+0000).");
    }
}

/* Lines end at \n, \r\n and \r; columns count UTF-16 code units. */
static void test_places(void **state)
{
    static const char text[] = "a\nb\r\nc\rd \xc3\xa9\xf0\x9f\x98\x80x";
    static const struct {
        uint32_t at;
        unsigned line, column;
    } places[] = { { 0, 1, 1 }, { 2, 2, 1 }, { 5, 3, 1 }, { 7, 4, 1 }, { sizeof(text) - 2, 4, 6 } };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(places); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct errors errors = { .arena = &arena };

        (void)errors_add(&errors, places[i].at, "here");
        assert_true(is_at(&errors, text, places[i].line, places[i].column));
    }
}

static void test_encoding(void **state)
{
    static const struct {
        const char *text, *message;
        uint32_t at;
    } cases[] = {
        { "{ a \xff }", "Syntax Error: Invalid UTF-8: byte 0xFF.", 4 },
        { "{ a(b: \"\xed\xa0\x80\") }", "Syntax Error: Invalid UTF-8: byte 0xED.", 8 },
        { "# \xc3", "Syntax Error: Invalid UTF-8: byte 0xC3.", 2 },
    };
    static const struct gql_limits limits;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct errors errors = { .arena = &arena };

        assert_null(document_parse(cases[i].text, strlen(cases[i].text), &limits, false, &errors));
        assert_string_equal(errors.first->message, cases[i].message);
        assert_int_equal(errors.first->at[0], cases[i].at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grammar), cmocka_unit_test(test_strings),  cmocka_unit_test(test_nul),
        cmocka_unit_test(test_places),  cmocka_unit_test(test_encoding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
