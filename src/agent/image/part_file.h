/* SPDX-License-Identifier: Apache-2.0 */
/* part_file.h - the beginning of a blob on disk, continued by a later answer of the registry
 *
 * The last bytes are requested again and compared with those of the file: a file of another blob,
 * or one whose end a power failure has lost, is not continued. Used by aliquot-fetch, one thread.
 */
#ifndef AQ_AGENT_IMAGE_PART_FILE_H
#define AQ_AGENT_IMAGE_PART_FILE_H

#include <stdint.h>

#include "base/error.h"

#define PART_OVERLAP 4096 /* bytes that are requested again */

struct part_file {
    int fd;             /* borrowed; open for reading and writing */
    uint64_t blob_size; /* by the manifest */
    uint64_t length;    /* bytes of the blob in the file */
    uint64_t offset;    /* first byte that the registry is asked for */
    uint64_t position;  /* of the next byte from the registry */
};

/* A file that is longer than the blob is emptied. 0 or -errno. */
int part_file_init(struct part_file *part, int fd, uint64_t blob_size, struct aq_error *err);

/* The head of the answer to a request from 'offset' on; 'content_range' may be NULL. A whole answer
 * (200) empties the file. -ERANGE: the registry cannot send this range (416, or a Content-Range of
 * other bytes or another size); else as registry_client_fail_status().
 */
int part_file_begin(struct part_file *part, int status, const char *content_range,
                    struct aq_error *err);

/* Bytes of that answer. -EILSEQ: they differ from those in the file, which is not changed;
 * -EMSGSIZE: more than the size of the blob; -ENOSPC etc. of write(2).
 */
int part_file_add(struct part_file *part, const char *bytes, size_t len, struct aq_error *err);

/* Read the file and compare. -ECONNRESET if it is shorter than the blob, -EBADMSG if it has another
 * digest ("sha256:HEX").
 */
int part_file_verify(const struct part_file *part, const char *digest, struct aq_error *err);

#endif
