/* SPDX-License-Identifier: Apache-2.0 */
/* json_load.h - read and write JSON, and say so if memory is short
 *
 * jansson's lexer does not look whether its buffer could grow: without memory a
 * text loses characters and the rest is read as if nothing had happened, or an
 * assertion ends the program. What it writes loses the keys of members.
 */
#ifndef AQ_BASE_JSON_LOAD_H
#define AQ_BASE_JSON_LOAD_H

#include <jansson.h>

/* As json_loadb(), but NULL with errno ENOMEM if any allocation failed; errno is 0 after
 * every other failure. The first call sets jansson's allocator for the whole process:
 * what malloc() has given before is still freed.
 */
json_t *json_load_text(const char *text, size_t len, size_t flags, json_error_t *ret_error);

/* The same for a text that ends with NUL; NULL is fine, and gives NULL. */
json_t *json_load_string(const char *text, size_t flags);

/* As json_dumps(), but NULL if any allocation failed. To be freed. */
char *json_dump_text(const json_t *value, size_t flags);

#endif
