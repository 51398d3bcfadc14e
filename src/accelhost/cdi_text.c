/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a specification: JSON as it is, YAML as the same values. */
#include <errno.h>

#include "accelhost/cdi.h"
#include "base/yaml_load.h"

json_t *cdi_parse(const char *text, size_t len, bool is_yaml, struct aq_error *err)
{
    static const struct yaml_rules rules = { .depth_max = CDI_DEPTH_MAX,
                                             .values_max = CDI_VALUES_MAX };
    json_error_t where;
    json_t *spec;

    if (is_yaml)
        return yaml_load_text(text, len, &rules, err);
    spec = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    if (!spec)
        (void)aq_fail(err, EINVAL, "line %d: %.80s", where.line, where.text);
    return spec;
}
