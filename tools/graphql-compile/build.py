# SPDX-License-Identifier: Apache-2.0
"""Definitions into a schema: names resolved, types in the order of graphql-js."""

from parse import NON_NULL, Input, Member, SchemaError


def directive_value(directives, name, argument):
    """Whether the directive is there, and the text of its argument (None: absent or null)."""
    for directive in directives:
        if directive.name == name:
            given = [value for key, value in directive.args
                     if key == argument and value.kind != "Null"]
            if given and given[0].kind != "String":
                raise SchemaError(given[0].at, f"The {argument} of @{name} must be a string.")
            return True, given[0].value if given else None
    return False, None


def is_system(made):
    return made.name.startswith("__")


class Schema:
    """Of the schema's own definitions and the language's."""

    def __init__(self, own, prelude):
        self.own, self.description, self.named = own, None, {}
        for definitions in (prelude, own):
            self.declare([made for made in definitions if made.kind not in ("SCHEMA", "DIRECTIVE")])
        for made in self.named.values():
            self.resolve(made)
        self.directives = self.find_directives(prelude)
        self.roots = self.find_roots()
        self.types = self.order()
        self.number()

    def find(self, name):
        if name not in self.named:
            raise SchemaError(name.at, f'Unknown type "{name}".')
        return self.named[name]

    @staticmethod
    def check_name(owner, name, have=(), what=None):
        """A name that 'owner' introduces, next to those that it has."""
        if any(name == other.name for other in have):
            raise SchemaError(name.at, f"{what} can only be defined once.")
        if name.startswith("__") and not owner.is_builtin:
            raise SchemaError(name.at, f'Name "{name}" must not begin with "__", which is reserved '
                                       "by GraphQL introspection.")

    def declare(self, definitions):
        for made in definitions:
            have = self.named.get(made.name)
            if made.extends or (have and have.is_builtin and not made.is_builtin):
                continue  # the language's types cannot be redefined, only repeated
            if have:
                raise SchemaError(made.name.at,
                                  f'There can be only one type named "{made.name}".')
            self.check_name(made, made.name)
            self.named[made.name] = made
        for made in definitions:
            have = self.named.get(made.name)
            if not made.extends:
                continue
            if not have or have.is_builtin:
                raise SchemaError(made.name.at,
                                  f'Cannot extend type "{made.name}" because it is not defined.')
            if have.kind != made.kind:
                raise SchemaError(made.at,
                                  f'Cannot extend type "{made.name}" as another kind of type.')
            for part in ("directives", "types", "members", "inputs"):
                getattr(have, part).extend(getattr(made, part))

    def resolve_item(self, item):
        if item.type:
            item.type = self.find(item.type[0]), item.type[1]
        found, reason = directive_value(item.directives, "deprecated", "reason")
        if found:
            item.deprecated = "No longer supported" if reason is None else reason

    def resolve_inputs(self, owner, inputs, what, prefix=""):
        for i, item in enumerate(inputs):
            self.check_name(owner, item.name, inputs[:i], f'{what} "{prefix}{item.name}"')
            self.resolve_item(item)

    def resolve(self, made):
        """Types instead of their names."""
        made.specified_by = directive_value(made.directives, "specifiedBy", "url")[1]
        made.one_of = directive_value(made.directives, "oneOf", None)[0]
        found = [self.find(name) for name in made.types]
        made.interfaces, made.possible = ([], found) if made.kind == "UNION" else (found, [])
        self.resolve_inputs(made, made.inputs, "Field", f"{made.name}.")
        what = "Enum value" if made.kind == "ENUM" else "Field"
        for i, member in enumerate(made.members):
            self.check_name(made, member.name, made.members[:i],
                            f'{what} "{made.name}.{member.name}"')
            member.parent = made
            self.resolve_item(member)
            self.resolve_inputs(made, member.args, "Argument")

    def find_directives(self, prelude):
        """The schema's own, then those of the language that it does not define itself."""
        found = {}
        for made in self.own + prelude:
            if made.kind != "DIRECTIVE" or (made.is_builtin and made.name in found):
                continue
            if made.name in found:
                raise SchemaError(made.name.at,
                                  f'There can be only one directive named "@{made.name}".')
            self.check_name(made, made.name)
            self.resolve_inputs(made, made.inputs, "Argument")
            found[made.name] = made
        return found

    def find_roots(self):
        parts = [made for made in self.own if made.kind == "SCHEMA"]
        defined = [made for made in parts if not made.extends]
        roots = {}
        if len(defined) > 1:
            raise SchemaError(defined[1].at, "Must provide only one schema definition.")
        for word, name in [root for made in parts for root in made.roots.items()]:
            found = self.find(name)
            if word in roots:
                raise SchemaError(name.at, f"There can be only one {word} type in schema.")
            if found.kind != "OBJECT":
                raise SchemaError(name.at, f"The {word} root type must be an object type, not "
                                           f"{name}.")
            roots[word] = found
        if defined:
            self.description = defined[0].description
        for name in () if defined else ("Query", "Mutation", "Subscription"):
            found = self.named.get(name)
            if found and found.kind != "OBJECT":
                raise SchemaError(found.name.at, f"{name} root type must be an object type.")
            if found:
                roots[name.lower()] = found
        if "query" not in roots:
            raise SchemaError(None, "Query root type must be provided.")
        return roots

    def order(self):
        """The schema's own types in the order of the text, the language's as soon as anything
        before names them.
        """
        types = []
        own = [self.named[made.name] for made in self.own
               if made.kind not in ("SCHEMA", "DIRECTIVE") and not made.extends]

        def collect(made):
            if made in types:
                return
            types.append(made)
            found = made.possible + made.interfaces
            for member in made.members:
                if member.type:
                    found += [member.type[0], *(item.type[0] for item in member.args)]
            for other in found + [item.type[0] for item in made.inputs]:
                if other not in own:
                    collect(other)

        for made in own:
            collect(made)
        for directive in self.directives.values():
            for item in directive.inputs:
                collect(item.type[0])
        collect(self.named["__Schema"])
        return types

    def number(self):
        """Ids of types and fields, the objects of each interface, and the fields of every query."""
        for i, made in enumerate(self.types):
            made.id = i
            for interface in made.interfaces if made.kind == "OBJECT" else ():
                if interface.kind == "INTERFACE":  # the rest is refused by the checks
                    interface.possible.append(made)
        string, query = self.named["String"], self.roots["query"]
        self.meta = [
            Member("__typename", "The name of the current Object type at runtime.", [], [],
                   (string, NON_NULL)),
            Member("__schema", "Access the current type schema of this server.", [], [],
                   (self.named["__Schema"], NON_NULL), parent=query),
            Member("__type", "Request the type information of a single type.", [],
                   [Input("name", None, (string, NON_NULL), None, [])], (self.named["__Type"], 0),
                   parent=query),
        ]
        objects = [made for made in self.types if made.kind == "OBJECT"]
        fields = [member for made in sorted(objects, key=is_system) for member in made.members]
        for i, member in enumerate(fields + self.meta):
            member.id = i
        self.field_count = sum(not is_system(member.parent) for member in fields)
        self.all_field_count = len(fields + self.meta)
