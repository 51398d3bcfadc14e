# SPDX-License-Identifier: Apache-2.0
"""What tools/graphql-compile refuses; tests/unit/graphql/test_schema.c has what it makes."""

import subprocess

from c_source import ROOT

TOOL = ROOT / "tools" / "graphql-compile" / "graphql-compile"
REFUSED = [
    ("type Query { a: Nope }",
     '1:17: Unknown type "Nope".'),
    ("type Query { a: Int } { a }",
     "1:23: A schema document cannot hold operations and fragments."),
    ("type A { a: Int }",
     "Query root type must be provided."),
    ("schema { query: A } input A { a: Int }",
     "1:17: The query root type must be an object type, not A."),
    ("type Query { a: Int } type Query { a: Int }",
     '1:28: There can be only one type named "Query".'),
    ("type Query { a: Int a: Int }",
     '1:21: Field "Query.a" can only be defined once.'),
    ("type Query { a(b: Int, b: Int): Int }",
     '1:24: Argument "b" can only be defined once.'),
    ("type Query { a: Int } enum E { A A }",
     '1:34: Enum value "E.A" can only be defined once.'),
    ("type Query { __a: Int }",
     '1:14: Name "__a" must not begin with "__", which is reserved by GraphQL introspection.'),
    ("type Query { a: I } input I { a: Int }",
     "1:6: The type of Query.a must be an output type, I is not."),
    ("type Query { a(b: Query): Int }",
     "1:6: The type of Query.a(b:) must be an input type, Query is not."),
    ("type Query",
     "1:6: Type Query must define one or more fields."),
    ("type Query { a: Int } union U",
     "1:29: Union type U must define one or more member types."),
    ("type Query { a: Int } union U = Int",
     "1:29: Union type U can only include Object types, it cannot include Int."),
    ("type Query implements I { a: Int } interface I { b: Int }",
     "1:6: Interface field I.b expected but Query does not provide it."),
    ("type Query implements I { b: String } interface I { b: Int }",
     "1:6: Interface field I.b is of a type that Query.b is not."),
    ("type Query implements I { b(c: Int!): Int } interface I { b: Int }",
     "1:6: Object field Query.b includes required argument c that is missing from the Interface "
     "field I.b."),
    ("type Query implements J { a: Int } interface I { a: Int } interface J implements I { a: "
     "Int }",
     "1:6: Type Query must implement I because it is implemented by J."),
    ("type Query { a: Int } interface I implements I { a: Int }",
     "1:33: Type I cannot implement itself because it would create a circular reference."),
    ("type Query implements Query { a: Int }",
     "1:6: Type Query must only implement Interface types, it cannot implement Query."),
    ("type Query { a: Int } input I { i: I! }",
     '1:29: Cannot reference Input Object "I" within itself through a series of non-null fields.'),
    ("type Query { a: Int } input I { i: I = {} }",
     '1:29: Default values of input type "I" need each other.'),
    ('type Query { a(b: Int = "x"): Int }',
     '1:25: Default value of "b" is not of type "Int".'),
    ("type Query { a: Int @nope }",
     '1:21: Unknown directive "@nope".'),
    ("type Query @skip(if: true) { a: Int }",
     '1:12: Directive "@skip" may not be used on OBJECT.'),
    ("scalar S @specifiedBy type Query { a: S }",
     '1:10: Directive "@specifiedBy" argument "url" of type "String!" is required, but it was '
     'not provided.'),
    ("type Query { a(b: Int! @deprecated): Int }",
     "1:6: Required Query.a(b:) cannot be deprecated."),
    ("extend type Nope { a: Int } type Query { a: Int }",
     '1:13: Cannot extend type "Nope" because it is not defined.'),
    ("extend input Query { b: Int } type Query { a: Int }",
     '1:1: Cannot extend type "Query" as another kind of type.'),
    ("type Query { a: Int } input I @oneOf { a: Int! }",
     "1:29: OneOf input field I.a must be nullable."),
    ("directive @a(b: Query) on FIELD type Query { a: Int }",
     "The type of @a(b:) must be an input type, Query is not."),
    ("type Query {",
     "1:13: Syntax Error: Expected Name, found <EOF>."),
    ('type Query { a(b: UUID = "0"): Int } scalar UUID',
     "1:26: Default values of type UUID are not supported."),
    ('type Query { a(b: Int = "\\x"): Int }', '1:26: Syntax Error: Invalid escape sequence: "\\x".'),
    ('"text', "1:1: Syntax Error: Unterminated string."),
    ("type Query { a(b: Int = 01): Int }", "1:25: Syntax Error: Invalid number."),
    ("type Qu\u00e9ry", "1:8: Syntax Error: Unexpected character: U+00E9."),
]


def compile_schema(folder, text):
    (folder / "it.graphql").write_text(text, encoding="utf-8")
    return subprocess.run([TOOL, "it.graphql", "it.h", "it.c", "it.d"], cwd=folder,
                          capture_output=True, text=True)


def test_refused_schemas_with_line_and_column(tmp_path):
    for text, message in REFUSED:
        done = compile_schema(tmp_path, text)
        assert (done.returncode, done.stderr) == (1, f"it.graphql:{message}\n"), text
    assert not (tmp_path / "it.h").exists()


def test_parts_of_the_tool_are_dependencies(tmp_path):
    """So that a build makes the tables again when the tool has changed."""
    assert compile_schema(tmp_path, "type Query { a: Int }").returncode == 0
    listed = (tmp_path / "it.d").read_text().split(":")[1].split()
    assert sorted(listed) == sorted(map(str, [TOOL, *TOOL.parent.glob("*.*")]))
