/* SPDX-License-Identifier: Apache-2.0 */
/* redis_msgpack.h - MessagePack, in which Backend.AI keeps values in Redis
 *
 * https://github.com/msgpack/msgpack/blob/master/spec.md; texts are of the type str.
 */
#ifndef AQ_REDIS_REDIS_MSGPACK_H
#define AQ_REDIS_REDIS_MSGPACK_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* The header of a list of 'count' items, which follow. */
void redis_msgpack_list(struct strbuf *out, size_t count);
void redis_msgpack_map(struct strbuf *out, size_t count); /* of 'count' keys, each with its value */
void redis_msgpack_text(struct strbuf *out, const char *text, size_t len);
void redis_msgpack_int(struct strbuf *out, int64_t value);

/* A whole JSON value. */
void redis_msgpack_json(struct strbuf *out, const json_t *value);

#endif
