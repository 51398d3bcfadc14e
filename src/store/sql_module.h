/* SPDX-License-Identifier: Apache-2.0 */
/* sql_module.h - an engine in a file of its own
 *
 * Few clusters use a server for their database: libpq and what it needs (TLS,
 * Kerberos, LDAP) is loaded by those alone, with aliquot-postgres.so.
 */
#ifndef AQ_STORE_SQL_MODULE_H
#define AQ_STORE_SQL_MODULE_H

#include "store/sql.h"

#define SQL_MODULE_FILE "aliquot-postgres.so"
#define SQL_MODULE_SYMBOL "aq_sql_module"

struct sql_module {
    const char *version; /* of the program that it belongs to: nothing else may load it */
    const struct sql_ops *ops;
};

__attribute__((visibility("default"))) extern const struct sql_module aq_sql_module;

#endif
