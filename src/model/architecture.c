/* SPDX-License-Identifier: Apache-2.0 */
/* architecture.c - the names of processor architectures */
#include "model/architecture.h"

#include <stddef.h>
#include <strings.h>

#include "base/cleanup.h"

#define MACHINES 2 /* rows which have one name in uname(2) */

/* The first of a row is OCI's name, the second uname(2)'s. */
static const char *const architectures[][5] = {
    { "amd64", "x86_64", "x86-64", "x64" },
    { "arm64", "aarch64" },
    { "arm", "armv7l", "armv6l", "armhf", "armel" },
    { "386", "i686", "i386", "i586", "x86" },
    { "loong64", "loongarch64" },
};

static const char *architecture_find(const char *name, size_t rows, size_t column)
{
    for (size_t i = 0; name && i < rows; i++)
        for (size_t k = 0; k < AQ_COUNT(architectures[i]) && architectures[i][k]; k++)
            if (strcasecmp(name, architectures[i][k]) == 0)
                return architectures[i][column];
    return name;
}

const char *architecture_of_image(const char *name)
{
    return architecture_find(name, AQ_COUNT(architectures), 0);
}

const char *architecture_of_machine(const char *name)
{
    return architecture_find(name, MACHINES, 1);
}
