/* SPDX-License-Identifier: Apache-2.0 */
/* join.h - "aliquot-manager join": a further manager of a cluster */
#ifndef AQ_MANAGER_JOIN_H
#define AQ_MANAGER_JOIN_H

#include "manager/conf.h"

/* Join by the manager at 'url' ("HOST[:PORT]") with a token of 'aliquot admin manager token', and
 * write the state folder. 'conf' has the name, the addresses, and perhaps the database. Blocks.
 */
int manager_join(const struct manager_conf *conf, const char *url, const char *token,
                 struct aq_error *err);

/* What a join left in the state folder: the database, where the settings name none. Before any use
 * of 'conf'.
 */
int manager_join_apply(struct manager_conf *conf, struct aq_error *err);

#endif
