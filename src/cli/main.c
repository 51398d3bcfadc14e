/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot: the command line. The commands are listed in verbs.def. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
