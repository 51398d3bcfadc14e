# SPDX-License-Identifier: Apache-2.0
"""Default values as values of their types: those of input types before what uses them."""

import decimal
import re

from check import show
from parse import LIST, NON_NULL, SchemaError

ABSENT, NULL = ("ABSENT", None), ("NULL", None)
NAMES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def untyped(literal):
    """The literal as JSON would have it, for scalars that are not the language's own."""
    kind, value = literal.kind, literal.value
    if kind == "Int" and -2 ** 63 <= int(value) < 2 ** 63:
        return "INT", int(value)
    if kind in ("Int", "Float"):
        return "FLOAT", float(value)
    if kind == "List":
        return "LIST", [untyped(item) for item in value]
    if kind == "Object":
        return "MAP", [(name, untyped(item)) for name, item in value]
    return {"Null": "NULL", "Boolean": "BOOL"}.get(kind, "STRING"), value


def scalar(name, literal):
    """The literal as a value of the scalar; ValueError if it has none."""
    kind, value = literal.kind, literal.value
    accepted = {"Int": ("Int",), "Float": ("Int", "Float"), "String": ("String",),
                "Boolean": ("Boolean",), "ID": ("String", "Int")}.get(name)
    if accepted and kind not in accepted:
        raise ValueError
    if name == "Int" and not -2 ** 31 <= int(value) < 2 ** 31:
        raise ValueError
    if name == "Float":
        return "FLOAT", float(value)
    if name == "ID":
        return "STRING", value
    made = untyped(literal)
    if name == "BigInt" and made[0] != "INT":
        raise ValueError
    if name in ("DateTime", "JSONString", "UUID"):
        raise SchemaError(literal.at, f"Default values of type {name} are not supported.")
    return made


def coerce(literal, ref):
    """The literal as a value of the type; ValueError if it has none."""
    made, wraps = ref
    if wraps & 3 == NON_NULL:
        if literal.kind == "Null":
            raise ValueError
        wraps >>= 2
    if literal.kind == "Null":
        return NULL
    if wraps & 3 == LIST:
        items = literal.value if literal.kind == "List" else [literal]
        return "LIST", [coerce(item, (made, wraps >> 2)) for item in items]
    if made.kind == "ENUM":
        names = [member.name for member in made.members]
        return "ENUM", names.index(literal.kind == "Enum" and literal.value)
    if made.kind == "SCALAR":
        return scalar(made.name, literal)
    if literal.kind != "Object":
        raise ValueError
    given, items = dict(literal.value), []
    for item in made.inputs:
        items.append(coerce(given[item.name], item.type) if item.name in given
                     else item.default_value)
        if items[-1] == ABSENT and item.type[1] & 3 == NON_NULL:
            raise ValueError
    if made.one_of and (items.count(ABSENT) != len(items) - 1 or NULL in items):
        raise ValueError
    return "INPUT", items


def print_number(value):
    """As ECMAScript writes it."""
    sign, digits, exponent = decimal.Decimal(repr(value)).normalize().as_tuple()
    digits, point = "".join(map(str, digits)), len(digits) + exponent
    if value == 0:
        return "0"
    if len(digits) <= point <= 21:
        text = digits + "0" * (point - len(digits))
    elif 0 < point <= 21:
        text = f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = f"0.{'0' * -point}{digits}"
    else:
        text = f"{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{point - 1:+d}"
    return "-" * sign + text


def print_string(text):
    return '"' + re.sub(r'["\\\0-\x1f\x7f-\x9f]',
                        lambda found: NAMES.get(found[0]) or f"\\u{ord(found[0]):04X}", text) + '"'


def print_value(value, ref):
    """As introspection shows it; 'ref' is None for what is in a custom scalar."""
    kind, content = value
    made, wraps = ref or (None, 0)
    wraps = wraps >> 2 if wraps & 3 == NON_NULL else wraps
    if kind == "LIST":
        item = ref and (made, wraps >> 2 if wraps & 3 == LIST else wraps)
        return f"[{', '.join(print_value(one, item) for one in content)}]"
    if kind == "INPUT":
        return "{" + ", ".join(f"{item.name}: {print_value(one, item.type)}" for one, item
                               in zip(content, made.inputs) if one != ABSENT) + "}"
    if kind == "MAP":
        return "{" + ", ".join(f"{name}: {print_value(one, None)}" for name, one in content) + "}"
    if kind == "ENUM":
        return made.members[content].name
    if kind == "STRING":
        is_number = made and made.name == "ID" and re.fullmatch("-?(0|[1-9][0-9]*)", content)
        return content if is_number else print_string(content)
    return {"NULL": lambda _: "null", "BOOL": lambda it: str(it).lower(), "INT": str,
            "FLOAT": print_number}[kind](content)


def set_nested(literal, made, doing):
    """The defaults of the input types that a literal of the type is read as."""
    if literal.kind == "List":
        for item in literal.value:
            set_nested(item, made, doing)
    elif literal.kind == "Object" and made.kind == "INPUT":
        set_inputs(made, doing)
        types = {item.name: item.type[0] for item in made.inputs}
        for name, value in literal.value:
            if name in types:
                set_nested(value, types[name], doing)


def set_inputs(made, doing):
    if made in doing:
        raise SchemaError(made.name.at,
                          f'Default values of input type "{made.name}" need each other.')
    for item in made.inputs:
        set_default(item, [*doing, made])


def set_default(item, doing=()):
    if not item.default or item.default_text:
        return
    set_nested(item.default, item.type[0], doing)
    try:
        item.default_value = coerce(item.default, item.type)
    except ValueError:
        raise SchemaError(item.default.at, f'Default value of "{item.name}" is not of type '
                                           f'"{show(item.type)}".') from None
    item.default_text = print_value(item.default_value, item.type)


def set_all(schema):
    for made in schema.named.values():
        if made.kind == "INPUT":
            set_inputs(made, [])
        for member in made.members:
            for item in member.args:
                set_default(item)
    for made in schema.directives.values():
        for item in made.inputs:
            set_default(item)
