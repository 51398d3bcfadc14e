/* SPDX-License-Identifier: Apache-2.0 */
/* inventory.h - what agents report: greetings, heartbeats, kernels */
#ifndef AQ_MANAGER_CORE_NODES_INVENTORY_H
#define AQ_MANAGER_CORE_NODES_INVENTORY_H

struct link_server_ops;

extern const struct link_server_ops inventory_link_ops;

#endif
