/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - see front/check.h */
#include "front/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/fs.h"
#include "check/machine.h"
#include "check/port.h"
#include "front/identity.h"
#include "link/pki.h"

#define COMMAND_MAX 96

void front_check_port(void *settings, struct finding *ret)
{
    const struct front_settings *s = settings;
    char owner[COMMAND_MAX], option[COMMAND_MAX];

    (void)snprintf(owner, sizeof(owner), "aliquot-%s", s->program);
    (void)snprintf(option, sizeof(option), "aliquot-%s --listen ADDRESS:PORT", s->program);
    port_check(s->listen.host, s->listen.port, owner, option, ret);
}

void front_check_joined(void *settings, struct finding *ret)
{
    const struct front_settings *s = settings;
    char remedy[COMMAND_MAX];
    struct link_identity identity;
    struct pki_cert cert;
    struct aq_error err = { 0 };
    int r = front_identity_load(s, &identity, &err);

    (void)snprintf(remedy, sizeof(remedy), "aliquot-%s join MANAGER:PORT TOKEN", s->program);
    if (r == 0) {
        r = pki_cert_read(identity.cert, &cert, &err);
        link_identity_done(&identity);
    }
    if (r == 0) {
        machine_judge_certificate("the certificate of the cluster", cert.not_after_usec,
                                  clock_realtime_usec(), remedy, ret);
        return;
    }
    finding_say(ret, r == -ENOENT ? CHECK_ABSENT : CHECK_MISSING, "%s", err.text);
    finding_mend(ret, "%s", remedy);
}

void front_check_certificate(void *settings, struct finding *ret)
{
    const struct front_settings *s = settings;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char remedy[COMMAND_MAX];
    struct pki_cert cert;
    struct aq_error err = { 0 };

    if (!s->tls_cert)
        return; /* plain HTTP, as is usual on loopback */
    (void)snprintf(remedy, sizeof(remedy),
                   "renew it where it came from; then: systemctl reload aliquot-%s", s->program);
    if (fs_read(AT_FDCWD, s->tls_cert, PKI_PEM_MAX, &text, &err) == 0
        && pki_cert_read(text.data, &cert, &err) == 0) {
        machine_judge_certificate(s->tls_cert, cert.not_after_usec, clock_realtime_usec(), remedy,
                                  ret);
        return;
    }
    finding_say(ret, CHECK_MISSING, "%s", err.text);
    finding_mean(ret, "aliquot-%s does not start", s->program);
    finding_mend(ret, "set tls-cert in [%s] of %s.toml", s->program, s->program);
}
