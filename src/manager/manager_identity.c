/* SPDX-License-Identifier: Apache-2.0 */
/* By what a manager proves to another one that it is of the same cluster. */
#include "manager/manager_identity.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "link/link.h"
#include "manager/claim.h"

int manager_identity_open(const char *state_dir, const char *name, struct manager_identity *ret,
                          struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *folder = aq_format("%s/ca", state_dir);
    struct tls_options options = { .tls13_only = true, .any_name = true };
    int r;

    *ret = (struct manager_identity){ .id = aq_format(LINK_MANAGER_PREFIX "%s", name) };
    if ((r = pki_ca_open(folder, &ret->ca, err)) == 0)
        r = manager_certificate_make(ret->ca, name, &ret->cert, &ret->key, err);
    if (r < 0)
        return r;
    options.cert_pem = ret->cert;
    options.key_pem = ret->key;
    options.ca_pem = pki_ca_cert(ret->ca);
    return tls_context_new(&options, &ret->tls, err);
}

void manager_identity_done(struct manager_identity *identity)
{
    tls_context_free(identity->tls);
    pki_ca_free(identity->ca);
    free(identity->id);
    free(identity->cert);
    free(identity->key);
}

void link_names_split(const char *text, struct link_names *ret)
{
    char *rest = NULL;

    *ret = (struct link_names){ .text = aq_strdup(text) };
    for (char *name = text ? strtok_r(ret->text, ", ", &rest) : NULL;
         name && ret->count < LINK_NAMES_MAX; name = strtok_r(NULL, ", ", &rest))
        ret->list[ret->count++] = name;
}

void link_names_done(struct link_names *names)
{
    free(names->text);
}
