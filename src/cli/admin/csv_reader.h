/* SPDX-License-Identifier: Apache-2.0 */
/* csv_reader.h - records of comma-separated values by RFC 4180, as spreadsheets write them
 *
 * Lines end with LF, CRLF or CR; fields may be quoted and then hold separators, line ends
 * and doubled quotes. A mark of UTF-8 before the first is passed over; other encodings are
 * refused. Pure; reads in place.
 */
#ifndef AQ_CLI_ADMIN_CSV_READER_H
#define AQ_CLI_ADMIN_CSV_READER_H

#include <stddef.h>

#include "base/error.h"

#define CSV_FIELDS_MAX 32
#define CSV_FIELD_MAX 4096 /* bytes */

struct csv_reader {
    char *at, *end;
    char separator;
    size_t line; /* where the next record begins, from 1 */
};

struct csv_record {
    char *fields[CSV_FIELDS_MAX]; /* in the text, NUL-terminated, without blanks around */
    size_t count;
    size_t line; /* where it begins */
};

/* text[len] must be NUL; the text is changed, and must outlive the records. The separator is
 * the first of ',', ';' and tab that the first line has outside of quotes. -EINVAL if it is not
 * UTF-8 text.
 */
int csv_reader_begin(struct csv_reader *reader, char *text, size_t len,
                     struct aq_error *err) AQ_UNTRUSTED;

/* 1 = a record, 0 = the end, -EINVAL names the line. Records without any text are passed over. */
int csv_reader_next(struct csv_reader *reader, struct csv_record *ret,
                    struct aq_error *err) AQ_UNTRUSTED;

#endif
