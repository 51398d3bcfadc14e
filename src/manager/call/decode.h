/* SPDX-License-Identifier: Apache-2.0 */
/* decode.h - parameters of a request into a struct, by a field table
 *
 * A request's parameters are its JSON body if it has one, else its query
 * string, in which all values are text. A table says what an object may hold;
 * a name that is not in it, a wrong type, a value out of its bounds, a name
 * given twice (also by an alias), text that is not UTF-8, nesting deeper than
 * DECODE_DEPTH_MAX and more values than DECODE_VALUES_MAX are refused with -EINVAL, err->kind
 * "invalid-api-params" and err->field the path of the member
 * ("config.preopen_ports"), or "body" where the text is no JSON at all.
 *
 * The caller puts defaults into the struct first: a member that is not given,
 * or null where that is allowed, leaves its target as it is. Pure; texts are
 * copied into the arena, JSON values are borrowed from the parsed tree.
 */
#ifndef AQ_MANAGER_CALL_DECODE_H
#define AQ_MANAGER_CALL_DECODE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/jsonw.h"
#include "base/lists.h"
#include "base/uuid.h"
#include "http/url.h"
#include "model/field.h"

#define DECODE_DEPTH_MAX 64
#define DECODE_VALUES_MAX 50000 /* of one text: some 10 MB once parsed */
#define DECODE_TEXT_MAX 65536   /* bytes of a FIELD_STR or FIELD_SCALAR with max 0 */
#define DECODE_LIST_MAX 1000 /* elements of a FIELD_STR_LIST with max 0, and of FIELD_PORT_LIST */

/* A JSON text within the limits above: *ret is the caller's (json_decref). A text in it that holds
 * NUL is refused by the path of its member.
 */
int decode_json(const char *text, size_t len, json_t **ret, struct aq_error *err) AQ_UNTRUSTED;

/* The same of so many values, for a thread that may take its time. */
int decode_large_json(const char *text, size_t len, size_t values_max, json_t **ret,
                      struct aq_error *err) AQ_UNTRUSTED;

/* The same for what a session's program wrote: its texts may hold NUL (json_string_length()). */
int decode_output_json(const char *text, size_t len, json_t **ret,
                       struct aq_error *err) AQ_UNTRUSTED;

/* A query string as an object of texts; a name given several times becomes an
 * array of its values. json_decref().
 */
json_t *decode_query(const struct url_query *query) AQ_UNTRUSTED;

/* The members of 'object' into 'target'. A single value stands for a list of
 * one where a list is wanted. -EINVAL names the member.
 */
int decode_object(const struct field *table, const json_t *object, struct arena *arena,
                  void *target, struct aq_error *err) AQ_UNTRUSTED;

/* The name in the table, of *ret_len bytes, that is nearest to a mistyped one; NULL = none is near.
 */
const char *decode_find_near(const struct field *table, const char *key, size_t *ret_len);

/* May the text be shown to others? A name: utf8_is_shown(). A text ('lines') may also have line
 * ends, tabs and marks of direction. *ret_code gets the first character that it must not have, and
 * is undefined else.
 */
bool decode_is_plain(const char *text, size_t len, bool lines, uint32_t *ret_code) AQ_UNTRUSTED;

/* The table as JSON, for the documentation: [{"name", "aliases", "type", ...}]. */
void decode_describe(const struct field *table, struct jsonw *w);

/* "t", "true", "y", "yes", "on", "1" and their opposites, any case. */
int decode_bool_text(const char *text, bool *ret) AQ_UNTRUSTED;

#endif
