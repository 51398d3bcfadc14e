/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all commands. */
#include "cli/verbs.h"

const struct cli_verb *const cli_verbs[] = {
#define VERB(name) &verb_##name,
#include "cli/verbs.def"
#undef VERB
    NULL,
};
