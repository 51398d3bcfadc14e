/* SPDX-License-Identifier: Apache-2.0 */
/* json_member.h - members of a JSON object by kind, with errors that name the member's place
 *
 * Scaling and rollout of a service are small objects that users write. Functions return 0, or -EINVAL
 * with "scaling.rules[0].target" as field and at the beginning of the text. *ret stays as it was if the
 * member is absent or null.
 */
#ifndef AQ_SERVING_JSON_MEMBER_H
#define AQ_SERVING_JSON_MEMBER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct json_member_file {
    json_t *root;
};

/* An object and its place. */
struct json_member {
    const json_t *object;
    const char *path;
    struct arena *arena;
    struct aq_error *err;
};

/* Read 'text', at most 'max' bytes (else -E2BIG), whose root is called 'name'. Texts that are read
 * later are copied to 'arena'; *ret is valid until json_member_donep().
 */
int json_member_load(struct json_member_file *file, const char *name, const char *text, size_t len,
                     size_t max, struct arena *arena, struct json_member *ret,
                     struct aq_error *err) AQ_UNTRUSTED;
void json_member_donep(struct json_member_file *file);

/* 'key' NULL = the object itself. */
int json_member_refuse(const struct json_member *at, const char *key, const char *fmt, ...)
    AQ_PRINTF(3, 4);

/* -EINVAL for what is not an object, and for a key that is not in the list, which ends with NULL. */
int json_member_check_keys(const struct json_member *at, const char *const *known);
bool json_member_has(const struct json_member *at, const char *key);

/* A member that is an object, or an item of a list; check their keys before anything else. */
struct json_member json_member_object(const struct json_member *at, const char *key);
struct json_member json_member_item(const struct json_member *at, const char *key, size_t i);

int json_member_text(const struct json_member *at, const char *key, size_t max, const char **ret);
/* One of the words, in any case; *ret is that of the list, which ends with NULL. */
int json_member_choice(const struct json_member *at, const char *key, const char *const *words,
                       const char **ret);
/* A number, also as text. */
int json_member_number(const struct json_member *at, const char *key, double min, double max,
                       double *ret);
int json_member_integer(const struct json_member *at, const char *key, int64_t min, int64_t max,
                        int64_t *ret);
int json_member_flag(const struct json_member *at, const char *key, bool *ret);
/* Seconds, as number or text, also "5m". */
int json_member_seconds(const struct json_member *at, const char *key, int64_t max,
                        int64_t *ret_usec);

#endif
