/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - see proxy/check.h */
#include "proxy/check.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "check/machine.h"
#include "check/port.h"
#include "link/pki.h"
#include "proxy/identity.h"

#define OWNER "aliquot-proxy"

static void proxy_check_port(void *data, struct finding *ret)
{
    const struct settings *s = data;

    port_check(s->listen.host, s->listen.port, OWNER, OWNER " --listen ADDRESS:PORT", ret);
}

/* Without one the machine is no proxy, which is fine. */
static void proxy_check_joined(void *data, struct finding *ret)
{
    struct link_identity identity;
    struct pki_cert cert;
    struct aq_error err = { 0 };
    int r = identity_load(data, &identity, &err);

    if (r == 0) {
        r = pki_cert_read(identity.cert, &cert, &err);
        link_identity_done(&identity);
    }
    if (r == 0) {
        machine_judge_certificate("the certificate of the cluster", cert.not_after_usec,
                                  clock_realtime_usec(), OWNER " join MANAGER:PORT TOKEN", ret);
        return;
    }
    finding_say(ret, r == -ENOENT ? CHECK_ABSENT : CHECK_MISSING, "%s", err.text);
    finding_mend(ret, OWNER " join MANAGER:PORT TOKEN");
}

static void proxy_check_certificate(void *data, struct finding *ret)
{
    const struct settings *s = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct pki_cert cert;
    struct aq_error err = { 0 };

    if (!s->tls_cert)
        return; /* plain HTTP, as is usual on loopback */
    if (fs_read(AT_FDCWD, s->tls_cert, PKI_PEM_MAX, &text, &err) == 0
        && pki_cert_read(text.data, &cert, &err) == 0) {
        machine_judge_certificate(s->tls_cert, cert.not_after_usec, clock_realtime_usec(),
                                  "renew it where it came from; then: systemctl reload " OWNER,
                                  ret);
        return;
    }
    finding_say(ret, CHECK_MISSING, "%s", err.text);
    finding_mean(ret, OWNER " does not start");
    finding_mend(ret, "set tls-cert in [proxy] of proxy.toml");
}

static const struct check proxy_checks[] = {
    { "proxy.joined", "proxy", "membership", proxy_check_joined },
    { "proxy.port", "proxy", "port for browsers", proxy_check_port },
    { "proxy.certificate", "proxy", "certificate", proxy_check_certificate },
    { .id = NULL },
};

int proxy_check(const struct settings *settings, char *const *parts, int count,
                struct aq_error *err)
{
    return checks_run(proxy_checks, (void *)(uintptr_t)settings, parts, count, stdout, err);
}
