/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of the user. Not in fs.c, which is part of static programs, where the
 * user database cannot be read.
 */
#include "base/fs.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strbuf.h"

/* Services and containers often start programs without HOME. */
static const char *fs_user_home(void)
{
    const char *home = getenv("HOME");
    const struct passwd *user;

    if (home && home[0] == '/')
        return home;
    user = getpwuid(geteuid());
    return user && user->pw_dir[0] == '/' ? user->pw_dir : "/";
}

/* $variable/aliquot, or $HOME/fallback/aliquot. */
static char *fs_user_dir(const char *variable, const char *fallback)
{
    const char *base = getenv(variable);

    if (base && base[0] == '/')
        return aq_format("%s/aliquot", base);
    return aq_format("%s/%s/aliquot", fs_user_home(), fallback);
}

char *fs_state_dir(void)
{
    const char *chosen = getenv("ALIQUOT_STATE_DIR");

    if (chosen && chosen[0])
        return aq_strdup(chosen);
    if (geteuid() == 0 && !getenv("XDG_STATE_HOME"))
        return aq_strdup("/var/lib/aliquot");
    return fs_user_dir("XDG_STATE_HOME", ".local/state");
}

char *fs_user_config_dir(void)
{
    return fs_user_dir("XDG_CONFIG_HOME", ".config");
}

char *fs_user_cache_dir(void)
{
    return fs_user_dir("XDG_CACHE_HOME", ".cache");
}

char *fs_user_file(const char *name)
{
    return aq_format("%s/%s", fs_user_home(), name);
}
