/* SPDX-License-Identifier: Apache-2.0 */
/* What a client needs to log in to a session by SSH: the session's key and the host's. Both are
 * derived here, as the agent derives them, so nothing is read from the session.
 */
#include <string.h>

#include "manager/session/session.h"
#include "manager/stream/stream_feature.h"
#include "model/ssh_key.h"

struct session_ssh_keys {
    struct ssh_key user, host;
    struct ssh_ecdsa_key host_ecdsa;
};

static int session_ssh_derive(const struct api *api, const struct kernel *kernel,
                              struct session_ssh_keys *ret, struct aq_error *err)
{
    char seed_text[SSH_SEED_TEXT + 1], name[KERNEL_HOSTNAME_MAX];
    char label[sizeof(SSH_LABEL_HOST) + KERNEL_HOSTNAME_MAX];
    char label_ecdsa[sizeof(SSH_LABEL_HOST_ECDSA) + KERNEL_HOSTNAME_MAX];
    unsigned char seed[SSH_KEY_SIZE];
    int r = core_derive_ssh_seed(api->core, kernel->session, seed_text, err);

    if (r == 0)
        r = ssh_seed_parse(seed_text, seed);
    (void)snprintf(label, sizeof(label), SSH_LABEL_HOST "%s", kernel_hostname(kernel, name));
    (void)snprintf(label_ecdsa, sizeof(label_ecdsa), SSH_LABEL_HOST_ECDSA "%s", name);
    if (r == 0)
        r = ssh_key_derive(seed, SSH_LABEL_CONTAINER, &ret->user, err);
    if (r == 0)
        r = ssh_key_derive(seed, label, &ret->host, err);
    return r < 0 ? r : ssh_ecdsa_derive(seed, label_ecdsa, &ret->host_ecdsa, err);
}

static void session_ssh_reply(struct request *req, const struct session_ssh_keys *keys,
                              uint16_t port)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf private_key = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf host_key = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf host_key_ecdsa = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    ssh_key_add_openssh(&keys->user, SSH_USER "@session", &private_key);
    ssh_key_add_public(&keys->host, &host_key);
    ssh_ecdsa_add_public(&keys->host_ecdsa, &host_key_ecdsa);
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "user", SSH_USER);
    jsonw_member_int(&w, "port", port);
    jsonw_member_str(&w, "host_key", host_key.data);
    jsonw_member_str(&w, "host_key_ecdsa", host_key_ecdsa.data);
    jsonw_member_str(&w, "private_key", private_key.data);
    jsonw_object_end(&w);
    request_add_header(req, "Cache-Control", "no-store");
    request_reply_json(req, 200, &out);
    explicit_bzero(out.data, out.len);
    explicit_bzero(private_key.data, private_key.len);
}

static void session_ssh_on_get(struct request *req, void *data)
{
    const struct kernel *kernel = session_find_live_kernel(data, req);
    struct session_ssh_keys keys;
    struct aq_error err = { 0 };
    uint16_t port;

    if (!kernel)
        return;
    port = apps_find_port(kernel, "sshd", 0);
    if (!port)
        (void)problem_no_such(&err, "app service",
                              "session '%s' has no SSH server: it needs an interactive session, an "
                              "image with a shell, and a node with networks and dropbear",
                              kernel->session->name);
    if (err.code || session_ssh_derive(data, kernel, &keys, &err) < 0)
        request_fail(req, &err);
    else
        session_ssh_reply(req, &keys, port);
    explicit_bzero(&keys, sizeof(keys));
}

static const struct route session_ssh_routes[] = {
    { METHOD_GET, "/aliquot/v1/sessions/{name}/ssh", API_USER, session_ssh_on_get, kernel_fields,
      "The keys with which to log in to a kernel of a session by SSH" },
};
API_ROUTES_END(session_ssh);
