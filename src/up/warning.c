/* SPDX-License-Identifier: Apache-2.0 */
/* warning.c - see warning.h */
#include "up/warning.h"

#include <unistd.h>

const char *warning_of_sessions(bool is_dev)
{
    if (!is_dev)
        return geteuid() == 0
                   ? ""
                   : "Sessions without an image can do on this machine what you can, and "
                     "read these\nkeys: let nobody else use this cluster, or run it as "
                     "root.\n\n";
    return geteuid() == 0 ? "For development only: the keys are published, sessions without an "
                            "image are root\non this machine, and the image \"host\" shows its "
                            "files.\n\n"
                          : "For development only: the keys are published, and sessions without an "
                            "image can do\non this machine what you can.\n\n";
}
