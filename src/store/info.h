/* SPDX-License-Identifier: Apache-2.0 */
/* info.h - what a database is: engine, size, schema, who writes into it, rows
 *
 * Read beside a manager that serves; nothing is changed.
 */
#ifndef AQ_STORE_INFO_H
#define AQ_STORE_INFO_H

#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "store/store.h"

#define STORE_INFO_TABLES_MAX 64

struct store_info {
    char engine[64]; /* "SQLite 3.40.1" */
    char where[256]; /* without a password */
    int64_t bytes;
    char schema[64];      /* name of the last migration; "" = there is none */
    int64_t newer, older; /* migrations that this program does not know, or that are to be made */
    int64_t epoch, taken_usec; /* servers: of the manager that writes, or wrote last; 0 = nobody */
    char manager[256];         /* its address */
    size_t table_count;
    struct {
        const char *name;
        int64_t rows;
    } tables[STORE_INFO_TABLES_MAX];
    struct strbuf risks; /* a line for each reason why what was acknowledged may get lost */
};

/* 'where' as struct store_conf has it. *ret is done with store_info_done() in any case. */
int store_info_read(const char *where, struct store_info *ret, struct aq_error *err);
void store_info_done(struct store_info *info);

/* Give space of removed rows back, and let the engine look at what is there. A file
 * must be nobody else's meanwhile (-EBUSY) and needs as much space once more; a
 * server does it beside a manager.
 */
int store_vacuum(const struct store_conf *conf, struct aq_error *err);

#endif
