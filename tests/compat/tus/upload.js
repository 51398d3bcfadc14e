// SPDX-License-Identifier: Apache-2.0
// Upload a file by tus-js-client: FILE URL PARTS CUTS [UPLOAD]. A cut is an abort in the middle, after
// which another client goes on by the upload's URL; UPLOAD is that of one that was begun elsewhere, or
// "-": after its cuts it prints the URL and leaves the rest to others.
const fs = require("fs");
const tus = require("tus-js-client");

const [file, url, parts, cuts, other] = process.argv.slice(2);
const data = fs.readFileSync(file);
let left = Number(cuts);

function start(known) {
  let isCut = false;
  const upload = new tus.Upload(data, {
    endpoint: url,
    uploadUrl: known,
    chunkSize: 256 * 1024,
    parallelUploads: Number(parts),
    retryDelays: [0, 200, 500, 1000, 2000],
    onError: (error) => { console.error(String(error)); process.exit(1); },
    onSuccess: () => process.exit(left > 0 ? 2 : 0),
    onChunkComplete: () => {
      if (left > 0 && !isCut) {
        isCut = true;
        left--;
        upload.abort().then(() => {
          if (other === "-" && left === 0) {
            console.log(upload.url);
            process.exit(0);
          }
          start(upload.url);
        });
      }
    },
  });
  upload.start();
}
start(other && other !== "-" ? other : null);
