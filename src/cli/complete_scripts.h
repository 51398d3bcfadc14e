/* SPDX-License-Identifier: Apache-2.0 */
/* complete_scripts.h - scripts that let shells ask "aliquot completion words" */
#ifndef AQ_CLI_COMPLETE_SCRIPTS_H
#define AQ_CLI_COMPLETE_SCRIPTS_H

struct complete_shell {
    const char *name, *script;
};
extern const struct complete_shell complete_shells[3];

#endif
