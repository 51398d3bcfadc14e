/* SPDX-License-Identifier: Apache-2.0 */
/* toml.h - TOML as a flat run of values, for conf.c only
 *
 * The parser is toml++ behind one extern "C" call; no C++ type and no
 * exception leaves toml.cc.
 */
#ifndef AQ_CONF_TOML_H
#define AQ_CONF_TOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum toml_kind { TOML_STR, TOML_INT, TOML_FLOAT, TOML_BOOL, TOML_TABLE, TOML_ARRAY, TOML_OTHER };

struct toml_value {
    enum toml_kind kind;
    const char *section; /* "", "a", "a.b", "a.list[2]" within a table of an array */
    const char *key;     /* of a TOML_TABLE: its last name; of what is in an array: "list[2]" */
    unsigned line;       /* 1-based */
    const char *str;     /* TOML_STR: NUL-terminated, no NUL inside */
    int64_t integer;
    double real;
    bool boolean;
};

/* Called for tables and arrays before their members, tables in order of key; everything is
 * borrowed. 0 to go on, -errno with 'err' filled to stop.
 */
typedef int (*toml_value_fn)(void *data, const struct toml_value *value, struct aq_error *err);

/* -EINVAL with "NAME:LINE: ..." for text that is not TOML; -EFBIG past
 * CONF_FILE_MAX; -ENOMEM; what 'fn' returned.
 */
int toml_read(const char *name, const char *text, size_t len, toml_value_fn fn, void *data,
              struct aq_error *err);

#ifdef __cplusplus
}
#endif

#endif
