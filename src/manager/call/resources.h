/* SPDX-License-Identifier: Apache-2.0 */
/* resources.h - the routes of each REST resource, a table in each file
 *
 * The role column of a row is an enum api_role, perhaps with API_FREEZABLE; its
 * body column is the table that decodes the parameters. manager/routes.c adds
 * them to the router.
 */
#ifndef AQ_MANAGER_CALL_RESOURCES_H
#define AQ_MANAGER_CALL_RESOURCES_H

#include "manager/call/api.h"

API_ROUTES(hello);
API_ROUTES(openapi);
API_ROUTES(auth);
API_ROUTES(auth_account);
API_ROUTES(signup);
API_ROUTES(ssh_keypair);
API_ROUTES(manager);
API_ROUTES(scheduling_history);
API_ROUTES(session_create);
API_ROUTES(session_files);
API_ROUTES(session);
API_ROUTES(session_change);
API_ROUTES(session_end);
API_ROUTES(session_history);
API_ROUTES(session_list);
API_ROUTES(session_report);
API_ROUTES(session_ssh);
API_ROUTES(logs);
API_ROUTES(pty);
API_ROUTES(app_control);
API_ROUTES(exec);
API_ROUTES(execute);
API_ROUTES(code_stream);
API_ROUTES(tunnel);
API_ROUTES(events);
API_ROUTES(error_log);
API_ROUTES(notification);
API_ROUTES(notification_channel);
API_ROUTES(notification_rule);
API_ROUTES(background_task);
API_ROUTES(resource);
API_ROUTES(check_presets);
API_ROUTES(agent);
API_ROUTES(agent_operation);
API_ROUTES(image);
API_ROUTES(export);
API_ROUTES(image_aliases);
API_ROUTES(image_limits);
API_ROUTES(user);
API_ROUTES(user_import);
API_ROUTES(backendai_import);
API_ROUTES(keypair);
API_ROUTES(domain);
API_ROUTES(dotfile);
API_ROUTES(project);
API_ROUTES(template);
API_ROUTES(folder_list);
API_ROUTES(folder_change);
API_ROUTES(folder_files);
API_ROUTES(folder_share);
API_ROUTES(folder_clone);
API_ROUTES(folder_admin);
API_ROUTES(policy);
API_ROUTES(preset);
API_ROUTES(resource_group);
API_ROUTES(fair_share);
API_ROUTES(nodes);
API_ROUTES(shares);
API_ROUTES(share_spec);
API_ROUTES(audit);
API_ROUTES(audit_log);
API_ROUTES(orphan);
API_ROUTES(service);
API_ROUTES(retention);
API_ROUTES(statistics);
API_ROUTES(live);
API_ROUTES(usage);
API_ROUTES(usage_days);
API_ROUTES(usage_month);
API_ROUTES(usage_total);
API_ROUTES(web_logins);
API_ROUTES(config);
API_ROUTES(registry);

#endif
