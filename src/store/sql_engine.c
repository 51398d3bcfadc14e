/* SPDX-License-Identifier: Apache-2.0 */
/* Which engine a database is of. */
#include <string.h>

#include "store/sql.h"

bool sql_is_uri(const char *where)
{
    return strncmp(where, "postgresql:", 11) == 0 || strncmp(where, "postgres:", 9) == 0;
}

int sql_find_engine(const char *where, const struct sql_ops **ret, struct aq_error *err)
{
    if (sql_is_uri(where))
        return sql_load_postgres(ret, err);
    *ret = &sql_sqlite;
    return 0;
}
