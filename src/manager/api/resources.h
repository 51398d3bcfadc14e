/* SPDX-License-Identifier: Apache-2.0 */
/* resources.h - the routes of each REST resource, a table in each file
 *
 * The role column of a row is an enum api_role, perhaps with API_FREEZABLE; its
 * body column is the table that decodes the parameters. manager/routes.c adds
 * them to the router.
 */
#ifndef AQ_MANAGER_API_RESOURCES_H
#define AQ_MANAGER_API_RESOURCES_H

#include "manager/request/api.h"

API_ROUTES(hello);
API_ROUTES(auth);
API_ROUTES(manager);
API_ROUTES(session_create);
API_ROUTES(session);
API_ROUTES(session_change);
API_ROUTES(session_end);
API_ROUTES(session_history);
API_ROUTES(session_list);
API_ROUTES(logs);
API_ROUTES(pty);
API_ROUTES(apps);
API_ROUTES(exec);
API_ROUTES(events);
API_ROUTES(background_task);
API_ROUTES(resource);
API_ROUTES(agent);
API_ROUTES(image);
API_ROUTES(image_aliases);
API_ROUTES(user);
API_ROUTES(keypair);
API_ROUTES(domain);
API_ROUTES(project);
API_ROUTES(policy);
API_ROUTES(resource_group);
API_ROUTES(fair_share);
API_ROUTES(audit);
API_ROUTES(statistics);

/* Read the settings that manager.c keeps in the store (frozen, announcement);
 * blocks. -ENOMEM or what the store says.
 */
int manager_load(struct api *api, struct aq_error *err);

#endif
