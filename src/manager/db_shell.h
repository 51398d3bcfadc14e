/* SPDX-License-Identifier: Apache-2.0 */
/* db_shell.h - the database in the shell of its engine */
#ifndef AQ_MANAGER_DB_SHELL_H
#define AQ_MANAGER_DB_SHELL_H

#include <stdbool.h>

#include "base/error.h"
#include "manager/conf.h"

/* Become sqlite3 on the file or psql on the server, which writes nothing unless
 * 'may_write'. A password goes there by its environment, never as an argument.
 * Returns only if that fails: -ENOENT without that program or without a database.
 */
int db_shell_exec(const struct manager_conf *conf, bool may_write, struct aq_error *err);

#endif
