/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.h - what another program keeps on a PostgreSQL server, as pg_dump writes it */
#ifndef AQ_STORE_FOREIGN_H
#define AQ_STORE_FOREIGN_H

#include <stdio.h>

#include "base/error.h"

/* Write the tables of schema "public" to 'out', each as "COPY public.NAME (COLUMNS) FROM
 * stdin;", rows and "\.". Of those that are not wanted only as many empty lines as they have
 * rows. All as of one moment; nothing is locked or changed. Any version of the server. Blocks.
 * -EINVAL if 'uri' names no server; errors as of store_open().
 */
int foreign_dump(const char *uri, const char *const *wanted, size_t wanted_count, FILE *out,
                 struct aq_error *err);

#endif
