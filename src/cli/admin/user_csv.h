/* SPDX-License-Identifier: Apache-2.0 */
/* user_csv.h - a table of users as the rows of POST /aliquot/v1/users/import
 *
 * The first line names the columns, in any order and case. Pure.
 */
#ifndef AQ_CLI_ADMIN_USER_CSV_H
#define AQ_CLI_ADMIN_USER_CSV_H

#include <jansson.h>

#include "base/error.h"
#include "base/strbuf.h"

#define USER_CSV_BYTES_MAX (512 << 10)
#define USER_CSV_ROWS_MAX 2000
#define USER_CSV_ERRORS_MAX 50 /* that are told */

/* [{"line", "user": {...}, "policy"}] in *ret, json_decref. text[len] must be NUL; it is
 * changed. 'domain' is that of rows that name none. -EINVAL for what is wrong with the file;
 * what is wrong with lines is appended to 'errors', a line each, and counted.
 */
int user_csv_read(char *text, size_t len, const char *domain, json_t **ret, struct strbuf *errors,
                  size_t *ret_count, struct aq_error *err) AQ_UNTRUSTED;

/* Append the column that a member of the request comes from, for errors; the member itself if none.
 */
void user_csv_add_column_of(const char *member, struct strbuf *out);

#endif
