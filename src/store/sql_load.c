/* SPDX-License-Identifier: Apache-2.0 */
/* The engine for PostgreSQL by its module: see sql_module.h */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/installed.h"
#include "base/strbuf.h"
#include "store/sql_module.h"

#if AQ_STATIC
/* A static program loads nothing. */
int sql_load_postgres(const struct sql_ops **ret, struct aq_error *err)
{
    (void)ret;
    return aq_fail(err, ENOTSUP,
                   "this program was built for SQLite alone; take a package with " SQL_MODULE_FILE);
}
#else
/* The library is never closed: connections may be open. */
int sql_load_postgres(const struct sql_ops **ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = installed_find(SQL_MODULE_FILE);
    const struct sql_module *found;
    void *library;

    if (!path)
        return aq_fail(err, ENOENT,
                       "PostgreSQL needs " SQL_MODULE_FILE ", which is neither beside this "
                       "program nor in lib/aliquot: install the package aliquot-postgres");
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    found = library ? dlsym(library, SQL_MODULE_SYMBOL) : NULL;
    if (!found)
        return aq_fail(err, ENOEXEC, "cannot load '%s': %s", path, dlerror());
    if (strcmp(found->version, ALIQUOT_VERSION) != 0)
        return aq_fail(err, ENOEXEC, "'%s' is of version %s, this program of " ALIQUOT_VERSION,
                       path, found->version);
    *ret = found->ops;
    return 0;
}
#endif
