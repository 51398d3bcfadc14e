// The queries that real clients sent, against graphql-js. Usage:
//   node clients.mjs PEER FOLDER
// FOLDER holds captures, one request a line. No schema goes with them, so
// one is made from each query: every field that it names, with the types of
// its variables. Replies must be the same text, keys in the same order. The
// last line printed is JSON.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Kind, parse, print } from 'graphql';
import { answer, loadSchema } from './oracle.mjs';
import { build } from './tables.mjs';

const [peer, folder] = process.argv.slice(2);
const builtIn = new Set(['Int', 'Float', 'String', 'Boolean', 'ID']);

// A line is {"p": path, "b": body} or "METHOD PATH BODY".
function requestOf(line) {
  const at = line.indexOf('{');
  if (!line.includes('/admin/gql') || at < 0) return null;
  try {
    const json = JSON.parse(line.slice(at));
    const body = typeof json.b === 'string' ? JSON.parse(json.b) : json;
    return body.query ? body : null;
  } catch {
    return null; // cut off by the log
  }
}

function literalType(value) {
  switch (value.kind) {
    case Kind.INT: return 'Int';
    case Kind.FLOAT: return 'Float';
    case Kind.BOOLEAN: return 'Boolean';
    case Kind.STRING: return 'String';
    case Kind.LIST: return `[${value.values.length ? literalType(value.values[0]) : 'Any'}]`;
    default: return 'Any';
  }
}

// 'hints' says which named types fragments are on, from an earlier call.
function schemaFor(document, hints) {
  const types = new Map(), scalars = new Set(['Any']);
  const fragments = new Map(document.definitions.filter((d) => d.kind === Kind.FRAGMENT_DEFINITION)
    .map((d) => [d.name.value, d]));
  const conditions = (set) => set.selections.flatMap((s) => {
    const fragment = s.kind === Kind.FRAGMENT_SPREAD ? fragments.get(s.name.value) : s;
    if (s.kind === Kind.FIELD) return [];
    return [...(fragment.typeCondition ? [fragment.typeCondition.name.value] : []),
      ...conditions(fragment.selectionSet)];
  });
  const roots = { query: 'Query', mutation: 'Mutation', subscription: 'Subscription' };

  function walk(set, typeName, variables) {
    if (!types.has(typeName)) types.set(typeName, new Map());
    const fields = types.get(typeName);
    for (const s of set.selections) {
      if (s.kind !== Kind.FIELD) {
        const fragment = s.kind === Kind.FRAGMENT_SPREAD ? fragments.get(s.name.value) : s;
        const own = fragment.typeCondition?.name.value ?? typeName;
        walk(fragment.selectionSet, own === 'Node' ? typeName : own, variables);
        continue;
      }
      const name = s.name.value;
      if (name.startsWith('__')) continue;
      const field = fields.get(name) ?? { args: new Map(), type: null, list: false };
      fields.set(name, field);
      for (const arg of s.arguments) {
        const type = arg.value.kind === Kind.VARIABLE
          ? print(variables.get(arg.value.name.value)).replaceAll('!', '') : literalType(arg.value);
        field.args.set(arg.name.value, type);
      }
      if (!s.selectionSet) continue;
      const hint = conditions(s.selectionSet).find((c) => c !== 'Node');
      if (hint) hints.set(`${typeName}.${name}`, hint);
      field.type ??= hints.get(`${typeName}.${name}`) ?? `${typeName}_${name}`;
      field.list = /s$/.test(name);
      walk(s.selectionSet, field.type, variables);
    }
  }

  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    const root = conditions(definition.selectionSet)[0] ?? roots[definition.operation];
    const variables = new Map(definition.variableDefinitions.map((v) => [v.variable.name.value, v.type]));
    for (const type of variables.values()) {
      const named = print(type).replaceAll(/[[\]!]/g, '');
      if (!builtIn.has(named)) scalars.add(named);
    }
    roots[definition.operation] = root;
    walk(definition.selectionSet, root, variables);
  }
  for (const { typeCondition, selectionSet } of fragments.values()) {
    if (!types.has(typeCondition.name.value)) walk(selectionSet, typeCondition.name.value, new Map());
  }
  if (!types.has(roots.query)) types.set(roots.query, new Map([['nothing', { args: new Map() }]]));
  const lines = [`schema { ${Object.entries(roots).filter(([, t]) => types.has(t)).map(([o, t]) => `${o}: ${t}`).join(' ')} }`,
    'interface Node { id: ID! }', ...[...scalars].map((s) => `scalar ${s}`)];
  for (const [name, fields] of types) {
    const text = [...fields].map(([field, { args, type, list }]) => {
      const list_ = [...args].map(([a, t]) => `${a}: ${t}`).join(', ');
      const result = field === 'id' && !type ? 'ID!' : list ? `[${type}]` : type ?? 'String';
      return `  ${field}${list_ && `(${list_})`}: ${result}`;
    });
    lines.push(`type ${name}${fields.has('id') ? ' implements Node' : ''} {\n${text.join('\n') || '  nothing: Int'}\n}`);
  }
  return lines.join('\n');
}

const requests = new Map();
for (const file of fs.readdirSync(folder).filter((f) => f.endsWith('.log'))) {
  for (const line of fs.readFileSync(path.join(folder, file), 'utf8').split('\n')) {
    const request = requestOf(line);
    if (request) requests.set(JSON.stringify(request), request);
  }
}

const failures = [];
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'aliquot-graphql-'));
let answered = 0;
try {
  for (const { query, variables, operationName } of requests.values()) {
    const document = parse(query), hints = new Map();
    const source = [1, 2, 3].reduce(() => schemaFor(document, hints), '');
    const request = { query, variables, operationName };
    const input = `${JSON.stringify(request)}\n`;
    const ours = execFileSync(peer, [build(source, scratch)], { input, encoding: 'utf8' }).trim();
    const theirs = await answer(loadSchema(source), request);
    const ordered = (r) => JSON.stringify({ data: r.data, errors: r.errors });
    // Some clients were run with placeholders for UUIDs, and the web UI leaves fragments behind
    // from which it took their use. Any other refusal is a mistake here.
    const expected = theirs.errors?.every((e) => /Expected type "UUID"|is never used/.test(e.message));
    if (theirs.data === undefined && !expected) failures.push({ query, variables, source, theirs });
    else if (ordered(JSON.parse(ours)) !== ordered(theirs)) failures.push({ query, variables, ours, theirs });
    answered += theirs.data !== undefined && theirs.data !== null;
  }
} finally {
  fs.rmSync(scratch, { recursive: true });
}
for (const failure of failures.slice(0, 10)) console.log(JSON.stringify(failure));
console.log(JSON.stringify({ queries: requests.size, answered, failed: failures.length }));
process.exit(failures.length ? 1 : 0);
