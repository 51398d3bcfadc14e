// Compare an engine with graphql-js. Usage:
//   node compare.mjs PEER SCHEMA [--random N] [--seed S]
// PEER SCHEMA is started once; it reads one JSON request a line and answers
// each with one line {"data":…,"errors":[…]}. The last line printed is JSON.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { buildSchema, getIntrospectionQuery, lexicographicSortSchema, printSchema } from 'graphql';
import { grammar, rules, syntax, variables } from './cases.mjs';
import { generate } from './generate.mjs';
import { answer, readSchema } from './oracle.mjs';

const [peerPath, schemaPath, ...options] = process.argv.slice(2);
const option = (name, fallback) => {
  const at = options.indexOf(name);
  return at < 0 ? fallback : Number(options[at + 1]);
};
const schema = readSchema(schemaPath);
const peer = spawn(peerPath, [schemaPath], { stdio: ['pipe', 'pipe', 'inherit'] });
const lines = readline.createInterface({ input: peer.stdout })[Symbol.asyncIterator]();

async function ask(request) {
  peer.stdin.write(`${JSON.stringify(request)}\n`);
  const { value, done } = await lines.next();
  if (done) throw new Error(`the peer died at ${JSON.stringify(request)}`);
  return JSON.parse(value);
}

// Errors in a canonical order: execution may find them in another one.
const key = (e) => JSON.stringify([e.path ?? null, e.locations ?? null, e.message]);
function canonical(reply) {
  return JSON.stringify({
    data: 'data' in reply ? reply.data : undefined,
    errors: reply.errors?.map(key).sort(),
  });
}

const failures = [];
let accepted = 0, refused = 0, partial = 0;

async function compare(name, request, expected) {
  const [ours, theirs] = [await ask(request), await answer(schema, request)];
  if (!theirs.errors) accepted += 1;
  else if (theirs.data === undefined) refused += 1;
  else partial += 1;
  const want = expected === undefined || expected === !theirs.errors || 'data' in theirs;
  if (!want) failures.push({ name, request, why: 'the oracle disagrees with the case', theirs });
  else if (canonical(ours) !== canonical(theirs)) failures.push({ name, request, ours, theirs });
}

for (const [name, query, values] of grammar) await compare(name, { query, variables: values });
for (const [name, query] of syntax) await compare(name, { query }, false);
for (const [name, query, values] of variables) await compare(name, { query, variables: values });
for (const [rule, [good, bad]] of Object.entries(rules)) {
  if (!good.startsWith('subscription')) await compare(`${rule} accepts`, { query: good });
  await compare(`${rule} refuses`, { query: bad }, false);
}
await compare('introspection', {
  query: getIntrospectionQuery({
    specifiedByUrl: true, directiveIsRepeatable: true, schemaDescription: true, inputValueDeprecation: true,
  }),
});
const count = option('--random', 20000), seed = option('--seed', 1);
for (let i = 0; i < count; i++) await compare(`random ${seed + i}`, generate(schema, seed + i));
peer.stdin.end();

// A schema printed by one and read by the other, both ways.
const normal = (source) => printSchema(lexicographicSortSchema(buildSchema(source)));
const print = (file) => execFileSync(peerPath, ['--print', file], { encoding: 'utf8' });
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'aliquot-graphql-'));
try {
  const file = path.join(folder, 'printed.graphql');
  fs.writeFileSync(file, printSchema(schema));
  const source = normal(fs.readFileSync(schemaPath, 'utf8'));
  if (normal(print(schemaPath)) !== source) failures.push({ name: 'schema printed by the peer', ours: print(schemaPath) });
  if (normal(print(file)) !== source) failures.push({ name: 'schema printed by graphql-js', ours: print(file) });
} finally {
  fs.rmSync(folder, { recursive: true });
}

for (const failure of failures.slice(0, 20)) console.log(JSON.stringify(failure));
console.log(JSON.stringify({ compared: accepted + refused + partial, accepted, refused, partial, failed: failures.length }));
process.exit(failures.length ? 1 : 0);
