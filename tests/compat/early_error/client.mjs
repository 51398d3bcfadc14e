// SPDX-License-Identifier: Apache-2.0
// node: POST bodies to a path that is not there; the same agent is served afterwards.
import http from 'node:http';

const [base, ...sizes] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

function ask(method, path, body, headers) {
  return new Promise((resolve, reject) => {
    const req = http.request(base + path, { method, agent, headers }, (res) => {
      let text = '';
      res.on('data', (piece) => { text += piece; });
      res.on('end', () => { JSON.parse(text); resolve(res.statusCode); });
      res.on('error', reject);
    });
    req.on('error', reject);
    req.end(body);
  });
}

for (const size of sizes.map(Number)) {
  const body = Buffer.alloc(size);
  for (const headers of [{ 'Content-Length': size }, { 'Transfer-Encoding': 'chunked' },
    { 'Content-Length': size }]) {
    console.log(size, await ask('POST', '/no/such/path', body, headers));
    console.log(size, await ask('GET', '/', undefined, {}));
  }
}
agent.destroy();
