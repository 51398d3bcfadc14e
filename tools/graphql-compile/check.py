# SPDX-License-Identifier: Apache-2.0
"""What must hold for directives and types, by the specification's type system."""

from parse import LIST, NON_NULL, SchemaError


def show(ref):
    """[Int!]! as in the text."""
    made, wraps = ref
    inner = f"[{show((made, wraps >> 2))}]" if wraps & 3 == LIST else None
    return inner or (show((made, wraps >> 2)) + "!" if wraps else made.name)


def is_required(item):
    return item.type[1] & 3 == NON_NULL and not item.default


def check_directives(schema, directives, location):
    for i, directive in enumerate(directives):
        made, at, name = schema.directives.get(directive.name), directive.at, directive.name
        given = [key for key, _ in directive.args]
        if not made:
            raise SchemaError(at, f'Unknown directive "@{name}".')
        if location not in made.locations:
            raise SchemaError(at, f'Directive "@{name}" may not be used on {location}.')
        if not made.is_repeatable and name in [other.name for other in directives[:i]]:
            raise SchemaError(at, f'The directive "@{name}" can only be used once at this location.')
        for n, key in enumerate(given):
            if key not in [item.name for item in made.inputs]:
                raise SchemaError(key.at, f'Unknown argument "{key}" on directive "@{name}".')
            if key in given[:n]:
                raise SchemaError(key.at, f'There can be only one argument named "{key}".')
        for item in made.inputs:
            if is_required(item) and item.name not in given:
                raise SchemaError(at, f'Directive "@{name}" argument "{item.name}" of type '
                                      f'"{show(item.type)}" is required, but it was not provided.')


def check_all_directives(schema):
    for made in schema.own:
        if made.kind != "DIRECTIVE":
            check_directives(schema, made.directives,
                             "INPUT_OBJECT" if made.kind == "INPUT" else made.kind)
        for item in made.inputs:
            check_directives(schema, item.directives, "INPUT_FIELD_DEFINITION"
                             if made.kind == "INPUT" else "ARGUMENT_DEFINITION")
        for member in made.members:
            check_directives(schema, member.directives,
                             "ENUM_VALUE" if made.kind == "ENUM" else "FIELD_DEFINITION")
            for item in member.args:
                check_directives(schema, item.directives, "ARGUMENT_DEFINITION")


def is_input_type(made):
    return made.kind in ("SCALAR", "ENUM", "INPUT")


def check_inputs(owner, place, inputs):
    for item in inputs:
        if not is_input_type(item.type[0]):
            raise SchemaError(owner.name.at, f"The type of {place}({item.name}:) must be an input "
                                             f"type, {item.type[0].name} is not.")
        if is_required(item) and item.deprecated is not None:
            raise SchemaError(owner.name.at,
                              f"Required {place}({item.name}:) cannot be deprecated.")


def is_subtype(sub, sup):
    """Whether "field: sub" may stand where an interface says "field: sup"."""
    (made, wraps), (want, want_wraps) = sub, sup
    if not wraps and not want_wraps:
        return made in (want, *want.possible) or (want in made.interfaces
                                                  and made.kind == want.kind == "INTERFACE")
    if wraps & 3 == want_wraps & 3:
        return is_subtype((made, wraps >> 2), (want, want_wraps >> 2))
    return wraps & 3 == NON_NULL and is_subtype((made, wraps >> 2), sup)


def check_implements(made, interface):
    def refuse(problem):
        raise SchemaError(made.name.at, problem)

    for other in interface.interfaces:
        if other is made:
            refuse(f"Type {made.name} cannot implement {interface.name} because it would create a "
                   "circular reference.")
        if other not in made.interfaces:
            refuse(f"Type {made.name} must implement {other.name} because it is implemented by "
                   f"{interface.name}.")
    for want in interface.members:
        have = next((member for member in made.members if member.name == want.name), None)
        wanted, here = f"{interface.name}.{want.name}", f"{made.name}.{want.name}"
        if not have:
            refuse(f"Interface field {wanted} expected but {made.name} does not provide it.")
        if not is_subtype(have.type, want.type):
            refuse(f"Interface field {wanted} is of a type that {here} is not.")
        args = {item.name: item for item in have.args}
        for item in want.args:
            if item.name not in args:
                refuse(f"Interface field argument {wanted}({item.name}:) expected but {here} does "
                       "not provide it.")
            if args.pop(item.name).type != item.type:
                refuse(f"Interface field argument {wanted}({item.name}:) is of another type in "
                       f"{here}.")
        for item in filter(is_required, args.values()):
            refuse(f"Object field {here} includes required argument {item.name} that is missing "
                   f"from the Interface field {wanted}.")


def check_fields(made):
    name, at = made.name, made.name.at
    if not made.members:
        raise SchemaError(at, f"Type {name} must define one or more fields.")
    for member in made.members:
        if member.type[0].kind == "INPUT":
            raise SchemaError(at, f"The type of {name}.{member.name} must be an output type, "
                                  f"{member.type[0].name} is not.")
        check_inputs(made, f"{name}.{member.name}", member.args)
    for i, interface in enumerate(made.interfaces):
        if interface.kind != "INTERFACE":
            raise SchemaError(at, f"Type {name} must only implement Interface types, it cannot "
                                  f"implement {interface.name}.")
        if interface is made:
            raise SchemaError(at, f"Type {name} cannot implement itself because it would create a "
                                  "circular reference.")
        if interface in made.interfaces[:i]:
            raise SchemaError(at, f"Type {name} can only implement {interface.name} once.")
        check_implements(made, interface)


def check_union(made):
    name, at = made.name, made.name.at
    if not made.possible:
        raise SchemaError(at, f"Union type {name} must define one or more member types.")
    for i, other in enumerate(made.possible):
        if other in made.possible[:i]:
            raise SchemaError(at, f"Union type {name} can only include type {other.name} once.")
        if other.kind != "OBJECT":
            raise SchemaError(at, f"Union type {name} can only include Object types, it cannot "
                                  f"include {other.name}.")


def check_input(made):
    name, at = made.name, made.name.at
    if not made.inputs:
        raise SchemaError(at, f"Input Object type {name} must define one or more fields.")
    for item in made.inputs if made.one_of else ():
        if item.type[1] & 3 == NON_NULL:
            raise SchemaError(at, f"OneOf input field {name}.{item.name} must be nullable.")
        if item.default:
            raise SchemaError(at, f"OneOf input field {name}.{item.name} cannot have a default "
                                  "value.")
    check_inputs(made, name, made.inputs)
    needed = [made]  # the types that a value must hold: what non-null fields lead to
    for other in needed:
        found = [item.type[0] for item in other.inputs if item.type[1] == NON_NULL]
        if made in found:
            raise SchemaError(at, f'Cannot reference Input Object "{name}" within itself through a '
                                  "series of non-null fields.")
        needed += [kind for kind in dict.fromkeys(found) if kind not in needed]


def check(schema):
    check_all_directives(schema)
    for made in schema.types:
        if made.is_builtin:
            continue
        if made.kind in ("OBJECT", "INTERFACE"):
            check_fields(made)
        elif made.kind == "UNION":
            check_union(made)
        elif made.kind == "INPUT":
            check_input(made)
        elif made.kind == "ENUM" and not made.members:
            raise SchemaError(made.name.at, f"Enum type {made.name} must define one or more values.")
    for made in schema.directives.values():
        for item in made.inputs:
            if not is_input_type(item.type[0]):
                raise SchemaError(None, f"The type of @{made.name}({item.name}:) must be an input "
                                        f"type, {item.type[0].name} is not.")
