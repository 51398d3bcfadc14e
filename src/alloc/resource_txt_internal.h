/* SPDX-License-Identifier: Apache-2.0 */
/* resource_txt_internal.h - what writer and reader of resource.txt agree on */
#ifndef AQ_ALLOC_RESOURCE_TXT_INTERNAL_H
#define AQ_ALLOC_RESOURCE_TXT_INTERNAL_H

#include "alloc/resource_txt.h"

#define RESOURCE_SHARES_SUFFIX "_SHARES"

/* Not empty, no control characters, no separators of the MOUNTS line. */
bool resource_path_is_valid(const char *path, size_t len);
bool resource_perm_is_valid(const char *perm, size_t len);

/* A further key: printable, without '=', none of the lines that have a meaning. */
bool resource_key_is_valid(const char *key, size_t len);

/* No control characters but tabs. */
bool resource_value_is_valid(const char *value, size_t len);

#endif
