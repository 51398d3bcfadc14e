/* SPDX-License-Identifier: Apache-2.0 */
/* tool_report.c - how aliquot-unpack and aliquot-fetch report a failure to the agent */
#include "agent/image/tool_report.h"

#include <stdio.h>
#include <string.h>

/* One line, whatever the names in it are. */
void tool_report(const struct aq_error *err)
{
    char text[sizeof(err->text)];

    (void)strcpy(text, err->text);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '?';
    (void)printf("failed %d %s %s\n", err->code, err->field[0] ? err->field : "-", text);
}
