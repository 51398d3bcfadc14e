/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - what agents say of the slots of their devices */
#ifndef AQ_MANAGER_NODE_NODE_H
#define AQ_MANAGER_NODE_NODE_H

#include "base/jsonw.h"
#include "manager/core/core.h"

/* {"cuda.shares": {"slot_name", "human_readable_name", "description", "display_unit",
 * "display_icon", "number_format": {"binary", "round_length"}}, ...}: every known slot, as
 * the first agent describes it that does; of one resource group (NULL = all), and then
 * only what its agents have.
 */
void plugins_write_slots(const struct core *core, const char *project, struct jsonw *w);

#endif
