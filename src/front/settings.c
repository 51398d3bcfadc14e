/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - see settings.h */
#include "front/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host_port.h"
#include "http/url.h"
#include "link/identity.h"

static char *front_default_state(const char *program)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

    if (geteuid() == 0)
        return aq_format("/var/lib/aliquot/%s", program);
    if (state && state[0] == '/')
        return aq_format("%s/aliquot/%s", state, program);
    return aq_format("%s/.local/state/aliquot/%s", home ? home : "", program);
}

void front_settings_drop_empty(char **place)
{
    if (*place && !**place) {
        free(*place);
        *place = NULL;
    }
}

bool front_settings_check_url(char *text)
{
    size_t len = strlen(text);
    struct url url;

    if (len && text[len - 1] == '/')
        text[len - 1] = '\0';
    return url_parse(text, &url, NULL) == 0 && strcmp(url.target, "/") == 0;
}

static int front_check_public_url(struct front_settings *s, struct aq_error *err)
{
    char field[40], address[HOST_PORT_MAX];

    s->has_public_url = s->public_url;
    if (!s->public_url) {
        s->public_url = aq_format("%s://%s", s->tls_cert ? "https" : "http",
                                  host_port_write(s->listen.host, s->listen.port, address));
        return 0;
    }
    (void)snprintf(field, sizeof(field), "%s.public-url", s->program);
    if (!front_settings_check_url(s->public_url))
        return aq_fail_field(err, EINVAL, field,
                             "'%.100s' is no URL without a path, such as https://apps.example.org",
                             s->public_url);
    return 0;
}

static int front_finish(const struct conf_item *items, const char *state, const char *listen,
                        struct front_settings *s, struct aq_error *err)
{
    char field[40];
    int r = 0;

    if (state) {
        free(s->state);
        if (!(s->state = conf_absolute_path(state)))
            return aq_fail_errno(err, "find the folder '%s'", state);
    }
    front_settings_drop_empty(&s->public_url);
    if (!s->state)
        s->state = front_default_state(s->program);
    if (listen)
        r = conf_set(&items[0], listen, s, err);
    (void)snprintf(field, sizeof(field), "%s.tls-cert", s->program);
    if (r == 0 && !s->tls_cert != !s->tls_key)
        r = aq_fail_field(err, EINVAL, field,
                          "tls-cert and tls-key belong together: set both or neither");
    (void)snprintf(field, sizeof(field), "%s.manager", s->program);
    if (r == 0)
        r = link_identity_check_addresses(field, &s->managers, err);
    return r < 0 ? r : front_check_public_url(s, err);
}

int front_settings_load(const char *program, const struct conf_item *items, const char *file,
                        const char *state, const char *listen, size_t size, void *ret,
                        struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *usual = file ? NULL : conf_default_file(program);
    struct front_settings *s = ret;
    int r;

    memset(ret, 0, size);
    s->program = program;
    r = conf_load(items, file ? file : usual, !file, ret, err);
    if (r == 0 && (r = front_finish(items, state, listen, s, err)) < 0)
        conf_done(items, ret);
    return r;
}

bool front_settings_is_https(const struct front_settings *settings)
{
    return strncmp(settings->public_url, "https:", 6) == 0;
}
