/* SPDX-License-Identifier: Apache-2.0 */
/* address.c - addresses "host:port" in settings */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "conf/conf.h"

/* 1..65535, digits only. */
static bool address_parse_port(const char *text, uint16_t *ret)
{
    unsigned long value = 0;

    if (!text[0] || strlen(text) > 5 || text[strspn(text, "0123456789")] != '\0')
        return false;
    value = strtoul(text, NULL, 10);
    if (value == 0 || value > UINT16_MAX)
        return false;
    *ret = (uint16_t)value;
    return true;
}

/* Find host and port within 'text'; *ret_port NULL when there is none. */
static bool address_split(const char *text, const char **ret_host, size_t *ret_len,
                          const char **ret_port)
{
    const char *end;

    if (text[0] == '[') {
        end = strchr(text, ']');
        if (!end || end == text + 1 || (end[1] != '\0' && end[1] != ':'))
            return false;
        *ret_host = text + 1;
        *ret_len = (size_t)(end - text - 1);
        *ret_port = end[1] ? end + 2 : NULL;
        return true;
    }
    end = strchr(text, ':');
    if (end && strchr(end + 1, ':'))
        return false; /* an IPv6 address needs brackets */
    *ret_host = text;
    *ret_len = end ? (size_t)(end - text) : strlen(text);
    *ret_port = end ? end + 1 : NULL;
    return true;
}

int conf_parse_address(const char *text, uint16_t default_port, struct conf_listen *ret,
                       struct aq_error *err)
{
    const char *host, *port_text;
    uint16_t port = default_port;
    size_t len;

    if (!address_split(text, &host, &len, &port_text) || strcspn(host, " \t\r\n/@") < len)
        return aq_fail_field(err, EINVAL, "address",
                             "'%s' is not an address like host:port or [::1]:port", text);
    if (port_text ? !address_parse_port(port_text, &port) : port == 0)
        return aq_fail_field(err, EINVAL, "address", "'%s' needs a port from 1 to 65535", text);
    if (len == 0 && !port_text)
        return aq_fail_field(err, EINVAL, "address", "the address is empty");
    *ret = (struct conf_listen){ .host = len ? aq_strndup(host, len) : aq_strdup("0.0.0.0"),
                                 .port = port };
    return 0;
}
