/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - see proxy/check.h */
#include "proxy/check.h"

#include "front/check.h"
#include "proxy/settings.h"

static void proxy_check_joined(void *data, struct finding *ret)
{
    front_check_joined("proxy", data, ret);
}

static void proxy_check_port(void *data, struct finding *ret)
{
    front_check_port("proxy", data, ret);
}

static void proxy_check_certificate(void *data, struct finding *ret)
{
    front_check_certificate("proxy", data, ret);
}

static const struct check proxy_checks[] = {
    { "proxy.joined", "proxy", "membership", proxy_check_joined },
    { "proxy.port", "proxy", "port for browsers", proxy_check_port },
    { "proxy.certificate", "proxy", "certificate", proxy_check_certificate },
    { .id = NULL },
};

int proxy_check(const void *settings, char *const *parts, int count, struct aq_error *err)
{
    const struct settings *s = settings;

    return checks_run(proxy_checks, (void *)(uintptr_t)&s->common, parts, count, stdout, err);
}
