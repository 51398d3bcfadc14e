/* SPDX-License-Identifier: Apache-2.0 */
/* Registers importing a Backend.AI database with the manager. */
#include "manager/backendai/backendai_feature.h"

static const struct route_table *const backendai_routes[] = { &backendai_import_route_table, NULL };

const struct feature backendai_feature = {
    .name = "backendai",
    .routes = backendai_routes,
};
