// The data source that both engines share, and graphql-js over it.
//
// An object is a 32-bit seed. A field's seed is FNV-1a of "SEED/FIELD/ARGS";
// what the field gives follows from its type and that seed alone, so the peer
// written in C computes the same without any data.
import fs from 'node:fs';
import {
  GraphQLError, Kind, buildSchema, execute, isAbstractType, isEnumType,
  isListType, isNonNullType, isObjectType, parse, validate,
} from 'graphql';

export function fnv(text) {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text, 'utf8')) {
    hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  }
  return hash >>> 0;
}

export const fieldSeed = (seed, name, args) => fnv(`${seed}/${name}/${JSON.stringify(args)}`);
const itemSeed = (seed, index) => fnv(`${seed}#${index}`);

class Thing {
  constructor(seed, typename) {
    this.seed = seed;
    this.typename = typename;
  }
}

function leaf(type, seed) {
  if (isEnumType(type)) {
    const values = type.getValues();
    return values[seed % values.length].value;
  }
  switch (type.name) {
    case 'Int': return (seed % 2001) - 1000;
    case 'Float': return (seed % 8001) / 8 - 500;
    case 'Boolean': return seed % 2 === 0;
    case 'ID': return `id-${seed % 100000}`;
    case 'BigInt': return seed * 64;
    case 'UUID': return `00000000-0000-4000-8000-0000${seed.toString(16).padStart(8, '0')}`;
    case 'DateTime': return '2026-11-21T01:02:03+00:00';
    case 'JSONString': return `{"seed": ${seed}}`;
    default: return `text ${seed} "\u00e9\n"`;
  }
}

// Of values that may be null one in 23 fails and one in 17 is null; of those
// that may not, one in 211 and one in 199.
export function produce(schema, type, seed, strict = false) {
  if (isNonNullType(type)) return produce(schema, type.ofType, seed, true);
  if (seed % (strict ? 211 : 23) === 7) throw new GraphQLError(`no luck with ${seed}`);
  if (seed % (strict ? 199 : 17) === 5) return null;
  if (isListType(type)) {
    const items = [];
    for (let i = 0; i < (seed >>> 3) % 4; i++) {
      // A failing item is an Error value in the list, which graphql-js locates at the item.
      try {
        items.push(produce(schema, type.ofType, itemSeed(seed, i)));
      } catch (error) {
        items.push(error);
      }
    }
    return items;
  }
  if (isAbstractType(type)) {
    const possible = [...schema.getPossibleTypes(type)].map((t) => t.name).sort();
    return new Thing(seed, possible[(seed >>> 5) % possible.length]);
  }
  if (isObjectType(type)) return new Thing(seed, type.name);
  return leaf(type, seed);
}

// Custom scalars as the engine knows them, its messages included.
const failure = {
  UUID: 'UUID is 32 hexadecimal digits, with or without dashes',
  DateTime: 'DateTime is a date and time in the form of ISO 8601',
  JSONString: 'JSONString is a string that holds JSON text without NUL (U+0000)',
  BigInt: 'BigInt is a whole number of at most 64 bits',
};
const demand = (name, good) => {
  if (!good) throw new Error(failure[name]);
};
const isJson = (text) => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};
const texts = {
  UUID: (text) => /^([0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i.test(text),
  DateTime: (text) => /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\+\d\d:\d\d|Z))?$/.test(text),
  JSONString: isJson,
};
const canonical = (uuid) => uuid.toLowerCase().replaceAll('-', '')
  .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
const BIG = 2n ** 63n;

export function loadSchema(source) {
  const schema = buildSchema(source);
  for (const [name, isGood] of Object.entries(texts)) {
    const type = schema.getType(name);
    if (!type) continue;
    type.serialize = (value) => value;
    type.parseValue = (value) => {
      demand(name, typeof value === 'string' && isGood(value));
      return name === 'UUID' ? canonical(value) : value;
    };
    type.parseLiteral = (ast) => {
      demand(name, ast.kind === Kind.STRING);
      return type.parseValue(ast.value);
    };
  }
  const big = schema.getType('BigInt');
  if (big) {
    big.serialize = (value) => value;
    big.parseValue = (value) => {
      demand('BigInt', Number.isInteger(value) && Math.abs(value) < Number(BIG));
      return value;
    };
    big.parseLiteral = (ast) => {
      demand('BigInt', ast.kind === Kind.INT && BigInt(ast.value) < BIG && BigInt(ast.value) >= -BIG);
      return Number(ast.value);
    };
  }
  return schema;
}

export async function answer(schema, request) {
  let document;
  try {
    document = parse(request.query);
  } catch (error) {
    return { errors: [error.toJSON()] };
  }
  const errors = validate(schema, document, undefined, { maxErrors: 100 });
  if (errors.length) return { errors: errors.map((error) => error.toJSON()) };
  const result = await execute({
    schema,
    document,
    rootValue: new Thing(1, 'Query'),
    variableValues: request.variables,
    operationName: request.operationName,
    fieldResolver: (thing, args, context, info) =>
      produce(schema, info.returnType, fieldSeed(thing.seed, info.fieldName, args)),
    typeResolver: (thing) => thing.typename,
  });
  return JSON.parse(JSON.stringify(result));
}

export const readSchema = (path) => loadSchema(fs.readFileSync(path, 'utf8'));
