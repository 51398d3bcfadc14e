/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - see web/check.h */
#include "web/check.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "front/check.h"
#include "web/settings.h"

static void web_check_folder(void *data, struct finding *ret)
{
    const struct settings *s = data;
    AQ_CLEANUP(aq_freep) char *index = s->folder ? aq_format("%s/index.html", s->folder) : NULL;

    if (!s->folder)
        return; /* the console, which is in the program */
    finding_say(ret, CHECK_OK, "%s", s->folder);
    if (index && access(index, R_OK) == 0)
        return;
    finding_say(ret, CHECK_MISSING, "%s/index.html: %s", s->folder, strerror(errno));
    finding_mean(ret, "browsers get no page");
    finding_mend(ret, "put the files of a web interface there, or set static in [web] of web.toml");
}

const struct check web_checks[] = {
    { "web.joined", "web", "membership", front_check_joined },
    { "web.port", "web", "port for browsers", front_check_port },
    { "web.certificate", "web", "certificate", front_check_certificate },
    { "web.static", "web", "files", web_check_folder },
    { .id = NULL },
};
