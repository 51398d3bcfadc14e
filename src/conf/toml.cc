#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_WINDOWS_COMPAT 0
#include <toml++/toml.h>

#include <cerrno>
#include <new>
#include <string>
#include <string_view>

extern "C" {
#include "conf/conf.h"
}
#include "conf/toml.h"

namespace {

struct reader {
    const char *name;
    toml_value_fn fn;
    void *data;
    aq_error *err;
};

/* The value of one node, or false when its text cannot be a C string. */
bool fill(const toml::node &node, toml_value &value)
{
    if (const auto *text = node.as_string()) {
        value.kind = TOML_STR;
        value.str = text->get().c_str();
        return text->get().find('\0') == std::string::npos;
    }
    if (const auto *integer = node.as_integer()) {
        value.kind = TOML_INT;
        value.integer = integer->get();
    } else if (const auto *real = node.as_floating_point()) {
        value.kind = TOML_FLOAT;
        value.real = real->get();
    } else if (const auto *boolean = node.as_boolean()) {
        value.kind = TOML_BOOL;
        value.boolean = boolean->get();
    } else {
        value.kind = node.is_table() ? TOML_TABLE : TOML_OTHER;
    }
    return true;
}

int walk(const reader &to, const toml::table &table, const std::string &section)
{
    for (const auto &[key, node] : table) {
        const std::string name(key.str());
        toml_value value = {};

        value.section = section.c_str();
        value.key = name.c_str();
        value.line = static_cast<unsigned>(node.source().begin.line);
        if (!fill(node, value) || name.find('\0') != std::string::npos)
            return aq_fail(to.err, EINVAL, "%s:%u: text holds a NUL character", to.name,
                           value.line);
        if (int r = to.fn(to.data, &value, to.err); r < 0)
            return r;
        if (const auto *inner = node.as_table()) {
            if (int r = walk(to, *inner, section.empty() ? name : section + "." + name); r < 0)
                return r;
        }
    }
    return 0;
}

} // namespace

extern "C" int toml_read(const char *name, const char *text, size_t len, toml_value_fn fn,
                         void *data, struct aq_error *err)
{
    if (len > CONF_FILE_MAX)
        return aq_fail(err, EFBIG, "%s: larger than %u bytes", name, CONF_FILE_MAX);
    try {
        const toml::parse_result result = toml::parse(std::string_view(text, len));

        if (!result) {
            const toml::parse_error &bad = result.error();

            return aq_fail(err, EINVAL, "%s:%u: %s", name,
                           static_cast<unsigned>(bad.source().begin.line),
                           std::string(bad.description()).c_str());
        }
        return walk({ name, fn, data, err }, result.table(), "");
    } catch (const std::bad_alloc &) {
        return aq_fail(err, ENOMEM, "%s: memory is short", name);
    } catch (...) {
        return aq_fail(err, EINVAL, "%s: not readable as TOML", name);
    }
}
