/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-proxy - leads browsers to the apps of sessions */
#include "proxy/proxy.h"

int main(int argc, char **argv)
{
    static struct proxy proxy;
    static struct settings settings;

    return front_main(&proxy_type, &proxy, &settings, argc, argv);
}
