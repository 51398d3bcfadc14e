/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_load.h - YAML of strangers as the same values that JSON has
 *
 * Plain data only: what has an anchor, an alias, a tag, several documents, a key twice or a key
 * that is no text is refused, so a small text makes no large value. Errors begin with their place,
 * "line 7, column 5: ...".
 */
#ifndef AQ_BASE_YAML_LOAD_H
#define AQ_BASE_YAML_LOAD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct yaml_rules {
    size_t depth_max; /* of nesting, up to YAML_DEPTH_MAX */
    size_t values_max;
    bool has_types; /* of what is not quoted: null, true, false and decimal integers are no texts;
                       numbers with a fraction are, to stay exact */
};

#define YAML_DEPTH_MAX 32

/* Mappings are objects, sequences are arrays. NULL with 'err' -EINVAL. */
json_t *yaml_load_text(const char *text, size_t len, const struct yaml_rules *rules,
                       struct aq_error *err) AQ_UNTRUSTED;

struct yaml_place {
    size_t line, column; /* from 1; 0 = not known */
};

/* Where in the text a member is, e.g. "spec.nodes.1.role": its key, or of the path the last one
 * that is there. JSON is fine, too.
 */
struct yaml_place yaml_find(const char *text, size_t len, const char *path) AQ_UNTRUSTED;

#endif
