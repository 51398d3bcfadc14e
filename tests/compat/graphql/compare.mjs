// Compare an engine with graphql-js. Usage:
//   node compare.mjs PEER SCHEMA [--random N] [--seed S]
// PEER is started once with the schema's tables; it reads one JSON request a line and answers
// each with one line {"data":…,"errors":[…]}. The last line printed is JSON.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { getIntrospectionQuery, printSchema } from 'graphql';
import { grammar, rules, syntax, variables } from './cases.mjs';
import { generate } from './generate.mjs';
import { answer, readSchema } from './oracle.mjs';
import { build, compile } from './tables.mjs';

const [peerPath, schemaPath, ...options] = process.argv.slice(2);
const option = (name, fallback) => {
  const at = options.indexOf(name);
  return at < 0 ? fallback : Number(options[at + 1]);
};
const schema = readSchema(schemaPath);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'aliquot-graphql-'));
process.on('exit', () => fs.rmSync(folder, { recursive: true }));
const source = fs.readFileSync(schemaPath, 'utf8');
const peer = spawn(peerPath, [build(source, folder)], { stdio: ['pipe', 'pipe', 'inherit'] });
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

// A schema as graphql-js prints it is the same schema.
if (compile(printSchema(schema), folder) !== compile(source, folder)) failures.push({ name: 'schema printed by graphql-js' });

for (const failure of failures.slice(0, 20)) console.log(JSON.stringify(failure));
console.log(JSON.stringify({ compared: accepted + refused + partial, accepted, refused, partial, failed: failures.length }));
process.exit(failures.length ? 1 : 0);
