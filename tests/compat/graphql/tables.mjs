// Schema text as the tables that a peer loads.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..');

// The tables as C, which lie in the folder.
export function compile(source, folder) {
  fs.writeFileSync(path.join(folder, 'schema.graphql'), source);
  execFileSync(path.join(root, 'tools/graphql-compile/graphql-compile'),
    ['schema.graphql', 'schema.h', 'schema.c', 'schema.d'], { cwd: folder });
  return fs.readFileSync(path.join(folder, 'schema.c'), 'utf8');
}

// The library of them.
export function build(source, folder) {
  const library = path.join(folder, 'schema.so');
  compile(source, folder);
  execFileSync('cc', ['-shared', '-fPIC', '-o', library, `-I${path.join(root, 'src')}`,
    path.join(folder, 'schema.c')]);
  return library;
}
