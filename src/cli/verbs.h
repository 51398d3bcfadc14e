/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.h - every command; each is defined in the file of its noun */
#ifndef AQ_CLI_VERBS_H
#define AQ_CLI_VERBS_H

#include "cli/cli.h"

/* up.c, nodes.c, profile.c, admin/doctor.c, admin/fair_share.c, gpu.c, sim.c, login.c, help.c,
 * complete.c, config_commands.c, announcement.c
 */
extern const struct cli_verb verb_up;
extern const struct cli_verb verb_doctor;
extern const struct cli_verb verb_fair_share, verb_nodes;
extern const struct cli_verb verb_gpu_run;
extern const struct cli_verb verb_gpu_top;
extern const struct cli_verb verb_sim;
extern const struct cli_verb verb_login, verb_signup, verb_logout, verb_password, verb_whoami;
extern const struct cli_verb verb_announcement, verb_admin_announcement_set,
    verb_admin_announcement_clear;
extern const struct cli_verb verb_ssh_key_show, verb_ssh_key_create, verb_ssh_key_set,
    verb_ssh_key_rm;
extern const struct cli_verb verb_version, verb_help, verb_completion;
extern const struct cli_verb verb_profile_ls, verb_profile_use, verb_profile_rm;
extern const struct cli_verb verb_config_show, verb_config_set, verb_config_unset;

/* session/: apps.c, create.c, session.c, rm.c, logs.c, wait.c, why.c, top.c, stats.c, history.c, attach.c,
 * cp.c, eval.c, exec.c
 */
extern const struct cli_verb verb_run, verb_session_create;
extern const struct cli_verb verb_ps, verb_rm, verb_session_ls, verb_session_info, verb_session_rm,
    verb_session_rename, verb_session_resize, verb_session_restart;
extern const struct cli_verb verb_logs, verb_session_logs, verb_session_wait, verb_session_why;
extern const struct cli_verb verb_top, verb_session_stats;
extern const struct cli_verb verb_session_history;
extern const struct cli_verb verb_session_apps;
extern const struct cli_verb verb_session_attach, verb_exec, verb_eval, verb_cp;

/* tunnel/: folder_sftp.c, port_forward.c, service_app.c, ssh.c, ssh_config.c */
extern const struct cli_verb verb_folder_sftp;
extern const struct cli_verb verb_port_forward, verb_app, verb_notebook, verb_ssh, verb_scp,
    verb_ssh_config;

/* folder/: folder.c, share.c, files.c, cp.c, sync.c, du.c */
extern const struct cli_verb verb_folder_ls, verb_folder_info, verb_folder_hosts,
    verb_folder_create, verb_folder_rename, verb_folder_set, verb_folder_clone, verb_folder_rm,
    verb_folder_restore;
extern const struct cli_verb verb_template_create, verb_template_ls, verb_template_show,
    verb_template_edit, verb_template_rm;
extern const struct cli_verb verb_folder_share, verb_folder_shares, verb_folder_unshare,
    verb_folder_invitations, verb_folder_accept, verb_folder_reject, verb_folder_leave;
extern const struct cli_verb verb_folder_files, verb_folder_mkdir, verb_folder_mv,
    verb_folder_rm_file;
extern const struct cli_verb verb_folder_cp, verb_folder_sync, verb_folder_du;

/* submit/submit.c */
extern const struct cli_verb verb_submit;

/* admin/agent.c, admin/agent_service.c */
extern const struct cli_verb verb_agent_ls, verb_agent_info, verb_agent_set, verb_agent_drain,
    verb_agent_undrain, verb_agent_restart, verb_agent_stop, verb_agent_rm, verb_agent_revoke,
    verb_agent_token, verb_agent_join;

/* backendai/: import.c */
extern const struct cli_verb verb_admin_fixture_populate, verb_admin_import_backendai;

/* admin/: image.c, image_limits.c, cluster.c, freeze.c, trace.c, accounts.c, accounts_rm.c, user_import.c */
extern const struct cli_verb verb_image_ls, verb_image_pull, verb_image_rm, verb_image_gc,
    verb_image_alias, verb_image_unalias, verb_image_info, verb_image_set;
extern const struct cli_verb verb_admin_init, verb_admin_audit, verb_admin_audit_log, verb_admin_db,
    verb_admin_backup, verb_admin_trace, verb_admin_usage;
extern const struct cli_verb verb_admin_freeze, verb_admin_unfreeze;
extern const struct cli_verb verb_admin_config_get, verb_admin_config_set, verb_admin_config_rm,
    verb_admin_config_move, verb_admin_config_export, verb_admin_config_import;
extern const struct cli_verb verb_admin_orphan_ls, verb_admin_orphan_adopt, verb_admin_orphan_end,
    verb_admin_orphan_finish;
extern const struct cli_verb verb_admin_error_log_ls, verb_admin_error_log_clear;
extern const struct cli_verb verb_admin_retention_ls, verb_admin_retention_run;
extern const struct cli_verb verb_admin_import;
extern const struct cli_verb verb_admin_user_ls, verb_admin_user_create, verb_admin_user_set;
extern const struct cli_verb verb_admin_keypair_ls, verb_admin_keypair_create,
    verb_admin_keypair_set, verb_admin_keypair_rm;
extern const struct cli_verb verb_admin_domain_ls, verb_admin_domain_create, verb_admin_domain_set;
extern const struct cli_verb verb_admin_project_ls, verb_admin_project_create,
    verb_admin_project_set;
extern const struct cli_verb verb_admin_resource_group_ls, verb_admin_resource_group_info,
    verb_admin_resource_group_create, verb_admin_resource_group_set,
    verb_admin_resource_group_allow, verb_admin_resource_group_disallow;
extern const struct cli_verb verb_admin_policy_ls, verb_admin_policy_create, verb_admin_policy_set;
extern const struct cli_verb verb_admin_project_add_user, verb_admin_project_remove_user;
extern const struct cli_verb verb_admin_user_rm, verb_admin_user_restore;
extern const struct cli_verb verb_admin_domain_rm, verb_admin_domain_restore;
extern const struct cli_verb verb_admin_project_rm, verb_admin_project_restore;
extern const struct cli_verb verb_admin_resource_group_rm, verb_admin_resource_group_restore;
extern const struct cli_verb verb_admin_policy_rm, verb_admin_policy_restore;
extern const struct cli_verb verb_admin_preset_ls, verb_admin_preset_set, verb_admin_preset_rm;
extern const struct cli_verb verb_admin_notification_channel_ls,
    verb_admin_notification_channel_info, verb_admin_notification_channel_create,
    verb_admin_notification_channel_set, verb_admin_notification_channel_rm,
    verb_admin_notification_channel_test, verb_admin_notification_rule_ls,
    verb_admin_notification_rule_info, verb_admin_notification_rule_create,
    verb_admin_notification_rule_set, verb_admin_notification_rule_rm,
    verb_admin_notification_rule_test, verb_admin_notification_rule_types;
extern const struct cli_verb verb_admin_registry_ls, verb_admin_registry_login,
    verb_admin_registry_logout, verb_admin_registry_rescan;

#endif
