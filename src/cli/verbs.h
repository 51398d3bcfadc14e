/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.h - every command; each is defined in the file of its noun */
#ifndef AQ_CLI_VERBS_H
#define AQ_CLI_VERBS_H

#include "cli/cli.h"

/* up.c, admin/doctor.c, admin/fair_share.c, gpu.c, sim.c, login.c, help.c, complete.c,
 * config_commands.c
 */
extern const struct cli_verb verb_up;
extern const struct cli_verb verb_doctor;
extern const struct cli_verb verb_fair_share;
extern const struct cli_verb verb_gpu_run;
extern const struct cli_verb verb_gpu_top;
extern const struct cli_verb verb_sim;
extern const struct cli_verb verb_login, verb_logout, verb_whoami;
extern const struct cli_verb verb_version, verb_help, verb_completion;
extern const struct cli_verb verb_config_show, verb_config_set, verb_config_unset;

/* session/: create.c, session.c, rm.c, logs.c, wait.c, why.c, top.c, stats.c, history.c, attach.c,
 * exec.c
 */
extern const struct cli_verb verb_run, verb_session_create;
extern const struct cli_verb verb_ps, verb_rm, verb_session_ls, verb_session_info, verb_session_rm,
    verb_session_rename, verb_session_resize, verb_session_restart;
extern const struct cli_verb verb_logs, verb_session_logs, verb_session_wait, verb_session_why;
extern const struct cli_verb verb_top, verb_session_stats;
extern const struct cli_verb verb_session_history;
extern const struct cli_verb verb_session_attach, verb_exec;

/* submit/submit.c */
extern const struct cli_verb verb_submit;

/* admin/agent.c */
extern const struct cli_verb verb_agent_ls, verb_agent_info, verb_agent_drain, verb_agent_undrain,
    verb_agent_rm, verb_agent_revoke, verb_agent_token, verb_agent_join;

/* admin/: image.c, cluster.c, trace.c, accounts.c, accounts_rm.c */
extern const struct cli_verb verb_image_ls, verb_image_pull, verb_image_rm, verb_image_gc,
    verb_image_alias, verb_image_unalias;
extern const struct cli_verb verb_admin_init, verb_admin_audit, verb_admin_db, verb_admin_trace;
extern const struct cli_verb verb_admin_user_ls, verb_admin_user_create, verb_admin_user_set;
extern const struct cli_verb verb_admin_keypair_ls, verb_admin_keypair_create,
    verb_admin_keypair_set, verb_admin_keypair_rm;
extern const struct cli_verb verb_admin_domain_ls, verb_admin_domain_create, verb_admin_domain_set;
extern const struct cli_verb verb_admin_project_ls, verb_admin_project_create,
    verb_admin_project_set;
extern const struct cli_verb verb_admin_resource_group_ls, verb_admin_resource_group_info,
    verb_admin_resource_group_create, verb_admin_resource_group_set,
    verb_admin_resource_group_allow;
extern const struct cli_verb verb_admin_policy_ls, verb_admin_policy_create, verb_admin_policy_set;
extern const struct cli_verb verb_admin_project_add_user, verb_admin_project_remove_user;
extern const struct cli_verb verb_admin_user_rm, verb_admin_user_restore;
extern const struct cli_verb verb_admin_domain_rm, verb_admin_domain_restore;
extern const struct cli_verb verb_admin_project_rm, verb_admin_project_restore;
extern const struct cli_verb verb_admin_resource_group_rm, verb_admin_resource_group_restore;
extern const struct cli_verb verb_admin_policy_rm, verb_admin_policy_restore;

#endif
