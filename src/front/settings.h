/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - what the settings of a proxy, a web server and a storage host have in common */
#ifndef AQ_FRONT_SETTINGS_H
#define AQ_FRONT_SETTINGS_H

#include "conf/conf.h"

/* The first member of a program's own settings. Its items are in [NAME] of NAME.toml, with these
 * keys; "metrics-" stands for a section.
 */
struct front_settings {
    const char *program; /* NAME: "proxy" */
    struct conf_listen listen;
    struct conf_list managers; /* links; none = as joined, and as the leader names them */
    char *name, *state, *public_url, *log_level;
    bool has_public_url; /* it was set */
    char *tls_cert, *tls_key;
    bool insecure;
    int64_t connections_max;
    char *metrics_listen, *metrics_tls_cert, *metrics_tls_key;
    bool metrics_insecure;
};

/* Rows of a program's table of items. All arguments are literals: 'program' as above, 'noun' is
 * what sentences call the program ("web server"), 'clients' who connects to it, and 'files' what is
 * in its state folder.
 */
#define FRONT_AT(member) offsetof(struct front_settings, member)
/* clang-format off */
#define FRONT_CERTIFICATE_ITEMS(program) \
    { program, "tls-cert", CONF_PATH, FRONT_AT(tls_cert), NULL, 0, 0, 0, \
      "Certificate chain (PEM), read again on SIGHUP; without one it speaks plain HTTP." }, \
    { program, "tls-key", CONF_PATH, FRONT_AT(tls_key), NULL, 0, 0, 0, "Its private key (PEM)." }, \
    { program, "insecure", CONF_BOOL, FRONT_AT(insecure), NULL, 0, 0, 0, \
      "Allow plain HTTP on an address that others can reach." }
#define FRONT_MEMBERSHIP_ITEMS(program, noun, initial_name, files) \
    { program, "name", CONF_STR, FRONT_AT(name), initial_name, 0, 0, 0, \
      "Name of this " noun " in its cluster; a token to join is made for it." }, \
    { program, "state", CONF_PATH, FRONT_AT(state), NULL, 0, 0, 0, "Folder of " files "." }, \
    { program, "manager", CONF_LIST, FRONT_AT(managers), NULL, 0, 0, 0, \
      "Links of the cluster's managers, HOST:8082; none: those that it joined and learned." }
#define FRONT_RUNNING_ITEMS(program, clients, metrics_address) \
    { program, "max-connections", CONF_INT, FRONT_AT(connections_max), "10000", 1, 1000000, 0, \
      "Connections of " clients " at one time; further ones are closed." }, \
    { program, "log-level", CONF_STR, FRONT_AT(log_level), "info", 0, 0, 0, \
      "error, warning, info or debug." }, \
    { "metrics", "listen", CONF_STR, FRONT_AT(metrics_listen), metrics_address, 0, 0, 0, \
      "Address of /metrics; off: none." }, \
    { "metrics", "tls-cert", CONF_PATH, FRONT_AT(metrics_tls_cert), NULL, 0, 0, 0, \
      "Certificate chain of /metrics (PEM)." }, \
    { "metrics", "tls-key", CONF_PATH, FRONT_AT(metrics_tls_key), NULL, 0, 0, 0, \
      "Its private key (PEM)." }, \
    { "metrics", "insecure", CONF_BOOL, FRONT_AT(metrics_insecure), NULL, 0, 0, 0, \
      "Allow plain HTTP where others can reach it." }
/* clang-format on */

/* Read the file of 'program' ("proxy", kept by reference), or 'file' unless that is NULL, into
 * 'ret' of 'size' bytes; 'state' and 'listen' go before it unless NULL. State and public URL are
 * filled in. The first item is that of 'listen'. conf_done() only after success.
 */
int front_settings_load(const char *program, const struct conf_item *items, const char *file,
                        const char *state, const char *listen, size_t size, void *ret,
                        struct aq_error *err);

/* A text that is set to nothing, as a variable can be, is not set. */
void front_settings_drop_empty(char **place);

/* Is it a URL without a path? A slash at its end is cut off. */
bool front_settings_check_url(char *text);

/* Do clients reach it by https, if only at a server in front? */
bool front_settings_is_https(const struct front_settings *settings);

#endif
