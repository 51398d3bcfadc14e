/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-web - logs people in with their browsers, and serves the pages that they work with */
#include "web/web.h"

int main(int argc, char **argv)
{
    static struct web web;
    static struct settings settings;

    return front_main(&web_type, &web, &settings, argc, argv);
}
