/* SPDX-License-Identifier: Apache-2.0 */
/* Registers templates and dotfiles with the manager. */
#include "manager/template/template_feature.h"

static const struct route_table *const template_routes[] = { &dotfile_route_table,
                                                             &template_route_table, NULL };

const struct feature template_feature = {
    .name = "template",
    .routes = template_routes,
};
