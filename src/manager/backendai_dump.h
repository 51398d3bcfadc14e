/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_dump.h - "aliquot-manager backendai-dump", which 'aliquot admin import-backendai'
 * starts
 *
 * Reads from standard input where the database is (postgresql://..., by which no password is
 * seen among the processes) and then the tables that are wanted, a line each, and writes to
 * standard output what store/foreign.h says. Blocks.
 */
#ifndef AQ_MANAGER_BACKENDAI_DUMP_H
#define AQ_MANAGER_BACKENDAI_DUMP_H

#include "base/error.h"

int backendai_dump(struct aq_error *err);

#endif
