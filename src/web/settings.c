/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - see settings.h */
#include "web/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "http/client_address.h"
#include "http/url.h"

#define AT(member) offsetof(struct settings, member)
#define COMMON(member) AT(common.member)

const struct conf_item settings_items[] = {
    { "web", "listen", CONF_LISTEN, COMMON(listen), "127.0.0.1:8090", 0, 0, 0,
      "Address at which browsers, or a front end, reach the web server." },
    { "web", "public-url", CONF_STR, COMMON(public_url), NULL, 0, 0, 0,
      "URL of the web server as browsers know it, https://gpu.example.org; none: what they ask for." },
    { "web", "tls-cert", CONF_PATH, COMMON(tls_cert), NULL, 0, 0, 0,
      "Certificate chain (PEM), read again on SIGHUP; without one it speaks plain HTTP." },
    { "web", "tls-key", CONF_PATH, COMMON(tls_key), NULL, 0, 0, 0, "Its private key (PEM)." },
    { "web", "insecure", CONF_BOOL, COMMON(insecure), NULL, 0, 0, 0,
      "Allow plain HTTP on an address that others can reach." },
    { "web", "name", CONF_STR, COMMON(name), "main", 0, 0, 0,
      "Name of this web server in its cluster; a token to join is made for it." },
    { "web", "state", CONF_PATH, COMMON(state), NULL, 0, 0, 0,
      "Folder of its certificate and keys." },
    { "web", "manager", CONF_LISTEN, COMMON(manager), NULL, 0, 0, 0,
      "The manager's link, HOST:8082; none: the one that was joined." },
    { "web", "api", CONF_LIST, AT(api), "http://127.0.0.1:8081", 0, 0, 0,
      "URLs of the API, a manager each: the first that answers is asked." },
    { "web", "static", CONF_PATH, AT(folder), NULL, 0, 0, 0,
      "Folder with the files of a web interface, such as Backend.AI's; none: Aliquot's console." },
    { "web", "domain", CONF_STR, AT(domain), "default", 0, 0, 0, "Domain of those who log in." },
    { "web", "login-lifetime", CONF_DURATION, AT(login_usec), "7d", 60 * USEC_PER_SEC,
      INT64_C(365) * 86400 * USEC_PER_SEC, 0, "How long a login lasts." },
    { "web", "allowed-origins", CONF_LIST, AT(allowed_origins), NULL, 0, 0, 0,
      "Origins whose pages may use it, too, https://portal.example.org; none: its own alone." },
    { "web", "trusted-proxies", CONF_LIST, AT(trusted_proxies), NULL, 0, 0, 0,
      "Addresses of proxies that are believed for whom they ask (X-Forwarded-For)." },
    { "web", "hidden-pages", CONF_LIST, AT(hidden_pages),
      "serving,service,deployments,model-store,chat,pipeline,import,my-environment,reservoir,"
      "scheduler,diagnostics,branding,rbac,ai-agent,admin-deployments,admin-serving",
      0, 0, 0, "Pages of Backend.AI's WebUI that its menu does not show." },
    { "web", "max-connections", CONF_INT, AT(connections_max), "10000", 1, 1000000, 0,
      "Connections of browsers at one time; further ones are closed." },
    { "web", "log-level", CONF_STR, COMMON(log_level), "info", 0, 0, 0,
      "error, warning, info or debug." },
    { "metrics", "listen", CONF_STR, COMMON(metrics_listen), "127.0.0.1:8093", 0, 0, 0,
      "Address of /metrics; off: none." },
    { "metrics", "tls-cert", CONF_PATH, COMMON(metrics_tls_cert), NULL, 0, 0, 0,
      "Certificate chain of /metrics (PEM)." },
    { "metrics", "tls-key", CONF_PATH, COMMON(metrics_tls_key), NULL, 0, 0, 0,
      "Its private key (PEM)." },
    { "metrics", "insecure", CONF_BOOL, COMMON(metrics_insecure), NULL, 0, 0, 0,
      "Allow plain HTTP where others can reach it." },
    CONF_TABLE_END,
};

/* An URL without a path. */
static int settings_check_url(const char *field, char *text, struct aq_error *err)
{
    size_t len = strlen(text);
    struct url url;

    if (len && text[len - 1] == '/')
        text[len - 1] = '\0';
    if (url_parse(text, &url, err) < 0 || strcmp(url.target, "/") != 0)
        return aq_fail_field(err, EINVAL, field, "'%.100s' is no URL without a path", text);
    return 0;
}

static int settings_check_urls(const char *field, struct conf_list *list, struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < list->count; i++)
        r = settings_check_url(field, list->items[i], err);
    return r;
}

static int settings_read_proxies(struct conf_list *list, struct aq_error *err)
{
    for (size_t i = 0; i < list->count; i++) {
        char address[CLIENT_ADDRESS_MAX], *copy;

        if (address_normalize(list->items[i], strlen(list->items[i]), address) < 0)
            return aq_fail_field(err, EINVAL, "web.trusted-proxies",
                                 "'%.60s' is no address of a machine", list->items[i]);
        if (!(copy = strdup(address)))
            return aq_fail_oom(err);
        free(list->items[i]);
        list->items[i] = copy;
    }
    return 0;
}

int settings_finish(void *settings, struct aq_error *err)
{
    struct settings *s = settings;
    int r = s->api.count ? 0 : aq_fail_field(err, EINVAL, "web.api", "there is no manager");

    front_settings_drop_empty(&s->folder);
    if (r == 0)
        r = settings_check_urls("web.api", &s->api, err);
    if (r == 0)
        r = settings_check_urls("web.allowed-origins", &s->allowed_origins, err);
    return r < 0 ? r : settings_read_proxies(&s->trusted_proxies, err);
}
