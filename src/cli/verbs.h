/* verbs.h - every command; each is defined in the file of its noun */
#ifndef AQ_CLI_VERBS_H
#define AQ_CLI_VERBS_H

#include "cli/cli.h"

extern const struct cli_verb verb_up;
extern const struct cli_verb verb_login, verb_logout, verb_whoami;
extern const struct cli_verb verb_run, verb_ps, verb_logs, verb_rm;
extern const struct cli_verb verb_session_create, verb_session_ls, verb_session_info,
    verb_session_rm, verb_session_logs, verb_session_attach, verb_session_rename,
    verb_session_restart, verb_session_why, verb_session_wait;
extern const struct cli_verb verb_agent_ls, verb_agent_info, verb_agent_join, verb_agent_token,
    verb_agent_drain, verb_agent_undrain, verb_agent_rm;
extern const struct cli_verb verb_admin_init, verb_admin_audit, verb_admin_db;
extern const struct cli_verb verb_config_show, verb_version, verb_completion, verb_help;

#endif
