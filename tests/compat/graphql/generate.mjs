// Random documents and variables over a schema, from a seed.
import {
  getNamedType, isCompositeType, isEnumType, isInputObjectType, isLeafType, isListType,
  isNonNullType, isObjectType, isRequiredArgument, isRequiredInputField, isUnionType,
} from 'graphql';

export function random(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return {
    chance: (p) => next() < p,
    below: (n) => Math.floor(next() * n),
    pick: (list) => list[Math.floor(next() * list.length)],
  };
}

const STRINGS = ['', 'plain', 'with \\"quotes\\"', '\\u00e9\\n\\t', '{\\"a\\":1}', '2026-11-21',
  '00000000-0000-4000-8000-000000000001', 'é'];
const INTS = ['0', '1', '2', '-5', '7', '2147483647', '-2147483648'];
const FLOATS = ['0.5', '1.25', '-3.5', '2.0', '1e3', '4'];

function scalarLiteral(r, name) {
  switch (name) {
    case 'Int': return r.pick(INTS);
    case 'Float': return r.pick([...FLOATS, ...INTS]);
    case 'Boolean': return r.pick(['true', 'false']);
    case 'ID': return r.pick(['"x"', '12', '"12"']);
    case 'UUID': return '"00000000-0000-4000-8000-00000000000A"';
    case 'DateTime': return '"2026-11-21T01:02:03+00:00"';
    case 'JSONString': return r.pick(['"{}"', '"[1, 2]"', '"nope"']);
    case 'BigInt': return r.pick(['9007199254740991', '5', '-7', '9223372036854775808']);
    default: return r.chance(0.2) ? '"""\n    block\n      text\n  """' : `"${r.pick(STRINGS)}"`;
  }
}

class Generator {
  constructor(schema, r) {
    Object.assign(this, { schema, r, variables: new Map(), fragments: [], values: {}, aliases: 0 });
  }

  literal(type, depth, bare = false) {
    const { r } = this;
    if (r.chance(0.015)) return r.pick(['null', '1', '"wrong"', 'WRONG', '[1]', '{x: 1}', 'true']);
    if (!bare && r.chance(0.15) && depth < 3) return this.variable(type);
    if (isNonNullType(type)) return this.literal(type.ofType, depth, true);
    if (!bare && r.chance(0.05)) return 'null';
    if (isListType(type)) {
      if (r.chance(0.2)) return this.literal(type.ofType, depth + 1, true);
      const items = Array.from({ length: r.below(3) }, () => this.literal(type.ofType, depth + 1));
      return `[${items.join(r.pick([', ', ' ']))}]`;
    }
    if (isEnumType(type)) return r.pick(type.getValues()).name;
    if (isInputObjectType(type)) {
      const fields = Object.values(type.getFields())
        .filter((f) => isRequiredInputField(f) || (depth < 3 && r.chance(0.4)))
        .map((f) => `${f.name}: ${this.literal(f.type, depth + 1)}`);
      return `{${fields.join(', ')}}`;
    }
    return scalarLiteral(r, type.name);
  }

  json(type, depth, bare = false) {
    const { r } = this;
    if (r.chance(0.015)) return r.pick([null, 1, 'wrong', true, [1], { x: 1 }, 1.5]);
    if (isNonNullType(type)) return this.json(type.ofType, depth, true);
    if (!bare && r.chance(0.05)) return null;
    if (isListType(type)) {
      if (r.chance(0.2)) return this.json(type.ofType, depth + 1);
      return Array.from({ length: r.below(3) }, () => this.json(type.ofType, depth + 1));
    }
    if (isEnumType(type)) return r.pick(type.getValues()).name;
    if (isInputObjectType(type)) {
      const value = {};
      for (const field of Object.values(type.getFields())) {
        if (isRequiredInputField(field) || (depth < 3 && r.chance(0.4))) {
          value[field.name] = this.json(field.type, depth + 1);
        }
      }
      return value;
    }
    switch (type.name) {
      case 'Int': return r.below(100) - 50;
      case 'Float': return r.below(100) / 4;
      case 'Boolean': return r.chance(0.5);
      case 'ID': return r.chance(0.5) ? 'x' : 12;
      case 'UUID': return '00000000-0000-4000-8000-00000000000b';
      case 'DateTime': return '2026-11-21';
      case 'JSONString': return r.pick(['{}', 'nope']);
      case 'BigInt': return r.pick([1, 9007199254740991]);
      default: return r.pick(['', 'text', 'é\n"']);
    }
  }

  variable(type) {
    const { r } = this;
    const same = [...this.variables].filter(([, v]) => String(v.type) === String(type));
    if (same.length && r.chance(0.4)) return `$${r.pick(same)[0]}`;
    const name = `v${this.variables.size}`;
    const value = r.chance(0.25) && !isNonNullType(type) ? ` = ${this.constant(type)}` : '';
    this.variables.set(name, { type, value });
    if (r.chance(0.85)) this.values[name] = this.json(type, 0);
    return `$${name}`;
  }

  constant(type) {
    const inner = new Generator(this.schema, this.r);
    inner.variable = function none() { return 'null'; };
    return inner.literal(type, 1);
  }

  args(list) {
    const { r } = this;
    const given = list.filter((a) => isRequiredArgument(a) || r.chance(0.5))
      .map((a) => `${a.name}: ${this.literal(a.type, 0)}`);
    return given.length ? `(${given.join(r.pick([', ', ' ']))})` : '';
  }

  directives(onField) {
    const { r } = this;
    let text = '';
    if (r.chance(0.08)) text += ` @${r.pick(['skip', 'include'])}(if: ${this.literal(this.schema.getDirective('skip').args[0].type, 0)})`;
    if (r.chance(0.05)) text += ` @tag(name: "${r.below(5)}")`;
    if (r.chance(0.02)) text += ' @tag(name: "again", count: 2)';
    if (r.chance(0.02) && onField) text += ' @once(why: A)';
    return text;
  }

  field(type, depth) {
    const { r } = this;
    if (r.chance(0.1)) return `__typename${this.directives(true)}`;
    const fields = isUnionType(type) ? [] : Object.values(type.getFields())
      .filter((f) => depth > 0 || isLeafType(getNamedType(f.type)));
    if (!fields.length) return '__typename';
    const field = r.pick(fields);
    let alias = r.chance(0.05) ? `${r.pick(['a', 'b', 'c', field.name])}: ` : '';
    if (field.args.length && r.chance(0.95)) alias = `f${this.aliases++}: `;
    const named = getNamedType(field.type);
    const inner = isCompositeType(named) ? ` ${this.selection(named, depth - 1)}` : '';
    return `${alias}${field.name}${this.args(field.args)}${this.directives(true)}${inner}`;
  }

  condition(type) {
    const { r } = this;
    const possible = isObjectType(type) ? [type] : this.schema.getPossibleTypes(type);
    const target = r.pick(possible);
    return r.chance(0.7) ? target : r.pick([type, ...target.getInterfaces()]);
  }

  selection(type, depth) {
    const { r } = this;
    const parts = [];
    for (let i = 1 + r.below(4); i > 0; i--) {
      if (depth > 0 && r.chance(0.12)) {
        const on = this.condition(type);
        const head = r.chance(0.85) ? ` on ${on}` : '';
        parts.push(`...${head}${this.directives()} ${this.selection(head ? on : type, depth - 1)}`);
      } else if (depth > 0 && r.chance(0.1)) {
        parts.push(`...${this.fragment(type, depth - 1)}${this.directives()}`);
      } else {
        parts.push(this.field(type, depth));
      }
    }
    return `{ ${parts.join(r.pick([' ', '\n', ', ']))} }`;
  }

  fragment(type, depth) {
    const { r } = this;
    if (this.fragments.length && r.chance(0.3)) return r.pick(this.fragments).name;
    const on = this.condition(type);
    const entry = { name: `F${this.fragments.length}`, text: '' };
    this.fragments.push(entry);
    entry.text = `fragment ${entry.name} on ${on} ${this.selection(on, depth)}`;
    return entry.name;
  }

  document() {
    const { r } = this;
    const mutation = r.chance(0.15);
    const body = this.selection(mutation ? this.schema.getMutationType() : this.schema.getQueryType(), 3);
    const variables = [...this.variables].map(([n, v]) => `$${n}: ${v.type}${v.value}`).join(', ');
    const head = mutation || variables || r.chance(0.3)
      ? `${mutation ? 'mutation' : 'query'}${r.chance(0.5) ? ' Op' : ''}${variables ? `(${variables})` : ''}${r.chance(0.05) ? ' @tag(name: "op")' : ''} `
      : '';
    return [head + body, ...this.fragments.map((f) => f.text)].join('\n');
  }
}

const TOKEN = /"""[^]*?"""|"(?:\\.|[^"\\\n])*"|\.\.\.|[A-Za-z_]\w*|-?\d[\d.eE+-]*|[^\s]/g;
const JUNK = ['{', '}', '(', ')', ':', '$', '@', '!', '[', ']', '|', '&', '=', '...', 'on', 'name',
  'query', 'fragment', 'null', 'true', '"', '"x', '0', '01', '1.', '1e', '-', '.', '#', 'id',
  'nothing', 'é', '\u0007', '\\', 'Person', 'F0', '$v0', 'unknown'];

function spoil(r, query) {
  const tokens = query.match(TOKEN) ?? [];
  for (let i = 1 + r.below(2); i > 0; i--) {
    const at = r.below(tokens.length);
    switch (r.below(4)) {
      case 0: tokens.splice(at, 1); break;
      case 1: tokens.splice(at, 0, r.pick(tokens)); break;
      case 2: tokens[at] = r.pick(JUNK); break;
      default: tokens[at] = r.pick(tokens);
    }
  }
  return tokens.join(r.pick([' ', '\n']));
}

export function generate(schema, seed) {
  const r = random(seed);
  const generator = new Generator(schema, r);
  const query = generator.document();
  const request = { query: r.chance(0.25) ? spoil(r, query) : query, variables: generator.values };
  if (r.chance(0.02)) request.operationName = r.pick(['Op', 'Other']);
  return request;
}
