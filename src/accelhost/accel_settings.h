/* SPDX-License-Identifier: Apache-2.0 */
/* accel_settings.h - the section [accelerators] of a program's settings */
#ifndef AQ_ACCELHOST_ACCEL_SETTINGS_H
#define AQ_ACCELHOST_ACCEL_SETTINGS_H

#include "base/clock.h"
#include "conf/conf.h"

struct aq_accelerator;

struct accel_settings {
    struct conf_list plugins; /* names or paths, each may have ":CONFIG" */
    char *mock;               /* mock-accelerator.toml; NULL = no mock devices */
    char *directory;          /* of the plugins' settings */
    char *library;            /* directory of the plugins; NULL = beside the program */
    struct conf_list cdi;     /* directories of CDI specifications */
    bool hooks;               /* those of CDI specifications are run */
    char *helper;             /* path of aliquot-accel; NULL = beside the program */
    int64_t rescan_usec, limit_usec;
    /* For programs that simulate nodes: this plugin, which is part of the program, instead of
     * 'plugins'. It is called within the program, with 'mock' as its settings. NULL = none.
     */
    const struct aq_accelerator *linked;
};

/* Rows of a table of items for a 'struct accel_settings' member. */
/* clang-format off */
#define ACCEL_SETTINGS_ITEMS(type, member)                                                         \
    { "accelerators", "plugins", CONF_LIST, offsetof(type, member.plugins), "auto", 0, 0, 0,       \
      "Plugins to load: names or paths, with \":FILE\" their settings; \"auto\": what fits the machine" }, \
    { "accelerators", "mock", CONF_PATH, offsetof(type, member.mock), NULL, 0, 0, 0,               \
      "A mock-accelerator.toml: offer devices that do not exist, for tests" },                     \
    { "accelerators", "folder", CONF_PATH, offsetof(type, member.directory),                       \
      "/etc/aliquot/accelerators", 0, 0, 0,                                                        \
      "Folder of settings: cuda.toml, rocm.toml, and one file for each further kind" },            \
    { "accelerators", "library", CONF_PATH, offsetof(type, member.library), NULL, 0, 0, 0,         \
      "Folder of the plugins; beside the agent by default" },                                      \
    { "accelerators", "helper", CONF_PATH, offsetof(type, member.helper), NULL, 0, 0, 0,           \
      "The program aliquot-accel; beside the agent by default" },                                  \
    { "accelerators", "cdi-folders", CONF_LIST, offsetof(type, member.cdi),                        \
      "/etc/cdi /var/run/cdi", 0, 0, 0,                                                            \
      "Where specifications of CDI devices are that plugins name; later folders go first" },       \
    { "accelerators", "cdi-hooks", CONF_BOOL, offsetof(type, member.hooks), "false", 0, 0, 0,      \
      "Run the createContainer hooks of CDI specifications; devices that have hooks are else refused" }, \
    { "accelerators", "rescan", CONF_DURATION, offsetof(type, member.rescan_usec), "30s",          \
      USEC_PER_SEC / 10, INT64_C(86400) * USEC_PER_SEC, 0,                                         \
      "How often to look for devices that came, went or failed" },                                 \
    { "accelerators", "time-limit", CONF_DURATION, offsetof(type, member.limit_usec), "10s",       \
      USEC_PER_SEC / 10, 600 * USEC_PER_SEC, 0,                                                    \
      "A plugin that does not answer for so long is ended and restarted" }
/* clang-format on */

#endif
