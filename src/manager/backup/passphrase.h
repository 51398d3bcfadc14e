/* SPDX-License-Identifier: Apache-2.0 */
/* passphrase.h - of a backup, from a file or a person */
#ifndef AQ_MANAGER_BACKUP_PASSPHRASE_H
#define AQ_MANAGER_BACKUP_PASSPHRASE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define PASSPHRASE_MAX 1024

/* The first line of a file that others cannot read ("-" = standard input), or
 * what is typed on the terminal, twice if 'is_new'. -EACCES, -EINVAL.
 */
int passphrase_read(const char *file, bool is_new, char ret[PASSPHRASE_MAX + 1],
                    struct aq_error *err);

#endif
