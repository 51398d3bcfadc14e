// The GraphQL documents in the files of a web interface, against a schema. Usage:
//   node documents.mjs SCHEMA VERSION FOLDER [texts]
// Relay's are texts with a name. Those of its older parts are put together in pieces: of
// "${fields.join(' ')}" the list that is the variable's default is taken. What a document has only
// for managers that are not VERSION goes first, as its client leaves it out. A line each is
// printed: NAME and what the schema lacks of it, sorted. With 'texts' it is {NAME: text} as JSON.
import fs from 'node:fs';
import path from 'node:path';
import { Kind, parse, print, validate, visit } from 'graphql';
import { readSchema } from './oracle.mjs';

const [schemaFile, version, folder, how] = process.argv.slice(2);
const schema = readSchema(schemaFile);

function* files(folder) {
  for (const item of fs.readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, item.name);
    if (item.isDirectory()) yield* files(file);
    else if (item.name.endsWith('.js')) yield fs.readFileSync(file, 'utf8');
  }
}

// The end of the literal of JavaScript that begins at 'start', with what is inside of "${}".
function literalEnd(source, start) {
  const quote = source[start];
  for (let at = start + 1; at < source.length; at++) {
    if (source[at] === '\\') at++;
    else if (source[at] === quote) return at;
    else if (quote === '`' && source.startsWith('${', at)) at = source.indexOf('}', at);
  }
  return -1;
}

const listOf = (text) => [...text.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map((found) => found[1]).join(' ');

// A piece as it is when nobody says otherwise; null if that is not written down.
function pieceValue(piece, before) {
  const own = piece.match(/^\[([^\]]*)\]\.join\(/);
  if (own) return listOf(own[1]);
  const name = piece.match(/^(\w+)(?:\.join\(.*\))?$/)?.[1];
  if (!name) return null;
  const lists = [...before.matchAll(new RegExp(`\\b${name}=\\[("[^\\]]*)\\]`, 'g'))];
  return lists.length ? listOf(lists.at(-1)[1]) : null;
}

function textOf(source, start, end) {
  const raw = source.slice(start + 1, end);
  const before = source.slice(Math.max(0, start - 6000), start);
  let isWhole = true;
  const filled = source[start] !== '`' ? raw : raw.replace(/\$\{([^}]*)\}/g, (_, piece) => {
    const value = pieceValue(piece, before);
    isWhole &&= value !== null;
    return value;
  });
  return isWhole ? filled.replace(/\\n/g, '\n').replace(/\\(.)/g, '$1') : null;
}

function documents() {
  const found = new Map(); // printed -> document
  for (const source of files(folder)) {
    for (const { index } of source.matchAll(/["'`](?:\\n|\s)*(?:query|mutation|subscription)\b[\s({]/g)) {
      const text = textOf(source, index, literalEnd(source, index));
      let document;
      try {
        document = parse(text ?? '');
      } catch {
        continue; // words of a language, or pieces that only its program has
      }
      found.set(print(document), document);
    }
  }
  return [...found.values()];
}

const numbers = (text) => text.split('.').map(Number);
function compare(a, b) {
  const [x, y] = [numbers(a), numbers(b)];
  for (let i = 0; i < 3; i++) if ((x[i] ?? 0) !== (y[i] ?? 0)) return (x[i] ?? 0) - (y[i] ?? 0);
  return 0;
}

// Of several versions, that of its own branch counts, else the newest.
function isSince(versions) {
  const branch = (text) => numbers(text).slice(0, 2).join('.');
  const own = versions.find((it) => branch(it) === branch(version));
  return compare(version, own ?? versions.toSorted(compare).at(-1)) >= 0;
}

const isFor = {
  since: (value) => isSince([value]),
  sinceMultiple: isSince,
  deprecatedSince: (value) => !isSince([value]),
  deprecatedSinceMultiple: (value) => !isSince(value),
  skipOnClient: (value) => value !== true,
};

function valueOf(node) {
  return node.kind === Kind.LIST ? node.values.map(valueOf) : node.value;
}

function asSent(document) {
  const rename = (node) => (node.typeCondition?.name.value === 'Query' ? { ...node,
    typeCondition: { ...node.typeCondition, name: { kind: Kind.NAME, value: 'Queries' } } } : undefined);
  let made = visit(document, { FragmentDefinition: rename, InlineFragment: rename });
  made = visit(made, {
    Field: {
      enter: (node) => (node.directives.every((it) =>
        isFor[it.name.value]?.(valueOf(it.arguments[0].value)) ?? true) ? undefined : null),
      leave: (node) => (node.selectionSet && !node.selectionSet.selections.length ? null : undefined),
    },
    Directive: (node) => (isFor[node.name.value] ? null : undefined),
  });
  for (let isLeft = true; isLeft;) { // fragments of fragments, too
    const spread = new Set(), used = new Map();
    visit(made, { FragmentSpread: (node) => { spread.add(node.name.value); },
      Variable: (node) => { used.set(node.name.value, (used.get(node.name.value) ?? 0) + 1); } });
    isLeft = false;
    made = visit(made, {
      FragmentDefinition: (node) => (spread.has(node.name.value) ? undefined : (isLeft = true, null)),
      VariableDefinition: (node) => (used.get(node.variable.name.value) > 1 ? undefined : null),
    });
  }
  return made;
}

// A document's name, or its roots.
function nameOf(document) {
  const operation = document.definitions.find((it) => it.kind === Kind.OPERATION_DEFINITION);
  return operation.name?.value ??
    operation.selectionSet.selections.map((it) => it.name.value).join('+');
}

function lacking(message) {
  const [, field, type] = message.match(/^Cannot query field "(\w+)" on type "(\w+)"/) ?? [];
  if (field) return `${type}.${field}`;
  const [, argument, of] = message.match(/^Unknown argument "(\w+)" on field "([\w.]+)"/) ?? [];
  if (argument) return `${of}(${argument})`;
  const [, member, input] = message.match(/^Field "(\w+)" is not defined by type "(\w+)"/) ?? [];
  if (member) return `${input}.${member}`;
  const [, unknown] = message.match(/^Unknown type "(\w+)"/) ?? [];
  if (unknown) return unknown;
  return message.replaceAll(' ', '_');
}

function printLacking() {
  const lines = new Map();
  for (const document of documents()) {
    const sent = asSent(document);
    const operation = sent.definitions.find((it) => it.kind === Kind.OPERATION_DEFINITION);
    const missing = operation ? validate(schema, sent).map((it) => lacking(it.message)) : [];
    const name = nameOf(document);
    const kept = lines.get(name) ?? new Set();
    missing.forEach((it) => kept.add(it));
    lines.set(name, kept);
  }
  for (const [name, missing] of [...lines].sort(([a], [b]) => (a < b ? -1 : 1)))
    console.log([name, ...[...missing].sort()].join(' '));
}

if (how === 'texts')
  console.log(JSON.stringify(Object.fromEntries(documents().map((it) => [nameOf(it), print(asSent(it))]))));
else
  printLacking();
