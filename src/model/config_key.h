/* SPDX-License-Identifier: Apache-2.0 */
/* config_key.h - keys of the configuration tree, and the tree as JSON
 *
 * A key is a path of names with '/' between, "config/docker/registry/a.example%3A5000".
 * A name is any text; in a key everything but letters, digits and "-._~" is written as
 * %XX. A key may have a value and others below it. As JSON each name is a member, its
 * value a string, or an object whose member "" is the value if others are below:
 *
 *     a/b = 1, a/b/c = 2, x%2Fy = 3      {"a": {"b": {"": "1", "c": "2"}}, "x/y": "3"}
 *
 * Pure.
 */
#ifndef AQ_MODEL_CONFIG_KEY_H
#define AQ_MODEL_CONFIG_KEY_H

#include <jansson.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/strbuf.h"

#define CONFIG_KEY_MAX 1024        /* bytes, written as above */
#define CONFIG_NAMES_MAX 32        /* of one key */
#define CONFIG_VALUE_MAX 65536     /* bytes */
#define CONFIG_KEYS_MAX 10000      /* of the tree */
#define CONFIG_SIZE_MAX (4u << 20) /* characters of all keys and values */

/* Append a key to 'out' in the one spelling above, after a '/' if there is something. A '/'
 * at either end is dropped, so "" and "/" are the root and append nothing; what is escaped
 * or not in 'text' makes no difference. -EINVAL names 'field': an empty name between two
 * '/', what is not UTF-8, a NUL, too many names; too long (of all of 'out').
 */
int config_key_add(struct strbuf *out, const char *field, const char *text,
                   struct aq_error *err) AQ_UNTRUSTED;

/* Append one name, escaped. */
void config_name_write(struct strbuf *out, const char *name);

/* Is 'key' the same as 'above', or below it? Everything is below the root. */
bool config_key_is_within(const char *key, const char *above);

/* Put 'value' into 'tree' (an object) at a key as config_key_add() writes it, "" for the
 * member "".
 */
void config_tree_add(json_t *tree, const char *key, const char *value);

/* Calls 'leaf' for each value of the object 'tree', with its key after 'above' (a key, or "").
 * With 'names_are_keys' a member may be called "a/b", and is escaped as keys are. Booleans
 * and numbers are values as JSON writes them, null is none. -EINVAL names the key: a list, a
 * value that is too long, errors of config_key_add(). A negative result of 'leaf' ends it.
 */
typedef int config_leaf_fn(void *data, const char *key, const char *value, struct aq_error *err);
int config_tree_walk(const json_t *tree, const char *above, bool names_are_keys,
                     config_leaf_fn *leaf, void *data, struct aq_error *err) AQ_UNTRUSTED;

/* A value that is no object as the text that is kept: *ret is to be freed, NULL for null.
 * Errors as above.
 */
int config_value_read(const json_t *value, const char *field, char **ret,
                      struct aq_error *err) AQ_UNTRUSTED;

#endif
