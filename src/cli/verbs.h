/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.h - declares every command; verbs.def lists them */
#ifndef AQ_CLI_VERBS_H
#define AQ_CLI_VERBS_H

#include "cli/cli.h"

#define VERB(name) extern const struct cli_verb verb_##name;
#include "cli/verbs.def"
#undef VERB

#endif
