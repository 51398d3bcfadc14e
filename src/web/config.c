/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - /config.toml of Backend.AI's WebUI */
#include "web/web.h"

/* Nothing that is empty is written: versions of the WebUI stop at an empty text. */
void config_serve(struct web *web, struct request *req)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct conf_list *hidden = &web->settings->hidden_pages;
    char endpoint[WEB_URL_MAX];

    page_write_endpoint(web, req, endpoint);
    strbuf_addf(&out,
                "[general]\n"
                "apiEndpoint = \"%s\"\n"
                "apiEndpointText = \"Aliquot\"\n"
                "connectionMode = \"SESSION\"\n"
                "signupSupport = false\n"
                "allowChangeSigninMode = false\n"
                "allowAnonymousChangePassword = false\n"
                "allowProjectResourceMonitor = false\n"
                "allowAppDownloadPanel = false\n"
                "allowManualImageNameForSession = true\n"
                "autoLogout = false\n"
                "debug = false\n"
                "enableContainerCommit = false\n"
                "hideAgents = true\n"
                "enableExtendLoginSession = false\n"
                "\n"
                "[resources]\n"
                "openPortToPublic = false\n"
                "allowNonAuthTCP = false\n"
                "allowPreferredPort = false\n"
                "\n"
                "[environments]\n"
                "showNonInstalledImages = true\n",
                endpoint);
    if (web->proxy_url.len)
        strbuf_addf(&out, "\n[wsproxy]\nproxyURL = \"%s/\"\n", web->proxy_url.data);
    for (size_t i = 0; i < hidden->count; i++)
        strbuf_addf(&out, "%s%s", i ? "," : "\n[menu]\nblocklist = \"", hidden->items[i]);
    strbuf_adds(&out, hidden->count ? "\"\n" : "");
    request_add_header(req, "Cache-Control", "no-store");
    request_reply(req, 200, "application/toml", out.data, out.len);
}
