/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "cli/config.h"

static char folder[] = "/tmp/aliquot-config-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    for (int s = 0; s < SETTING_COUNT; s++) {
        (void)unsetenv(cli_settings[s].env);
        if (cli_settings[s].backend_env)
            (void)unsetenv(cli_settings[s].backend_env);
    }
    (void)unsetenv("ALIQUOT_PROFILE");
    (void)snprintf(folder, sizeof(folder), "/tmp/aliquot-config-XXXXXX");
    return !mkdtemp(folder) || setenv("XDG_CONFIG_HOME", folder, 1) != 0;
}

static int tear_down(void **state)
{
    (void)state;
    return fs_remove_tree(-100, folder, NULL);
}

static void expect(const char *endpoint, const char *profile, const char *want, const char *origin)
{
    struct cli_config config;
    struct aq_error err = { 0 };

    assert_row(cli_config_load(&config, endpoint, profile, &err) == 0, "%s", err.text);
    assert_string_equal(cli_config_get(&config, SETTING_ENDPOINT), want);
    assert_string_equal(config.origins[SETTING_ENDPOINT], origin);
    cli_config_done(&config);
}

static void save(const char *profile, const char *endpoint)
{
    json_t *settings = json_pack("{s:s}", "endpoint", endpoint);
    struct cli_config config;
    struct aq_error err = { 0 };

    assert_int_equal(cli_config_load(&config, NULL, profile, &err), 0);
    assert_row(cli_profile_change(&config, settings, &err) == 0, "%s", err.text);
    json_decref(settings);
    cli_config_done(&config);
}

static void remove_profile(const char *name, int want)
{
    struct cli_config config;
    struct aq_error err = { 0 };

    assert_int_equal(cli_config_load(&config, NULL, NULL, &err), 0);
    assert_row(cli_profile_remove(&config, name, &err) == want, "%s", err.text);
    cli_config_done(&config);
}

static void test_precedence(void **state)
{
    (void)state;
    expect(NULL, NULL, "http://127.0.0.1:8081", "default");
    save("default", "http://profile");
    expect(NULL, NULL, "http://profile", "profile");
    assert_int_equal(setenv("BACKEND_ENDPOINT", "http://backend", 1), 0);
    expect(NULL, NULL, "http://backend", "BACKEND_ENDPOINT");
    assert_int_equal(setenv("ALIQUOT_ENDPOINT", "http://own", 1), 0);
    expect(NULL, NULL, "http://own", "ALIQUOT_ENDPOINT");
    expect("http://option", NULL, "http://option", "option");
    assert_int_equal(setenv("ALIQUOT_ENDPOINT", "", 1), 0); /* empty is not set */
    expect(NULL, NULL, "http://backend", "BACKEND_ENDPOINT");
}

static void test_profiles(void **state)
{
    char path[128];
    struct stat st;

    (void)state;
    save("one", "http://one");
    save("two", "http://two");
    expect(NULL, NULL, "http://two", "profile"); /* the last that logged in */
    expect(NULL, "one", "http://one", "profile");
    assert_int_equal(setenv("ALIQUOT_PROFILE", "one", 1), 0);
    expect(NULL, NULL, "http://one", "profile");
    remove_profile("one", 0);
    remove_profile("one", -ENOENT);
    expect(NULL, NULL, "http://127.0.0.1:8081", "default");
    (void)snprintf(path, sizeof(path), "%s/aliquot/profiles.json", folder);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        mode_t mode;
        int want;
        const char *says;
    } rows[] = {
        { "{}", 0644, -EPERM, "chmod 600" },       { "{}", 0600, 0, "" },
        { "[]", 0600, -EBADMSG, "not an object" }, { "{", 0600, -EBADMSG, "line 1" },
        { "{\"profiles\": 3}", 0600, 0, "" },
    };
    char path[128];

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/aliquot", folder);
    assert_int_equal(fs_mkdirs(path, 0700, NULL), 0);
    (void)snprintf(path, sizeof(path), "%s/aliquot/profiles.json", folder);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct cli_config config;
        struct aq_error err = { 0 };

        assert_int_equal(
            fs_write_atomic(-100, path, rows[i].text, strlen(rows[i].text), 0600, NULL), 0);
        assert_int_equal(chmod(path, rows[i].mode), 0);
        assert_row(cli_config_load(&config, NULL, NULL, &err) == rows[i].want, "%zu: %s", i,
                   err.text);
        assert_row(strstr(err.text, rows[i].says), "%zu: %s", i, err.text);
        cli_config_done(&config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_precedence, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_profiles, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
