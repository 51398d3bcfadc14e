/* SPDX-License-Identifier: Apache-2.0 */
/* uuid.h - identifiers
 *
 * Random UUIDs (RFC 4122 version 4) for what users name by a prefix of its
 * id, as sessions: ids that are made together must differ at the front.
 */
#ifndef AQ_BASE_UUID_H
#define AQ_BASE_UUID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct uuid {
    uint8_t bytes[16];
};

#define UUID_TEXT_MAX 37

/* A fresh id. The kernel's random source; cannot fail after boot. */
struct uuid uuid_random(void);

/* A fresh id that begins with the time (RFC 9562 version 7, in milliseconds of
 * clock_realtime_usec()): for what nobody names by a prefix, as ids that are
 * made together are neighbours in an index.
 */
struct uuid uuid_ordered(void);

/* The same id for the same text, for what is shown with an id and kept without one. One who chooses
 * the text may find another with that id.
 */
struct uuid uuid_of_text(const char *text);

bool uuid_is_nil(const struct uuid *id);
bool uuid_equals(const struct uuid *a, const struct uuid *b);
int uuid_compare(const struct uuid *a, const struct uuid *b);

/* Dashed lower case; returns 'buf'. */
char *uuid_format(const struct uuid *id, char buf[UUID_TEXT_MAX]);

/* Dashed or 32 hex digits, any case. Returns 0 or -EINVAL. */
int uuid_parse(const char *text, struct uuid *ret) AQ_UNTRUSTED;

#endif
