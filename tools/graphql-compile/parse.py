# SPDX-License-Identifier: Apache-2.0
"""Schema text into definitions, with the messages of graphql-js."""

import re
from dataclasses import dataclass, field

TOKEN = re.compile(r'''(?:[\ufeff\ \t\r\n,]|\#[^\r\n]*)*(?:
    (?P<Name>[_A-Za-z][_A-Za-z0-9]*)
  | (?P<Float>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)(?![._A-Za-z0-9]))
  | (?P<Int>-?(?:0|[1-9][0-9]*)(?![._A-Za-z0-9]))
  | """(?P<BlockString>(?:\\"""|(?!""")[^\0])*)"""
  | "(?!"")(?P<String>(?:[^"\\\r\n\0]|\\[^\r\n\0])*)"
  | (?P<Punctuator>[!$&():=@[\]{|}]|\.\.\.)
  | (?P<EOF>\Z)
  | (?P<bad>.))''', re.VERBOSE | re.DOTALL)
ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,8})\}|(.))")
ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}

NON_NULL, LIST = 1, 2  # wrappers of a type: two bits each, the outermost lowest
KINDS = {"scalar": "SCALAR", "type": "OBJECT", "interface": "INTERFACE", "union": "UNION",
         "enum": "ENUM", "input": "INPUT"}
LOCATIONS = ["QUERY", "MUTATION", "SUBSCRIPTION", "FIELD", "FRAGMENT_DEFINITION",
             "FRAGMENT_SPREAD", "INLINE_FRAGMENT", "VARIABLE_DEFINITION", "SCHEMA", "SCALAR",
             "OBJECT", "FIELD_DEFINITION", "ARGUMENT_DEFINITION", "INTERFACE", "UNION", "ENUM",
             "ENUM_VALUE", "INPUT_OBJECT", "INPUT_FIELD_DEFINITION"]


class SchemaError(Exception):
    """What is wrong, and the offset where; None = nowhere in particular."""

    def __init__(self, at, message):
        super().__init__(message)
        self.at = at


class Name(str):
    """A name in the text and its offset."""

    def __new__(cls, text, at):
        name = super().__new__(cls, text)
        name.at = at
        return name


@dataclass(eq=False)
class Value:
    """A literal. 'value': text, bool, list of Values, or list of (Name, Value)."""
    kind: str
    at: int
    value: object = None


@dataclass(eq=False)
class Directive:
    at: int
    name: Name
    args: list  # of (Name, Value)


@dataclass(eq=False)
class Input:
    """An argument, or a field of an input type."""
    name: Name
    description: str
    type: tuple  # of Name (of Definition, once built) and wrappers
    default: Value
    directives: list
    deprecated: str = None
    default_value: tuple = ("ABSENT", None)  # coerced
    default_text: str = None


@dataclass(eq=False)
class Member:
    """A field, or a value of an enum."""
    name: Name
    description: str
    directives: list
    args: list = field(default_factory=list)
    type: tuple = None
    deprecated: str = None
    parent: object = None
    id: int = 0


@dataclass(eq=False)
class Definition:
    at: int
    description: str
    kind: str  # one of KINDS' values, DIRECTIVE or SCHEMA
    extends: bool
    is_builtin: bool
    name: Name = None
    directives: list = field(default_factory=list)
    types: list = field(default_factory=list)  # implemented interfaces, members of a union
    members: list = field(default_factory=list)
    inputs: list = field(default_factory=list)  # of a directive: its arguments
    locations: list = field(default_factory=list)
    is_repeatable: bool = False
    roots: dict = field(default_factory=dict)
    # what build.py adds
    interfaces: list = field(default_factory=list)
    possible: list = field(default_factory=list)
    specified_by: str = None
    one_of: bool = False
    id: int = 0


def unescape(text, at):
    def replace(found):
        code = int(found[1] or found[2] or "0", 16)
        if found[3] not in ESCAPED and not 0 < code < 0x110000:
            raise SchemaError(at + found.start(),
                              f'Syntax Error: Invalid escape sequence: "{found[0]}".')
        return ESCAPED.get(found[3]) or chr(code)

    try:  # \ud83d\ude00 is one character
        return ESCAPE.sub(replace, text).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise SchemaError(at, "Syntax Error: Invalid escape sequence: half of a surrogate pair."
                          ) from None


def dedent(text):
    """BlockStringValue() of the specification."""
    lines = re.split(r"\r\n|\n|\r", text.replace('\\"""', '"""'))
    indents = [len(line) - len(line.lstrip(" \t")) for line in lines[1:] if line.strip(" \t")]
    lines[1:] = [line[min(indents, default=0):] for line in lines[1:]]
    while lines and not lines[0].strip(" \t"):
        del lines[0]
    while lines and not lines[-1].strip(" \t"):
        del lines[-1]
    return "\n".join(lines)


class Parser:
    """The next token's 'kind' is as messages name it: Name, Int, "{", <EOF>."""

    def __init__(self, text, is_builtin):
        self.source, self.end, self.is_builtin = text, 0, is_builtin
        self.advance()

    def advance(self):
        found = TOKEN.match(self.source, self.end)
        self.kind, self.end = found.lastgroup, found.end()
        self.at, self.text = found.start(self.kind), found[self.kind]
        if self.kind == "bad":
            self.refuse_character()
        if self.kind == "String":
            self.text = unescape(self.text, self.at)
            self.at -= 1
        elif self.kind == "BlockString":
            self.text = dedent(self.text)
            self.at -= 3
        elif self.kind == "Punctuator":
            self.kind = f'"{self.text}"'
        elif self.kind == "EOF":
            self.kind = "<EOF>"

    def refuse_character(self):
        if self.text == '"':
            problem = "Unterminated string."
        elif self.text in "-0123456789":
            problem = "Invalid number."
        elif self.text == "'":
            problem = "Unexpected single quote character ('), did you mean to use a double quote (\")?"
        elif " " <= self.text <= "~":
            problem = f'Unexpected character: "{self.text}".'
        else:
            problem = f"Unexpected character: U+{ord(self.text):04X}."
        raise SchemaError(self.at, f"Syntax Error: {problem}")

    def describe(self):
        return self.kind if self.kind[0] in '"<' else f'{self.kind} "{self.text}"'

    def unexpected(self):
        return SchemaError(self.at, f"Syntax Error: Unexpected {self.describe()}.")

    def expected(self, what):
        return SchemaError(self.at, f"Syntax Error: Expected {what}, found {self.describe()}.")

    def is_word(self, *words):
        return self.kind == "Name" and self.text in words

    def take(self, kind):
        """Whether the next token was of that kind, and is taken."""
        return self.kind == kind and not self.advance()

    def take_word(self, word):
        return self.is_word(word) and not self.advance()

    def expect(self, kind):
        if not self.take(kind):
            raise self.expected(kind)

    def name(self):
        name = Name(self.text, self.at)
        self.expect("Name")
        return name

    def type(self):
        at = self.at
        if self.take('"["'):
            name, wraps = self.type()
            self.expect('"]"')
            if wraps >> 28:
                raise SchemaError(at, "Syntax Error: Type has more than 14 wrappers.")
            wraps = wraps << 2 | LIST
        else:
            name, wraps = self.name(), 0
        return name, wraps << 2 | NON_NULL if self.take('"!"') else wraps

    def arguments(self, close):
        args = []
        while not self.take(close):
            name = self.name()
            self.expect('":"')
            args.append((name, self.value()))
        return args

    def value(self):
        kind, at, text = self.kind, self.at, self.text
        if kind not in ("Int", "Float", "String", "BlockString", "Name", '"["', '"{"', '"$"'):
            raise self.unexpected()
        self.advance()
        if kind == '"["':
            items = []
            while not self.take('"]"'):
                items.append(self.value())
            return Value("List", at, items)
        if kind == '"{"':
            return Value("Object", at, self.arguments('"}"'))
        if kind == '"$"':
            raise SchemaError(at, "Syntax Error: Unexpected "
                              + (f'variable "${self.text}" in constant value.'
                                 if self.kind == "Name" else '"$".'))
        if kind != "Name":
            return Value(kind.replace("Block", ""), at, text)
        if text == "null":
            return Value("Null", at)
        if text in ("true", "false"):
            return Value("Boolean", at, text == "true")
        return Value("Enum", at, text)

    def directives(self):
        found = []
        while self.kind == '"@"':
            at = self.at
            self.advance()
            found.append(Directive(at, self.name(), []))
            if self.take('"("'):
                if self.kind == '")"':
                    raise self.expected("Name")
                found[-1].args = self.arguments('")"')
        return found

    def description(self):
        return self.value().value if self.kind in ("String", "BlockString") else None

    def block(self, opening, item, closing):
        """'opening' item... 'closing', or nothing at all; never empty."""
        items = []
        if self.take(opening):
            items.append(item())
            while not self.take(closing):
                items.append(item())
        return items

    def input(self):
        description, name = self.description(), self.name()
        self.expect('":"')
        kind = self.type()
        default = self.value() if self.take('"="') else None
        return Input(name, description, kind, default, self.directives())

    def field(self):
        description, name = self.description(), self.name()
        args = self.block('"("', self.input, '")"')
        self.expect('":"')
        kind = self.type()
        return Member(name, description, self.directives(), args, kind)

    def enum_value(self):
        description = self.description()
        if self.is_word("true", "false", "null"):
            raise SchemaError(self.at, f'Syntax Error: Name "{self.text}" is reserved and cannot be '
                                       "used for an enum value.")
        name = self.name()
        return Member(name, description, self.directives())

    def separated(self, separator, item):
        """item, item...: 'separator' may also lead."""
        self.take(separator)
        items = [item()]
        while self.take(separator):
            items.append(item())
        return items

    def named_type(self, made):
        made.name = self.name()
        if made.kind in ("OBJECT", "INTERFACE") and self.take_word("implements"):
            made.types = self.separated('"&"', self.name)
        made.directives = self.directives()
        if made.kind == "UNION" and self.take('"="'):
            made.types = self.separated('"|"', self.name)
        if made.kind == "INPUT":
            made.inputs = self.block('"{"', self.input, '"}"')
        elif made.kind == "ENUM":
            made.members = self.block('"{"', self.enum_value, '"}"')
        elif made.kind in ("OBJECT", "INTERFACE"):
            made.members = self.block('"{"', self.field, '"}"')
        if made.extends and not (made.types or made.directives or made.members or made.inputs):
            raise self.unexpected()

    def root(self, made):
        if not self.is_word("query", "mutation", "subscription"):
            raise self.unexpected() if self.kind == "Name" else self.expected("Name")
        word = self.text
        if word in made.roots:
            raise SchemaError(self.at,
                              f"Syntax Error: There can be only one {word} type in schema.")
        self.advance()
        self.expect('":"')
        made.roots[word] = self.name()

    def schema(self, made):
        made.directives = self.directives()
        if self.kind != '"{"' and not made.extends:
            raise self.expected('"{"')
        if self.kind != '"{"' and not made.directives:
            raise self.unexpected()
        self.block('"{"', lambda: self.root(made), '"}"')

    def location(self):
        if not self.is_word(*LOCATIONS):
            raise self.unexpected() if self.kind == "Name" else self.expected("Name")
        return self.name()

    def directive(self, made):
        self.expect('"@"')
        made.name = self.name()
        made.inputs = self.block('"("', self.input, '")"')
        made.is_repeatable = self.take_word("repeatable")
        if not self.take_word("on"):
            raise self.expected('"on"')
        made.locations = list(dict.fromkeys(self.separated('"|"', self.location)))

    def definition(self):
        at, description = self.at, self.description()
        if description is None and (self.kind == '"{"' or self.is_word("query", "mutation",
                                                                       "subscription", "fragment")):
            raise SchemaError(at, "A schema document cannot hold operations and fragments.")
        made = Definition(at, description, None, description is None and self.take_word("extend"),
                          self.is_builtin)
        word = self.text if self.kind == "Name" else None
        if word in KINDS:
            made.kind, read = KINDS[word], self.named_type
        elif word == "schema":
            made.kind, read = "SCHEMA", self.schema
        elif word == "directive" and not made.extends:
            made.kind, read = "DIRECTIVE", self.directive
        elif word and description is not None:
            raise SchemaError(at, "Syntax Error: Unexpected description, descriptions are supported "
                                  "only on type definitions.")
        else:
            raise self.unexpected()
        self.advance()
        read(made)
        return made


def parse(text, is_builtin):
    """The definitions in a document; at least one."""
    parser = Parser(text, is_builtin)
    definitions = [parser.definition()]
    while parser.kind != "<EOF>":
        definitions.append(parser.definition())
    return definitions
