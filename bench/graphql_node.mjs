// node graphql_node.mjs SECONDS [ROWS] - graphql-js parses, validates and
// executes the same query over the same rows. Prints one JSON object; with
// SECONDS 0 the reply itself.
import fs from 'node:fs';
import { buildSchema, execute, parse, validate } from '../tests/compat/graphql/node_modules/graphql/index.mjs';

const here = new URL('.', import.meta.url);
const schema = buildSchema(fs.readFileSync(new URL('sessions.graphql', here), 'utf8'));
const source = fs.readFileSync(new URL('graphql_engine.c', here), 'utf8');
const strings = (name) => {
  const text = source.slice(source.indexOf(`${name}[] =`)).split(';\n')[0];
  return [...text.matchAll(/"(?:[^"\\]|\\.)*"/g)].map((m) => JSON.parse(m[0])).join('');
};
const query = strings('query'), variableValues = JSON.parse(strings('variables'));
const [seconds = 1, rows = 20] = process.argv.slice(2).map(Number);

const hex = (n) => n.toString(16).padStart(2, '0');
const items = Array.from({ length: rows }, (_, i) => {
  const bytes = Array.from({ length: 16 }, (_x, b) => hex((i * 37 + b * 11 + 1) & 255)).join('');
  const id = bytes.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');
  const usec = 1795222923456789 + i;
  const time = `${new Date(Math.floor(usec / 1e6) * 1000).toISOString().slice(0, 19)}.${String(usec % 1e6).padStart(6, '0')}+00:00`;
  return {
    id, session_id: id, name: `session-${i}`, type: 'INTERACTIVE', access_key: 'AKIAIOSFODNN7EXAMPLE',
    group_name: 'default', image: 'registry.example/stable/python:3.11-ubuntu22.04', status: 'RUNNING',
    status_info: null, status_changed: time, result: 'UNDEFINED', priority: null,
  };
});
const rootValue = { compute_session_list: { items, total_count: rows } };

function answer() {
  const document = parse(query);
  const errors = validate(schema, document);
  if (errors.length) throw errors[0];
  return JSON.stringify(execute({ schema, document, rootValue, variableValues }));
}

if (seconds === 0) {
  console.log(answer());
} else {
  for (const warm = performance.now() + 1000 * Math.min(seconds, 1); performance.now() < warm;) answer();
  const start = performance.now();
  let runs = 0;
  while (performance.now() - start < seconds * 1000) {
    answer();
    runs += 1;
  }
  console.log(JSON.stringify({ per_second: (runs * 1000) / (performance.now() - start) }));
}
