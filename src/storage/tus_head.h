/* SPDX-License-Identifier: Apache-2.0 */
/* tus_head.h - what a request of tus (https://tus.io/protocols/resumable-upload, 1.0.0) says in its
 * headers, and where an upload goes on
 */
#ifndef AQ_STORAGE_TUS_HEAD_H
#define AQ_STORAGE_TUS_HEAD_H

#include <stdint.h>

#include "http/message.h"
#include "storage/upload.h"

enum tus_concat { TUS_WHOLE, TUS_PARTIAL, TUS_FINAL };

struct tus_head {
    bool is_other_version, is_bytes; /* Tus-Resumable; the Content-Type that a PATCH has */
    bool has_offset, has_length;
    uint64_t offset, length;
    enum tus_concat concat;
    int parts[UPLOAD_PARTS_MAX]; /* of TUS_FINAL, in order */
    size_t part_count;
};

/* Digits alone, as many as 'len'; 18 at most. */
bool tus_read_number(const char *text, size_t len, uint64_t *ret) AQ_UNTRUSTED;

/* -EINVAL for what is malformed. */
int tus_read_head(const struct message_head *head, struct tus_head *ret,
                  struct aq_error *err) AQ_UNTRUSTED;

/* The part that a query is about: its number and its length. Without one UPLOAD_WHOLE and the
 * length of the whole. -EINVAL.
 */
int tus_read_part(const char *part, const char *length, uint64_t whole, int *ret_part,
                  uint64_t *ret_length, struct aq_error *err) AQ_UNTRUSTED;

#endif
