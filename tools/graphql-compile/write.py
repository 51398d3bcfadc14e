# SPDX-License-Identifier: Apache-2.0
"""A schema as the tables of src/graphql/schema.h."""

from build import is_system
from parse import LOCATIONS

SCALARS = ("Int", "Float", "String", "Boolean", "ID", "BigInt", "DateTime", "JSONString", "UUID")


def string(text):
    if text is None:
        return "NULL"
    return '"' + "".join(f"\\{chr(c)}" if c in b'"\\?' else
                         chr(c) if 0x20 <= c < 0x7f else f"\\{c:03o}" for c in text.encode()) + '"'


def ref(kind):
    return f"{{ &types[{kind[0].id}], {kind[1]:#x} }}"


def value(of):
    kind, content = of
    text = {"BOOL": lambda: f".boolean = {content:d}",
            "INT": lambda: f".integer = INT64_C({content})",
            "ENUM": lambda: f".integer = {content}",
            "FLOAT": lambda: f".real = {content:.17g}",
            "STRING": lambda: f".count = {len(content.encode())}, .text = {string(content)}"}
    if kind in text:
        return f"{{ .kind = GQL_{kind}, {text[kind]()} }}"
    if kind in ("ABSENT", "NULL"):
        return f"{{ .kind = GQL_{kind} }}"
    items = (", ".join(value(item) for item in content) if kind != "MAP" else
             ", ".join(f"{{ {string(name)}, {value(item)} }}" for name, item in content))
    member, item = ("members", "gql_member") if kind == "MAP" else ("items", "gql_value")
    return (f"{{ .kind = GQL_{kind}, .count = {len(content)}, "
            f".{member} = (const struct {item}[]){{ {items or '{ 0 }'} }} }}")


def array(kind, name, rows):
    """Nothing where there are no rows: C has no empty arrays."""
    lines = "".join(f"    {row},\n" for row in rows)
    return f"static const {kind} {name}[] = {{\n{lines}}};\n" if rows else ""


def numbers(name, items):
    return f"static const uint16_t {name}[] = {{ {', '.join(map(str, items))} }};\n" if items else ""


def by_name(name, items):
    return numbers(name, sorted(range(len(items)), key=lambda i: items[i].name))


def inputs(name, items):
    return array("struct gql_input_def", name, [
        f"{{ {string(item.name)}, {string(item.description)}, {string(item.deprecated)}, "
        f"{ref(item.type)}, {value(item.default_value)}, {string(item.default_text)} }}"
        for item in items])


def fields(name, members):
    """The fields' array, after those of their arguments."""
    args = "".join(inputs(f"{name}_args_{i}", member.args) for i, member in enumerate(members))
    return args + array("struct gql_field_def", name, [
        f"{{ {string(member.name)}, {string(member.description)}, {string(member.deprecated)}, "
        f"{f'&types[{member.parent.id}]' if member.parent else 'NULL'}, {ref(member.type)}, "
        f"{f'{name}_args_{i}' if member.args else 'NULL'}, {len(member.args)}, {member.id} }}"
        for i, member in enumerate(members)])


def type_arrays(made):
    """The arrays of a type, and the members of struct gql_type that lead to them."""
    i = made.id
    members = made.members if made.kind != "ENUM" else []
    values = made.members if made.kind == "ENUM" else []
    types = {"interfaces": made.interfaces, "possible": made.possible}
    arrays = (fields(f"fields_{i}", members) + by_name(f"fields_by_name_{i}", members)
              + inputs(f"inputs_{i}", made.inputs)
              + array("struct gql_enum_def", f"values_{i}", [
                  f"{{ {string(member.name)}, {string(member.description)}, "
                  f"{string(member.deprecated)} }}" for member in values])
              + "".join(array("struct gql_type *const", f"{name}_{i}",
                              [f"&types[{other.id}]" for other in others])
                        for name, others in types.items()))
    counts = {"field_count": ("fields", members), "input_count": ("inputs", made.inputs),
              "value_count": ("values", values), "interface_count": ("interfaces", made.interfaces),
              "possible_count": ("possible", made.possible)}
    leads = "".join(f"      .{name} = {name}_{i}, .{count} = {len(items)},\n"
                    for count, (name, items) in counts.items() if items)
    if members:
        leads += f"      .fields_by_name = fields_by_name_{i},\n"
    return arrays, leads


def all_types(schema):
    count, arrays, rows = len(schema.types), "", ""
    for made in schema.types:
        scalar = made.name.upper() if made.name in SCALARS and made.kind == "SCALAR" else "OTHER"
        more, leads = type_arrays(made)
        arrays += more
        rows += (f"    {{ .kind = GQL_TYPE_{made.kind}, .scalar = GQL_SCALAR_{scalar}, "
                 f".one_of = {made.one_of:d}, .id = {made.id + 1}, .name = {string(made.name)},\n"
                 f"      .description = {string(made.description)},\n"
                 f"      .specified_by = {string(made.specified_by)},\n{leads}    }},\n")
    return (f"static const struct gql_type types[{count}];\n{arrays}"
            f"static const struct gql_type types[{count}] = {{\n{rows}}};\n"
            + array("struct gql_type *const", "all", [f"&types[{i}]" for i in range(count)])
            + by_name("by_name", schema.types))


def directives(schema):
    arrays, rows = "", []
    for i, made in enumerate(schema.directives.values()):
        arrays += inputs(f"directive_args_{i}", made.inputs)
        arrays += (f"static const uint8_t locations_{i}[] = "
                   f"{{ {', '.join(f'LOCATION_{name}' for name in made.locations)} }};\n")
        args = f"directive_args_{i}" if made.inputs else "NULL"
        rows.append(f"{{ {string(made.name)}, {string(made.description)}, {args}, "
                    f"{len(made.inputs)}, "
                    f"{' | '.join(f'1u << LOCATION_{name}' for name in made.locations)}, "
                    f"locations_{i}, {len(made.locations)}, {made.is_repeatable:d} }}")
    return arrays + array("struct gql_directive_def", "directives", rows)


def tables(schema, name):
    roots = "".join(f"    .{word} = &types[{made.id}],\n" for word, made in schema.roots.items())
    return (f'/* Made from {name}.graphql. */\n#include "{name}.h"\n\n#include "graphql/ast.h"\n\n'
            + all_types(schema) + directives(schema) + fields("meta", schema.meta)
            + f"const struct gql_schema {name}_schema = {{\n"
            f"    .description = {string(schema.description)},\n"
            f"    .types = all,\n    .types_by_name = by_name,\n"
            f"    .type_count = {len(schema.types)},\n"
            f"    .directives = directives,\n    .directive_count = {len(schema.directives)},\n"
            f"    .meta = meta,\n    .field_count = {schema.field_count},\n"
            f"    .all_field_count = {schema.all_field_count},\n{roots}}};\n")


def names(schema, name):
    """The header: see main."""
    upper, own = name.upper(), [made for made in schema.types if not is_system(made)]
    objects = [made for made in own if made.kind == "OBJECT"]
    members = []
    for made in own:
        if made.kind == "OBJECT":
            members += [(f"ARG_{made.name}_{member.name}_{item.name}", i) for member in made.members
                        for i, item in enumerate(member.args)]
        members += [(f"INPUT_{made.name}_{item.name}", i) for i, item in enumerate(made.inputs)]
        if made.kind == "ENUM":
            members += [(f"VALUE_{made.name}_{member.name}", i)
                        for i, member in enumerate(made.members)]
    groups = [
        [(f"TYPE_{made.name}", made.id + 1) for made in own],
        [(f"FIELD_{made.name}_{member.name}", member.id)
         for made in objects for member in made.members] + [("FIELD_COUNT", schema.field_count)],
        [*members, ("MEMBER_COUNT", len(members))],  # which keeps the enum from being empty
    ]
    enums = "\n".join("enum {\n" + "".join(f"    {upper}_{key} = {number},\n"
                                           for key, number in group) + "};\n" for group in groups)
    return (f"/* Made from {name}.graphql. */\n#ifndef {upper}_GRAPHQL_H\n"
            f'#define {upper}_GRAPHQL_H\n\n#include "graphql/schema.h"\n\n'
            f"extern const struct gql_schema {name}_schema;\n\n{enums}\n#endif\n")
