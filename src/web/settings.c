/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - see settings.h */
#include "web/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/client_address.h"

#define AT(member) offsetof(struct settings, member)

const struct conf_item settings_items[] = {
    { "web", "listen", CONF_LISTEN, FRONT_AT(listen), "127.0.0.1:8090", 0, 0, 0,
      "Address at which browsers, or a front end, reach the web server." },
    { "web", "public-url", CONF_STR, FRONT_AT(public_url), NULL, 0, 0, 0,
      "URL of the web server as browsers know it, https://gpu.example.org; none: what they ask for." },
    FRONT_CERTIFICATE_ITEMS("web"),
    FRONT_MEMBERSHIP_ITEMS("web", "web server", "main", "its certificate and keys"),
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
      "model-store,chat,pipeline,import,my-environment,reservoir,scheduler,"
      "diagnostics,branding,rbac,ai-agent,admin-deployments,admin-serving",
      0, 0, 0, "Pages of Backend.AI's WebUI that its menu does not show." },
    FRONT_RUNNING_ITEMS("web", "browsers", "127.0.0.1:8093"),
    CONF_TABLE_END,
};

static int settings_check_urls(const char *field, struct conf_list *list, struct aq_error *err)
{
    for (size_t i = 0; i < list->count; i++)
        if (!front_settings_check_url(list->items[i]))
            return aq_fail_field(err, EINVAL, field, "'%.100s' is no URL without a path",
                                 list->items[i]);
    return 0;
}

static int settings_read_proxies(struct conf_list *list, struct aq_error *err)
{
    for (size_t i = 0; i < list->count; i++) {
        char address[CLIENT_ADDRESS_MAX];

        if (address_normalize(list->items[i], strlen(list->items[i]), address) < 0)
            return aq_fail_field(err, EINVAL, "web.trusted-proxies",
                                 "'%.60s' is no address of a machine", list->items[i]);
        free(list->items[i]);
        list->items[i] = aq_strdup(address);
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
