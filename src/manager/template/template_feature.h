/* SPDX-License-Identifier: Apache-2.0 */
/* template_feature.h - templates and dotfiles: tables of routes in its files */
#ifndef AQ_MANAGER_TEMPLATE_TEMPLATE_FEATURE_H
#define AQ_MANAGER_TEMPLATE_TEMPLATE_FEATURE_H

#include "manager/call/feature.h"

API_ROUTES(dotfile);
API_ROUTES(template);

extern const struct feature template_feature;

#endif
